# SPDX-License-Identifier: BSD-3-Clause
"""A record that is being written, and readers of it: nstep never falls, nothing fails, every frame is right."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import numpy as np

import mrec
from tests.concurrency.processes import child

ROWS = 6


def schema() -> mrec.Schema:
    return (
        mrec.Schema()
        .block("atoms", rows=ROWS)
        .column("x", "f64")
        .column("name", "string")
        .block("bonds")
        .column("atomi", "u64")
        .value("pe", "f64")
    )


def append(writer: mrec.TrajectoryWriter, i: int) -> None:
    atoms = {"x": np.arange(ROWS) + float(i), "name": [f"{k}-{i}" for k in range(ROWS)]}
    bonds = {"atomi": np.arange(i % 5, dtype=np.uint64) + i}
    writer.append(i * i, time=i * 0.1, blocks={"atoms": atoms, "bonds": bonds}, values={"pe": -float(i)})


def write(path: Path, flushes: int) -> None:
    """A frame a flush; each hundredth is durable, and once in a while the record is closed and opened again."""
    writer = mrec.TrajectoryWriter(path, schema(), frames_per_chunk=5, chunks_per_shard=7, durable_every=None)
    for i in range(flushes):
        append(writer, i)
        writer.flush(durable=i % 100 == 99)
        if i % 450 == 449:
            writer.close()
            writer = mrec.TrajectoryWriter.open(path, durable_every=None)
    writer.close()


def start(path: Path, flushes: int) -> int:
    """A child that writes, once there is a record."""
    pid = child(lambda: write(path, flushes))
    while not (path / "trajectory" / "zarr.json").exists():
        assert_well(pid)
        time.sleep(0.001)
    return pid


def assert_well(pid: int) -> None:
    """The child runs, or has ended as it should."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    assert ended is None or (ended.si_code, ended.si_status) == (os.CLD_EXITED, 0), "the writer failed by itself"


def assert_frame(frame: mrec.Frame, i: int) -> None:
    assert (frame.step, frame.time, frame.values["pe"]) == (i * i, i * 0.1, -float(i))
    assert frame["atoms"]["x"].tolist() == [k + float(i) for k in range(ROWS)]
    assert frame["atoms"]["name"].tolist() == [f"{k}-{i}" for k in range(ROWS)]
    assert frame["bonds"]["atomi"].tolist() == [k + i for k in range(i % 5)]


def read_along(path: Path, flushes: int, fresh: bool, seed: int, writer: int | None = None) -> int:
    """Read until all is there: opened anew each time, or refreshed. The number of frames read."""
    rng = random.Random(seed)
    trajectory, seen, reads = mrec.open(path).trajectory, 0, 0
    while seen < flushes:
        if writer is not None:
            assert_well(writer)
        if fresh:
            trajectory = mrec.open(path).trajectory
        else:
            trajectory.refresh()
        n = len(trajectory)
        assert n >= seen, f"{n} frames, {seen} were there before"
        seen = n
        for i in {n - 1, n - 2, rng.randrange(max(n, 1))} & set(range(n)):
            assert_frame(trajectory[i], i)
            reads += 1
    return reads

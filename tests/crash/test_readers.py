# SPDX-License-Identifier: BSD-3-Clause
"""Readers in a loop while a record is being written: nstep never falls, nothing fails, every frame is right."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import numpy as np
import pytest

import mrec

FLUSHES = 1500
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


def write(path: Path) -> None:
    with mrec.TrajectoryWriter(path, schema(), frames_per_chunk=5, chunks_per_shard=7, durable_every=None) as writer:
        for i in range(FLUSHES):
            append(writer, i)
            writer.flush(durable=i % 100 == 99)


def assert_frame(frame: mrec.Frame, i: int) -> None:
    assert (frame.step, frame.time, frame.values["pe"]) == (i * i, i * 0.1, -float(i))
    assert frame["atoms"]["x"].tolist() == [k + float(i) for k in range(ROWS)]
    assert frame["atoms"]["name"].tolist() == [f"{k}-{i}" for k in range(ROWS)]
    assert frame["bonds"]["atomi"].tolist() == [k + i for k in range(i % 5)]


def assert_well(child: int) -> None:
    """The writer runs, or has ended as it should."""
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    assert ended is None or (ended.si_code, ended.si_status) == (os.CLD_EXITED, 0), "the writer failed by itself"


@pytest.mark.filterwarnings("ignore:This process.*fork")
@pytest.mark.parametrize("fresh", [False, True], ids=["refreshed", "opened anew"])
def test_reading_while_writing(tmp_path: Path, fresh: bool) -> None:
    path, rng = tmp_path / "x.mrec", random.Random(3)
    child = os.fork()
    if child == 0:
        try:
            write(path)
            os._exit(0)
        finally:
            os._exit(1)
    while not (path / "trajectory" / "zarr.json").exists():
        assert_well(child)
        time.sleep(0.001)
    trajectory, seen, reads = mrec.open(path).trajectory, 0, 0
    while seen < FLUSHES:
        assert_well(child)
        if fresh:
            trajectory = mrec.open(path).trajectory
        else:
            trajectory.refresh()
        n = len(trajectory)
        assert n >= seen
        seen = n
        for i in {n - 1, n - 2, rng.randrange(max(n, 1))} & set(range(n)):
            assert_frame(trajectory[i], i)
            reads += 1
    _, status = os.waitpid(child, 0)
    assert status == 0
    for i, frame in enumerate(mrec.open(path).trajectory):
        assert_frame(frame, i)
    print(f"{reads} frames read during {FLUSHES} flushes")
    assert reads > 50

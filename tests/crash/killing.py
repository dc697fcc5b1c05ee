# SPDX-License-Identifier: BSD-3-Clause
"""A writer is killed, again and again, wherever it happens to be; and what is left is read, by other programs too."""

from __future__ import annotations

import importlib.util
import json
import mmap
import os
import random
import shutil
import signal
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import zarr

import mrec
from tests.concurrency.processes import child
from tests.crash.scenario import OPTIONS, assert_frame, frame, schema

WITH_MOLRS = importlib.util.find_spec("molrs") is not None
STARTING, OPENING, APPENDING, COMMIT, CLOSING, DONE = "starting", "opening", "appending", "commit", "closing", "done"
STATES = (STARTING, OPENING, APPENDING, COMMIT, CLOSING, DONE)
AUTOMATIC = 7  # frames after which a writer lands by itself


@dataclass(frozen=True)
class Run:
    """How a record is written: with so many atoms, flushed every so many frames; 0: it lands by itself."""

    atoms: int
    every: int
    frames: int = 24  # then it is done
    threads: int = 1

    def lands(self, n: int, handed: int) -> bool:
        """Whether frame n is published when it is appended, after so many that were."""
        return n + 1 - handed == AUTOMATIC if self.every == 0 else (n + 1) % self.every == 0

    def __str__(self) -> str:
        return ("automatically" if self.every == 0 else f"every {self.every}") + self.threads // 2 * " with threads"


class Board:
    """What the writer says of itself, in memory that outlives it: its state, frames published, frames under way."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 24)

    def put(self, state: str, published: int, under_way: int) -> None:
        self._memory[:24] = struct.pack("<qqq", STATES.index(state), published, under_way)

    def get(self) -> tuple[str, int, int]:
        state, published, under_way = struct.unpack("<qqq", self._memory[:24])
        return STATES[state], published, under_way


# ---- the writer --------------------------------------------------------------------------------------------------


def write(path: Path, run: Run, board: Board, published: int) -> None:
    """Open or create, append to the end, publish as the run does, each third time durably; close, and open again."""
    board.put(OPENING, published, published)
    cadence = {"flush_every": AUTOMATIC if run.every == 0 else 10**6, "durable_every": None, "threads": run.threads}
    if (path / "trajectory" / "zarr.json").exists():
        writer = mrec.TrajectoryWriter.open(path, **cadence)
    else:
        writer = mrec.TrajectoryWriter(path, schema(run.atoms), overwrite=True, **OPTIONS, **cadence)
    n = published = handed = writer.nframes
    board.put(APPENDING, n, n)
    while n < run.frames:
        one = frame(n, run.atoms)
        commits = run.lands(n, handed)
        if run.every == 0:
            board.put(COMMIT if commits else APPENDING, published, n + 1)
        writer.append(one)
        n += 1
        if commits and run.every:
            board.put(COMMIT, published, n)
            writer.flush(durable=n // run.every % 3 == 2)
        handed = n if commits else handed
        published = writer.published
        assert published == n if commits and (run.every or run.threads == 1) else published <= n
        board.put(APPENDING, published, n)
        if n % 9 == 8:
            board.put(CLOSING, published, n)
            writer.close()
            published = handed = n
            board.put(OPENING, n, n)
            writer = mrec.TrajectoryWriter.open(path, **cadence)
            board.put(APPENDING, n, n)
    board.put(CLOSING, published, n)
    writer.close()
    board.put(DONE, n, n)


# ---- killing -----------------------------------------------------------------------------------------------------


def reached(board: Board, target: str, frames: int) -> bool:
    state, _, under_way = board.get()
    return state == DONE or (state == target and under_way >= frames)


def killed(path: Path, run: Run, board: Board, published: int, rng: random.Random) -> tuple[str, int, int]:
    """Run a writer in a child, kill it a while after it reached some state, and tell where it was (it may be done)."""
    board.put(STARTING, published, published)
    pid = child(lambda: write(path, run, board, published))
    target = rng.choices((OPENING, APPENDING, COMMIT, CLOSING), (1, 1, 8, 1))[0]
    frames = published if target == OPENING else rng.randint(published, run.frames)
    while not reached(board, target, frames):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.00005)
    time.sleep(rng.uniform(0.0, rng.choice((0.0, 0.001, 0.005))))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the writer failed by itself"
    return board.get()


def kill_often(folder: Path, kills: int, rng: random.Random, next_run: Callable[[], Run]) -> Counter[str]:
    """Kill so many writers, each of which goes on where the one before was; what there was to count."""
    board, seen = Board(), Counter[str]()
    published, run = 0, next_run()
    while seen["kills"] < kills:
        path = folder / f"{seen['records finished']}.mrec"
        state, published, under_way = killed(path, run, board, published, rng)
        if state != DONE:
            seen.update({"kills": 1, f"in {state}": 1, f"flushing {run}": 1})
        if not (path / "trajectory" / "zarr.json").exists():
            assert state in (STARTING, OPENING) and published == 0, "the record vanished"
            continue
        published = check(path, run, published, under_way)
        seen["torn indexes"] += not read_by_others(path, run, published)
        if state == DONE:
            shutil.rmtree(path)
            seen["records finished"] += 1
            published, run = 0, next_run()
    return seen


# ---- what is left ------------------------------------------------------------------------------------------------


def check(path: Path, run: Run, at_least: int, at_most: int) -> int:
    """The record opens, holds between so many frames, and each is right; the number of frames."""
    with mrec.open(path) as rec:
        n = len(rec.trajectory)
        assert at_least <= n <= at_most, f"{n} frames, {at_least} were published and {at_most} under way"
        for i, found in enumerate(rec.trajectory):
            assert_frame(found, i, run.atoms)
    return n


def read_by_others(path: Path, run: Run, stands: int) -> bool:
    """Through zarr-python and molrs. False when they could read it only once it was opened and closed again.

    They know the marker alone: killed between a new `.durable` and the marker, the record has more frames than the
    marker says, also when the next writer is killed before it put that right. A kill between two pages of a write
    tears an index of more than one page; its entries hold, its checksum does not, and they believe only the checksum.
    """
    marked = json.loads((path / "trajectory" / "zarr.json").read_bytes())["attributes"]["nstep"]
    if marked < stands:
        assert json.loads((path / "trajectory" / ".durable").read_bytes())["nstep"] == stands
    assert marked <= stands
    torn = False
    try:
        compare(path, run, marked)
    except ValueError as e:
        assert "checksum" in str(e)
        torn = True
    if torn or marked < stands:
        mended = path.with_name("mended.mrec")
        shutil.copytree(path, mended)
        mrec.TrajectoryWriter.open(mended).close()
        compare(mended, run, stands)
        shutil.rmtree(mended)
    return not torn


def compare(path: Path, run: Run, frames: int) -> None:
    wanted = [frame(i, run.atoms) for i in range(frames)]
    compare_with_zarr(path, wanted)
    if WITH_MOLRS:
        compare_with_molrs(path, wanted)


def compare_with_zarr(path: Path, wanted: list[mrec.Frame]) -> None:
    """Every column of the atoms, which are others in each frame, and the values; what is longer is cut."""
    stored = zarr.open_group(path / "trajectory", mode="r")
    rows = sum(one["atoms"].nrows for one in wanted)
    for name in ("x", "name", "tag"):
        parts = [np.ma.filled(one["atoms"][name], 0) if name == "tag" else one["atoms"][name] for one in wanted]
        there = stored[f"atoms/{name}"][:rows].tolist()
        assert there == [value for part in parts for value in part.tolist()], name
    assert stored["meta/pe"][: len(wanted)].tolist() == [one.values["pe"] for one in wanted]


def compare_with_molrs(path: Path, wanted: list[mrec.Frame]) -> None:
    """Every step and time, positions and bonds."""
    from molrs.io.mrec import MrecReader

    reader = MrecReader(path)
    assert reader.step == [one.step for one in wanted]
    assert list(reader.time or []) == [one.time for one in wanted]
    for i, one in enumerate(wanted):
        there = reader[i]
        for block, column in (("atoms", "y"), ("atoms", "x"), ("bonds", "atomi")):
            assert there[block][column].tolist() == one[block][column].tolist(), (i, column)

# SPDX-License-Identifier: BSD-3-Clause
"""A writer is killed, again and again, wherever it happens to be; the record loses nothing that was published."""

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
import traceback
from collections import Counter
from pathlib import Path

import pytest

import mrec
from tests.crash.scenario import OPTIONS, check, frame, schema

KILLS = 200
FRAMES = 24  # of one record; a new one is begun when it is reached
APPENDING, COMMIT, OPENING, CLOSING, DONE = "appending", "commit", "opening", "closing", "done"
STATES = (APPENDING, COMMIT, OPENING, CLOSING, DONE)


class Board:
    """What the writer says of itself, in memory that outlives it: its state, frames published, frames under way."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 24)

    def put(self, state: str, published: int, under_way: int) -> None:
        self._memory[:24] = struct.pack("<qqq", STATES.index(state), published, under_way)

    def get(self) -> tuple[str, int, int]:
        state, published, under_way = struct.unpack("<qqq", self._memory[:24])
        return STATES[state], published, under_way


def write(path: Path, board: Board, published: int) -> None:
    """Open or create, append to the end, publish after each frame, each third time durably; close, and open again."""
    board.put(OPENING, published, published)
    if (path / "trajectory" / "zarr.json").exists():
        writer = mrec.TrajectoryWriter.open(path)
    else:
        writer = mrec.TrajectoryWriter(path, schema(), overwrite=True, **OPTIONS)
    n = writer.nframes
    board.put(APPENDING, n, n)
    while n < FRAMES:
        writer.append(frame(n))
        board.put(COMMIT, n, n + 1)
        writer.flush(durable=n % 3 == 2)
        n += 1
        board.put(APPENDING, n, n)
        if n % 7 == 0:
            board.put(CLOSING, n, n)
            writer.close()
            board.put(OPENING, n, n)
            writer = mrec.TrajectoryWriter.open(path)
    board.put(CLOSING, n, n)
    writer.close()
    board.put(DONE, n, n)


def reached(board: Board, target: str, frames: int) -> bool:
    state, _, under_way = board.get()
    return state == DONE or (state == target and under_way >= frames) or (target == OPENING and state != OPENING)


def killed_run(path: Path, board: Board, published: int, rng: random.Random) -> tuple[str, int, int]:
    """Run a writer in a child, kill it a while after it reached some state, and tell where it was."""
    board.put(OPENING, published, published)
    child = os.fork()
    if child == 0:
        try:
            write(path, board, published)
            os._exit(0)
        except BaseException:  # the test must see it, and nothing of pytest may run here
            os.write(2, traceback.format_exc().encode())
            os._exit(1)
    target = rng.choices((OPENING, APPENDING, COMMIT, CLOSING), (3, 1, 5, 1))[0]
    frames = rng.randint(published, FRAMES)
    while not reached(board, target, frames):
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            break
        time.sleep(0.0001)
    time.sleep(rng.uniform(0.0, 0.02 if target == OPENING else 0.005))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the writer failed by itself"
    return board.get()


@pytest.mark.filterwarnings("ignore:This process.*fork")
def test_killed_writer_loses_nothing_published(tmp_path: Path) -> None:
    rng, board, where = random.Random(20), Board(), Counter[str]()
    published, number, torn = 0, 0, 0
    for _ in range(KILLS):
        path = tmp_path / f"{number}.mrec"
        state, published, under_way = killed_run(path, board, published, rng)
        where[state] += 1
        if not (path / "trajectory" / "zarr.json").exists():
            assert state == OPENING and published == 0, "the record vanished"
            continue
        before, published = published, check(path, published, under_way)
        torn += not read_by_molrs(path, before, published)
        if state == DONE:
            published, number = 0, number + 1
    print(f"killed {KILLS} times: {dict(where)}, {number} records finished, {torn} torn indexes")
    assert where[COMMIT] >= 0.3 * KILLS
    assert where[OPENING] > 0
    assert number > 0


def read_by_molrs(path: Path, published: int, stands: int) -> bool:
    """Every step, time and coordinate. False when molrs could read it only once the record was opened and closed again.

    Molrs knows the marker alone: killed between a new `.durable` and the marker, the record has a frame more than the
    marker says. A kill between two pages of a write tears an index of more than one page; its entries hold, its
    checksum does not, and molrs believes only the checksum.
    """
    if importlib.util.find_spec("molrs") is None:
        return True
    marked = json.loads((path / "trajectory" / "zarr.json").read_bytes())["attributes"]["nstep"]
    assert published <= marked <= stands
    torn = False
    try:
        compare_with_molrs(path, marked)
    except ValueError as e:
        assert "the checksum is invalid" in str(e)
        torn = True
    if torn or marked < stands:
        mended = path.with_name("mended.mrec")
        shutil.copytree(path, mended)
        mrec.TrajectoryWriter.open(mended).close()
        compare_with_molrs(mended, stands)
        shutil.rmtree(mended)
    return not torn


def compare_with_molrs(path: Path, frames: int) -> None:
    from molrs.io.mrec import MrecReader

    reader = MrecReader(path)
    assert reader.step == [frame(i).step for i in range(frames)]
    assert list(reader.time or []) == [frame(i).time for i in range(frames)]
    for i in range(frames):
        wanted, there = frame(i), reader[i]
        assert there["atoms"]["y"].tolist() == wanted["atoms"]["y"].tolist(), i
        assert there["atoms"]["x"].tolist() == wanted["atoms"]["x"].tolist(), i
        assert there["bonds"]["atomi"].tolist() == wanted["bonds"]["atomi"].tolist(), i

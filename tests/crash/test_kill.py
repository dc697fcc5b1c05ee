# SPDX-License-Identifier: BSD-3-Clause
"""A writer is killed, again and again, wherever it happens to be; the record loses nothing that was published."""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
import time
from collections import Counter
from pathlib import Path

import mrec
import pytest

from tests.crash.scenario import OPTIONS, assert_frame, check, frame, schema

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


def killed_run(path: Path, board: Board, published: int, delay: float) -> tuple[str, int, int]:
    """Run a writer in a child, kill it after a while, and tell where it was."""
    board.put(OPENING, published, published)
    child = os.fork()
    if child == 0:
        try:
            write(path, board, published)
            os._exit(0)
        except BaseException as e:  # the test must see it, and nothing of pytest may run here
            os.write(2, f"{type(e).__name__}: {e}\n".encode())
            os._exit(1)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the writer failed by itself"
    return board.get()


@pytest.mark.filterwarnings("ignore:This process.*fork")
def test_killed_writer_loses_nothing_published(tmp_path: Path) -> None:
    rng, board, where = random.Random(20), Board(), Counter[str]()
    published, number = 0, 0
    for _ in range(KILLS):
        path = tmp_path / f"{number}.mrec"
        state, published, under_way = killed_run(path, board, published, rng.uniform(0.0, 0.06))
        where[state] += 1
        if not (path / "trajectory" / "zarr.json").exists():
            assert state == OPENING and published == 0, "the record vanished"
            continue
        published = check(path, published, under_way)
        read_by_molrs(path, published)
        if state == DONE:
            published, number = 0, number + 1
    print(f"killed {KILLS} times: {dict(where)}, {number} records finished")
    assert where[COMMIT] >= 0.3 * KILLS
    assert where[OPENING] > 0
    assert number > 0


def read_by_molrs(path: Path, frames: int) -> None:
    molrs = pytest.importorskip("molrs")
    reader = molrs.MrecReader(str(path))
    assert len(reader) == frames

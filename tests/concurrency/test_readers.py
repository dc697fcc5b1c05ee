# SPDX-License-Identifier: BSD-3-Clause
"""Readers in a loop while a record is being written (tests/long/test_readers.py: more of them, for longer)."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import mrec
from tests.concurrency.live import assert_frame, assert_well, read_along, start
from tests.concurrency.processes import ended_well

FLUSHES = 1000
pytestmark = pytest.mark.filterwarnings("ignore:This process.*fork")


@pytest.mark.parametrize("fresh", [False, True], ids=["refreshed", "opened anew"])
def test_reading_while_writing(tmp_path: Path, fresh: bool) -> None:
    path = tmp_path / "x.mrec"
    writer = start(path, FLUSHES)
    reads = read_along(path, FLUSHES, fresh, 3, writer)
    assert ended_well(writer)
    for i, frame in enumerate(mrec.open(path).trajectory):
        assert_frame(frame, i)
    print(f"{reads} frames read during {FLUSHES} flushes")
    assert reads > 50


def test_threads_share_a_trajectory_while_it_is_written(tmp_path: Path) -> None:
    path, flushes = tmp_path / "x.mrec", FLUSHES // 2
    writer = start(path, flushes)
    trajectory, failures, reads = mrec.open(path).trajectory, [], [0] * 4

    def read(k: int) -> None:
        seen = 0
        try:
            while seen < flushes:
                trajectory.refresh()
                n = len(trajectory)
                assert n >= seen
                for i in range(max(seen, n - 3), n):
                    assert_frame(trajectory[i], i)
                    reads[k] += 1
                seen = n
                assert_well(writer)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=read, args=(k,)) for k in range(len(reads))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert ended_well(writer)
    assert min(reads) > 10

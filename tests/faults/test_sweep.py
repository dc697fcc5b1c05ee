# SPDX-License-Identifier: BSD-3-Clause
"""A sample of the sweep (tests/long/test_faults.py runs all of it), and what a user does after a failure."""

from __future__ import annotations

import errno
import random
from pathlib import Path

import pytest

import mrec
from mrec._core import FaultFiles
from tests.faults.story import COLUMN, FULL, NEVER, Point, Teller, check, memory
from tests.faults.sweep import FAULTS, SCENARIOS, Scenario, Sweep

RUNS = 15


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_failed_call_loses_nothing_published(scenario: Scenario, threads: int) -> None:
    with memory() as folder:
        sweep = Sweep(scenario, folder, threads)
        points = [(fault, k) for fault in FAULTS for k in sweep.points(fault)]
        for fault, k in random.Random(f"{scenario.name} {threads}").sample(points, RUNS if threads == 1 else RUNS // 2):
            try:
                sweep.run(fault, k)
            except Exception as e:
                e.add_note(f"{scenario.name}: {fault.name} at call {k} of {sweep.calls}")
                raise


def test_a_directory_that_cannot_be_listed_is_not_said_to_be_no_record(tmp_path: Path) -> None:
    teller, files = Teller(tmp_path / "a.mrec", COLUMN), FaultFiles()
    teller.tell("C a X")
    files.arm(2, error=errno.EIO)
    with files, pytest.raises(OSError, match="cannot list") as raised:
        mrec.TrajectoryWriter(teller.path, COLUMN.schema(), overwrite=True)
    assert (raised.value.errno, files.calls[1]) == (errno.EIO, "l")
    check(teller.path, COLUMN, teller.under_way, "published")


def test_a_full_disk_with_room_made_goes_on(tmp_path: Path) -> None:
    files, path = FaultFiles(), tmp_path / "a.mrec"
    with files:
        teller = Teller(path, COLUMN)
        teller.tell("C a D a a")
        files.arm(1, error=errno.ENOSPC, persistent=True)
        with pytest.raises(OSError) as first:
            teller.tell("D")
        assert first.value.errno == errno.ENOSPC
        assert first.value.filename.startswith(str(path))
        assert teller.writer is not None
        files.arm()
        with pytest.raises(OSError, match="No space left"):
            teller.writer.close()
        with mrec.TrajectoryWriter.open(path, **NEVER) as writer:
            assert writer.nframes == 1
            for i in range(1, 4):
                writer.append(COLUMN.frame((0, i)))
    frames = tuple((0, i) for i in range(4))
    check(path, COLUMN, (Point(frames, 4, 4),), "published")


def test_a_failed_with_block_tells_of_both(tmp_path: Path) -> None:
    files = FaultFiles()
    with (
        files,
        pytest.raises(ZeroDivisionError) as raised,
        mrec.TrajectoryWriter(tmp_path / "a.mrec", FULL.schema()) as w,
    ):
        w.append(FULL.frame((0, 0)))
        files.arm(1, error=errno.EIO, persistent=True)
        raise ZeroDivisionError
    assert any("closing" in note and "Input/output error" in note for note in raised.value.__notes__)


def test_a_record_that_could_not_be_opened_is_not_held(tmp_path: Path) -> None:
    teller = Teller(tmp_path / "a.mrec", COLUMN)
    teller.tell("C a X")
    files = FaultFiles()
    with files:
        files.arm(3, error=errno.EIO, persistent=True)
        with pytest.raises(OSError) as raised:
            mrec.TrajectoryWriter.open(teller.path)
        files.arm()
        mrec.TrajectoryWriter.open(teller.path).close()  # while the error, with its traceback, is still there
    assert raised.value.errno == errno.EIO

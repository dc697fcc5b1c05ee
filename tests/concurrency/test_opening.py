# SPDX-License-Identifier: BSD-3-Clause
"""Many processes want one record at the same time."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import RecordExists, RecordLocked
from tests.concurrency.processes import together
from tests.trajectory.ondisk import frames, write

PROCESSES = 32
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def schema() -> mrec.Schema:
    return mrec.Schema().block("b", rows=3).column("q", "f64").value("process", "i64")


def append(writer: mrec.TrajectoryWriter, i: int) -> None:
    writer.append(None, b={"q": np.arange(3.0) + i}, process=i)


def test_each_of_them_appends_in_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    write(path, schema()).close()

    def take_a_turn(i: int) -> str:
        refused, pause = 0, random.Random(i)
        while True:
            try:
                with mrec.TrajectoryWriter.open(path, durable=False) as writer:
                    n = writer.nframes
                    append(writer, i)
                return f"{n} {i} {refused}"
            except RecordLocked as e:
                assert f"process {os.getpid()}" not in str(e)
                refused += 1
                time.sleep(pause.uniform(0.001, 0.02))

    told = [[int(word) for word in line.split()] for line in together(PROCESSES, take_a_turn)]
    assert sorted(n for n, _, _ in told) == list(range(PROCESSES))
    there = frames(path)
    assert len(there) == PROCESSES
    for n, i, _ in told:
        assert there[n].values["process"] == i
        assert there[n]["b"]["q"].tolist() == [i, i + 1, i + 2]
    assert sum(refused for _, _, refused in told) > 0


def test_one_of_them_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"

    def make(i: int) -> str:
        try:
            with write(path, schema()) as writer:
                append(writer, i)
            return f"made {i}"
        except (RecordExists, RecordLocked):
            return "refused"

    told = together(PROCESSES, make)
    made = [line for line in told if line != "refused"]
    assert (len(made), len(told)) == (1, PROCESSES)
    assert [f"made {frame.values['process']}" for frame in frames(path)] == made


def test_each_of_them_replaces_it_or_is_told_why_not(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"

    def replace(i: int) -> str:
        try:
            with write(path, schema(), overwrite=True) as writer:
                append(writer, i)
            return "made"
        except RecordLocked:
            return "locked"

    told = together(PROCESSES, replace)
    assert len(told) == PROCESSES and "made" in told and set(told) <= {"made", "locked"}
    (frame,) = frames(path)
    assert frame["b"]["q"][0] == frame.values["process"]
    assert mrec.verify(path).ok


def test_all_of_them_read_while_one_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    writer = write(path, schema(), frames_per_chunk=4)
    for i in range(50):
        append(writer, i)
    writer.flush()

    def read(i: int) -> str:
        trajectory = mrec.open(path).trajectory
        assert trajectory.values("process").tolist() == list(range(len(trajectory)))
        assert trajectory.read("b", "q", frames=i).tolist() == [i, i + 1, i + 2]
        with pytest.raises(RecordLocked):
            mrec.TrajectoryWriter.open(path)
        return str(len(trajectory))

    assert together(PROCESSES, read) == ["50"] * PROCESSES
    append(writer, 50)
    writer.close()
    assert len(frames(path)) == 51

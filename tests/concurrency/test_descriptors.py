# SPDX-License-Identifier: BSD-3-Clause
"""More arrays than a process may have files open."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import write

COLUMNS = 500
NAMES = [f"q{i}" for i in range(COLUMNS)]


@pytest.fixture
def few() -> Iterator[int]:
    """At most 64 descriptors, a dozen of them the test runner's; two more for each that it has more.

    A writer takes up to half of the limit: with one more for each, a runner's many left nothing to anyone else.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(64, 2 * (opened() + 20))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    yield limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def schema() -> mrec.Schema:
    declared = mrec.Schema().block("b", rows=2)
    for name in NAMES:
        declared.column(name, "f64")
    return declared


def values(i: int) -> np.ndarray:
    return np.arange(2.0 * COLUMNS).reshape(2, COLUMNS) + i


def append(writer: mrec.TrajectoryWriter, n: int) -> None:
    for _ in range(n):
        writer.append(None, b={tuple(NAMES): values(writer.nframes)})
        writer.flush(durable=False)


def opened() -> int:
    return len(os.listdir("/dev/fd"))


def check(path: Path, frames: int) -> None:
    with mrec.open(path) as record:
        trajectory = record.trajectory
        assert len(trajectory) == frames
        for i, frame in enumerate(trajectory):
            assert np.column_stack([frame["b"][name] for name in NAMES]).tolist() == values(i).tolist()
        read = trajectory.read("b", NAMES)
        assert read.tolist() == [values(i).tolist() for i in range(frames)]


def test_five_hundred_arrays_with_sixty_four_descriptors(tmp_path: Path, few: int) -> None:
    gc.collect()  # what other tests left open is not counted
    path, before = tmp_path / "a.mrec", opened()
    with write(path, schema(), frames_per_chunk=2, chunks_per_shard=2) as writer:
        append(writer, 5)  # over a border of shards
        assert before < opened() < few
    with mrec.TrajectoryWriter.open(path, durable=False) as writer:
        append(writer, 1)
    check(path, 6)
    with mrec.TrajectoryWriter.open(path, at="4@3", durable=False) as writer:
        append(writer, 2)
    check(path, 6)
    assert mrec.verify(path).ok
    packed = mrec.pack(path)
    check(Path(packed), 6)
    assert opened() <= before


@pytest.mark.parametrize("others", [0, 20, 60, 120])
def test_as_many_descriptors_as_others_leave(tmp_path: Path, others: int) -> None:
    """Also where half of the limit, which a writer takes at most, is more than there are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(others)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened() + 40, hard))
    try:
        with write(tmp_path / "a.mrec", schema(), frames_per_chunk=2, chunks_per_shard=2) as writer:
            append(writer, 5)
        with mrec.TrajectoryWriter.open(tmp_path / "a.mrec", durable=False) as writer:
            append(writer, 1)
        check(tmp_path / "a.mrec", 6)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in held:
            os.close(fd)


def test_others_use_the_descriptors_up(tmp_path: Path, few: int) -> None:
    """A writer and a reader that had their share give some back."""
    path, others = tmp_path / "a.mrec", []
    with write(path, schema()) as writer:
        append(writer, 1)
        trajectory = mrec.open(path).trajectory
        trajectory.read("b", NAMES)
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                others.append(os.open(path, os.O_RDONLY))
        for _ in range(3):  # for what is not theirs to give up: a document, a directory to list
            os.close(others.pop())
        append(writer, 3)
        trajectory.refresh()
        assert trajectory.read("b", NAMES)[:, 0, 0].tolist() == [0.0, 1.0, 2.0, 3.0]
    for fd in others:
        os.close(fd)
    check(path, 4)

# SPDX-License-Identifier: BSD-3-Clause
"""A process is forked while its writer is in the middle of something."""

from __future__ import annotations

import gc
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import ForkedHandle
from tests.concurrency.processes import child, ended_well
from tests.trajectory.ondisk import frames, write

FORKS = 8
ROWS = 5_000
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """Garbage is looked for in what a test made: over all that its runner holds, that takes each child seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


def schema() -> mrec.Schema:
    return mrec.Schema().block("b", rows=ROWS).column("q", "f64", precision=1e-3)


def test_forked_while_a_thread_is_inside(tmp_path: Path) -> None:
    """The child is told that the writer is not its own, drops it, and writes and reads by itself."""
    path = tmp_path / "a.mrec"
    writer = write(path, schema())
    many = np.random.default_rng(1).normal(size=(8, ROWS))
    stop, appended = threading.Event(), 0

    def work() -> None:
        nonlocal appended
        while not stop.is_set():
            writer.append_many(np.arange(8) + writer.nframes, b={"q": many})
            writer.flush(durable=False)
            appended += 8

    def in_child(i: int) -> None:
        nonlocal writer
        for call in (lambda: writer.append(10**9, b={"q": many[0]}), writer.flush, writer.close):
            with pytest.raises(ForkedHandle, match="belongs to the parent process"):
                call()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what it would say of frames not landed is not so
            writer = None
            gc.collect()
        with write(tmp_path / f"{i}.mrec", schema()) as own:
            own.append(0, b={"q": many[0]})
        trajectory = mrec.open(path).trajectory
        if len(trajectory):
            assert np.abs(trajectory[-1]["b"]["q"] - many[(len(trajectory) - 1) % 8]).max() < 1e-3

    thread = threading.Thread(target=work)
    thread.start()
    while writer.published == 0:
        time.sleep(0.001)
    assert all(ended_well(child(lambda i=i: in_child(i))) for i in range(FORKS))
    stop.set()
    thread.join()
    writer.close()
    there = frames(path)
    assert len(there) == appended
    for i, frame in enumerate(there):
        assert np.abs(frame["b"]["q"] - many[i % 8]).max() < 1e-3
    for i in range(FORKS):
        assert len(frames(tmp_path / f"{i}.mrec")) == 1


def test_frames_that_wait_at_a_fork_are_landed_once(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    with write(path, schema()) as writer:
        for i in range(20):
            writer.append(None, b={"q": np.full(ROWS, float(i))})
            if i % 3 == 0:
                assert ended_well(child(gc.collect))
    assert [frame["b"]["q"][0] for frame in frames(path)] == list(range(20))


def test_a_reader_goes_over_a_fork(tmp_path: Path) -> None:
    """While other threads read; each child reads more than the parent did."""
    path = tmp_path / "a.mrec"
    with write(path, schema(), frames_per_chunk=1) as writer:
        for i in range(12):
            writer.append(None, b={"q": np.full(ROWS, float(i))})
    trajectory, stop = mrec.open(path).trajectory, threading.Event()

    def look() -> None:
        for i in range(12):
            assert trajectory[i]["b"]["q"].max() == i

    def work() -> None:
        while not stop.is_set():
            look()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    good = all(ended_well(child(look)) for _ in range(FORKS))
    stop.set()
    for thread in threads:
        thread.join()
    assert good

# SPDX-License-Identifier: BSD-3-Clause
"""Signals while a writer works: handlers run and go back, handlers raise, Ctrl-C, and the end by SIGTERM."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.errors import RecordExists
from tests.trajectory.ondisk import frames, tree, write

ROOT = Path(__file__).parents[2]
ROWS = 300


def schema() -> mrec.Schema:
    return mrec.Schema().block("b", rows=ROWS).column("q", "f64", precision=1e-3).column("s", "string")


def data(i: int) -> dict[str, Any]:
    return {"q": np.arange(ROWS) / 8 + i, "s": [f"{i}"] * ROWS}


@contextmanager
def alarms(handler: Callable[..., None], every: float, again: float = 0.0) -> Iterator[None]:
    """SIGALRM after `every` seconds, and then every `again` seconds."""
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, every, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- handlers that return ----------------------------------------------------------------------------------------


def work(path: Path) -> None:
    with mrec.TrajectoryWriter(path, schema(), frames_per_chunk=3, chunks_per_shard=2) as writer:
        for i in range(30):
            writer.append(i, b=data(i))
            writer.flush(durable=i % 2 == 0)
    with mrec.TrajectoryWriter.open(path, truncate_after_step=25) as writer:
        for i in range(26, 40):
            writer.append(i, b=data(i))
    mrec.unpack(mrec.pack(path), path.with_suffix(".unpacked"))


def test_signals_change_nothing(tmp_path: Path) -> None:
    """Calls that they interrupt are made again: byte for byte the same comes about."""
    seen = 0

    def note(*_: object) -> None:
        nonlocal seen
        seen += 1

    (tmp_path / "quiet").mkdir()
    (tmp_path / "noisy").mkdir()
    work(tmp_path / "quiet/a.mrec")
    with alarms(note, 2e-4, 2e-4):
        work(tmp_path / "noisy/a.mrec")
    assert seen > 100
    assert tree(tmp_path / "noisy") == tree(tmp_path / "quiet")


# ---- handlers that raise -----------------------------------------------------------------------------------------


class Interrupted:
    """Calls that an exception of a handler ends after a short while, wherever they are."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.times = 0

    def call(self, what: Callable[[], Any]) -> bool:
        """Whether it came to its end."""

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        try:
            with alarms(interrupt, 10 ** self.rng.uniform(-5.5, -2.5)):
                what()
        except KeyboardInterrupt:
            self.times += 1
            return False
        return True


@pytest.mark.parametrize("how", ["append", "append one by one", "append_many"])
def test_interrupts_lose_and_double_nothing(tmp_path: Path, how: str) -> None:
    """`nframes` says what was taken; the writer goes on."""
    path, interrupted, n = tmp_path / "a.mrec", Interrupted(7), 0
    writer = write(path, schema(), durable=True, frames_per_chunk=3, chunks_per_shard=5)

    def append() -> None:
        if how == "append":
            writer.append(n, b=data(n))
        elif how == "append one by one":
            writer.append(n, mrec.Frame({"b": data(n)}))
        else:
            several = [data(i) for i in range(n, n + 4)]
            together = {name: np.stack([np.asarray(one[name]) for one in several]) for name in ("q", "s")}
            boxes = [mrec.Box.from_lengths(i + 1.0, 1.0, 1.0) for i in range(n, n + 4)]
            writer.append_many(range(n, n + 4), b=together, box=boxes)

    while n < 150:
        done = interrupted.call(append)
        taken = writer.nframes - n
        assert taken == (4 if how == "append_many" else 1) if done else 0 <= taken <= 4
        n = writer.nframes
        published = writer.published
        if interrupted.call(lambda durable=n % 4 == 0: writer.flush(durable=durable)):
            assert writer.published == n
        assert writer.published in (published, n)
    while not interrupted.call(writer.close):
        pass
    assert writer.closed
    there = frames(path)
    assert [frame.step for frame in there] == list(range(n))
    for i, frame in enumerate(there):
        assert np.abs(frame["b"]["q"] - data(i)["q"]).max() < 1e-3
        assert frame["b"]["s"][0] == f"{i}"
    assert interrupted.times > 20
    assert mrec.verify(path).ok


@pytest.mark.filterwarnings("ignore:the writer of .* was never closed")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupted_opening_leaves_the_record_free(tmp_path: Path) -> None:
    path, interrupted = tmp_path / "a.mrec", Interrupted(3)
    kept: list[mrec.TrajectoryWriter] = []

    def make() -> None:
        kept.append(write(path, schema(), durable=True))

    while not interrupted.call(make):
        try:
            write(path, schema()).close()
            break
        except RecordExists:  # the interrupt came after it was made
            write(path, schema(), overwrite=True).close()
            break
    for n in range(150):
        while kept:
            kept.pop().close()
        interrupted.call(lambda: kept.append(mrec.TrajectoryWriter.open(path)))
        writer = kept.pop() if kept else mrec.TrajectoryWriter.open(path)
        assert writer.nframes == n
        writer.append(n, b=data(n))
        while not interrupted.call(writer.close):
            pass
    assert [frame.step for frame in frames(path)] == list(range(150))
    assert interrupted.times > 20


# ---- the end -----------------------------------------------------------------------------------------------------

SCRIPT = """
import sys, numpy as np, mrec
schema = mrec.Schema().block("b", rows=100).column("q", "f64")
with mrec.TrajectoryWriter(sys.argv[1], schema, flush_every=7) as w:
    while True:
        w.append(None, b={"q": np.full(100, float(w.nframes))})
        if w.nframes == 50:
            print("fifty", flush=True)
"""


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_end_of_a_running_simulation(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C leaves the `with` block, which lands what was appended; SIGTERM is a kill."""
    path = tmp_path / "a.mrec"
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None and process.stdout.readline() == b"fifty\n"
    process.send_signal(number)
    _, err = process.communicate()
    there = frames(path)
    assert [frame["b"]["q"][99] for frame in there] == list(range(len(there)))
    if number == signal.SIGINT:
        assert err.rstrip().endswith(b"KeyboardInterrupt")
        assert len(there) >= 50 and not (path / "trajectory/.durable").exists()
    else:
        assert process.returncode == -number
        assert len(there) >= 49 and len(there) % 7 == 0

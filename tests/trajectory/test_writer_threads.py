# SPDX-License-Identifier: BSD-3-Clause
"""Writers with threads of their own."""

from __future__ import annotations

import errno
import gc
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec._core import FaultFiles
from mrec.errors import ForkedHandle, InvalidValue
from tests.concurrency.processes import child, ended_well
from tests.faults.story import FULL, canonical, expected


def schema(rows: int) -> mrec.Schema:
    return mrec.Schema().block("atoms", rows=rows).column("x", "f64", precision=1e-3).column("q", "f64")


def append(writer: mrec.TrajectoryWriter, rows: int) -> None:
    x = np.random.default_rng(writer.nframes).normal(size=rows)
    writer.append(None, atoms={"x": x, "q": x})
    x[:] = np.nan  # taken is taken


@pytest.mark.parametrize("threads", [2, 5])
def test_every_frame_is_there_in_its_place(threads: int, tmp_path: Path) -> None:
    """More frames than wait at a time, with landings of their own, transitions, and a reopening."""
    path, n = tmp_path / "a.mrec", 2500
    options = {"threads": threads, "durable_every": None}
    with mrec.TrajectoryWriter(path, FULL.schema(), flush_every=30, frames_per_chunk=3, **options) as w:
        for i in range(n):
            w.append(FULL.frame((0, i)))
    with mrec.TrajectoryWriter.open(path, **options) as w:
        for i in range(n, n + 700):
            w.append(FULL.frame((0, i)))
        assert w.nframes == n + 700
    with mrec.open(path) as rec:
        assert len(rec.trajectory) == n + 700
        assert all(canonical(frame) == expected(FULL, (0, i)) for i, frame in enumerate(rec.trajectory))


@pytest.mark.parametrize("rows", [1, 20_000, 1_500_000])
def test_frames_of_any_size(rows: int, tmp_path: Path) -> None:
    """Such as are queued by the thousand, and such as are larger than all that may wait."""
    n = max(3, min(3000, 2_000_000 // rows))
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(rows), threads=3, durable=False) as w:
        for _ in range(n):
            append(w, rows)
    there = mrec.open(tmp_path / "a.mrec").trajectory
    assert len(there) == n
    for i in {0, n // 2, n - 1}:
        x = np.random.default_rng(i).normal(size=rows)
        assert (there[i]["atoms"]["q"] == x).all()
        assert (there[i]["atoms"]["x"] == np.round(x * 1024) / 1024).all()


def test_flush_waits(tmp_path: Path) -> None:
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(5000), threads=2) as w:
        for _ in range(40):
            append(w, 5000)
        w.flush(durable=False)
        assert w.published == 40
        assert len(mrec.open(tmp_path / "a.mrec").trajectory) == 40
        append(w, 5000)
        w.flush()
        assert w.published == 41


@pytest.mark.parametrize("call", ["append", "flush", "close"])
def test_a_failure_behind_is_told_by_a_later_call(call: str, tmp_path: Path) -> None:
    files = FaultFiles()
    with files:
        w = mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(5000), threads=2, flush_every=10)
        w._core.wait()
    files.arm(5, error=errno.ENOSPC, persistent=True)
    with pytest.raises(OSError, match="No space") as first:
        for _ in range(1000 if call == "append" else 5):
            append(w, 5000)
        getattr(w, call)()
    assert first.value.errno == errno.ENOSPC
    assert str(tmp_path / "a.mrec") in first.value.filename
    for again in (w.flush, lambda: append(w, 5000)) if call != "close" else ():
        with pytest.raises(OSError) as later:
            again()
        assert str(later.value) == str(first.value)
    if call != "close":
        with pytest.raises(OSError, match="No space"):
            w.close()
    files.arm()
    with mrec.TrajectoryWriter.open(tmp_path / "a.mrec", threads=2) as w:  # the lock is let go
        assert w.nframes == 0
        append(w, 5000)


def test_what_was_not_landed_is_dropped_with_a_warning(tmp_path: Path) -> None:
    w = mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(100), threads=2, flush_every=10**6)
    for _ in range(10):
        append(w, 100)
    w.flush()
    for _ in range(5):
        append(w, 100)
    with pytest.warns(RuntimeWarning, match="frames lost: 5"):
        del w
        gc.collect()
    assert len(mrec.open(tmp_path / "a.mrec").trajectory) == 10


@pytest.mark.filterwarnings("ignore:This process.*fork")
def test_a_fork_leaves_the_writer_to_the_parent(tmp_path: Path) -> None:
    w = mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(5000), threads=3)
    for _ in range(100):
        append(w, 5000)

    def in_the_child() -> None:
        with pytest.raises(ForkedHandle):
            append(w, 5000)
        assert w._core.forked

    def drop_in_the_child() -> None:
        nonlocal w
        warnings.simplefilter("ignore")
        del w
        gc.collect()

    for what in (in_the_child, drop_in_the_child):
        assert ended_well(child(what))
        append(w, 5000)
    w.close()
    assert len(mrec.open(tmp_path / "a.mrec").trajectory) == 102


@pytest.mark.parametrize("threads", [0, -1, 257, 1.5, "2", True])
def test_threads_are_a_small_number(threads, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="threads is .*from 1 to 256"):
        mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(1), threads=threads)
    assert not os.path.exists(tmp_path / "a.mrec")


def test_the_environment_says_how_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MREC_THREADS", "many")
    with pytest.raises(InvalidValue, match="MREC_THREADS is 'many'"):
        mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(1))
    before = len(os.listdir("/proc/self/task"))
    for number in (1, 4):
        monkeypatch.setenv("MREC_THREADS", str(number))
        with mrec.TrajectoryWriter(tmp_path / f"{number}.mrec", schema(1)) as w:
            append(w, 1)
            assert len(os.listdir("/proc/self/task")) == before + number - 1
    assert len(os.listdir("/proc/self/task")) == before


def test_a_few_large_frames_do_not_leave_their_memory_everywhere(tmp_path: Path) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    small, large = np.zeros(10), np.zeros(500_000)
    s = mrec.Schema().block("atoms", rows=500_000).column("x", "f64")
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", s, threads=2, durable=False) as w:
        before = resident()
        for i in range(6000):
            array = large if i % 60 == 59 else small
            array[0] = i
            w.append(None, atoms={"x": array})
        assert resident() - before < 150 * 2**20  # 100 frames of 4 MB went by


def test_a_failed_writer_lets_its_files_go(tmp_path: Path) -> None:
    files = FaultFiles()
    with files:
        w = mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(5000))
    append(w, 5000)
    w.flush()
    files.arm(1, error=errno.ENOSPC, persistent=True)
    append(w, 5000)
    with pytest.raises(OSError, match="No space"):
        w.close()
    names = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    assert not [name for name in names if str(tmp_path) in name]

# SPDX-License-Identifier: BSD-3-Clause
"""When frames are published, and when that is durable."""

from __future__ import annotations

import time

import numpy as np
import pytest

import mrec
from mrec.errors import InvalidValue
from tests.trajectory.ondisk import attributes, frames, write

pytestmark = pytest.mark.usefixtures("one_thread")


def schema(rows=1):
    return mrec.Schema().block("b", rows=rows).column("q", "f64")


def counts(w, n, rows=1):
    """Frames published after each of n appends."""
    found = []
    for _ in range(n):
        w.append(None, b={"q": np.full(rows, float(w.nframes))})
        found.append(w.published)
    return found


def test_every_so_many_frames(tmp_path):
    with write(tmp_path / "a", schema(), flush_every=3) as w:
        assert counts(w, 8) == [0, 0, 3, 3, 3, 6, 6, 6]
        assert attributes(tmp_path / "a")["nstep"] == 6
        assert len(frames(tmp_path / "a")) == 6
        w.flush(durable=False)
        assert counts(w, 3) == [8, 8, 11]
    assert w.published == 11


def test_every_frame(tmp_path):
    with write(tmp_path / "a", schema(), flush_every=1) as w:
        assert counts(w, 3) == [1, 2, 3]


def test_by_bytes(tmp_path):
    with write(tmp_path / "a", schema(100), flush_every="2 kB") as w:  # 800 bytes a frame
        assert counts(w, 7, 100) == [0, 0, 3, 3, 3, 6, 6]


def test_by_time(tmp_path):
    with write(tmp_path / "a", schema(), flush_every="50ms") as w:
        w.append(0, b={"q": [0.0]})
        time.sleep(0.08)
        assert counts(w, 1) == [2]
        assert counts(w, 1) == [2]
        time.sleep(0.08)
        assert counts(w, 1) == [4]


def test_no_time_is_every_frame(tmp_path):
    with write(tmp_path / "a", schema(), flush_every="0s") as w:
        assert counts(w, 50) == list(range(1, 51))


def test_by_default_about_4_mib_in_whole_chunks(tmp_path):
    rows = 20_000  # 160 000 bytes a frame, which is a chunk: 27 frames are above 4 MiB
    with write(tmp_path / "a", schema(rows)) as w:
        assert counts(w, 28, rows) == [0] * 26 + [27, 27]
    rows = 1000  # 8000 bytes a frame, 3 frames a chunk: 525 frames, in threes
    with write(tmp_path / "b", schema(rows)) as w:
        found = counts(w, 530, rows)
    assert found.index(525) == 524
    assert set(found) == {0, 525}


def test_by_default_at_most_4096_frames(tmp_path):
    with write(tmp_path / "a", mrec.Schema().value("v", "i64")) as w:
        w.append_many(range(4100), v=range(4100))
        assert w.published == 4096


def test_a_time_since_the_last_landing_alone(tmp_path):
    """A number of frames or bytes is not helped by the ten seconds of the default."""
    with write(tmp_path / "a", schema(), flush_every=1000) as w:
        assert counts(w, 20) == [0] * 20


# ---- durable -----------------------------------------------------------------------------------------------------


def durable(w, n):
    found = []
    for _ in range(n):
        w.append(None, b={"q": [float(w.nframes)]})
        found.append(w.durable)
    return found


def test_each_landing(tmp_path):
    with write(tmp_path / "a", schema(), durable=True, flush_every=2, durable_every=0) as w:
        assert durable(w, 9) == [0, 2, 2, 4, 4, 6, 6, 8, 8]


def test_after_some_time(tmp_path):
    with write(tmp_path / "a", schema(), durable=True, flush_every=1, durable_every=0.2) as w:
        assert durable(w, 2) == [0, 0]
        time.sleep(0.3)
        assert durable(w, 1) == [3]


@pytest.mark.parametrize("every", [None, 60, "60s", "1h"])
def test_not_by_itself(tmp_path, every):
    with write(tmp_path / "a", schema(), durable=True, flush_every=1, durable_every=every) as w:
        assert durable(w, 3) == [0, 0, 0]
        w.flush(durable=False)
        assert w.durable == 0
        w.flush()
        assert w.durable == 3
        w.append(None, b={"q": [9.0]})
    assert w.durable == 4


def test_never(tmp_path):
    with write(tmp_path / "a", schema(), durable=False, flush_every=1, durable_every=0) as w:
        assert durable(w, 3) == [0, 0, 0]
        w.flush()
        assert (w.published, w.durable) == (3, 0)
    assert len(frames(tmp_path / "a")) == 3


def test_reopened(tmp_path):
    write(tmp_path / "a", schema()).close()
    with mrec.TrajectoryWriter.open(tmp_path / "a", flush_every=2, durable_every=0) as w:
        assert durable(w, 4) == [0, 2, 2, 4]
    with mrec.TrajectoryWriter.open(tmp_path / "a", flush_every="1 kB", durable_every=None) as w:
        assert durable(w, 2) == [4, 4]


# ---- options that are none ---------------------------------------------------------------------------------------

BAD = [
    *({"flush_every": v} for v in (0, -1, True, 1.5, "10", "ten s", "10 parsecs", "s", "-3s", b"3s")),
    *({"durable_every": v} for v in (-1, True, "10", "10MiB", float("nan"), b"3s")),
    *({"compression": v} for v in ("lz4", "zstd:x", "gzip:10", "gzip:-1", "none:1", "zstd:23", "zstd:", 3, "")),
    *({"frames_per_chunk": v} for v in (0, -1, 1.5, True, "3", 2**32)),
    *({"chunks_per_shard": v} for v in (0, -1, 2.0, False, 2**24 + 1)),
    *({"durable": v} for v in (None, 0, "no")),
    *({"overwrite": v} for v in (None, 1, "no")),
    *({"chunk": v} for v in (0, -1, 1023, 2**26 + 1, 4096.0, True, "16", "1B", "65MiB", "2 frames", "4s", b"4KiB")),
]


@pytest.mark.parametrize("options", BAD, ids=str)
def test_options_that_are_refused(tmp_path, options):
    (name,) = options
    with pytest.raises(InvalidValue, match=name):
        mrec.TrajectoryWriter(tmp_path / "a", schema(), **options)
    assert not (tmp_path / "a").exists()


def test_a_chunk_is_a_size_or_a_number_of_frames(tmp_path):
    with pytest.raises(InvalidValue, match="chunk is '1MiB' and frames_per_chunk is 4; give one of them"):
        mrec.TrajectoryWriter(tmp_path / "a", schema(), chunk="1MiB", frames_per_chunk=4)
    assert not (tmp_path / "a").exists()


def test_a_chunk_of_too_many_frames_is_refused(tmp_path):
    with pytest.raises(InvalidValue, match=r"frames_per_chunk 2147483648 makes chunks of \d+ bytes of column 'q'"):
        mrec.TrajectoryWriter(tmp_path / "a.mrec", schema(), frames_per_chunk=2**31)
    assert not (tmp_path / "a.mrec").exists()


def test_a_small_first_frame_does_not_decide(tmp_path):
    with write(tmp_path / "a", schema()) as w:
        w.append(None, b={"q": [1.0]})
        counts(w, 30, 100_000)  # 0.8 MB each
        assert w.published > 20


@pytest.mark.parametrize("every", [10**30, "99999999999999999999GiB", "9" * 400 + "GiB"])
def test_more_than_can_be_counted(every, tmp_path):
    with pytest.raises(InvalidValue, match="flush_every is"):
        write(tmp_path / "a", schema(), flush_every=every)


def test_numbers_of_numpy(tmp_path):
    with write(tmp_path / "a", schema(), flush_every=np.int64(2), durable_every=np.float32(5)) as w:
        assert counts(w, 3) == [0, 2, 2]
    with write(tmp_path / "a", schema(), durable=np.True_, overwrite=np.True_, durable_every=10**400) as w:
        w.flush(durable=np.False_)
        assert w.durable == 0


def test_a_flush_is_durable_or_not(tmp_path):
    with write(tmp_path / "a", schema()) as w, pytest.raises(InvalidValue, match="durable is 'no'"):
        w.flush(durable="no")


@pytest.mark.parametrize("make", [mrec.TrajectoryWriter, lambda path, schema: mrec.create(path, trajectory=schema)])
def test_no_path_is_not_the_current_directory(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)
    for call in (lambda: make("", schema()), lambda: mrec.TrajectoryWriter.open(""), lambda: mrec.open("")):
        with pytest.raises(InvalidValue, match="not empty"):
            call()
    assert not list(tmp_path.iterdir())

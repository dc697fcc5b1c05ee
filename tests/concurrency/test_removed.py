# SPDX-License-Identifier: BSD-3-Clause
"""A record that is moved away or removed under its writer: the writer says so, and touches nothing that came after."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import RecordLocked, RecordNotFound
from tests.trajectory.ondisk import frames, tree, write

pytestmark = pytest.mark.usefixtures("one_thread")

GONE = "the record was moved away or removed under its writer"
ROWS = 50_000  # a frame is more than the writer gathers before it writes


def schema(rows: int = 2) -> mrec.Schema:
    return mrec.Schema().block("b", rows=rows).column("q", "f64")


def append(writer: mrec.TrajectoryWriter, n: int = 1, rows: int = 2) -> None:
    for _ in range(n):
        writer.append(None, b={"q": np.full(rows, float(writer.nframes))})


def assert_poisoned(writer: mrec.TrajectoryWriter, first: OSError) -> None:
    for call in (lambda: append(writer), writer.flush, writer.close):
        with pytest.raises(OSError) as again:
            call()
        assert str(again.value) == str(first)
    writer.close()


def another(path: Path) -> dict[str, bytes]:
    """Another record at the path, of the same schema; its files."""
    with write(path, schema()) as writer:
        append(writer, 4)
    return tree(path)


@pytest.mark.parametrize("durable", [True, False])
def test_removed(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a.mrec"
    writer = write(path, schema())
    append(writer, 2)
    writer.flush()
    shutil.rmtree(path)
    append(writer)
    with pytest.raises(FileNotFoundError, match=GONE) as caught:
        writer.flush(durable=durable)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, str(path))
    assert_poisoned(writer, caught.value)
    assert not path.exists()


def test_removed_and_only_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    writer = write(path, schema())
    shutil.rmtree(path)
    with pytest.raises(FileNotFoundError, match=GONE):
        writer.close()
    assert not path.exists()


def test_the_folder_above_became_a_file(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    writer = write(tmp_path / "runs/a.mrec", schema())
    append(writer)
    (tmp_path / "runs").rename(tmp_path / "old")
    (tmp_path / "runs").write_text("")
    with pytest.raises(NotADirectoryError, match=GONE) as caught:
        writer.flush()
    assert_poisoned(writer, caught.value)


def test_moved_away(tmp_path: Path) -> None:
    path, moved = tmp_path / "a.mrec", tmp_path / "moved.mrec"
    writer = write(path, schema())
    append(writer, 3)
    writer.flush()
    append(writer)
    path.rename(moved)
    with pytest.raises(FileNotFoundError, match=GONE) as caught:
        writer.flush()
    with pytest.raises(RecordLocked):  # the hold goes with the directory
        mrec.TrajectoryWriter.open(moved)
    assert_poisoned(writer, caught.value)
    with pytest.raises(RecordNotFound):
        mrec.open(path)
    with mrec.TrajectoryWriter.open(moved) as again:
        assert again.nframes == 3
        append(again)
    assert [frame["b"]["q"][0] for frame in frames(moved)] == [0.0, 1.0, 2.0, 3.0]


def test_moved_away_and_back(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    with write(path, schema()) as writer:
        append(writer)
        path.rename(tmp_path / "b.mrec")
        append(writer)
        (tmp_path / "b.mrec").rename(path)
    assert len(frames(path)) == 2


def replace(path: Path, how: str) -> None:
    if how == "removed":
        shutil.rmtree(path)
    else:
        path.rename(path.with_name("moved.mrec"))


@pytest.mark.parametrize("how", ["removed", "moved away"])
@pytest.mark.parametrize("end", ["flush", "flush, not synced", "close", "append"])
def test_another_record_in_its_place(tmp_path: Path, how: str, end: str) -> None:
    path = tmp_path / "a.mrec"
    writer = write(path, schema(), flush_every=4)
    append(writer, 2)
    writer.flush(durable=False)
    append(writer, 3)  # these wait in memory
    replace(path, how)
    before = another(path)
    calls = {
        "flush": writer.flush,
        "flush, not synced": lambda: writer.flush(durable=False),
        "close": writer.close,
        "append": lambda: append(writer),
    }
    with pytest.raises(OSError, match=f"{GONE}, and something else is there now") as caught:
        calls[end]()
    assert (caught.value.errno, caught.value.filename) == (errno.ESTALE, str(path))
    if end != "close":
        assert_poisoned(writer, caught.value)
    assert tree(path) == before
    with mrec.TrajectoryWriter.open(path) as mine:  # nobody holds it
        append(mine)
    assert len(frames(path)) == 5


@pytest.mark.parametrize("started", [False, True], ids=["before the first bytes", "between shards"])
def test_another_record_in_its_place_before_a_file_is_opened(tmp_path: Path, started: bool) -> None:
    """Whole chunks are written while frames are appended, long before a flush."""
    path = tmp_path / "a.mrec"
    writer = write(path, schema(ROWS), flush_every=1000, chunks_per_shard=2)
    if started:
        append(writer, 1, ROWS)
    replace(path, "moved away")
    before = another(path)
    with pytest.raises(OSError, match=GONE) as caught:
        append(writer, 10, ROWS)
    assert writer.nframes < 5
    assert_poisoned(writer, caught.value)
    assert tree(path) == before


def test_a_link_that_leads_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "runs").symlink_to("one")
    path = tmp_path / "runs" / "a.mrec"
    writer = write(path, schema())
    append(writer)
    before = another(tmp_path / "two" / "a.mrec")
    os.unlink(tmp_path / "runs")
    (tmp_path / "runs").symlink_to("two")
    with pytest.raises(OSError, match=GONE) as caught:
        writer.flush()
    assert_poisoned(writer, caught.value)
    assert tree(path) == before


def test_a_file_that_was_there_is_not_made_anew(tmp_path: Path) -> None:
    """More columns than descriptors: files are closed between flushes, and opened again."""
    path = tmp_path / "a.mrec"
    declared = mrec.Schema().block("b", rows=2)
    for i in range(100):
        declared.column(f"q{i}", "f64")
    writer = write(path, declared)

    def append() -> None:
        writer.append(None, b={f"q{i}": np.full(2, float(i + writer.nframes)) for i in range(100)})

    append()
    writer.flush(durable=False)
    (path / "trajectory/b/q3/c/0").unlink()
    append()
    with pytest.raises(FileNotFoundError) as caught:
        writer.flush(durable=False)
    assert caught.value.filename == str(path / "trajectory/b/q3/c/0")
    assert not (path / "trajectory/b/q3/c/0").exists()
    with pytest.raises(FileNotFoundError):
        writer.close()


def test_packing_a_record_that_is_moved_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a mixture is packed, nor what came to be there removed."""
    path = tmp_path / "a.mrec"
    with write(path, schema()) as writer:
        append(writer, 2)
    real, seen = mrec.pack.__globals__["closed_files"], []

    def files(root: str):
        for piece in real(root):
            yield piece
            if not seen:
                path.rename(tmp_path / "moved.mrec")
                seen.append(another(path))

    monkeypatch.setitem(mrec.pack.__globals__, "closed_files", files)
    with pytest.raises(OSError, match=GONE):
        mrec.pack(path, remove=True)
    assert tree(path) == seen[0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.mrec", "moved.mrec"]

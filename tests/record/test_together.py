# SPDX-License-Identifier: BSD-3-Clause
"""Several programs at one record: writers of sections, trajectory and log, packers, and what kills left of them."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import InvalidValue, RecordLocked
from mrec.record import publish

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    mrec.create(tmp_path / "r.mrec", frame=frame(1), status={"state": "new"}).close()
    return tmp_path / "r.mrec"


def frame(n: int) -> mrec.Frame:
    """One that is the whole of itself: every column has as many rows as its values say."""
    return mrec.Frame({"a": {"x": np.full(n, float(n)), "n": np.full(n, n)}, "b": {"n": np.full(n, n)}}, meta={"n": n})


def whole(found: mrec.Frame) -> int:
    n = found.meta["n"]
    assert found == frame(n)
    return int(n)


def in_child(work: Callable[[], None]) -> int:
    """Run in another process; what it exits with is 0 when nothing was raised."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException as e:
            print(repr(e), file=sys.stderr)
        finally:
            os._exit(code)
    return pid


def ended(pid: int) -> bool:
    return os.waitpid(pid, 0)[1] == 0


def hidden(path: Path) -> list[str]:
    return [name for name in os.listdir(path) if name.startswith(".")]


# ---- two writers -------------------------------------------------------------------------------------------------


def test_two_processes_write_one_section(path: Path) -> None:
    def write(n: int) -> None:
        done = 0
        while done < 25:
            try:
                mrec.open(path).frame = frame(n)
                done += 1
            except RecordLocked:
                pass

    children = [in_child(lambda n=n: write(n)) for n in (2, 3)]
    seen = {whole(mrec.open(path).frame) for _ in range(50)}
    assert all(map(ended, children))
    assert seen <= {1, 2, 3} and whole(mrec.open(path).frame) in (2, 3) and not hidden(path)
    assert mrec.verify(path).ok


SCHEMA = (
    mrec.Schema().block("atoms", rows=2).column("x", "f64").block("pairs", targets={"i": "/frame/a"}).column("i", "u64")
)


def other_process(path: Path, work: Callable[[mrec.Record], None], message: str) -> None:
    """The work is refused in another process, and leaves everything as it was."""

    def refused() -> None:
        with pytest.raises(RecordLocked, match=message):
            work(mrec.open(path))

    before = sorted(str(p) for p in path.rglob("*"))
    assert ended(in_child(refused))
    assert sorted(str(p) for p in path.rglob("*")) == before


def test_sections_that_frames_have_to_agree_with(path: Path) -> None:
    """Another process can not know the frames that are not published yet; so it does not change what they rest on."""
    mrec.open(path).frame = frame(4)
    from mrec.record.create import add_trajectory

    add_trajectory(str(path), SCHEMA)
    with mrec.TrajectoryWriter.open(path, flush_every=100) as writer:
        writer.append(0, atoms={"x": np.zeros(2)}, pairs={"i": [3]})
        three = {"atoms": {"element": ["O", "H", "H"]}}

        def system(record: mrec.Record) -> None:
            record.system = three

        def shorter(record: mrec.Record) -> None:
            record.frame = frame(2)

        message = r"process \d+ has it.*have to agree with {}/; write it there, or when that writer is closed"
        other_process(path, system, message.format("system"))
        other_process(path, shorter, message.format("frame"))
        other_process(path, lambda record: record.remove("frame"), message.format("frame"))

        def unbound() -> None:
            record = mrec.open(path)
            record.system = {"molecules": {"name": ["water"]}}
            record.forcefield = {"t": {"k": [1.0]}}
            record.status = {"state": "seen"}

        assert ended(in_child(unbound)), "what no frame rests on is written"
        for write in (system, shorter):
            with pytest.raises(mrec.errors.SchemaError):
                write(mrec.open(path))  # in the writer's process: held against the frame that waits
        mrec.open(path).frame = frame(5)
        writer.append(1, pairs={"i": [4]})
    mrec.open(path).system = {"atoms": {"element": ["O", "H"]}}
    with pytest.raises(mrec.errors.SchemaError):
        system(mrec.open(path))
    assert len(mrec.open(path).trajectory) == 2 and mrec.verify(path).ok


# ---- packing and copying -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["pack", "copy", "zip"])
def test_a_section_replaced_meanwhile_is_whole_in_the_copy(path: Path, how: str) -> None:
    make: dict[str, Callable[[], object]] = {
        "pack": lambda: mrec.pack(path),
        "copy": lambda: mrec.open(path).copy_to(path.with_name("c.mrec"), overwrite=True),
        "zip": lambda: mrec.open(path).copy_to(path.with_name("r.mrec.zip"), overwrite=True),
    }
    copy = path.with_name("c.mrec" if how == "copy" else "r.mrec.zip")
    done = threading.Event()

    def replace() -> None:
        try:
            for n in range(2, 40):
                mrec.open(path).frame = frame(n)
        finally:
            done.set()

    thread = threading.Thread(target=replace)
    thread.start()
    made = 0
    try:
        while not done.is_set():
            try:
                make[how]()
            except (mrec.errors.CorruptData, OSError) as e:
                assert "again and again" in str(e) or isinstance(e, FileNotFoundError)
                continue
            whole(mrec.open(copy).frame)
            made += 1
    finally:
        thread.join()
    make[how]()
    assert whole(mrec.open(copy).frame) == 39
    assert not [name for name in os.listdir(path.parent) if name.startswith(".")]


def test_replaced_at_the_worst_moment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After one file of the old section was read."""
    from mrec.trajectory import closed

    pieces = closed.closed_files
    replaced = []

    def listed(root: str):
        for piece in pieces(root):
            yield piece
            if piece.key.startswith("frame/") and not replaced:
                replaced.append(piece.key)
                mrec.open(path).frame = frame(9)

    monkeypatch.setattr(closed, "closed_files", listed)
    copy = mrec.open(path).copy_to(path.with_name("c.mrec"))
    assert replaced and whole(copy.frame) == 9 and mrec.verify(copy.path).ok


def test_a_section_that_a_kill_left_aside_is_packed(path: Path) -> None:
    os.rename(path / "frame", path / ".frame.old")  # where the system can not exchange two names
    assert mrec.open(path).sections == ("meta", "status")
    packed = mrec.open(mrec.pack(path))
    assert whole(packed.frame) == 1 and packed.sections == ("frame", "meta", "status")
    shutil.copytree(path / ".frame.old", path / "frame")
    mrec.open(path).frame = frame(7)
    assert whole(mrec.open(mrec.pack(path)).frame) == 7


def test_hidden_files_of_other_programs_are_kept(path: Path) -> None:
    mine = (".notes.tmp", "theirs/.cache.tmp", "theirs/.durable", ".theirs.tmp/x", ".theirs.old/x")
    ours = (".frame.tmp/zarr.json", "frame/.zarr.json.tmp", "frame/a/.0123456789abcdef.tmp", ".status.old/zarr.json")
    for key in (*mine, *ours):
        (path / key).parent.mkdir(exist_ok=True)
        (path / key).write_text("kept")
    copy = Path(mrec.open(path).copy_to(path.with_name("c.mrec")).path)
    assert all((copy / key).read_text() == "kept" for key in mine) and not any((copy / key).exists() for key in ours)


# ---- what kills left ---------------------------------------------------------------------------------------------


WRITERS: dict[str, Callable[[Path], object]] = {
    "a section": lambda p: setattr(mrec.open(p), "system", {}),
    "a removal": lambda p: mrec.open(p).remove("frame"),
    "an observable": lambda p: mrec.open(p).observables.update(o=mrec.Observable([1.0], "k", "d", False)),
    "a log": lambda p: mrec.MetricsLog(p).close(),
    "a trajectory": lambda p: mrec.TrajectoryWriter.open(p).close(),
}


@pytest.mark.parametrize("name", WRITERS)
def test_the_next_writer_clears_up(path: Path, name: str) -> None:
    from mrec.record.create import add_trajectory

    if name == "a trajectory":
        add_trajectory(str(path), SCHEMA)
        shutil.copytree(path / "trajectory", path / ".trajectory.tmp" / "trajectory")
    for left in (".frame.tmp", ".system.tmp", ".metrics.tmp", ".method.tmp"):
        shutil.copytree(path / "frame", path / left)
    assert set(mrec.open(path).sections) <= {"frame", "meta", "status", "trajectory"}
    with publish.section(str(path), "forcefield") as made:  # which somebody is making just now
        publish.write_file(f"{made}/zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
        WRITERS[name](path)
        assert hidden(path) == [".forcefield.tmp"]
    assert mrec.open(path).forcefield == mrec.Frame() and not hidden(path)


# ---- the log -----------------------------------------------------------------------------------------------------


def test_a_record_is_not_taken_from_under_a_log(path: Path) -> None:
    """Lines would go into a file that nobody finds again."""
    log = mrec.MetricsLog(path)
    log.log("a", 1.0, step=1)
    for take in (
        lambda: mrec.open(path).remove("metrics"),
        lambda: mrec.pack(path, remove=True),
        lambda: mrec.create(path, status={}, overwrite=True),
    ):
        with pytest.raises(RecordLocked, match="a MetricsLog is open in it; close that first"):
            take()
    mrec.pack(path)
    log.log("a", 2.0, step=2)
    os.rename(path, path.with_name("moved.mrec"))
    with pytest.raises(OSError) as caught:
        log.log("a", 3.0, step=3)
    assert caught.value.errno == errno.ENOENT
    shutil.copytree(path.with_name("moved.mrec"), path)
    with pytest.raises(OSError):
        log.log("a", 3.0, step=3)
    log.close()
    assert mrec.open(path).metrics["a"].values.tolist() == [1.0, 2.0]
    with mrec.MetricsLog(path) as log:
        shutil.copyfile(path / "metrics/metrics.jsonl", path / "metrics/other")
        os.rename(path / "metrics/other", path / "metrics/metrics.jsonl")
        with pytest.raises(OSError) as caught:
            log.log("a", 3.0, step=3)
        assert caught.value.errno == errno.ESTALE
    mrec.open(path).remove("metrics")
    mrec.pack(path, remove=True)
    assert not path.exists()


def test_documents_that_would_not_be_read_again(path: Path) -> None:
    deep: list[object] = []
    for _ in range(120):
        deep = [deep]
    record = mrec.open(path)
    for write in (
        lambda: setattr(record, "meta", {"a": deep}),
        lambda: setattr(record, "status", {"a": deep}),
        lambda: setattr(record, "forcefield", mrec.Frame(meta={"a": deep})),
        lambda: setattr(record, "frame", mrec.Frame(meta={"a": deep}, meta_types={"a": "json"})),
        lambda: record.observables.update(o=mrec.Observable([1.0], "k", "d", False, more=deep)),
        lambda: mrec.create(path.with_name("d.mrec"), status={}, meta={"a": deep}),
    ):
        with pytest.raises((InvalidValue, mrec.errors.SchemaError), match="nested more than"):
            write()
    with mrec.MetricsLog(path) as log, pytest.raises(InvalidValue, match="nested more than"):
        log.log("a", 1.0, tags={"a": deep})
    assert whole(mrec.open(path).frame) == 1 and not record.observables and not record.metrics

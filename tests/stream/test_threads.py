# SPDX-License-Identifier: BSD-3-Clause
"""Writers that encode and write with several threads: the same stream, the same errors."""

from __future__ import annotations

import errno
import os
import signal
import threading
from pathlib import Path

import pytest

from mrec import stream
from mrec.files import Files
from mrec.stream.place import LocalPlace
from mrec.stream.pool import Pool
from tests.stream.crew import schema, value


def names(path: Path) -> set[str]:
    """Every file of a stream."""
    return {str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()}


@pytest.mark.parametrize("chunk_time", [1, 3])
@pytest.mark.parametrize("profile", ["none", "diagnostic"])
@pytest.mark.parametrize("mode", [stream.append(), stream.indexed(7)], ids=["append", "indexed"])
def test_any_number_of_threads_writes_the_same(
    mode: stream.Mode, profile: str, chunk_time: int, tmp_path: Path
) -> None:
    s = schema(mode=mode, profile=profile, chunk={"time": chunk_time, "lat": 2, "lon": 3, "lev": 1})
    for threads in (1, 2, 5, 200):
        with stream.create(tmp_path / str(threads), s, threads=threads) as writer:
            for name in s.statics:
                writer.write_static(name, value(s, name, 0))
            for i in range(7):
                record = {name: value(s, name, i) for name in s.variables}
                writer.write_record_at(i, float(i), record) if mode.indexed else writer.write_record(float(i), record)
                if i == 4:
                    writer.flush()
        found = stream.Stream(tmp_path / str(threads))
        for i in range(7):
            for name in s.variables:
                assert found.read_record(name, i).tobytes() == value(s, name, i).tobytes()
        assert names(tmp_path / str(threads)) == names(tmp_path / "1")


def test_the_threads_end_with_the_writer(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    writer = stream.create(tmp_path / "s", schema(), threads=4)
    others = [t for t in threading.enumerate() if t not in before]
    assert len(others) == 3
    writer.close()
    for thread in others:
        thread.join(30)
        assert not thread.is_alive()


class Full(Files):
    """A disk that is full, from some byte on."""

    room = 1 << 40

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        if self.room < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(data)
        return super().pwrite(fd, data, offset)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_full_disk_leaves_nothing_behind_and_loses_nothing(threads: int, tmp_path: Path) -> None:
    s, disk = schema(), Full()
    writer = stream.create(LocalPlace(tmp_path / "s", disk), s, threads=threads)
    for i in range(2):
        writer.write_record(float(i), {name: value(s, name, i) for name in s.variables})
    disk.room = 3000
    with pytest.raises(OSError, match="No space"):
        writer.write_record(2.0, {name: value(s, name, 2) for name in s.variables})
    assert not list((tmp_path / "s" / "tmp").iterdir())
    assert len(stream.Stream(tmp_path / "s").times()) == 0
    disk.room = 1 << 40
    writer.flush()
    writer.close()
    found = stream.Stream(tmp_path / "s")
    assert len(found.times()) == 3
    for i in range(3):
        assert found.read_record("t2m", i).tobytes() == value(s, "t2m", i).tobytes()


# ---- the pool -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_every_item_is_taken_once(threads: int) -> None:
    pool, done = Pool(threads), list[int]()
    for n in (0, 1, 3, 1000):
        done.clear()
        pool.each(done.append, iter(range(1, n + 1)))
        assert sorted(done) == list(range(1, n + 1))
    pool.end()


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_error_is_raised_when_nobody_works_any_more(threads: int) -> None:
    pool, at_work, begun = Pool(threads), set[int](), list[int]()

    def act(item: int) -> None:
        begun.append(item)
        at_work.add(item)
        try:
            if item == 5:
                raise KeyError(item)
            threading.Event().wait(0.02)
        finally:
            at_work.discard(item)

    with pytest.raises(KeyError):
        pool.each(act, range(1, 1000))
    assert not at_work and len(begun) < 500
    pool.each(begun.append, [0])
    assert begun[-1] == 0
    pool.end()


def test_an_error_of_what_makes_the_items_is_raised() -> None:
    def items():
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        Pool(2).each(lambda _: None, items())


def test_an_interrupt_waits_for_those_at_work() -> None:
    pool, seen = Pool(2), list[str]()
    me, began, inside = threading.get_ident(), threading.Event(), threading.Event()

    def act(_: int) -> None:
        if threading.get_ident() == me:
            inside.set()
            assert began.wait(10)
            return
        assert inside.wait(10)
        began.set()
        signal.pthread_kill(me, signal.SIGINT)
        threading.Event().wait(0.1)
        seen.append("done")

    with pytest.raises(KeyboardInterrupt):
        pool.each(act, [1, 2])
    assert seen == ["done"]

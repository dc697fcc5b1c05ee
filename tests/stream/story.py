# SPDX-License-Identifier: BSD-3-Clause
"""Stories of a stream, word by word, on system calls that are recorded and can be made to fail."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrec import stream
from mrec.errors import NotARecord, NotCommitted
from mrec.files import Files
from mrec.stream import StreamSchema, Variable
from mrec.stream.place import LocalPlace
from tests.stream.crew import Crew, tiles, value

REGIONS = tiles(x=(0, 2, 4))

#: What is committed: record -> salt of its values; statics; attributes.
State = tuple[tuple[tuple[int, int], ...], tuple[str, ...], int]


class Killed(BaseException):
    """The process ends here."""


class Calls(Files):
    """The system calls, counted and recorded; one of them fails. log: (op, fd, number, data) as tests/power/disk.py has
    them."""

    def __init__(self) -> None:
        self.log: list[tuple[str, int, int, bytes]] = []
        self.count = 0
        self.at = 0
        self.error: BaseException | None = None
        self.persistent = False
        self.short = False
        self.mutex = threading.Lock()

    def arm(self, at: int, error: BaseException | None, persistent: bool = False, short: bool = False) -> None:
        """Fail at call `at`, counted from here."""
        self.count, self.at, self.error, self.persistent, self.short = 0, at, error, persistent, short

    @property
    def struck(self) -> bool:
        return 0 < self.at <= self.count

    def _call(self) -> bool:
        with self.mutex:
            self.count += 1
            strikes = self.at and (self.count == self.at or (self.persistent and self.count > self.at))
        if strikes and self.error is not None:
            raise self.error
        return bool(strikes)

    def open(self, path: str, flags: int) -> int:
        self._call()
        fd = super().open(path, flags)
        self.log.append(("o", fd, flags, os.fsencode(path)))
        return fd

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        if self._call() and self.short:
            data = data[: max(1, len(data) // 2)]
        n = super().pwrite(fd, data, offset)
        self.log.append(("w", fd, offset, bytes(data[:n])))
        return n

    def sync(self, fd: int) -> None:
        self._call()
        self.log.append(("s", fd, 0, b""))  # memory needs no sync

    def close(self, fd: int) -> None:
        super().close(fd)
        self.log.append(("c", fd, 0, b""))

    def rename(self, old: str, new: str) -> None:
        self._call()
        super().rename(old, new)
        self.log.append(("r", 0, 0, os.fsencode(old) + b"\0" + os.fsencode(new)))

    def unlink(self, path: str) -> None:
        self._call()
        super().unlink(path)
        self.log.append(("u", 0, 0, os.fsencode(path)))

    def mkdir(self, path: str) -> None:
        self._call()
        super().mkdir(path)
        self.log.append(("m", 0, 0, os.fsencode(path)))

    def rmdir(self, path: str) -> None:
        self._call()
        super().rmdir(path)
        self.log.append(("d", 0, 0, os.fsencode(path)))


def declaration(kind: str) -> StreamSchema:
    modes = {"append": stream.append(), "indexed": stream.indexed(6), "rotate": stream.indexed(2, rewrite="rotate")}
    return StreamSchema(
        dims={"x": 4},
        variables={"v": Variable(("time", "x"), "f8"), "n": Variable(("time",), "i4")},
        statics={"s": Variable(("x",), "u1")},
        coords={"x": [0.0, 1.0, 2.0, 3.0]},
        chunk={"time": 1, "x": 2},
        shard={"time": 1 if kind == "rotate" else 2, "x": 2},
        mode=modes[kind],
        profile="none",
    )


@dataclass
class Story:
    """Words: C create, W create over what is there, a a record, D flush and commit, S static, blob and attributes,
    I invalidate the first record, R all are killed and resume, T the same without the last record."""

    path: Path
    kind: str
    files: Files = field(default_factory=Files)
    durability: str | None = "fsync"
    threads: int = 1
    making: bool = True
    committed: State = ((), (), 0)
    coming: State = ((), (), 0)
    salt: int = 0
    attrs: int = 0
    on_word: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.schema = declaration(self.kind)
        self.crew: Crew | None = None
        self.pending: dict[int, int] = {}
        self.statics: set[str] = set()
        self.wrote: dict[int, set[int]] = {}

    @property
    def options(self) -> dict[str, Any]:
        return {"durability": self.durability, "threads": self.threads}

    @property
    def base(self) -> LocalPlace:
        return LocalPlace(self.path, self.files)

    def tell(self, words: str) -> None:
        for word in words.split():
            self.word(word)

    def word(self, word: str) -> None:
        self.coming = self._after(word)
        getattr(self, f"_{word}")()
        self.making, self.committed = False, self.coming
        self.on_word()

    # ---- what is meant -----------------------------------------------------------------------------------------

    def _after(self, word: str) -> State:
        records, statics, attrs = dict(self.committed[0]), set(self.committed[1]), self.committed[2]
        if word in "CW":
            return ((), (), 0)
        if word == "D":
            if self.kind == "rotate" and self.pending:
                records = {}
            records |= self.pending
            statics |= self.statics
            attrs = max(attrs, self.attrs)
        if word == "I":
            records.pop(min(records, default=-1), None)
        if word == "T":
            records.pop(max(records, default=-1), None)
        return tuple(sorted(records.items())), tuple(sorted(statics)), attrs

    # ---- what is done ------------------------------------------------------------------------------------------

    def _C(self, overwrite: bool = False) -> None:
        self.making = True
        self._leave()
        self.pending, self.statics, self.wrote, self.attrs = {}, set(), {}, 0
        self.crew = Crew.__new__(Crew)  # so that it is known also when it is not finished
        self.crew.__init__(self.base, self.schema, REGIONS, **self.options, overwrite=overwrite)  # type: ignore[misc]

    def _W(self) -> None:
        self._C(overwrite=True)

    def _a(self) -> None:
        assert self.crew is not None
        done = dict(self.committed[0]) | self.pending
        if not self.wrote:  # else a word that failed goes on
            self.salt += 1
            i = self.crew.owner.next_slot() if self.kind == "rotate" else min(set(range(len(done) + 1)) - done.keys())
            self.wrote = {i: set()}
        ((i, by),) = self.wrote.items()
        self.pending[i] = self.salt
        for w, writer in enumerate(self.crew.writers):
            if w not in by:
                by.add(w)
                self.crew.write(i, salt=self.salt, only=[writer])
        self.wrote = {}

    def _D(self) -> None:
        assert self.crew is not None
        receipt = self.crew.owner.commit(self.crew.flush())
        for writer in self.crew.writers:
            writer.acknowledge(receipt)
        self.pending, self.statics = {}, set()

    def _S(self) -> None:
        assert self.crew is not None
        if "s" not in self.committed[1]:
            self.statics = {"s"}
            self.crew.write_static("s")
        for record, salt in list(self.pending.items())[:1]:
            self.crew.owner.write_blob(record, "b", b"%d" % salt)
        self.attrs += 1
        self.crew.owner.set_attrs({"n": self.attrs})

    def _I(self) -> None:
        assert self.crew is not None
        if self.committed[0]:
            self.crew.owner.invalidate(min(dict(self.committed[0])))
        self._D()

    def _R(self, **more: Any) -> None:
        self._leave()
        self.pending, self.statics, self.wrote = {}, set(), {}
        self.crew = Crew.__new__(Crew)
        self.crew.base, self.crew.schema, self.crew.options = self.base, self.schema, self.options
        self.crew.resume(REGIONS, **more)

    def _T(self) -> None:
        records = dict(self.coming[0])
        self._R(at=10.0 * len(records) - 5)

    def _leave(self) -> None:
        for writer in getattr(self.crew, "writers", []):
            writer.fence.release()
        self.crew = None

    # ---- recovery ----------------------------------------------------------------------------------------------

    def found(self) -> None:
        """Take what stands as committed: one of the two states that may."""
        state = check(self.path, self.schema, (self.committed, self.coming), self.making)
        self.making = state is None
        self.committed = self.coming = ((), (), 0) if state is None else state
        self.attrs = self.committed[2]

    def again(self) -> None:
        """New writers go on from what stands."""
        self.found()
        self.pending, self.statics, self.wrote = {}, set(), {}
        self.word("W" if self.making else "R")


def check(path: Path, s: StreamSchema, candidates: tuple[State, ...], making: bool) -> State | None:
    """The state that the stream is in, every value of it compared; None when it is not made yet."""
    try:
        found = stream.Stream(path)
        m = found.manifest
    except NotARecord:
        assert making, "the stream is gone"
        return None
    wrong = []
    for state in candidates:
        try:
            _compare(found, m, s, state)
            return state
        except AssertionError as e:
            wrong.append(str(e)[:300])
    raise AssertionError(f"{m.readable()} {m.statics} {m.attrs} is none of {candidates}: {wrong}")


def _compare(found: stream.Stream, m: Any, s: StreamSchema, state: State) -> None:
    records, statics, attrs = dict(state[0]), state[1], state[2]
    assert (m.readable(), tuple(sorted(m.statics)), m.attrs.get("n", 0)) == (sorted(records), statics, attrs)
    for i, salt in records.items():
        for name in s.variables:
            assert found.read_record(name, i).tobytes() == value(s, name, i, salt).tobytes(), (name, i, salt)
    for name in statics:
        assert found.read_static(name).tobytes() == value(s, name, 0).tobytes()
    assert found.times().tolist() == [10.0 * i for i in sorted(records)]
    for scope, writer, key in m.blobs:
        if scope in records:
            assert found.read_blob(scope, writer, key) == b"%d" % records[scope]
    for i in set(range(8)) - records.keys():
        try:
            found.read_record("v", i)
        except NotCommitted:
            continue
        raise AssertionError(f"record {i} can be read")


STORIES = {
    "create": ("append", "C a D"),
    "overwrite": ("append", "C a a a D W a D"),
    "flush": ("append", "C a S D a D a a a D"),
    "commit": ("append", "C a a a S D a a D D"),
    "resume": ("append", "C a a a D a a R a D R a a D"),
    "truncate": ("append", "C a a a a a S D T T a a D T"),
    "indexed": ("indexed", "C a a a D a R a S D a D"),
    "invalidate": ("indexed", "C a a S D I a D I R a D"),
    "rotate": ("rotate", "C a D a S D a D R a D a R a D"),
}

# SPDX-License-Identifier: BSD-3-Clause
"""The system calls of a collection, counted, failed, stopped or recorded; and jobs to do it to."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mrec
from mrec.collection import Collection, compact, merge
from mrec.collection.place import Directory
from mrec.files import Files


class Stopped(BaseException):
    """The process is as good as dead."""


class FaultyFiles(Files):
    """Strikes at call `at`, from 1: "fail" it, keep it "short", or "stop" it and all after it. log: what changed, as
    tests.power.disk has it."""

    def __init__(self, at: int = 0, kind: str = "") -> None:
        self.at, self.kind = at, kind
        self.count = 0
        self.struck = ""
        self.log: list[tuple[str, int, int, bytes]] = []

    def _hit(self, name: str, shortens: bool = False) -> bool:
        self.count += 1
        if self.kind == "stop" and self.struck:
            raise Stopped
        if self.count != self.at or (self.kind == "short" and not shortens):
            return False
        self.struck = name
        if self.kind == "stop":
            raise Stopped
        if self.kind == "fail":
            raise OSError(errno.ENOSPC, "struck", name)
        return True

    def open(self, path: str, flags: int) -> int:
        self._hit("open")
        fd = super().open(path, flags)
        self.log.append(("o", fd, flags, os.fsencode(path)))
        return fd

    def close(self, fd: int) -> None:
        super().close(fd)  # a descriptor that is left open would be the test's own doing
        self.log.append(("c", fd, 0, b""))

    def pread(self, fd: int, n: int, offset: int) -> bytes:
        short = self._hit("pread", n > 1)
        return super().pread(fd, n // 2 if short else n, offset)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        short = self._hit("pwrite", len(data) > 1)
        data = data[: len(data) // 2] if short else data
        n = super().pwrite(fd, data, offset)
        self.log.append(("w", fd, offset, bytes(data[:n])))
        return n

    def size(self, fd: int) -> int:
        self._hit("size")
        return super().size(fd)

    def sync(self, fd: int) -> None:
        self._hit("sync")
        self.log.append(("s", fd, 0, b""))

    def rename(self, source: str, target: str) -> None:
        self._hit("rename")
        super().rename(source, target)
        self.log.append(("r", 0, 0, os.fsencode(source) + b"\0" + os.fsencode(target)))

    def unlink(self, path: str) -> None:
        self._hit("unlink")
        super().unlink(path)
        self.log.append(("u", 0, 0, os.fsencode(path)))

    def mkdir(self, path: str) -> None:
        self._hit("mkdir")
        super().mkdir(path)
        self.log.append(("m", 0, 0, os.fsencode(path)))

    def rmdir(self, path: str) -> None:
        self._hit("rmdir")
        super().rmdir(path)
        self.log.append(("d", 0, 0, os.fsencode(path)))


# ---- jobs ----------------------------------------------------------------------------------------------------------

OLD, NEW = 3, 5

#: What a collection holds: data set -> values; None: there is none.
Content = dict[str, list[float]] | None


def values(seed: int, i: int) -> list[float]:
    """Those of data set i."""
    return (np.arange(40) * (i + 1) + seed).tolist()


def write(path: Path, seed: int, files: Files, overwrite: bool) -> None:
    """Data sets enough for blocks that go to the temporary file, one of them aborted."""
    with mrec.CollectionWriter(path, codec="none", overwrite=overwrite, block_size=256, files=files) as writer:
        for i in range(seed):
            with writer.add_dataset(f"set{i}") as dataset:
                dataset.define_array("x", "float64", ("t",), (40,), (16,))
                dataset.write_array("x", (0,), values(seed, i))
                dataset.set_attribute("i", i)
        dropped = writer.add_dataset("dropped")
        dropped.define_array("y", "float64", ("t",), (40,))
        dropped.write_array("y", (0,), np.full(40, 1e9))
        dropped.abort()


def content(path: Path) -> Content:
    """All that is there, read; None when nothing can be opened. CorruptData is not caught."""
    if not (path / "data.atlas").exists():
        return None
    found = mrec.open_collection(path)
    for name in found:
        assert found[name].attributes == {"i": int(name[3:])}
    return {name: found[name]["x"][...].tolist() for name in found}


def full(seed: int) -> dict[str, list[float]]:
    return {f"set{i}": values(seed, i) for i in range(seed)}


def without(found: dict[str, list[float]], name: str) -> dict[str, list[float]]:
    return {key: value for key, value in found.items() if key != name}


@dataclass(frozen=True)
class Job:
    """prepare, then run; allowed: what may be there when it was struck, the last when it was not."""

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path, Files], None]
    allowed: list[Any]


def _nothing(path: Path) -> None:
    pass


def _old(path: Path) -> None:
    write(path, OLD, Files(), False)


def _old_deleted(path: Path) -> None:
    _old(path)
    mrec.open_collection(path).delete("set0")


def _two(path: Path) -> None:
    _old(path)
    other = path.parent / "other"
    shutil.rmtree(other, ignore_errors=True)
    with mrec.CollectionWriter(other, block_size=256) as writer, writer.add_dataset("set9") as dataset:
        dataset.define_array("x", "float64", ("t",), (40,), (16,))
        dataset.write_array("x", (0,), values(9, 9))
        dataset.set_attribute("i", 9)


def _delete(path: Path, files: Files) -> None:
    with Collection(Directory(str(path), files)) as found:
        found.delete("set1")


def _merge(path: Path, files: Files) -> None:
    merge(path, [path, path.parent / "other"], overwrite=True, files=files)


KEPT = without(full(OLD), "set0")
JOBS = [
    Job("create", _nothing, lambda path, files: write(path, NEW, files, False), [None, full(NEW)]),
    Job("overwrite", _old, lambda path, files: write(path, NEW, files, True), [full(OLD), full(NEW)]),
    # The old mask goes before the new container comes, so that it never hides a new data set.
    Job(
        "overwrite deleted",
        _old_deleted,
        lambda path, files: write(path, NEW, files, True),
        [KEPT, full(OLD), full(NEW)],
    ),
    Job("delete", _old, _delete, [full(OLD), without(full(OLD), "set1")]),
    Job("compact", _old_deleted, lambda path, files: compact(path, files=files), [KEPT, full(OLD), KEPT]),
    Job("merge", _two, _merge, [full(OLD), full(OLD) | {"set9": values(9, 9)}]),
]

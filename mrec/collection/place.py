# SPDX-License-Identifier: BSD-3-Clause
"""Where the files of a collection are, for reading: a directory, or the objects under a prefix."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

from mrec.errors import ClosedError, CorruptData
from mrec.files import POSIX, Files, opened, read_all, replace_file

CONTAINER, MASK, CHECKSUMS = "data.atlas", "deleted.mask", "data.atlas.crc"


class Place(ABC):
    """Named files, read by ranges. The names are those above."""

    root: str
    #: Whether reading a whole segment to check it costs little.
    near: bool
    closed = False

    def path(self, name: str) -> str:
        """How messages call a file."""
        return f"{self.root.rstrip('/')}/{name}"

    @abstractmethod
    def tail(self, name: str, n: int) -> tuple[bytes, int]:
        """The last bytes of a file, at most n, and its size. FileNotFoundError."""

    @abstractmethod
    def read(self, name: str, offset: int, n: int) -> bytes:
        """Exactly n bytes; CorruptData when the file ends before."""

    @abstractmethod
    def get(self, name: str) -> bytes | None:
        """The whole file; None when it is not there."""

    @abstractmethod
    def put(self, name: str, data: bytes) -> None:
        """Replace a small file, whole or not at all."""

    def check(self) -> None:
        """ClosedError after `close`."""
        if self.closed:
            raise ClosedError(f"the collection {self.root} is closed")

    def close(self) -> None:
        """Let go of what is open; nothing is read or written after it."""
        self.closed = True


class Directory(Place):
    """A local directory. The container stays open, so that a new one in its place changes nothing here."""

    near = True

    def __init__(self, root: str, files: Files = POSIX) -> None:
        self.root = root
        self.files = files
        self._fds: dict[str, int] = {}

    def path(self, name: str) -> str:
        return os.path.join(self.root, name)

    def _fd(self, name: str) -> int:
        self.check()
        if name not in self._fds:
            self._fds[name] = self.files.open(self.path(name), os.O_RDONLY)
        return self._fds[name]

    def tail(self, name: str, n: int) -> tuple[bytes, int]:
        fd = self._fd(name)
        size = self.files.size(fd)
        return self.read(name, size - min(n, size), min(n, size)), size

    def read(self, name: str, offset: int, n: int) -> bytes:
        fd = self._fd(name)
        data = self.files.pread(fd, n, offset)
        if len(data) < n:
            if offset + n > self.files.size(fd):
                raise CorruptData(f"{self.path(name)} ends before byte {offset + n}")
            data = read_all(self.files, fd, n, offset, self.path(name))
        return data

    def get(self, name: str) -> bytes | None:
        self.check()
        try:
            with opened(self.files, self.path(name), os.O_RDONLY) as fd:
                return read_all(self.files, fd, self.files.size(fd), 0, self.path(name))
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        self.check()
        replace_file(self.files, self.path(name), data)

    def close(self) -> None:
        super().close()
        while self._fds:
            self.files.close(self._fds.popitem()[1])

    def __del__(self) -> None:
        for fd in getattr(self, "_fds", {}).values():
            os.close(fd)


def no_options(options: dict[str, Any]) -> None:
    """TypeError, as for any argument that does not exist: these are for what a URL leads to."""
    if options:
        raise TypeError(f"a directory takes no argument {next(iter(options))!r}")


def place_of(path: Any, files: Files = POSIX, **options: Any) -> Place:
    """The place that a path, a URL of fsspec ("s3://..."), or an obstore store names."""
    if isinstance(path, Place):
        return path
    if isinstance(path, (str, os.PathLike)) and "://" not in os.fspath(path):
        no_options(options)
        return Directory(os.path.abspath(os.fspath(path)), files)
    from mrec.collection.objects import objects_of

    return objects_of(path, options)

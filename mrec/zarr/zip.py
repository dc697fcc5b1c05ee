# SPDX-License-Identifier: BSD-3-Clause
"""A zip file as the place of a hierarchy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from mrec._core import Archive, Cache, Objects, crc32
from mrec.errors import CorruptData
from mrec.zarr.store import DEFAULT, Reading, Store
from mrec.zarr.zipdir import Entry, read_directory

Directory = Callable[[int, str], list[Entry]]


class ZipStore(Store):
    """A zip file whose root is the root of a Zarr hierarchy, read in place by byte ranges of one descriptor.

    What is read is the file as it was opened: a new one under its name is not seen. An entry that is read whole is
    checked against its CRC-32. CorruptData when the archive contradicts itself, UnsupportedCodec when an entry is
    compressed or encrypted.
    """

    fixed = True

    def __init__(
        self, root: str | os.PathLike[str], directory: Directory = read_directory, reading: Reading = DEFAULT
    ) -> None:
        """directory: finds the entries in a file that is open; another than that of the format is for damaged ones."""
        self.root = os.fspath(root)
        self.reading = reading
        fd = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            entries = directory(fd, self.root)
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd  # which the archive closes
        self._fill(entries, fd)

    def _fill(self, entries: list[Entry], fd: int, objects: Objects | None = None) -> None:
        table = [(e.name, e.offset, e.size, e.crc32) for e in entries]
        self._archive = Archive(fd, self.root, table, objects=objects)
        self._entries = {entry.name: entry for entry in entries}
        self._below: dict[str, set[str]] = {"": set()}  # directory -> those in it
        for entry in entries:
            self._add_directory(entry.name.rpartition("/")[0])
        self.cache = self._new_cache()

    def _new_cache(self) -> Cache:
        return Cache(nbytes=max(self.reading.cache, 1), archive=self._archive)

    def _add_directory(self, path: str) -> None:
        below: set[str] = set()
        while path not in self._below:
            self._below[path] = below
            path, _, name = path.rpartition("/")
            below = {name}
        self._below[path] |= below

    def again(self) -> ZipStore:
        """The same file as it was opened, with memory of its own."""
        other = object.__new__(type(self))
        other.__dict__ |= self.__dict__
        other.cache = other._new_cache()
        return other

    def entries(self) -> list[Entry]:
        """The files in the archive, sorted by the bytes of their names."""
        return list(self._entries.values())

    def get(self, key: str) -> bytes | None:
        """The whole value of a key, checked; None when there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value = self._read(entry, 0, entry.size)
        if crc32(value) != entry.crc32:
            raise CorruptData(f"{self.path(key)}: the CRC-32 of the entry does not match")
        return value

    def get_range(self, key: str, start: int, stop: int | None = None) -> bytes | None:
        """The bytes from start up to stop of a value, fewer where it ends. What is negative counts from the end."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        start, stop, _ = slice(start, stop).indices(entry.size)
        return self._read(entry, start, max(stop, start))

    def _read(self, entry: Entry, start: int, stop: int) -> bytes:
        """Bytes of an entry, all of them."""
        parts, at, left = [], entry.offset + start, stop - start
        while left:
            part = os.pread(self.fd, left, at)
            if not part:
                raise CorruptData(f"{self.path(entry.name)}: the file ends at byte {at}, where more should stand")
            parts.append(part)
            at += len(part)
            left -= len(part)
        return b"".join(parts)

    def exists(self, key: str) -> bool:
        """Whether there is a value or a directory."""
        return key in self._entries or key in self._below

    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory, sorted."""
        return sorted(self._below.get(key, ()))

    def walk(self, key: str = "") -> Iterator[str]:
        """The keys of all files at and below a directory."""
        prefix = f"{key}/" if key else ""
        return (name for name in self._entries if name.startswith(prefix))

    def size(self, key: str) -> int:
        """The bytes of a value."""
        if key not in self._entries:
            raise FileNotFoundError(2, "there is no such entry", self.path(key))
        return self._entries[key].size

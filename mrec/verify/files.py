# SPDX-License-Identifier: BSD-3-Clause
"""The files of a record, whole and in parts, wherever they are: a directory, a zip file, any other store."""

from __future__ import annotations

import os
from typing import Any, Protocol

from mrec import _core
from mrec.zarr.store import FilesystemStore
from mrec.zarr.zip import ZipStore

_STEP = 1 << 24


class Store(Protocol):
    """Where the bytes of a record are: values by key, and the names of what has children."""

    def get(self, key: str) -> bytes | None:
        """The whole value; None when there is none."""

    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory."""


class Value:
    """The value of one key, read in parts."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @property
    def size(self) -> int:
        """Bytes in the value."""
        return len(self._data)

    def read(self, start: int, nbytes: int) -> bytes:
        """The bytes from `start`; fewer where the value ends."""
        return self._data[start : start + nbytes]


class FileValue(Value):
    """A file, which may be growing: its size is that of now. It is not kept open, for a record may have any number."""

    def __init__(self, path: str) -> None:
        self._path = path
        with open(path, "rb"):  # it is there, and a file
            pass

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.stat(self._path).st_size

    def read(self, start: int, nbytes: int) -> bytes:
        """The bytes from `start`; fewer where the file ends."""
        with open(self._path, "rb", buffering=0) as file:
            return os.pread(file.fileno(), nbytes, start)


class EntryValue(Value):
    """A stored entry of a zip file. What else its bytes are part of keeps the file open."""

    def __init__(self, store: ZipStore, offset: int, size: int) -> None:
        self._store, self._offset, self._size = store, offset, size

    @property
    def size(self) -> int:
        """Bytes in the entry."""
        return self._size

    def read(self, start: int, nbytes: int) -> bytes:
        """The bytes from `start`; fewer where the entry ends."""
        return os.pread(self._store.fd, max(min(nbytes, self._size - start), 0), self._offset + start)


class Files:
    """The files of a record by their keys. entries: those of a zip file, by their names."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.entries = {entry.name: entry for entry in store.entries()} if isinstance(store, ZipStore) else {}

    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory, sorted."""
        return list(self._store.names(key))

    def get(self, key: str) -> bytes | None:
        """The whole value of a key; None when there is none."""
        if not isinstance(self._store, ZipStore):
            return self._store.get(key)
        value = self.open(key)
        return None if value is None else value.read(0, value.size)

    def open(self, key: str) -> Value | None:
        """The value of a key, to be read in parts; None when there is none."""
        if isinstance(self._store, ZipStore):
            entry = self.entries.get(key)
            return None if entry is None else EntryValue(self._store, entry.offset, entry.size)
        if not isinstance(self._store, FilesystemStore):
            data = self._store.get(key)
            return None if data is None else Value(data)
        try:
            return FileValue(self._store.path(key))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def stored(self, key: str) -> int:
        """The bytes of all files below a directory; as many as can be where the store does not say."""
        if not isinstance(self._store, (FilesystemStore, ZipStore)):
            return 1 << 62
        total = 0
        for name in self._store.walk(key):
            try:
                total += self._store.size(name)
            except FileNotFoundError:
                pass  # a writer replaced it
        return total

    def damaged_entries(self) -> list[str]:
        """The entries of a zip file that do not have their CRC-32, by name."""
        return [name for name, entry in self.entries.items() if self.crc32(name) != entry.crc32]

    def crc32(self, name: str) -> int:
        """The CRC-32 of what stands in an entry."""
        value = Files.open(self, name)
        assert value is not None
        crc = 0
        for start in range(0, value.size, _STEP):
            crc = _core.crc32(value.read(start, _STEP), crc)
        return crc

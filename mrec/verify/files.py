# SPDX-License-Identifier: BSD-3-Clause
"""Parts of files: from a directory by their range, from any other store out of the whole value."""

from __future__ import annotations

import os
from typing import Any, Protocol

from mrec.zarr.store import FilesystemStore


class Store(Protocol):
    """Where the bytes of a record are: values by key, and the names of what has children."""

    def get(self, key: str) -> bytes | None:
        """The whole value; None when there is none."""

    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory."""


class Value:
    """The value of one key, read in parts."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)

    def read(self, start: int, nbytes: int) -> bytes:
        """The bytes from `start`; fewer where the value ends."""
        return self.data[start : start + nbytes]


class FileValue:
    """The same for a file; it may be growing, and its size is that of now."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "rb", buffering=0)

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return os.fstat(self._file.fileno()).st_size

    def read(self, start: int, nbytes: int) -> bytes:
        """The bytes from `start`; fewer where the file ends."""
        return os.pread(self._file.fileno(), nbytes, start)

    def __del__(self) -> None:
        file = self.__dict__.get("_file")
        if file is not None:
            file.close()


def open_value(store: Any, key: str) -> Value | FileValue | None:
    """The value of a key; None when there is none."""
    if type(store) is not FilesystemStore:
        data = store.get(key)
        return None if data is None else Value(data)
    try:
        return FileValue(store.path(key))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None

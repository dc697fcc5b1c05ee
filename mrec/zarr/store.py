# SPDX-License-Identifier: BSD-3-Clause
"""Where the bytes of a hierarchy are."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from mrec._core import Cache, Source
from mrec.zarr.generic import GenericSource
from mrec.zarr.metadata import ArrayMeta, source_spec

#: What reads an array.
AnySource = Source | GenericSource


@dataclass(frozen=True, slots=True)
class Reading:
    """How arrays are read. cache: bytes of decoded chunks and indexes that are kept. verify: look at each crc32c."""

    cache: int = 64 << 20
    verify: bool = True


DEFAULT = Reading()


class Store(ABC):
    """The place of a Zarr hierarchy, for reading.

    Keys are relative to the root, with "/" between names. The arrays opened through one store share its descriptors
    and its memory for decoded chunks.
    """

    root: str
    reading: Reading
    cache: Cache

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.root!r})"

    def path(self, key: str) -> str:
        """The file or directory of a key, as messages name it."""
        return os.path.join(self.root, key) if key else self.root

    @abstractmethod
    def again(self) -> Store:
        """The same place, with memory of its own."""

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """The whole value of a key; None when there is none."""

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Whether there is a value or a directory."""

    @abstractmethod
    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory, sorted."""

    @abstractmethod
    def walk(self, key: str = "") -> Iterator[str]:
        """The keys of all files at and below a directory."""

    @abstractmethod
    def size(self, key: str) -> int:
        """The bytes of a value."""

    def source(
        self, key: str, meta: ArrayMeta, *, absent_is_loss: bool = False, tail: tuple[int, ...] | None = None
    ) -> AnySource:
        """What reads the array of a key. UnsupportedCodec names a codec that mrec does not know."""
        spec = source_spec(meta)
        if spec is None:
            return GenericSource(meta, lambda chunk: self.get(f"{key}/{chunk}" if key else chunk))
        place = {"path": self.path(key), "absent_is_loss": absent_is_loss, "tail": tail, "verify": self.reading.verify}
        return Source({**spec, **place}, meta.dtype, self.cache)


class FilesystemStore(Store):
    """A directory that is the root of a Zarr hierarchy, for reading."""

    def __init__(self, root: str | os.PathLike[str], reading: Reading = DEFAULT) -> None:
        self.root = os.fspath(root)
        self.reading = reading
        self.cache = Cache(nbytes=max(reading.cache, 1))

    def again(self) -> FilesystemStore:
        """The same place, with memory of its own."""
        return FilesystemStore(self.root, self.reading)

    def get(self, key: str) -> bytes | None:
        """The whole value of a key; None when there is none."""
        try:
            with open(self.path(key), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def exists(self, key: str) -> bool:
        """Whether there is a value or a directory."""
        return os.path.exists(self.path(key))

    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory, sorted."""
        try:
            with os.scandir(self.path(key)) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def walk(self, key: str = "") -> Iterator[str]:
        """The keys of all files at and below a directory."""
        root = self.path(key)
        for directory, _, files in os.walk(root):
            for name in files:
                yield os.path.relpath(os.path.join(directory, name), self.root).replace(os.sep, "/")

    def size(self, key: str) -> int:
        """The bytes of a value."""
        return os.path.getsize(self.path(key))


def open_store(root: str | os.PathLike[str], reading: Reading = DEFAULT) -> Store:
    """What reads the hierarchy at `root`: a directory, or a zip file."""
    if os.path.isfile(root):
        from mrec.zarr.zip import ZipStore

        return ZipStore(root, reading=reading)
    return FilesystemStore(root, reading)

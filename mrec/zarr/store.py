# SPDX-License-Identifier: BSD-3-Clause
"""Where the bytes of a hierarchy are."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mrec._core import Cache, Objects, Source
from mrec.errors import InvalidValue, ReadOnly
from mrec.zarr.generic import GenericSource
from mrec.zarr.metadata import ArrayMeta, source_spec
from mrec.zarr.write import sync_directory

#: What reads an array.
AnySource = Source | GenericSource


@dataclass(frozen=True, slots=True)
class Reading:
    """How arrays are read. cache: bytes of decoded chunks and indexes that are kept. verify: look at each crc32c."""

    cache: int = 64 << 20
    verify: bool = True


DEFAULT = Reading()


class Changes:
    """How often the arrays of a store were changed through it, so that what was read before is not taken for new."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}

    def count(self, path: str) -> int:
        """The number of changes of an array."""
        return self._counts.get(path, 0)

    def add(self, path: str) -> None:
        """The array was changed."""
        with self._lock:
            self._counts[path] = self._counts.get(path, 0) + 1


class Store(ABC):
    """The place of a Zarr hierarchy: keyed bytes.

    Keys are relative to the root, with "/" between names. The arrays opened through one store share its descriptors
    and its memory for decoded chunks. fixed: nobody changes what is there. writable: `set` and `delete` work.
    """

    root: str
    reading: Reading
    cache: Cache
    changes = Changes()  # of stores where nothing is written
    fixed = False
    writable = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.root!r})"

    def path(self, key: str) -> str:
        """The file or directory of a key, as messages name it."""
        return os.path.join(self.root, key) if key else self.root

    @abstractmethod
    def again(self) -> Store:
        """The same place, with memory of its own."""

    # ---- reading -------------------------------------------------------------------------------------------------

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """The whole value of a key; None when there is none."""

    @abstractmethod
    def get_range(self, key: str, start: int, stop: int | None = None) -> bytes | None:
        """The bytes from start up to stop of a value, fewer where it ends. What is negative counts from the end."""

    def get_ranges(self, key: str, ranges: Iterable[tuple[int, int]]) -> list[bytes] | None:
        """Several ranges of one value."""
        found = [self.get_range(key, start, stop) for start, stop in ranges]
        return None if None in found else [part for part in found if part is not None]

    @abstractmethod
    def exists(self, key: str) -> bool:
        """Whether there is a value or a directory."""

    @abstractmethod
    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory, sorted."""

    @abstractmethod
    def walk(self, key: str = "") -> Iterator[str]:
        """The keys of all values at and below a directory."""

    @abstractmethod
    def size(self, key: str) -> int:
        """The bytes of a value. FileNotFoundError when there is none."""

    # ---- writing -------------------------------------------------------------------------------------------------

    def set(self, key: str, value: bytes) -> None:
        """Put a value in its place, whole or not at all."""
        raise ReadOnly(f"{self!r} is read-only")

    def set_range(self, key: str, start: int, value: bytes) -> None:
        """Put bytes into a value that is there, from `start` on, in place. FileNotFoundError when there is none."""
        raise ReadOnly(f"{self!r} is read-only")

    def delete(self, key: str) -> None:
        """Remove a value; one that is not there is no error."""
        raise ReadOnly(f"{self!r} is read-only")

    def delete_below(self, key: str) -> None:
        """Remove all values at and below a directory."""
        raise ReadOnly(f"{self!r} is read-only")

    # ---- arrays --------------------------------------------------------------------------------------------------

    def source(
        self, key: str, meta: ArrayMeta, *, absent_is_loss: bool = False, tail: tuple[int, ...] | None = None
    ) -> AnySource:
        """What reads the array of a key. UnsupportedCodec names a codec that mrec does not know."""
        spec = source_spec(meta)
        if spec is None:
            return GenericSource(meta, lambda chunk: self.get(f"{key}/{chunk}" if key else chunk))
        spec |= {"path": self.path(key), "absent_is_loss": absent_is_loss, "fixed": self.fixed, "tail": tail}
        return Source({**spec, "verify": self.reading.verify}, meta.dtype, self.cache)


class FilesystemStore(Store):
    """A directory that is the root of a Zarr hierarchy.

    A value is replaced by a rename: a reader sees the old one or the new one. durable: each value is synced, with its
    name, before `set` returns, so that it outlasts a power loss; else the system writes it when it likes.
    """

    writable = True

    def __init__(self, root: str | os.PathLike[str], reading: Reading = DEFAULT, *, durable: bool = False) -> None:
        self.root = os.fspath(root)
        self.reading = reading
        self.durable = durable
        self.cache = Cache(nbytes=max(reading.cache, 1))
        self.changes = Changes()

    def again(self) -> FilesystemStore:
        """The same place, with memory of its own."""
        other = FilesystemStore(self.root, self.reading, durable=self.durable)
        other.changes = self.changes
        return other

    def get(self, key: str) -> bytes | None:
        """The whole value of a key; None when there is none."""
        try:
            return _read_whole(self.path(key))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def get_range(self, key: str, start: int, stop: int | None = None) -> bytes | None:
        """The bytes from start up to stop of a value, fewer where it ends. What is negative counts from the end."""
        try:
            with open(self.path(key), "rb") as file:
                start, stop, _ = slice(start, stop).indices(os.fstat(file.fileno()).st_size)
                file.seek(start)
                return file.read(max(stop - start, 0))
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
        if not os.path.isfile(self.path(key)):
            raise FileNotFoundError(2, "there is no such value", self.path(key))
        return os.path.getsize(self.path(key))

    def set(self, key: str, value: bytes) -> None:
        """Put a value in its place, whole or not at all."""
        path = self.path(check_key(key))
        directory = os.path.dirname(path)
        made = os.path.join(directory, f".{secrets.token_hex(8)}.tmp")  # of no other thread or process
        try:
            try:
                file = open(made, "xb")
            except FileNotFoundError:
                self._make_directory(directory)
                file = open(made, "xb")
            with file:
                file.write(value)
                if self.durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(made, path)
        except BaseException:
            if os.path.lexists(made):
                os.unlink(made)
            raise
        if self.durable:
            sync_directory(directory)

    def _make_directory(self, directory: str) -> None:
        """A directory with those above it, and, where it is to last, their names."""
        if not os.path.isdir(directory):
            parent = os.path.dirname(os.path.abspath(directory))
            self._make_directory(parent)
            os.makedirs(directory, exist_ok=True)
            if self.durable:
                sync_directory(parent)

    def set_range(self, key: str, start: int, value: bytes) -> None:
        """Put bytes into a value that is there, from `start` on, in place. FileNotFoundError when there is none."""
        with open(self.path(check_key(key)), "r+b") as file:
            file.seek(start)
            file.write(value)
            if self.durable:
                file.flush()
                os.fsync(file.fileno())

    def delete(self, key: str) -> None:
        """Remove a value; one that is not there is no error."""
        try:
            os.unlink(self.path(check_key(key)))
        except (FileNotFoundError, NotADirectoryError):
            pass

    def delete_below(self, key: str) -> None:
        """Remove all values at and below a directory."""
        try:
            shutil.rmtree(self.path(check_key(key)))
        except (FileNotFoundError, NotADirectoryError):
            pass


class _Value:
    """A value in memory, as the core reads it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, n: int) -> memoryview:
        return memoryview(self._data)[offset : offset + n]


def _read_whole(path: str) -> bytes:
    """The bytes of a file. Records have many small documents, and a file object costs thrice what reading one does."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(file, os.fstat(file).st_size + 1)]
        while parts[-1]:
            parts.append(os.read(file, 1 << 20))
        return b"".join(parts)
    finally:
        os.close(file)


class MemoryStore(Store):
    """A hierarchy in memory: nothing is put on a disk. Thread-safe.

    values: what is there at the beginning, bytes by key; the dictionary itself is used.
    """

    root = "memory"
    fixed = True  # a value is never changed, but replaced
    writable = True

    def __init__(self, values: dict[str, bytes] | None = None, reading: Reading = DEFAULT) -> None:
        self.values = {} if values is None else values
        self.reading = reading
        self.changes = Changes()
        self.cache = Cache(nbytes=max(reading.cache, 1), objects=Objects(self.root, _opener(self.values)))

    def again(self) -> MemoryStore:
        """The same place, with memory of its own for decoded chunks."""
        other = MemoryStore(self.values, self.reading)
        other.changes = self.changes
        return other

    def get(self, key: str) -> bytes | None:
        """The whole value of a key; None when there is none."""
        return self.values.get(key)

    def get_range(self, key: str, start: int, stop: int | None = None) -> bytes | None:
        """The bytes from start up to stop of a value, fewer where it ends. What is negative counts from the end."""
        value = self.values.get(key)
        return None if value is None else value[start if start >= -len(value) else 0 : stop]

    def exists(self, key: str) -> bool:
        """Whether there is a value or a directory."""
        return not key or key in self.values or any(k.startswith(f"{key}/") for k in list(self.values))

    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory, sorted."""
        prefix = f"{key}/" if key else ""
        below = (k[len(prefix) :] for k in list(self.values) if k.startswith(prefix))
        return sorted({rest.partition("/")[0] for rest in below if "/" in rest})

    def walk(self, key: str = "") -> Iterator[str]:
        """The keys of all values at and below a directory."""
        prefix = f"{key}/" if key else ""
        return (k for k in list(self.values) if k.startswith(prefix))

    def size(self, key: str) -> int:
        """The bytes of a value."""
        if key not in self.values:
            raise FileNotFoundError(2, "there is no such value", key)
        return len(self.values[key])

    def set(self, key: str, value: bytes) -> None:
        """Put a value in its place."""
        self.values[check_key(key)] = bytes(value)

    def set_range(self, key: str, start: int, value: bytes) -> None:
        """Put bytes into a value that is there, from `start` on. FileNotFoundError when there is none."""
        if key not in self.values:
            raise FileNotFoundError(2, "there is no such value", key)
        old = self.values[key].ljust(start, b"\0")
        self.values[key] = old[:start] + bytes(value) + old[start + len(value) :]

    def delete(self, key: str) -> None:
        """Remove a value; one that is not there is no error."""
        self.values.pop(check_key(key), None)

    def delete_below(self, key: str) -> None:
        """Remove all values at and below a directory."""
        for found in list(self.walk(check_key(key))):
            self.values.pop(found, None)


def _opener(values: dict[str, bytes]) -> Callable[[str], _Value | None]:
    def open_value(key: str) -> _Value | None:
        value = values.get(key)
        return None if value is None else _Value(value)

    return open_value


def check_key(key: str) -> str:
    """The key; InvalidValue unless it names a place below the root."""
    if any(part in ("", ".", "..") or "\0" in part for part in key.split("/")):
        raise InvalidValue(f"{key!r} is no key of a store")
    return key


def open_store(root: str | os.PathLike[str] | Store, reading: Reading = DEFAULT) -> Store:
    """What reads the hierarchy at `root`: a directory, a zip file, or a URL. A store is that already."""
    if isinstance(root, Store):
        return root
    if is_url(root):
        from mrec.zarr.remote import open_url

        return open_url(str(root), reading)
    if os.path.isfile(root):
        from mrec.zarr.zip import ZipStore

        return ZipStore(root, reading=reading)
    return FilesystemStore(root, reading)


def local_path(path: str | os.PathLike[str]) -> str:
    """A path of this system from the root, so that a later chdir does not matter. InvalidValue when it can be none."""
    name = os.fsdecode(path)
    if "\0" in name:
        raise InvalidValue(f"{name!r} holds a NUL, which no path can")
    if not name:
        raise InvalidValue("the path of a record is not empty; the current directory is '.'")
    return os.path.abspath(name)


def is_url(root: object) -> bool:
    """Whether this names a place by a URL: s3://, gs://, az://, https://, memory:// ..."""
    scheme, colon, _ = root.partition("://") if isinstance(root, str) else ("", "", "")
    return bool(colon) and scheme.isalnum()

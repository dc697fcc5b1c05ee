# SPDX-License-Identifier: BSD-3-Clause
"""Where a stream lies: keyed bytes that are published whole. Here a directory, and memory."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from mrec import _core
from mrec.errors import StaleWriter
from mrec.files import POSIX, Files, opened, sync_names, try_to_remove, write_new
from mrec.stream.pool import ALONE, Pool

#: Called between the writing of an object and its publication; raises to stop it.
Guard = Callable[[], object]
#: Bytes below tmp/, about, that wait for their names together.
_STAGED = 64 << 20


def no_guard() -> None:
    """Nothing stands in the way."""


class Place(ABC):  # what a place has not, it does by doing nothing
    """Keyed bytes. Keys have "/" between names; a value is published whole or not at all.

    verifies: whether a commit reads the objects of a token and checks their checksums, unless told otherwise.
    """

    name: str
    durable: bool = False
    verifies: bool = True

    @abstractmethod
    def session(self, durable: bool) -> Place:
        """The same place for one writer or reader, with a state of its own."""

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """A whole value; None when there is none."""

    @abstractmethod
    def head(self, key: str, n: int) -> bytes | None:
        """The first n bytes of a value."""

    @abstractmethod
    def view(self, key: str) -> Any:
        """A value to read parts of: it has a length, and slices of it are bytes. None when there is none."""

    @abstractmethod
    def put(self, key: str, data: Any, guard: Guard = no_guard) -> None:
        """Publish a value, over what was there."""

    def publish(self, values: Iterable[tuple[str, Any]], guard: Guard = no_guard, pool: Pool = ALONE) -> None:
        """Publish several, in their order. pool: what may write them, before they are published, at the same time."""
        for key, data in values:
            self.put(key, data, guard)

    def replace(self, key: str, data: Any, guard: Guard = no_guard) -> None:
        """The same for what others may replace too: StaleWriter when it is not what this session read or wrote last,
        where the place can tell."""
        self.put(key, data, guard)

    @abstractmethod
    def claim(self, key: str, data: bytes) -> bool:
        """Make a value that was not there; False when it was."""

    @abstractmethod
    def delete(self, key: str) -> None:
        """Remove a value; nothing when there is none."""

    @abstractmethod
    def keys(self, prefix: str = "") -> Iterator[str]:
        """The keys of all values below a directory; all when it is ""."""

    @abstractmethod
    def names(self) -> list[str]:
        """What lies at the top."""

    def size(self, key: str) -> int | None:
        """The length of a value; None when there is none."""
        found = self.view(key)
        return None if found is None else len(found)

    def checksum(self, key: str) -> tuple[int, int] | None:
        """Size and CRC-32C of a value; None when there is none."""
        found = self.view(key)
        return None if found is None else (len(found), _core.crc32c(found[:]))

    def sync(self) -> None:  # noqa: B027
        """What was published is there for good, where the session is durable."""

    def sync_key(self, key: str) -> None:  # noqa: B027
        """The same for a value at the top that another published."""

    def sync_found(self) -> None:  # noqa: B027
        """The same for all that is found, whoever published it."""

    def prepare(self) -> None:  # noqa: B027
        """Make room for a stream."""

    def empty(self, directory: str) -> None:
        """Remove all below a directory."""
        for key in list(self.keys(directory)):
            self.delete(key)

    def lock(self) -> Callable[[], None]:
        """Hold the place against other owners, where it has locks; what lets go of it. RecordLocked."""
        return lambda: None

    def still_there(self) -> None:  # noqa: B027
        """OSError when the place was moved away from under its lock."""

    def tidy(self) -> None:  # noqa: B027
        """A single writer leaves: nothing of its own stays."""


# ---- a directory -------------------------------------------------------------------------------------------------


class LocalPlace(Place):
    """A directory. Not more than one thread at a time."""

    def __init__(self, root: str | os.PathLike[str], files: Files = POSIX, durable: bool = False) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.name = os.fspath(root)
        self.files = files
        self.durable = durable
        self._known: set[str] = set()  # directories that are there, and whose parents will be synced
        self._changed: set[str] = set()  # directories that have names which are not synced
        self._failed: OSError | None = None
        self._mark, self._made = secrets.token_hex(8), 0  # names of temporary files
        self._lock: Any = None

    def session(self, durable: bool) -> LocalPlace:
        """The same directory, for one writer or reader."""
        made = LocalPlace(self.root, self.files, durable)
        made.name = self.name
        return made

    def path(self, key: str) -> str:
        """The file of a key."""
        return f"{self.root}/{key}" if key else self.root

    def get(self, key: str) -> bytes | None:
        """A whole value; None when there is none."""
        try:
            with open(self.path(key), "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def head(self, key: str, n: int) -> bytes | None:
        """The first n bytes of a value."""
        try:
            fd = os.open(self.path(key), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            return os.read(fd, n)
        finally:
            os.close(fd)

    def view(self, key: str) -> Any:
        """The file, mapped."""
        try:
            with open(self.path(key), "rb") as file:
                if os.fstat(file.fileno()).st_size == 0:
                    return b""
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def size(self, key: str) -> int | None:
        """The length of a file."""
        try:
            return os.stat(self.path(key)).st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def checksum(self, key: str) -> tuple[int, int] | None:
        """Size and CRC-32C of a file, without a copy of it."""
        found = self.view(key)
        if found is None:
            return None
        try:
            return len(found), _core.crc32c(found)
        finally:
            if isinstance(found, mmap.mmap):
                found.close()

    def put(self, key: str, data: Any, guard: Guard = no_guard) -> None:
        """Write a file below tmp/, ask the guard, rename it."""
        self.publish([(key, data)], guard)

    def publish(self, values: Iterable[tuple[str, Any]], guard: Guard = no_guard, pool: Pool = ALONE) -> None:
        """Write files below tmp/, ask the guard, rename them; not too many at a time."""
        self._usable()
        staged: list[tuple[str, str]] = []
        left, size = iter(values), _STAGED

        def batch() -> Iterator[tuple[str, Any]]:
            nonlocal size
            size = 0
            for key, data in left:
                temporary = self._temporary()
                staged.append((temporary, self.path(key)))
                size += len(data)
                yield temporary, data
                if size >= _STAGED:
                    return

        try:
            while size >= _STAGED:
                pool.each(self._write, batch())
                self._rename(staged, guard)
        except BaseException:
            for temporary, _ in staged:
                try_to_remove(self.files, temporary)
            raise

    def _write(self, one: tuple[str, Any]) -> None:
        """A temporary file."""
        write_new(self.files, *one, sync=self.durable)

    def _temporary(self) -> str:
        self._made += 1
        return f"{self.root}/tmp/{self._mark}-{self._made}"

    def _rename(self, staged: list[tuple[str, str]], guard: Guard) -> None:
        """What is staged gets its names; what is left in the list has not got them."""
        guard()
        while staged:
            temporary, path = staged[0]
            folder = path.rpartition("/")[0]
            self._enter(folder)
            self.files.rename(temporary, path)
            self._changed.add(folder)
            del staged[0]

    def claim(self, key: str, data: bytes) -> bool:
        """Make a file that was not there; False when it was."""
        self._usable()
        folder = os.path.dirname(self.path(key))
        self._enter(folder)
        try:
            write_new(self.files, self.path(key), data, sync=self.durable)
        except FileExistsError:
            return False
        self._changed.add(folder)
        return True

    def delete(self, key: str) -> None:
        """Remove a file; nothing when there is none."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            self.files.unlink(self.path(key))
            self._changed.add(os.path.dirname(self.path(key)))

    def keys(self, prefix: str = "") -> Iterator[str]:
        """The files below a directory."""
        for folder, _, names in os.walk(self.path(prefix)):
            for name in names:
                yield os.path.relpath(os.path.join(folder, name), self.root)

    def names(self) -> list[str]:
        """What lies in the directory."""
        try:
            return sorted(os.listdir(self.root))
        except FileNotFoundError:
            return []

    def sync(self) -> None:
        """Sync the directories whose names changed, the deepest first."""
        self._usable()
        if self.durable:
            try:
                for folder in sorted(self._changed, key=lambda path: (-path.count("/"), path)):
                    sync_names(self.files, folder)
            except OSError as e:  # a second sync may succeed without having written anything
                self._failed = e
                raise
        self._changed.clear()

    def sync_key(self, key: str) -> None:
        """Sync a file at the top, and its name."""
        if self.durable and os.path.exists(self.path(key)):
            with opened(self.files, self.path(key), os.O_RDONLY) as fd:
                self.files.sync(fd)
            sync_names(self.files, self.root)

    def sync_found(self) -> None:
        """Sync each file and directory as found, and the name of the stream."""
        for folder, _, names in os.walk(self.root, topdown=False):
            for name in names:
                with opened(self.files, os.path.join(folder, name), os.O_RDONLY) as fd:
                    self.files.sync(fd)
            sync_names(self.files, folder)
        sync_names(self.files, os.path.dirname(self.root))

    def prepare(self) -> None:
        """Make the directory, with tmp/ and locks/."""
        for folder in (self.root, f"{self.root}/tmp", f"{self.root}/locks"):
            self._make(folder)

    def empty(self, directory: str) -> None:
        """Remove all below a directory, directories too."""
        for folder, folders, names in os.walk(self.path(directory), topdown=False):
            for name in names:
                self.files.unlink(os.path.join(folder, name))
            for name in folders:
                self._rmdir(os.path.join(folder, name))
            if names or folders:
                self._changed.add(folder)

    def tidy(self) -> None:
        """Without other writers, tmp/ and locks/ go."""
        for name in ("tmp", "locks"):
            with contextlib.suppress(OSError):
                self.files.rmdir(self.path(name))

    def is_file(self, key: str) -> bool:
        """Whether there is a file, not a directory."""
        return os.path.isfile(self.path(key))

    def remove(self, directory: str) -> None:
        """Remove a directory with all below it."""
        self.empty(directory)
        self._rmdir(self.path(directory))
        self._changed.add(os.path.dirname(self.path(directory)))

    def _rmdir(self, folder: str) -> None:
        self.files.rmdir(folder)
        self._known.discard(folder)
        self._changed.discard(folder)

    def lock(self) -> Callable[[], None]:
        """Hold the directory. RecordLocked when another does."""
        self._lock = _core.Lock(self.root)
        return self._unlock

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.release()

    def still_there(self) -> None:
        """OSError when the directory was moved away from under its lock."""
        if self._lock is not None:
            self._lock.check()

    def _enter(self, folder: str) -> None:
        """The directory is there; on the first use its parents too are synced with what comes: another writer may have
        made them, and not have come so far."""
        if folder in self._known:
            return
        if folder == self.root or not folder.startswith(f"{self.root}/"):
            if not os.path.isdir(folder):
                raise StaleWriter(f"{self.name}: the directory of the stream is gone")
            self._known.add(folder)
            return
        self._enter(folder.rpartition("/")[0])
        self._make(folder)

    def _make(self, folder: str) -> None:
        try:
            self.files.mkdir(folder)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise
        self._known.add(folder)
        self._changed.add(folder.rpartition("/")[0])

    def _usable(self) -> None:
        if self._failed is not None:
            raise OSError(self._failed.errno, f"an earlier sync failed: {self._failed.strerror}; resume", self.name)


# ---- memory ------------------------------------------------------------------------------------------------------


class MemoryStore(Place):
    """A stream without a disk, for tests and for programs that hand it on; its writers may be threads."""

    def __init__(self) -> None:
        self.name = "memory"
        self.values: dict[str, bytes] = {}
        self._mutex = threading.RLock()

    def session(self, durable: bool) -> MemoryStore:
        """The store itself."""
        return self

    def get(self, key: str) -> bytes | None:
        """A whole value; None when there is none."""
        return self.values.get(key)

    def head(self, key: str, n: int) -> bytes | None:
        """The first n bytes of a value."""
        found = self.values.get(key)
        return None if found is None else found[:n]

    def view(self, key: str) -> Any:
        """The value."""
        return self.values.get(key)

    def put(self, key: str, data: Any, guard: Guard = no_guard) -> None:
        """Set a value."""
        with self._mutex:
            guard()
            self.values[key] = bytes(data)

    def claim(self, key: str, data: bytes) -> bool:
        """Set a value that was not there; False when it was."""
        with self._mutex:
            if key in self.values:
                return False
            self.values[key] = data
            return True

    def delete(self, key: str) -> None:
        """Remove a value; nothing when there is none."""
        self.values.pop(key, None)

    def keys(self, prefix: str = "") -> Iterator[str]:
        """The keys below a directory."""
        with self._mutex:
            found = sorted(self.values)
        for key in found:
            if not prefix or key.startswith(f"{prefix}/"):
                yield key

    def names(self) -> list[str]:
        """The first names of all keys."""
        return sorted({key.partition("/")[0] for key in self.keys()})


def place_of(base: Any) -> Place:
    """The place that `base` names: a path, a URL of an object store, an obstore store, or a place."""
    if isinstance(base, Place):
        return base
    if isinstance(base, str) and "://" in base and not base.startswith("file://"):
        from mrec.stream.remote import ObjectStore

        return ObjectStore.from_url(base)
    if isinstance(base, (str, os.PathLike)):
        text = os.fspath(base)
        return LocalPlace(text.removeprefix("file://"))
    from mrec.stream.remote import ObjectStore

    return ObjectStore(base)

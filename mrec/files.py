# SPDX-License-Identifier: BSD-3-Clause
"""The system calls by which a stream or a collection changes its files: one object, so that a test can count, fail and
record each."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

#: Bytes that one call moves: they stay in the processor's second cache in between.
PIECE = 256 << 10


class Files:
    """The calls, as the operating system has them. Failures are OSError."""

    def open(self, path: str, flags: int) -> int:
        """A descriptor, closed on exec; new files get mode 0666."""
        return os.open(path, flags | os.O_CLOEXEC, 0o666)

    def close(self, fd: int) -> None:
        """Close it."""
        os.close(fd)

    def pread(self, fd: int, n: int, offset: int) -> bytes:
        """Up to n bytes."""
        return os.pread(fd, n, offset)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        """Bytes at a place; how many were written."""
        return os.pwrite(fd, data, offset)

    def size(self, fd: int) -> int:
        """Bytes in the file."""
        return os.fstat(fd).st_size

    def sync(self, fd: int) -> None:
        """The bytes of a file, or the names in a directory, are there for good."""
        os.fsync(fd)

    def sync_all(self, fds: list[int]) -> None:
        """Several of them at once, which takes the disk little longer than one."""
        if len(fds) == 1:
            return self.sync(fds[0])
        from concurrent.futures import ThreadPoolExecutor  # slow to import, and streams need none

        try:
            with ThreadPoolExecutor(len(fds)) as pool:
                for _ in pool.map(self.sync, fds):
                    pass
        except RuntimeError:  # there are no more threads, as when the interpreter ends
            for fd in fds:
                self.sync(fd)

    def rename(self, source: str, target: str) -> None:
        """A file gets its name, in place of another."""
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        os.unlink(path)

    def mkdir(self, path: str) -> None:
        """Make a directory. FileExistsError when it is there."""
        os.mkdir(path)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory."""
        os.rmdir(path)


#: What is used outside of tests.
POSIX = Files()


@contextmanager
def opened(files: Files, path: str, flags: int) -> Iterator[int]:
    """A descriptor, closed at the end."""
    fd = files.open(path, flags)
    try:
        yield fd
    finally:
        files.close(fd)


def write_all(files: Files, fd: int, data: bytes | bytearray | memoryview, offset: int, path: str) -> None:
    """Every byte."""
    view = memoryview(data).cast("B")
    done = 0
    while done < len(view):
        n = files.pwrite(fd, view[done:], offset + done)
        if n <= 0:
            raise OSError(errno.EIO, "a write wrote nothing", path)
        done += n


def read_all(files: Files, fd: int, n: int, offset: int, path: str) -> bytes:
    """Exactly n bytes; OSError when the file ends before."""
    data = files.pread(fd, n, offset)
    if len(data) == n:
        return data
    parts, got = [data], len(data)
    while got < n:
        if not parts[-1]:
            raise OSError(errno.EIO, "the file ends too early", path)
        parts.append(files.pread(fd, n - got, offset + got))
        got += len(parts[-1])
    return b"".join(parts)


def sync_names(files: Files, *paths: str) -> None:
    """Make the names in directories durable."""
    with ExitStack() as stack:
        files.sync_all([stack.enter_context(opened(files, path, os.O_RDONLY | os.O_DIRECTORY)) for path in paths])


def remove(files: Files, path: str) -> bool:
    """Remove a file; whether there was one."""
    try:
        files.unlink(path)
    except FileNotFoundError:
        return False
    return True


def try_to_remove(files: Files, path: str) -> None:
    """Remove a file if that is possible: there is an error to tell already."""
    with suppress(OSError):
        files.unlink(path)


def write_new(files: Files, path: str, data: bytes | bytearray | memoryview, *, sync: bool) -> None:
    """A new file, whole. FileExistsError when it is there; a file that could not be written whole is removed."""
    fd = files.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(files, fd, data, 0, path)
            if sync:
                files.sync(fd)
        finally:
            files.close(fd)
    except BaseException:
        try_to_remove(files, path)
        raise


def replace_file(files: Files, path: str, data: bytes) -> None:
    """Put the bytes at `path` whole or not at all, and for good."""
    folder, name = os.path.split(path)
    made = os.path.join(folder, f".{name}.tmp")
    try:
        with opened(files, made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
            write_all(files, fd, data, 0, made)
            files.sync(fd)
        files.rename(made, path)
    except BaseException:
        try_to_remove(files, made)
        raise
    sync_names(files, folder)

# SPDX-License-Identifier: BSD-3-Clause
"""The system calls by which a stream changes a directory: all of them, so that a test can count and fail them."""

from __future__ import annotations

import os
from typing import Any


class Files:
    """The calls, as the operating system has them. A descriptor is written from its start to its end, by `write`."""

    def open(self, path: str, flags: int) -> int:
        """A descriptor, closed on exec."""
        return os.open(path, flags | os.O_CLOEXEC, 0o666)

    def write(self, fd: int, data: Any, offset: int) -> int:
        """Bytes at a place; how many were written."""
        return os.pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        """The bytes of a file, or the names in a directory, are there for good."""
        os.fsync(fd)

    def close(self, fd: int) -> None:
        """Let go of a descriptor."""
        os.close(fd)

    def rename(self, old: str, new: str) -> None:
        """A file gets its name, in place of another."""
        os.rename(old, new)

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


def write_new(files: Files, path: str, data: Any, sync: bool) -> None:
    """A new file, whole. FileExistsError when it is there; a file that could not be written whole is removed."""
    fd = files.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            rest, at = memoryview(data).cast("B"), 0
            while at < len(rest):
                at += files.write(fd, rest[at:], at)
            if sync:
                files.sync(fd)
        finally:
            files.close(fd)
    except BaseException:
        remove(files, path)
        raise


def sync_directory(files: Files, path: str) -> None:
    """The names in a directory are there for good."""
    fd = files.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        files.sync(fd)
    finally:
        files.close(fd)


def remove(files: Files, path: str) -> None:
    """Remove a file, if that is possible."""
    try:
        files.unlink(path)
    except OSError:
        pass

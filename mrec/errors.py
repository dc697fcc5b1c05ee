# SPDX-License-Identifier: BSD-3-Clause
"""What can go wrong, one class a kind.

Each class also derives from the builtin that a user would catch. A failed system call stays an `OSError` with its errno
and file name; a failed allocation is a `MemoryError`.
"""

from __future__ import annotations

import os


class MrecError(Exception):
    """Anything that mrec refuses or finds wrong."""


class CorruptData(MrecError, ValueError):
    """Bytes on disk contradict a checksum or the format."""


class UnsupportedCodec(MrecError, NotImplementedError):
    """An array uses a codec, or an order of codecs, that mrec does not know."""


class UnsupportedVersion(MrecError, ValueError):
    """A record says that it follows a version of the format that mrec does not know."""


class SchemaError(MrecError, ValueError):
    """A declaration that is not allowed, or data that does not fit the declaration."""


class InvalidValue(MrecError, ValueError):
    """An argument out of its range: a step that does not increase, a time dropped, an unknown option."""


class UnknownName(MrecError, KeyError):
    """A block, column, per-step value or section of that name is not there."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class FrameIndexError(MrecError, IndexError):
    """A frame or row outside the trajectory."""


class NotARecord(MrecError, ValueError):
    """The path holds something, but no mrec record."""


class RecordNotFound(NotARecord, FileNotFoundError):
    """There is nothing at the path."""


class RecordExists(MrecError, FileExistsError):
    """The record is there already; pass `overwrite=True` to replace it."""


class DatasetExists(MrecError, FileExistsError):
    """The collection has, or had, a data set of that name."""


class RecordLocked(MrecError, BlockingIOError):
    """Another writer holds the record."""


class ReadOnly(MrecError, PermissionError):
    """Nothing is written to this store, or through this handle."""


class ClosedError(MrecError, ValueError):
    """The handle was closed."""


class WriterBusy(MrecError, RuntimeError):
    """The writer is inside another call; one writer serves one thread at a time."""


class ForkedHandle(MrecError, RuntimeError):
    """The handle belongs to the parent process."""


class MissingLibrary(MrecError, ImportError):
    """A library that comes with an extra, `pip install 'mrec[...]'`, is not installed."""


class RegionError(MrecError, ValueError):
    """A region of a stream outside its dimensions, or along one that is not cut."""


class RegionNotShardAligned(RegionError):
    """A region of a stream that begins or ends inside a shard."""


class CommitError(MrecError, ValueError):
    """A check before a commit failed; nothing on disk changed.

    retry: whether other tokens of the same writers can mend it; if not, all writers resume.
    """

    def __init__(self, message: str, retry: bool = True) -> None:
        super().__init__(message)
        self.retry = retry


class CommitPending(MrecError, RuntimeError):
    """What a token names that is not committed yet cannot be written again: flush, or acknowledge the receipt."""


class RecordCommitted(MrecError, ValueError):
    """A committed record, static or blob is rewritten only after `invalidate` and the commit that publishes it."""


class NotCommitted(MrecError, LookupError):
    """The manifest of the stream does not have the record, static or blob (any more)."""


class StaleWriter(MrecError, RuntimeError):
    """The stream was resumed or overwritten by another writer; this one writes nothing more."""


# mrec_status (csrc/include/mrec.h) to exception; MREC_E_IO and MREC_E_MEMORY are made in `from_status`.
_IO, _MEMORY = 1, 2
BY_STATUS: dict[int, type[MrecError]] = {
    3: CorruptData,
    4: UnsupportedCodec,
    5: SchemaError,
    6: InvalidValue,
    7: RecordLocked,
    8: RecordExists,
    9: ClosedError,
    10: WriterBusy,
    11: ForkedHandle,
}


def from_status(status: int, errno: int, path: str, message: str) -> Exception:
    """The exception for a failed call of the core: its status, errno, path ("" for none) and message."""
    if status == _IO:
        return OSError(errno, message or os.strerror(errno), path or None)
    if status == _MEMORY:
        return MemoryError(f"{path}: {message}" if path else message)
    return BY_STATUS[status](f"{path}: {message}" if path else message)

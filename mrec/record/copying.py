# SPDX-License-Identifier: BSD-3-Clause
"""Copying a record, byte for byte, whatever is in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mrec._core import Lock, crc32
from mrec.errors import CorruptData, InvalidValue
from mrec.record.output import new_file, new_record
from mrec.record.publish import remove_tree
from mrec.record.references import check_left_out
from mrec.record.settled import marks_of, settled
from mrec.trajectory.writer import written_path
from mrec.zarr.write import sync_directories
from mrec.zarr.zip import ZipStore

if TYPE_CHECKING:
    from mrec.record.record import Record
    from mrec.trajectory.closed import Piece

_STEP = 1 << 20


def copy_record(record: Record, path: str | os.PathLike[str], without: Collection[str], overwrite: bool) -> None:
    """See `Record.copy_to`."""
    target = written_path(path)
    unknown = set(without) - set(record.sections)
    if unknown:
        raise InvalidValue(f"without= names {min(unknown)!r}; there are: {', '.join(record.sections)}")
    _refuse_rest(record, without)
    check_left_out(record._store.again(), without)
    if target.startswith(record.path + os.sep):
        raise InvalidValue(f"{target} lies within the record that is copied")
    with _reading(record) as pieces:

        def wanted() -> Iterator[Piece]:
            return (piece for piece in pieces() if piece.key.partition("/")[0] not in without)

        if target.endswith(".zip"):
            with new_file(target, overwrite) as made:
                _settled(record.path, lambda: _make_zip(made, wanted()))
        else:
            with new_record(target, overwrite) as made:
                _settled(record.path, lambda: _make_directory(made, wanted()))
                sync_directories(made)


def _settled(root: str, make: Callable[[], None]) -> None:
    """Make the copy, again when a section was replaced meanwhile."""
    settled(lambda: marks_of(root) if os.path.isdir(root) else None, make, root)


def _make_zip(made: str, pieces: Iterator[Piece]) -> None:
    from mrec.pack import write_zip

    fd = os.open(made, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        write_zip(fd, made, pieces)
    finally:
        os.close(fd)


def _make_directory(made: str, pieces: Iterator[Piece]) -> None:
    remove_tree(made)
    for piece in pieces:
        _put(piece, os.path.join(made, piece.key))


def _refuse_rest(record: Record, without: Collection[str]) -> None:
    from mrec.record.record import KINDS

    if not (set(record.sections) - set(without)) & set(KINDS):
        raise InvalidValue(f"what is left would be no record, which holds one of {', '.join(KINDS)}")


@contextmanager
def _reading(record: Record) -> Iterator[Callable[[], Iterator[Piece]]]:
    """What lists the files of a record; while they are copied no trajectory is written."""
    from mrec.trajectory.closed import closed_files
    from mrec.trajectory.writer import lock_errors

    if not os.path.isdir(record.path):
        store = ZipStore(record.path)
        yield lambda: _entries(store)
        return
    with lock_errors(record.path):
        lock = Lock(record.path)
    try:
        yield lambda: closed_files(record.path)
        lock.check()
    finally:
        lock.release()


def _entries(store: ZipStore) -> Iterator[Piece]:
    """The entries of a zip file, each checked before it is given."""
    from mrec.trajectory.closed import Piece

    for entry in store.entries():
        crc, stop = 0, entry.offset + entry.size
        for at in range(entry.offset, stop, _STEP):
            crc = crc32(os.pread(store.fd, min(_STEP, stop - at), at), crc)
        if crc != entry.crc32:
            raise CorruptData(f"{store.path(entry.name)}: the CRC-32 of the entry does not match")
        yield Piece(entry.name, store.root, b"", entry.offset, stop)


def _put(piece: Piece, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as file:
        file.write(piece.head)
        if piece.path:
            with open(piece.path, "rb") as source:
                source.seek(piece.start)
                left = -1 if piece.stop is None else piece.stop - piece.start
                while part := source.read(_STEP if left < 0 else min(_STEP, left)):
                    file.write(part)
                    left -= len(part) if left >= 0 else 0
                if left > 0:
                    raise CorruptData(f"{piece.path}: the file ends {left} bytes early")
        file.flush()
        os.fsync(file.fileno())

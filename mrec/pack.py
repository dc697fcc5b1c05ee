# SPDX-License-Identifier: BSD-3-Clause
"""One file for a record at rest: a zip that any Zarr reader with a zip store opens, and that mrec reads in place."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from mrec._core import Lock, copy, crc32, sync_found
from mrec.errors import CorruptData, InvalidValue, NotARecord, RecordExists, RecordNotFound
from mrec.record import Record
from mrec.record.publish import held_log
from mrec.record.settled import marks_of, settled
from mrec.trajectory.closed import Piece, closed_files
from mrec.trajectory.writer import lock_errors
from mrec.zarr.write import sync_directory
from mrec.zarr.zip import ZipStore
from mrec.zarr.zipformat import Packed, central_header, end_records, local_header

PathLike = str | os.PathLike[str]

#: Copied in one call of the core, so that an interrupt is seen in between.
STEP = 64 << 20


def pack(path: PathLike, remove: bool = False) -> str:
    """Make `<stem>.mrec.zip` of the record `<stem>.mrec`, beside it, and return its path.

    The same record makes the same bytes. A record whose writer never closed it is packed as it reads. A file of that
    name is replaced, whole or not at all; the record stays as it is, unless `remove`, which deletes it afterwards.

    RecordLocked while a writer has the record, or, with `remove`, a MetricsLog; InvalidValue when it holds a link, or a
    file name that is not UTF-8. A section that is replaced meanwhile is packed as it is then.

    >>> mrec.pack("water.mrec").endswith("water.mrec.zip")
    True
    >>> len(mrec.open("water.mrec.zip").trajectory)
    10
    """
    root = os.path.abspath(os.fspath(path))
    Record(root).close()  # what is no record is refused
    if not os.path.isdir(root):
        raise InvalidValue(f"{root} is packed already")
    if remove and os.path.islink(root):
        raise InvalidValue(f"{root} is a link; pack what it leads to, or without removing it")
    target = root.removesuffix(".mrec") + ".mrec.zip"
    with lock_errors(root):
        lock = Lock(root)
    try:
        with held_log(root) if remove else nullcontext():
            with _replacing(target) as fd:
                settled(lambda: marks_of(root), lambda: write_zip(fd, target, closed_files(root)), root)
                lock.check()  # all of it was read from this record
            if remove:
                lock.check()
                _remove(root)
    finally:
        lock.release()
    return target


def unpack(zip: PathLike, target: PathLike | None = None) -> str:
    """Make a record of a packed one, and return its path: `target`, or `<stem>.mrec` beside `<stem>.mrec.zip`.

    Each checksum is checked. The record appears whole or not at all; RecordExists when something is there already.
    CorruptData or UnsupportedCodec when the zip is damaged, or not one that is read in place.

    >>> _ = mrec.pack("water.mrec")
    >>> len(mrec.open(mrec.unpack("water.mrec.zip", "copy.mrec")).trajectory)
    10
    """
    source = os.path.abspath(os.fspath(zip))
    root = os.path.abspath(os.fspath(target)) if target is not None else _unpacked_name(source)
    if not os.path.exists(source):
        raise RecordNotFound(f"{source}: there is no packed record")
    if os.path.isdir(source):
        raise InvalidValue(f"{source} is a directory, not a packed record")
    store = ZipStore(source)
    if not store.exists("zarr.json"):
        raise NotARecord(f"{source} holds no zarr.json: it is no record")
    if os.path.lexists(root):
        raise RecordExists(f"{root} is there already; unpack to another name")
    parent, name = os.path.split(root)
    made = os.path.join(parent, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        os.mkdir(made)
        _extract(store, made)
        sync_found(made)
        if os.path.lexists(root):  # a rename would replace an empty directory
            raise RecordExists(f"{root} is there already; unpack to another name")
        os.rename(made, root)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    sync_directory(parent)
    return root


# ---- packing -----------------------------------------------------------------------------------------------------


def write_zip(fd: int, path: str, pieces: Iterable[Piece]) -> None:
    """Make the file open as `fd` a zip file of these files; InvalidValue for a name not in UTF-8."""
    os.ftruncate(fd, 0)
    at, directory = 0, []
    for piece in sorted(pieces, key=_zip_name):
        entry = _add(fd, path, at, piece)
        at = entry.start + entry.size
        directory.append(entry)
    start = at
    for batch in _batches(map(central_header, directory)):
        _write(fd, batch, at)
        at += len(batch)
    _write(fd, end_records(len(directory), at - start, start), at)


def _zip_name(piece: Piece) -> bytes:
    try:
        name = piece.key.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{piece.path!r}: a packed record holds no file name that is not UTF-8") from None
    if len(name) > 0xFFFF:
        raise InvalidValue(f"{piece.path!r}: the name is too long for a zip file")
    return name


def _add(fd: int, path: str, header: int, piece: Piece) -> Packed:
    """Write an entry whose local header is to be at `header`; the header last, which has the checksum."""
    size = len(piece.head)
    source = None
    try:
        if piece.path:
            source = os.open(piece.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            stop = os.fstat(source).st_size if piece.stop is None else piece.stop
            size += stop - piece.start
        start = Packed(piece.key, header, size).start
        _write(fd, piece.head, start)
        crc = crc32(piece.head)
        if source is not None:
            crc = _copy(source, piece.path, piece.start, fd, path, start + len(piece.head), stop - piece.start, crc)
    finally:
        if source is not None:
            os.close(source)
    entry = Packed(piece.key, header, size, crc)
    _write(fd, local_header(entry), header)
    return entry


def _copy(source: int, source_path: str, offset: int, fd: int, path: str, to: int, n: int, crc: int = 0) -> int:
    for done in range(0, n, STEP):
        crc = copy(source, source_path, offset + done, fd, path, to + done, min(STEP, n - done), crc)
    return crc


def _batches(headers: Iterable[bytes]) -> Iterator[bytes]:
    batch = bytearray()
    for header in headers:
        batch += header
        if len(batch) > 1 << 20:
            yield bytes(batch)
            batch.clear()
    yield bytes(batch)


def _write(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        n = os.pwrite(fd, view, at)
        view, at = view[n:], at + n


@contextmanager
def _replacing(target: str) -> Iterator[int]:
    """A new file that takes the place of `target` at the end, synced; an exception leaves things as they were."""
    parent, name = os.path.split(target)
    temporary = os.path.join(parent, f".{name}.tmp")
    try:
        fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            yield fd
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    sync_directory(parent)


def _remove(root: str) -> None:
    """Delete a record so that it goes at once: under its name it is whole or not there."""
    parent, name = os.path.split(root)
    going = os.path.join(parent, f".{name}.removed.tmp")
    os.rename(root, going)
    sync_directory(parent)
    shutil.rmtree(going)


# ---- unpacking ---------------------------------------------------------------------------------------------------


def _unpacked_name(source: str) -> str:
    return source.removesuffix(".zip").removesuffix(".mrec") + ".mrec"


def _extract(store: ZipStore, root: str) -> None:
    """Write the entries below the new directory `root`; their names were checked when the zip file was opened."""
    for entry in store.entries():
        path = os.path.join(root, entry.name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            if _copy(store.fd, store.root, entry.offset, fd, path, 0, entry.size) != entry.crc32:
                raise CorruptData(f"{store.path(entry.name)}: the CRC-32 of the entry does not match")
            os.ftruncate(fd, entry.size)
        finally:
            os.close(fd)

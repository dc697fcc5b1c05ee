# SPDX-License-Identifier: BSD-3-Clause
"""Reading the directory of a zip file that any program may have written. Nothing in it is trusted.

Data descriptors, extra fields, ZIP64, bytes before the archive and comments are taken as zip tools take them. What
could be read in two ways, or not in place, is refused by name.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import BinaryIO, NamedTuple, Protocol

from mrec.errors import CorruptData, MrecError, UnsupportedCodec
from mrec.zarr import zipformat as z

ENCRYPTED = 1 << 0 | 1 << 6 | 1 << 13
STREAMED = 1 << 3  # sizes and checksum stand behind the bytes, and in the directory
_UNICODE_PATH = 0x7075
_METHODS = {8: "deflated", 9: "deflated", 12: "bzip2", 14: "lzma", 93: "zstd", 95: "xz"}
_LINK, _TYPE = 0o120000, 0o170000
#: Directories in directories.
MOST_PARTS = 256


class Entry(NamedTuple):
    """A file in the archive: its name, where its bytes are, and their CRC-32."""

    name: str
    offset: int
    size: int
    crc32: int


class Central(NamedTuple):
    """An entry as the directory has it."""

    name: str
    raw_name: bytes
    flags: int
    crc32: int
    size: int
    header: int

    @property
    def where(self) -> str:
        return f"entry {self.name!r}"


class End(NamedTuple):
    """Where the directory is; shift: of all offsets, by the bytes before the archive."""

    start: int
    size: int
    entries: int
    shift: int


def read_directory(fd: int, where: str) -> list[Entry]:
    """The files in the zip file that is open as `fd`, sorted by the bytes of their names.

    CorruptData when the file contradicts itself, UnsupportedCodec when an entry is compressed or encrypted.
    """
    try:
        with open(fd, "rb", buffering=1 << 20, closefd=False) as file:
            end = find_end(fd, os.fstat(fd).st_size)
            found = list(central_entries(file, end))
        check_names([entry.name for entry in found])
        files = locate(found, lambda entry, _: data_start(fd, entry, end), end)
    except MrecError as e:
        raise type(e)(f"{where}: {e}") from None
    return sorted(files, key=lambda entry: entry.name.encode())


class Bytes(Protocol):
    """A file that is elsewhere."""

    def read(self, offset: int, n: int) -> bytes:
        """The bytes from `offset` on, fewer where the file ends."""


def read(fd: int | Bytes, n: int, offset: int) -> bytes:
    """Bytes of a file, all of them. CorruptData when it ends before."""
    raw = os.pread(fd, n, offset) if isinstance(fd, int) else fd.read(offset, n)
    if len(raw) != n:
        raise CorruptData(f"the file ends at byte {offset + len(raw)}, where more bytes should stand")
    return raw


# ---- the end -----------------------------------------------------------------------------------------------------


def find_end(fd: int | Bytes, size: int) -> End:
    """The end record: the last whose comment reaches to the end of the file."""
    base = max(0, size - z.END.size - z.MASK16)
    tail = read(fd, size - base, base)
    at = tail.rfind(z.END_SIGNATURE)
    while at >= 0:
        if len(tail) - at >= z.END.size:
            fields = z.END.unpack_from(tail, at)
            if at + z.END.size + fields[7] == len(tail):
                return _directory(fd, base + at, fields)
        at = tail.rfind(z.END_SIGNATURE, 0, at)
    raise CorruptData("this is no zip file, or its end is missing")


def _directory(fd: int | Bytes, at: int, fields: tuple[int, ...]) -> End:
    _, disk, first_disk, here, count, size, start, _ = fields
    numbers = [disk, first_disk, here, count, size, start]
    wide = [n == (z.MASK32 if i > 3 else z.MASK16) for i, n in enumerate(numbers)]
    end64 = _find_end64(fd, at)
    if end64 is not None:
        at, given = end64
        if any(a != b for a, b, is_wide in zip(numbers, given, wide, strict=True) if not is_wide):
            raise CorruptData("the two end records contradict each other")
        disk, first_disk, here, count, size, start = given
    if disk or first_disk or here != count:
        raise CorruptData("the archive is split over several files")
    shift = at - size - start
    if shift < 0 or count * z.CENTRAL.size > size:
        raise CorruptData(f"there is no room for a directory of {count} entries in {size} bytes at {start}")
    return End(at - size, size, count, shift)


def _find_end64(fd: int | Bytes, end: int) -> tuple[int, list[int]] | None:
    """Where the ZIP64 end record is and what it says; None when there is none."""
    if end < z.LOCATOR.size + z.END64.size:
        return None
    locator = end - z.LOCATOR.size
    signature, disk, told, disks = z.LOCATOR.unpack(read(fd, z.LOCATOR.size, locator))
    if signature != z.LOCATOR_SIGNATURE:
        return None
    base = max(0, locator - z.MASK16)
    before = read(fd, locator - base, base)

    def reaches(at: int) -> bool:
        if at < 0 or len(before) - at < z.END64.size or before[at : at + 4] != z.END64_SIGNATURE:
            return False
        return bool(at + 12 + z.END64.unpack_from(before, at)[1] == len(before))

    at = told - base
    if not reaches(at):  # bytes before the archive
        at = before.rfind(z.END64_SIGNATURE)
        while at >= 0 and not reaches(at):
            at = before.rfind(z.END64_SIGNATURE, 0, at)
    if at < 0:
        return None  # it was the end of a comment
    if disk or disks > 1:
        raise CorruptData("the archive is split over several files")
    return base + at, list(z.END64.unpack_from(before, at)[4:])


# ---- the directory -----------------------------------------------------------------------------------------------


def central_entries(file: BinaryIO, end: End) -> Iterator[Central]:
    """The entries as the directory has them."""
    file.seek(end.start)
    left = end.size
    for number in range(end.entries):
        raw = file.read(z.CENTRAL.size)
        if len(raw) < z.CENTRAL.size or left < z.CENTRAL.size or raw[:4] != z.CENTRAL_SIGNATURE:
            raise CorruptData(f"the directory has {end.entries} entries, but number {number} is none")
        fields = z.CENTRAL.unpack(raw)
        lengths = fields[10:13]
        rest = file.read(sum(lengths))
        left -= len(raw) + sum(lengths)
        if left < 0 or len(rest) < sum(lengths):
            raise CorruptData(f"number {number} of the directory reaches beyond its end")
        yield _central(fields, rest[: lengths[0]], rest[lengths[0] : lengths[0] + lengths[1]], end.shift)
    if left:
        raise CorruptData(f"{left} bytes stand between the directory and the end record")


def _central(fields: tuple[int, ...], raw_name: bytes, raw_extra: bytes, shift: int) -> Central:
    _, made_by, _, flags, method, _, _, crc, stored, size = fields[:10]
    disk, external, header = fields[13], fields[15], fields[16]
    extra = extra_fields(raw_extra, raw_name)
    name = decode_name(raw_name, flags, extra)
    where = f"entry {name!r}"
    size, stored, header, disk = widened((size, stored, header, disk), extra.get(z.ZIP64_FIELD), where)
    check_name(name, size)
    if flags & ENCRYPTED:
        raise UnsupportedCodec(f"{where} is encrypted")
    if method:
        how = _METHODS.get(method, f"compressed by method {method}")
        raise UnsupportedCodec(f"{where} is {how}; a record is read in place where the entries are stored (zip -0)")
    if stored != size:
        raise CorruptData(f"{where} is stored as it is, but has {stored} bytes for {size}")
    if disk:
        raise CorruptData(f"{where} is on another disk")
    if made_by >> 8 == 3 and external >> 16 & _TYPE == _LINK:
        raise CorruptData(f"{where} is a symbolic link")
    return Central(name, raw_name, flags, crc, size, header + shift)


def extra_fields(raw: bytes, name: bytes) -> dict[int, bytes]:
    """The extra fields by their number; the first of a kind counts."""
    found: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(raw):
        kind, size = struct.unpack_from("<HH", raw, at)
        if at + 4 + size > len(raw):
            raise CorruptData(f"entry {name!r}: an extra field reaches beyond the others")
        found.setdefault(kind, raw[at + 4 : at + 4 + size])
        at += 4 + size
    return found  # up to three bytes of padding behind


def widened(numbers: tuple[int, int, int, int], field: bytes | None, where: str) -> Iterator[int]:
    """Each number, from the ZIP64 field where it says so: sizes and offset of 8 bytes, the disk of 4."""
    at = 0
    for number, (mask, form) in zip(numbers, ((z.MASK32, "<Q"),) * 3 + ((z.MASK16, "<L"),), strict=True):
        if number == mask and field is not None:
            if at + struct.calcsize(form) > len(field):
                raise CorruptData(f"{where}: its ZIP64 field is too short")
            (number,) = struct.unpack_from(form, field, at)
            at += struct.calcsize(form)
        yield number


def decode_name(raw: bytes, flags: int, extra: dict[int, bytes]) -> str:
    """The name of an entry, by what its header says of it."""
    field = extra.get(_UNICODE_PATH, b"")
    try:
        if flags & z.UTF8_NAME:
            return raw.decode()
        if len(field) >= 5 and field[0] == 1 and struct.unpack_from("<L", field, 1)[0] == zlib.crc32(raw):
            return field[5:].decode()
    except UnicodeDecodeError:
        raise CorruptData(f"the name {raw!r} is not UTF-8") from None
    return raw.decode("cp437")


def check_name(name: str, size: int) -> None:
    """Refuse what does not name a file or directory inside."""
    is_directory = name.endswith("/")
    parts = name.removesuffix("/").split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise CorruptData(f"entry {name!r}: this is no name inside the archive")
    if len(parts) > MOST_PARTS:
        raise CorruptData(f"entry {name[:40]!r}... lies {len(parts)} directories deep; {MOST_PARTS} is the most")
    if is_directory and size:
        raise CorruptData(f"entry {name!r} is a directory with {size} bytes")


def check_names(names: list[str]) -> None:
    """Refuse a name that stands twice, and one that is a file and a directory."""
    seen: set[str] = set()
    directories: set[str] = set()
    for name in names:
        if name in seen:
            raise CorruptData(f"entry {name!r} stands twice")
        seen.add(name)
        parent = name.removesuffix("/") if name.endswith("/") else name.rpartition("/")[0]
        while parent and parent not in directories:
            directories.add(parent)
            parent = parent.rpartition("/")[0]
    for name in seen & directories:
        raise CorruptData(f"entry {name!r} is a file, and others are in it")


# ---- the entries -------------------------------------------------------------------------------------------------


def locate(entries: list[Central], start_of: Callable[[Central, int], int], end: End) -> list[Entry]:
    """The files, once nothing overlaps. start_of(entry, header of the next): where the bytes of an entry begin."""
    ordered = sorted(entries, key=lambda entry: entry.header)
    behind = [*(entry.header for entry in ordered), end.start][1:]
    starts = [start_of(entry, after) for entry, after in zip(ordered, behind, strict=True)]
    for (entry, start), (after, _) in pairwise(zip(ordered, starts, strict=True)):
        if start + entry.size > after.header:
            raise CorruptData(f"{entry.where} and {after.where} overlap")
    return [
        Entry(entry.name, start, entry.size, entry.crc32)
        for entry, start in zip(ordered, starts, strict=True)
        if not entry.name.endswith("/")
    ]


def data_start(fd: int | Bytes, entry: Central, end: End) -> int:
    """Where the bytes of an entry begin, by its local header."""
    fixed = z.LOCAL.size
    if entry.header + fixed > end.start:
        raise CorruptData(f"{entry.where} begins at byte {entry.header}, which is not before the directory")
    raw = read(fd, min(fixed + len(entry.raw_name) + 20, end.start - entry.header), entry.header)
    signature, _, flags, method, _, _, crc, stored, size, nname, nextra = z.LOCAL.unpack_from(raw)
    if signature != z.LOCAL_SIGNATURE:
        raise CorruptData(f"{entry.where}: there is no local header at byte {entry.header}")
    start = entry.header + fixed + nname + nextra
    if start + entry.size > end.start:
        raise CorruptData(f"{entry.where} reaches into the directory")
    if max(size, stored) == z.MASK32 and nextra:
        extra = extra_fields(read(fd, nextra, entry.header + fixed + nname), entry.raw_name)
        size, stored, *_ = widened((size, stored, 0, 0), extra.get(z.ZIP64_FIELD), entry.where)
    same = [flags & ENCRYPTED == 0, method == 0, raw[fixed : fixed + nname] == entry.raw_name]
    if not entry.name.isascii():
        same.append(not (flags ^ entry.flags) & z.UTF8_NAME)
    if not (flags & STREAMED and crc == size == stored == 0):
        same += [crc == entry.crc32, size == entry.size, stored == entry.size]
    if not all(same):
        raise CorruptData(f"{entry.where}: its local header contradicts the directory")
    return start

# SPDX-License-Identifier: BSD-3-Clause
"""The headers of a zip file, as PKWARE's APPNOTE has them, and how mrec fills them in.

The same entries make the same bytes: nothing compressed, no times, no owners. A ZIP64 field stands exactly where a
number needs it; 0xFFFFFFFF and 0xFFFF mean "see there", so these two need it already.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

LOCAL = struct.Struct("<4sHHHHHLLLHH")
CENTRAL = struct.Struct("<4sHHHHHHLLLHHHHHLL")
END = struct.Struct("<4sHHHHLLH")
END64 = struct.Struct("<4sQHHLLQQQQ")
LOCATOR = struct.Struct("<4sLQL")

LOCAL_SIGNATURE = b"PK\3\4"
CENTRAL_SIGNATURE = b"PK\1\2"
END_SIGNATURE = b"PK\5\6"
END64_SIGNATURE = b"PK\6\6"
LOCATOR_SIGNATURE = b"PK\6\7"

MASK16, MASK32 = 0xFFFF, 0xFFFFFFFF
ZIP64_FIELD = 1
UTF8_NAME = 1 << 11

_PLAIN, _ZIP64 = 10, 45  # the version of the format that a reader needs
_MADE_BY = 3 << 8 | _PLAIN  # Unix
_ZIP64_MADE_BY = 3 << 8 | _ZIP64
_MODE = 0o100644 << 16
_DATE = 1 << 5 | 1  # 1980-01-01, the first day there is


@dataclass(frozen=True, slots=True)
class Packed:
    """An entry in its place: where its local header is, and the size and checksum of its bytes."""

    name: str
    header: int
    size: int
    crc32: int = 0

    @property
    def start(self) -> int:
        """Where its bytes are."""
        return self.header + len(local_header(self))


def local_header(entry: Packed) -> bytes:
    """What stands before the bytes of an entry."""
    name, flags = _name(entry.name)
    extra = _zip64(entry.size, entry.size) if entry.size >= MASK32 else b""
    size = min(entry.size, MASK32)
    version = _ZIP64 if extra else _PLAIN
    return (
        LOCAL.pack(LOCAL_SIGNATURE, version, flags, 0, 0, _DATE, entry.crc32, size, size, len(name), len(extra))
        + name
        + extra
    )


def central_header(entry: Packed) -> bytes:
    """An entry of the directory."""
    name, flags = _name(entry.name)
    sizes = (entry.size, entry.size) if entry.size >= MASK32 else ()
    offset = (entry.header,) if entry.header >= MASK32 else ()
    extra = _zip64(*sizes, *offset)
    size, header = min(entry.size, MASK32), min(entry.header, MASK32)
    made_by, version = (_ZIP64_MADE_BY, _ZIP64) if extra else (_MADE_BY, _PLAIN)
    lengths = (len(name), len(extra), 0, 0, 0)  # no comment, the first disk, no text
    return (
        CENTRAL.pack(
            CENTRAL_SIGNATURE, made_by, version, flags, 0, 0, _DATE, entry.crc32, size, size, *lengths, _MODE, header
        )
        + name
        + extra
    )


def end_records(count: int, size: int, start: int) -> bytes:
    """What stands behind a directory of `count` entries and `size` bytes that begins at `start`."""
    end = END.pack(
        END_SIGNATURE, 0, 0, min(count, MASK16), min(count, MASK16), min(size, MASK32), min(start, MASK32), 0
    )
    if count < MASK16 and size < MASK32 and start < MASK32:
        return end
    end64 = END64.pack(END64_SIGNATURE, END64.size - 12, _ZIP64_MADE_BY, _ZIP64, 0, 0, count, count, size, start)
    return end64 + LOCATOR.pack(LOCATOR_SIGNATURE, 0, start + size, 1) + end


def _name(name: str) -> tuple[bytes, int]:
    raw = name.encode()
    return raw, 0 if name.isascii() else UTF8_NAME


def _zip64(*numbers: int) -> bytes:
    return struct.pack(f"<HH{len(numbers)}Q", ZIP64_FIELD, 8 * len(numbers), *numbers) if numbers else b""

# SPDX-License-Identifier: BSD-3-Clause
"""`data.atlas.crc`: the checksums that the container itself has not."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mrec._core import crc32c


@dataclass(frozen=True, slots=True)
class Checksums:
    """size, created: of the container. footer: offset, size, crc32c. segments: name -> the same."""

    size: int
    created: int
    footer: tuple[int, int, int]
    segments: dict[str, tuple[int, int, int]]

    def pack(self) -> bytes:
        """The file."""
        offset, size, crc = self.footer
        segments = [{"name": name, "offset": o, "size": n, "crc32c": c} for name, (o, n, c) in self.segments.items()]
        document = {
            "version": 1,
            "size": self.size,
            "created_unix_ms": self.created,
            "footer": {"offset": offset, "size": size, "crc32c": crc},
            "segments": segments,
        }
        return (json.dumps(document, ensure_ascii=False) + "\n").encode()


def unpack_checksums(data: bytes, size: int, created: int, footer: bytes) -> Checksums | str:
    """The checksums when they are those of the container, of `size` bytes with this stored footer; or what is wrong."""
    try:
        document = json.loads(data)
        found = Checksums(
            _int(document["size"]),
            _int(document["created_unix_ms"]),
            _place(document["footer"]),
            {entry["name"]: _place(entry) for entry in document["segments"]},
        )
        version = document["version"]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "it is damaged"
    if version != 1:
        return f"it has version {version!r}, not 1"
    offset, n, crc = found.footer
    same = found.size == size and found.created == created and n == len(footer) and offset == size - 16 - n
    if not same or crc != crc32c(footer):
        return "it belongs to another container"
    return found


def _int(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _place(entry: Any) -> tuple[int, int, int]:
    return _int(entry["offset"]), _int(entry["size"]), _int(entry["crc32c"])

# SPDX-License-Identifier: BSD-3-Clause
"""Which data sets are deleted: `deleted.mask` beside the container."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterable

from mrec.errors import CorruptData, UnsupportedVersion

MAGIC = b"ATLM"
VERSION = 1


def pack_mask(ordinals: Iterable[int]) -> bytes:
    """The file."""
    found = sorted(set(ordinals))
    return MAGIC + struct.pack(f"<II{len(found)}I", VERSION, len(found), *found)


def unpack_mask(data: bytes | None, count: int, where: str) -> frozenset[int]:
    """The ordinals, of `count` data sets. Absent or empty: none; a body that is cut short: those that are whole."""
    if not data:
        return frozenset()
    if len(data) < 12 or data[:4] != MAGIC:
        raise CorruptData(f"{where} is no deletion mask, or its header is cut short")
    version, n = struct.unpack("<II", data[4:12])
    if version != VERSION:
        raise UnsupportedVersion(f"{where} has version {version}, not {VERSION}")
    n = min(n, (len(data) - 12) // 4)
    found = frozenset(struct.unpack_from(f"<{n}I", data, 12))
    beyond = [ordinal for ordinal in found if ordinal >= count]
    if beyond:
        warnings.warn(f"{where} names data set {min(beyond)}, there are {count}; ignored", stacklevel=3)
    return found.difference(beyond)

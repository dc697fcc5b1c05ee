# SPDX-License-Identifier: BSD-3-Clause
"""A collection: any bytes as its container, as the MessagePack of its footer, or as the footer of a segment."""

from __future__ import annotations

import struct
import warnings
from functools import cache
from pathlib import Path

import mrec
from mrec.collection import Collection, footer
from mrec.errors import MrecError
from tests.fuzz.place import folder

IS_JSON = False
GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "collection" / "all_types_none" / "data.atlas"
MOST = 1 << 16


@cache
def place() -> Path:
    """Where the input is put."""
    return folder()


@cache
def good() -> tuple[bytes, footer.Footer]:
    """A whole container."""
    return GOLDEN.read_bytes(), mrec.open_collection(GOLDEN.parent).footer


def check(data: bytes) -> None:
    """Open it and read all of it that is not large."""
    how, data = (data[0] % 3 if data else 0), data[1:]
    if how == 1:
        stored = footer.block_encode(1, 1, data)
        data = good()[0][:33439] + stored + footer.end_of(stored)
    elif how == 2:
        data = with_segment(data)
    (place() / "data.atlas").write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read(Collection(mrec.collection.reader.place_of(place())))
        except (MrecError, MemoryError):
            pass


def with_segment(data: bytes) -> bytes:
    """The container with another footer of the variable `s`."""
    whole, found = good()
    offset, size = found.segments["s"]
    n = struct.unpack("<Q", whole[offset + size - 12 : offset + size - 4])[0]
    blocks = whole[offset : offset + size - 12 - n]
    segment = blocks + data + struct.pack("<Q", len(data)) + b"ARRF"
    changed = footer.Footer(
        found.codec, 0, found.strings, found.dtypes, found.raw_schemas, [], {}, found.names, found.schema_numbers
    )
    body = whole[:33439]
    changed.segments = {name: at for name, at in found.segments.items() if at[0] + at[1] <= len(body)}
    changed.segments["s"] = (len(body), len(segment))
    for name in found.segments:
        changed.segments.setdefault(name, (len(body) + len(segment), 0))
    stored = footer.pack_footer(changed)
    return body + segment + stored + footer.end_of(stored)


def read(found: Collection) -> None:
    """Values, attributes, statistics; each may be damaged by itself."""
    for name in found.variables[:40]:
        try:
            found.stats(name)
            if int(found.variable(name).lengths.sum()) < MOST:
                found.variable(name).read()
        except MrecError:
            pass
    for dataset in list(found.values())[:40]:
        try:
            _ = dataset.attributes
        except MrecError:
            pass
        for name in list(dataset)[:40]:
            try:
                array = dataset[name]
                if min(array.shape, default=0) >= 0 and _size(array.shape) < MOST:
                    array[...]
            except MrecError:
                pass


def _size(shape: tuple[int, ...]) -> int:
    n = 1
    for length in shape:
        n *= length
    return n

# SPDX-License-Identifier: BSD-3-Clause
"""The container's footer: which variables and data sets there are. Everything is checked before it is used."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mrec._core import block_encode, frame_decode, unpack_catalogue
from mrec.collection.attributes import LISTS, SCALARS, STAMP, Type
from mrec.errors import CorruptData, InvalidValue, UnsupportedVersion

MAGIC = b"ATLS"
VERSION = 8
HEAD = MAGIC + struct.pack("<I", VERSION)
TAIL = 16
#: Bytes that an opening reads from the end.
FIRST_READ = 64 << 10
#: The reserved variable whose arrays carry the attributes of data sets.
DATASETS = "_datasets"

CODECS = {"none": 0, "zstd": 1, "lz4": 2}
STORED_CODECS = {"none": "Uncompressed", "zstd": "Zstd", "lz4": "Lz4"}

_NAMES = {*SCALARS, STAMP}


@dataclass(frozen=True, slots=True)
class Schema:
    """What a data set has: (name, type) of its arrays, (key, type) of its attributes, and those of its arrays."""

    arrays: tuple[tuple[str, Any], ...]
    attributes: tuple[tuple[str, Any], ...]
    array_attributes: tuple[tuple[int, tuple[tuple[str, Any], ...]], ...]


@dataclass(slots=True)
class Footer:
    """The catalogue of a container. segments: name -> (offset, size), in the order of the file."""

    codec: str
    created: int
    strings: list[str]
    dtypes: list[Any]
    raw_schemas: list[Any]
    schemas: list[Schema]
    segments: dict[str, tuple[int, int]]
    names: list[str]
    schema_numbers: list[int]
    #: Name -> ordinal of every data set, deleted ones too.
    ordinals: dict[str, int] = field(default_factory=dict)

    def schema(self, ordinal: int) -> Schema:
        """The schema of a data set."""
        return self.schemas[self.schema_numbers[ordinal]]


def check_name(name: Any, what: str) -> str:
    """A name of a data set or array as it may be; InvalidValue says why not."""
    if not isinstance(name, str):
        raise InvalidValue(f"the name of {what} is a string, not {name!r}")
    if not name or "/" in name or name in (".", "..") or name[0] == "_":
        raise InvalidValue(f"{name!r} is no name of {what}: not empty, no '/', not '.' or '..', no '_' in front")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"{name!r} has a lone surrogate, which UTF-8 cannot store") from None
    return name


# ---- reading ----------------------------------------------------------------------------------------------------


def tail_of(end: bytes, size: int, where: str) -> int:
    """The size of the footer, from the last bytes of a container of `size` bytes. CorruptData, UnsupportedVersion."""
    if size < len(HEAD) + TAIL or len(end) < TAIL or end[-4:] != MAGIC:
        raise CorruptData(f"{where}: this is no whole ATLAS container; its writer may not have finished")
    n, version = struct.unpack("<QI", end[-16:-4])
    if version != VERSION:
        raise UnsupportedVersion(f"{where}: ATLAS containers of format {version} are not supported, only {VERSION}")
    if n > size - len(HEAD) - TAIL:
        raise CorruptData(f"{where}: the footer would begin before the file")
    return int(n)


def unpack_footer(data: bytes, limit: int, where: str) -> tuple[Footer, bytes]:
    """The footer that these stored bytes are, and its MessagePack; segments lie between byte 8 and `limit`."""
    try:
        text = frame_decode(data)
        return _footer(*unpack_catalogue(text), limit), text
    except CorruptData as e:
        raise CorruptData(f"{where}: {e}") from None


def _want(condition: bool, what: str) -> None:
    if not condition:
        raise CorruptData(f"the footer is damaged: {what}")


def _is_list(value: Any, n: int | None = None) -> bool:
    return type(value) is list and (n is None or len(value) == n)


def _footer(head: list[Any], names: list[str], numbers: list[int], limit: int) -> Footer:
    version, codec, created, strings, dtypes, schemas, variables = head
    if version != VERSION:
        raise UnsupportedVersion(f"the footer has version {version}, not {VERSION}")
    _want(type(codec) is str and type(created) is int and 0 <= created < 1 << 63, "codec or time")
    _want(_is_list(strings) and all(type(s) is str for s in strings), "the strings")
    _want(_is_list(dtypes), "the types")
    dtypes = [_type(dtype) for dtype in dtypes]
    _want(_is_list(schemas) and _is_list(variables), "a table")
    parsed = [_schema(schema, strings, dtypes) for schema in schemas]
    _want(not numbers or max(numbers) < len(schemas), "the schema of a data set")
    ordinals = dict(zip(names, range(len(names)), strict=True))
    _want(len(ordinals) == len(names), "a data set twice")
    segments = _segments(variables, strings, limit)
    for schema in parsed:
        _want(all(name in segments for name, _ in schema.arrays), "an array whose variable is not there")
    _want(
        DATASETS in segments or not any(parsed[i].attributes for i in set(numbers)),
        "the variable of the data sets' attributes is not there",
    )
    return Footer(codec, created, strings, dtypes, schemas, parsed, segments, names, numbers, ordinals)


def _type(dtype: Any) -> Type:
    if type(dtype) is str and dtype in _NAMES:
        return dtype
    child: Any = dtype.get("list") if type(dtype) is dict and len(dtype) == 1 else None
    if not _is_list(child, 1) or child[0] not in LISTS:
        raise CorruptData("the footer is damaged: a type")
    return (child[0],)


def _pairs(pairs: Any, strings: list[str], dtypes: list[Any]) -> tuple[tuple[str, Any], ...]:
    _want(_is_list(pairs), "a schema")
    found = []
    for pair in pairs:
        _want(_is_list(pair, 2), "a schema")
        name, dtype = pair
        _want(
            type(name) is int and 0 <= name < len(strings) and type(dtype) is int and 0 <= dtype < len(dtypes),
            "an index of a schema",
        )
        found.append((strings[name], dtypes[dtype]))
    _want(len({name for name, _ in found}) == len(found), "a name twice in a schema")
    return tuple(found)


def _schema(schema: Any, strings: list[str], dtypes: list[Any]) -> Schema:
    _want(_is_list(schema, 3) and _is_list(schema[2]), "a schema")
    arrays = _pairs(schema[0], strings, dtypes)
    attributes = _pairs(schema[1], strings, dtypes)
    inner = []
    for entry in schema[2]:
        _want(
            _is_list(entry, 2) and type(entry[0]) is int and 0 <= entry[0] < len(arrays), "the attributes of an array"
        )
        inner.append((entry[0], _pairs(entry[1], strings, dtypes)))
    _want(len({i for i, _ in inner}) == len(inner), "the attributes of an array twice")
    return Schema(arrays, attributes, tuple(inner))


def _segments(variables: list[Any], strings: list[str], limit: int) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for entry in variables:
        _want(_is_list(entry, 3) and all(type(part) is int for part in entry), "a variable")
        name, offset, size = entry
        _want(0 <= name < len(strings) and strings[name] not in found, "the name of a variable")
        _want(offset >= len(HEAD) and 0 <= size <= limit - offset, "the place of a variable")
        found[strings[name]] = (offset, size)
    end = len(HEAD)
    for offset, size in sorted(found.values()):
        _want(offset >= end, "two variables in one place")
        end = offset + size
    return found


# ---- writing ----------------------------------------------------------------------------------------------------


def pack_footer(footer: Footer) -> bytes:
    """The footer as it is stored, without the last 16 bytes."""
    return block_encode(1, 3, b"".join(packed_footer(footer)))


def packed_footer(footer: Footer) -> Iterator[bytes]:
    """The MessagePack of the footer, in pieces."""
    numbers = {name: i for i, name in enumerate(footer.strings)}
    variables = [[numbers[name], offset, size] for name, (offset, size) in footer.segments.items()]
    yield b"\x98\x08" + _pack(STORED_CODECS.get(footer.codec, footer.codec)) + _pack(footer.created)
    for part in (footer.strings, footer.dtypes, footer.raw_schemas, variables):
        yield _pack(part)
    yield _array_head(len(footer.names))
    for name, schema in zip(footer.names, footer.schema_numbers, strict=True):
        yield b"\x92" + _pack(name) + _pack(schema)


def _array_head(n: int) -> bytes:
    if n < 16:
        return bytes((0x90 | n,))
    return b"\xdc" + n.to_bytes(2) if n < 1 << 16 else b"\xdd" + n.to_bytes(4)


def _pack(value: Any) -> bytes:
    if isinstance(value, str):
        text = value.encode()
        n = len(text)
        if n < 32:
            return bytes((0xA0 | n,)) + text
        for first, width in ((0xD9, 1), (0xDA, 2)):
            if n < 1 << 8 * width:
                return bytes((first,)) + n.to_bytes(width) + text
        return b"\xdb" + n.to_bytes(4) + text
    if isinstance(value, int):
        if value < 128:
            return bytes((value,))
        width = next(width for width in (1, 2, 4, 8) if value < 1 << 8 * width)
        return bytes((0xCB + width.bit_length(),)) + value.to_bytes(width)
    if isinstance(value, tuple):  # the type of a list
        return b"\x81" + _pack("list") + _pack(list(value))
    return _array_head(len(value)) + b"".join(map(_pack, value))


def end_of(stored: bytes) -> bytes:
    """What follows a stored footer."""
    return struct.pack("<QI", len(stored), VERSION) + MAGIC

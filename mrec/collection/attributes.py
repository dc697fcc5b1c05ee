# SPDX-License-Identifier: BSD-3-Clause
"""Attributes: Python values to (type, value in one piece) and back.

The type is the one that the schema in the container's footer names; the piece begins with the tag that segments use.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from mrec.collection.kinds import TIMES, is_number, nanoseconds, to_float, utf8
from mrec.errors import CorruptData, SchemaError

#: A type: its name in the container's footer; of a list, (the name of its elements' type,).
Type = Any

_INTS = ["int8", "int16", "int32", "int64"]
_UINTS = ["u_int8", "u_int16", "u_int32", "u_int64"]
SCALARS = ["bool", *_INTS, *_UINTS, "float32", "float64", "string", "binary"]
FORMATS = ["?", "b", "h", "i", "q", "B", "H", "I", "Q", "f", "d"]
LISTS = ["bool", *_INTS, *_UINTS, "float32", "float64", "string", "binary"]
STAMP = "timestamp_nanoseconds"
I64, STRING, BINARY, STRINGS = 4, 11, 12, 24
BYTES = (bytes, bytearray, memoryview)

_TAGS: dict[str, int] = {name: tag for tag, name in enumerate(SCALARS)} | {STAMP: I64}
_TYPES: list[Type] = [*SCALARS, *((name,) for name in LISTS)]


def attribute_type(name: str) -> str:
    """The stored name of a type that a user may give: "int8", "uint8", "timestamp_nanoseconds" ... SchemaError."""
    stored = _stored(name) if isinstance(name, str) else ""
    if stored not in _TAGS:
        raise SchemaError(f"{name!r} is no type of an attribute; choose one of {', '.join(_TAGS)}")
    return stored


def _stored(name: str) -> str:
    """The container's name of a type of numpy."""
    return f"u_{name[1:]}" if name.startswith("uint") else name


def pack(value: Any, dtype: str | None = None) -> tuple[Type, bytes]:
    """An attribute's value: bool, int, float, str, bytes, a time, or a list of one of them; numpy's of any width.

    dtype: the type to store a number or time as. SchemaError when it is none of these, or does not fit.
    """
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = list(value)
    elif isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (list, tuple)):
        return _pack_list(list(value), dtype)
    name = attribute_type(dtype) if dtype is not None else _scalar_type(value)
    return name, bytes((_TAGS[name],)) + _pack_scalar(name, value)


def _scalar_type(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, np.float16):
        return "float32"
    if isinstance(value, (np.integer, np.floating)) and (name := _stored(value.dtype.name)) in _TAGS:
        return name
    if isinstance(value, int):
        return "int64" if -(1 << 63) <= value < 1 << 63 else "u_int64"
    if isinstance(value, float):
        return "float64"
    if isinstance(value, str):
        return "string"
    if isinstance(value, BYTES):
        return "binary"
    if isinstance(value, TIMES):
        return STAMP
    what = "a bool, number, text, bytes, time, or a list of one"
    raise SchemaError(f"{value!r} ({type(value).__name__}) is no attribute: store {what}")


def _pack_scalar(name: str, value: Any) -> bytes:
    if name == "string":
        if not isinstance(value, str):
            raise SchemaError(f"the attribute {value!r} is no string")
        return utf8(value)
    if name == "binary":
        if not isinstance(value, BYTES):
            raise SchemaError(f"the attribute {value!r} is no bytes")
        return bytes(value)
    if name == STAMP and isinstance(value, (str, *TIMES)):
        value = nanoseconds(value).view("i8")[()]
    try:
        if name == "bool":
            if value not in (True, False):
                raise ValueError
        elif not is_number(value):
            raise ValueError
        elif name.startswith("float"):
            value = to_float(value, np.dtype(name))
        else:
            if int(value) != value:
                raise ValueError
            value = int(value)
        return struct.pack("<" + FORMATS[_TAGS[name]], value)
    except (ValueError, TypeError, OverflowError, struct.error):
        raise SchemaError(f"the attribute {value!r} is no {name}") from None


def _pack_list(items: list[Any], dtype: str | None) -> tuple[Type, bytes]:
    if dtype is not None:
        name = attribute_type(dtype)
    elif not items:
        name = "string"
    else:
        name = _list_type(items)
    if name == STAMP:
        raise SchemaError("a list of times is no attribute: store it as an array, or as numbers")
    parts = [_pack_scalar(name, item) for item in items]
    if name in ("string", "binary"):
        parts = [struct.pack("<I", len(part)) + part for part in parts]
    return (name,), bytes((13 + LISTS.index(name),)) + b"".join(parts)


def _list_type(items: list[Any]) -> str:
    names = {_scalar_type(item) for item in items}
    if len(names) == 1:
        return names.pop()
    if names == {"int64", "float64"}:
        return "float64"
    if names == {"int64", "u_int64"} and min(items) >= 0:
        return "u_int64"
    raise SchemaError(f"a list of {' and '.join(sorted(names))} is no attribute; make all elements one type")


def unpack(piece: bytes, kind: Type = None) -> Any:
    """The value of a piece, as the schema's type has it. CorruptData when the two do not agree."""
    tag = piece[0]
    if tag < len(FORMATS):
        value = struct.unpack("<" + FORMATS[tag], piece[1:])[0]
        if kind == STAMP and tag == I64:
            return np.datetime64(value, "ns")
    elif tag == STRING:
        value = piece[1:].decode()
    elif tag == BINARY:
        value = piece[1:]
    else:
        value = _unpack_list(tag, piece)
    if kind is not None and kind != _TYPES[tag]:
        raise CorruptData(f"an attribute is a {_TYPES[tag]}, its schema says {kind}")
    return value


def _unpack_list(tag: int, piece: bytes) -> list[Any]:
    if tag < STRINGS:
        form = FORMATS[tag - 13]
        count = (len(piece) - 1) // struct.calcsize("<" + form)
        return list(struct.unpack(f"<{count}{form}", piece[1:]))
    items: list[Any] = []
    at = 1
    while at < len(piece):
        n = struct.unpack_from("<I", piece, at)[0]
        item = piece[at + 4 : at + 4 + n]
        items.append(item.decode() if tag == STRINGS else item)
        at += 4 + n
    return items

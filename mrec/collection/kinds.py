# SPDX-License-Identifier: BSD-3-Clause
"""The closed set of element types of a collection, by the three names that each has."""

from __future__ import annotations

import datetime
import struct
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mrec.errors import CorruptData, SchemaError

FILL_INT, FILL_UINT, FILL_FLOAT, FILL_STRING, FILL_TIMESTAMP = range(1, 6)
BOUND_INT, BOUND_UINT, BOUND_FLOAT, BOUND_BYTES, BOUND_TIMESTAMP = range(5)


@dataclass(frozen=True, slots=True)
class Kind:
    """One element type.

    name: ours, also that of numpy. stored: in the container's footer. code: in segments. number: for `measure`; -1 for
    strings and binary. fill, bound: how a segment keeps fills, minima and maxima. width: bytes of an element; 0 for
    strings and binary.
    """

    name: str
    stored: str
    code: int
    numpy: np.dtype[Any]
    number: int
    fill: int
    bound: int
    width: int = 0

    def __str__(self) -> str:
        return self.name

    @property
    def zero(self) -> Any:
        """What stands where nothing was written, without a fill."""
        return {"string": "", "binary": b""}.get(self.name, 0)


def _kinds() -> list[Kind]:
    found = []
    for i, bits in enumerate((8, 16, 32, 64)):
        dtype = np.dtype(f"<i{bits // 8}")
        found.append(Kind(f"int{bits}", f"int{bits}", 1 + i, dtype, i, FILL_INT, BOUND_INT))
    for i, bits in enumerate((8, 16, 32, 64)):
        dtype = np.dtype(f"<u{bits // 8}")
        found.append(Kind(f"uint{bits}", f"u_int{bits}", 5 + i, dtype, 4 + i, FILL_UINT, BOUND_UINT))
    found.append(Kind("float32", "float32", 9, np.dtype("<f4"), 8, FILL_FLOAT, BOUND_FLOAT))
    found.append(Kind("float64", "float64", 10, np.dtype("<f8"), 9, FILL_FLOAT, BOUND_FLOAT))
    found.append(Kind("string", "string", 11, np.dtype(object), -1, FILL_STRING, BOUND_BYTES))
    found.append(Kind("binary", "binary", 12, np.dtype(object), -1, -1, BOUND_BYTES))
    stamp = "timestamp_nanoseconds"
    found.append(Kind(stamp, stamp, 15, np.dtype("<M8[ns]"), 3, FILL_TIMESTAMP, BOUND_TIMESTAMP))
    return found


BY_CODE = {kind.code: replace(kind, width=kind.numpy.itemsize if kind.number >= 0 else 0) for kind in _kinds()}
BY_STORED = {kind.stored: kind for kind in BY_CODE.values()}
BY_NAME = {kind.name: kind for kind in BY_CODE.values()} | BY_STORED
_SHORT = {f"{name[0]}{name.lstrip('abcdefghijklmnopqrstuvwxyz')}": name for name in BY_NAME if name[-1].isdigit()}

#: The types of segments that no array may have, by code.
REFUSED = {0: "bool", 13: "fixed_size_list", 14: "list"}


def kind_of(spec: Any) -> Kind:
    """The type that `spec` names: "float32", "f32", np.float32, a numpy dtype, str, bytes. SchemaError: no such."""
    if isinstance(spec, Kind):
        return spec
    if isinstance(spec, str):
        found = BY_NAME.get(_SHORT.get(spec, spec))
        if found is not None:
            return found
    try:
        dtype = np.dtype(object if spec is None else spec)  # None is numpy's float64
    except (TypeError, ValueError, SyntaxError):
        raise _refused(spec) from None
    if dtype.kind in "UT":
        return BY_NAME["string"]
    if dtype.kind == "S":
        return BY_NAME["binary"]
    if dtype.kind == "M":
        return BY_NAME["timestamp_nanoseconds"]
    found = BY_NAME.get(dtype.newbyteorder("=").name)
    if found is None or dtype.kind == "O":
        raise _refused(spec)
    return found


def _refused(spec: Any) -> SchemaError:
    hint = "; store a bool as uint8" if spec in ("bool", bool, np.bool_, np.dtype(bool)) else ""
    return SchemaError(
        f"{spec!r} is no type of a collection{hint}; choose one of {', '.join(k.name for k in BY_CODE.values())}"
    )


def stored_kind(code: int) -> Kind:
    """The type of a segment's code; SchemaError by name for those that are not supported."""
    if code in BY_CODE:
        return BY_CODE[code]
    raise SchemaError(f"arrays of the type {REFUSED.get(code, code)} are not supported")


# ---- fills, minima and maxima as segments keep them ------------------------------------------------------------


def to_bits(kind: Kind, value: Any) -> int:
    """A number as the 64 bits that a fill or a bound has."""
    if kind.fill == FILL_FLOAT:
        return int.from_bytes(struct.pack("<d", float(value)), "little")
    return int(value) & 0xFFFFFFFFFFFFFFFF


def from_bits(kind: Kind, bits: int) -> Any:
    """The inverse: a float, an int, or for time stamps their nanoseconds."""
    if kind.fill == FILL_FLOAT:
        return struct.unpack("<d", bits.to_bytes(8, "little"))[0]
    if kind.fill == FILL_UINT or bits < 1 << 63:
        return bits
    return bits - (1 << 64)


def pack_fill(kind: Kind, value: Any) -> tuple[int, Any] | None:
    """A fill as a segment keeps it; SchemaError when it is no element of the type."""
    if value is None:
        return None
    if isinstance(value, np.ndarray) and value.ndim == 0 and value is not np.ma.masked:
        value = value[()]
    if kind.name == "binary":
        raise SchemaError("binary arrays have no fill")
    if kind.name == "string":
        if not isinstance(value, str):
            raise SchemaError(f"the fill {value!r} is no string")
        return kind.fill, utf8(value)
    if kind.fill == FILL_TIMESTAMP:
        value = int(nanoseconds(value).view("i8")) if isinstance(value, TIMES) else value
        kind64 = np.dtype("<i8")
    else:
        kind64 = kind.numpy
    try:
        if not is_number(value) or (kind.fill != FILL_FLOAT and int(value) != value):
            raise ValueError
        if kind.fill == FILL_FLOAT:
            value = to_float(value, kind.numpy)
        else:
            info = np.iinfo(kind64)
            if not info.min <= int(value) <= info.max:
                raise ValueError
    except (ValueError, OverflowError):
        raise SchemaError(f"the fill {value!r} is no {kind}") from None
    return kind.fill, to_bits(kind, value)


def is_number(value: Any) -> bool:
    """Whether it is a number of Python or numpy: no bool, no duration, no text, nothing masked."""
    if isinstance(value, (bool, np.timedelta64)):
        return False
    return isinstance(value, (int, float, np.integer, np.floating))


def to_float(value: Any, dtype: np.dtype[Any]) -> Any:
    """A number as a float of the type: floats are rounded, integers are not. ValueError, OverflowError."""
    with np.errstate(over="ignore"):
        made = dtype.type(value)
    if np.isinf(made) and value not in (np.inf, -np.inf):
        raise OverflowError
    if isinstance(value, (int, np.integer)) and int(made) != int(value):
        raise ValueError
    return made


def unpack_fill(kind: Kind, fill: tuple[int, Any] | None) -> Any:
    """The fill as Python has it; None for none. CorruptData when it is of another type."""
    if fill is None:
        return None
    if fill[0] != kind.fill:
        raise CorruptData(f"the fill of an array of {kind} is of another type")
    return fill[1].decode() if kind.name == "string" else from_bits(kind, fill[1])


def unpack_bound(kind: Kind, bound: tuple[int, Any] | None) -> Any:
    """A minimum or maximum as Python has it: int, float, bytes, nanoseconds; None for none. CorruptData."""
    if bound is None:
        return None
    if bound[0] != kind.bound:
        raise CorruptData(f"a minimum or maximum of an array of {kind} is of another type")
    return bound[1] if kind.bound == BOUND_BYTES else from_bits(kind, bound[1])


# ---- times ------------------------------------------------------------------------------------------------------

#: What counts as a time.
TIMES = (np.datetime64, datetime.date)  # a datetime is a date


def nanoseconds(times: Any) -> np.ndarray[Any, Any]:
    """One time or an array of them, of any unit of numpy, as `datetime64[ns]`; those without a zone are UTC.

    SchemaError when one is no whole number of nanoseconds, or lies outside of the years 1678 to 2262.
    """
    if isinstance(times, datetime.datetime) and times.tzinfo is not None:
        times = times.astimezone(datetime.UTC).replace(tzinfo=None)
    try:
        given = np.asarray(times, None if isinstance(times, np.ndarray) else "M8")
        if np.isnat(given).all():
            return np.full(given.shape, "NaT", "M8[ns]")
        made = given.astype("M8[ns]")
    except (ValueError, TypeError, OverflowError):
        raise SchemaError(f"{times!r} is no time from 1678 to 2262") from None
    if not np.array_equal(made.astype(given.dtype), given, equal_nan=True):
        raise SchemaError(f"{times!r} is no whole number of nanoseconds from 1678 to 2262")
    return made


def total_order(value: Any) -> Any:
    """A key that orders floats with NaN and -0.0, as statistics do."""
    if not isinstance(value, float):
        return value
    bits = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def utf8(text: str) -> bytes:
    """The bytes of a text; SchemaError for one that has none."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise SchemaError(f"{text!r} has a lone surrogate, which UTF-8 cannot store") from None

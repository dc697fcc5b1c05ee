# SPDX-License-Identifier: BSD-3-Clause
"""Elements of a chunk: numpy arrays to the bytes of a chunk and back, and what their statistics are."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mrec._core import join_extents, measure
from mrec.collection.kinds import Kind, nanoseconds
from mrec.errors import CorruptData, InvalidValue, SchemaError

STRINGS = np.dtypes.StringDType()

#: (min, max, nulls, count): numbers as bits, strings and binary as bytes; min and max are None without values.
Extent = tuple[Any, Any, int, int]


def dtype_of(kind: Kind) -> Any:
    """What arrays of the type have as their dtype in numpy."""
    return STRINGS if kind.name == "string" else kind.numpy


def as_elements(kind: Kind, values: Any, name: str) -> np.ndarray[Any, Any]:
    """`values` as an array of the type's elements, not copied where they are that already. SchemaError."""
    if type(values) is np.ndarray and values.dtype == kind.numpy and kind.width:
        return values
    if np.ma.is_masked(values):
        raise SchemaError(f"some values of {name!r} are masked: give them the fill first, by `filled`")
    try:
        array = np.asarray(values, None if kind.width or isinstance(values, np.ndarray) else object)
    except ValueError:
        raise SchemaError(f"the values of {name!r} are lists of several lengths: no array") from None
    return _numbers(kind, array, name) if kind.width else _items(kind, array, name)


def _numbers(kind: Kind, array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """Floats may be rounded to float32; nothing else changes, and nothing that is finite becomes infinite."""
    if array.size == 0:
        return np.empty(array.shape, kind.numpy)
    if kind.numpy.kind == "M":
        if array.dtype.kind == "M":
            try:
                return nanoseconds(array)
            except SchemaError as e:
                raise SchemaError(f"{name!r}: {e}") from None
        if array.dtype == np.int64:
            return array.astype(kind.numpy)
    elif array.dtype.kind in ("iuf" if kind.numpy.kind == "f" else "iu"):
        with np.errstate(over="ignore"):
            made = array.astype(kind.numpy)
        if array.dtype.kind == "f" and np.array_equal(np.isinf(made), np.isinf(array)):
            return made
        if array.dtype.kind != "f" and (_exact if kind.numpy.kind == "f" else np.array_equal)(made, array):
            return made
    raise SchemaError(f"{name!r} is {kind}; the values are {array.dtype}, which do not fit: cast them first")


def _exact(floats: np.ndarray[Any, Any], integers: np.ndarray[Any, Any]) -> bool:
    """Compared as integers, since numpy compares a float with an integer as floats."""
    beyond = float(int(np.iinfo(integers.dtype).max) + 1)
    return bool((floats < beyond).all()) and np.array_equal(floats.astype(integers.dtype), integers)


def _items(kind: Kind, array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    items, wanted = array.ravel().tolist(), str if kind.name == "string" else bytes
    if not all(isinstance(item, wanted) for item in items):
        raise SchemaError(f"{name!r} is {kind}; the values are {array.dtype}, not all of them {wanted.__name__}")
    made = np.empty(len(items), object)
    made[:] = items
    return made.reshape(array.shape)


# ---- chunks -----------------------------------------------------------------------------------------------------


def encode_chunk(kind: Kind, values: np.ndarray[Any, Any], fill: Any, where: str) -> tuple[Any, Extent]:
    """The bytes of a chunk (a buffer) and its statistics. fill: bits or bytes, None for none. InvalidValue."""
    if kind.width:
        data = values if kind.numpy.kind != "M" else values.view(np.int64)  # times have no buffer
        if not data.flags.c_contiguous:
            data = np.ascontiguousarray(data)
        return data, measure(kind.number, data, kind.width, fill)
    try:
        items = [item.encode() if kind.name == "string" else item for item in values.ravel().tolist()]
    except UnicodeEncodeError:
        raise InvalidValue(f"{where!r}: a string has a lone surrogate, which UTF-8 cannot store") from None
    ends = np.zeros(len(items) + 1, np.uint64)
    np.cumsum([len(item) for item in items], out=ends[1:])
    if ends[-1] >= 1 << 32:
        raise InvalidValue(f"{where!r}: a chunk of strings has at most 2^32 - 1 bytes; choose smaller chunks")
    return ends.astype("<u4").tobytes() + b"".join(items), texts_extent(items, fill)


def texts_extent(items: list[bytes], fill: bytes | None) -> Extent:
    """The statistics of strings or binary."""
    kept = items if fill is None else [item for item in items if item != fill]
    return (min(kept), max(kept), len(items) - len(kept), len(items)) if kept else (None, None, len(items), len(items))


def join(kind: Kind, parts: list[Extent]) -> Extent:
    """The statistics of several chunks of an array together."""
    valued = [part for part in parts if part[0] is not None]
    nulls, count = sum(part[2] for part in parts), sum(part[3] for part in parts)
    if not valued:
        return None, None, nulls, count
    if not kind.width:
        return min(part[0] for part in valued), max(part[1] for part in valued), nulls, count
    return (*join_extents(kind.number, valued)[:2], nulls, count)


def decode_chunk(kind: Kind, data: Any, shape: tuple[int, ...], where: str) -> np.ndarray[Any, Any]:
    """The elements of a chunk; numbers are a view of `data`. CorruptData."""
    count = math.prod(shape)
    view = memoryview(data)
    if kind.width:
        if len(view) != count * kind.width:
            raise CorruptData(f"{where}: a chunk of {count} {kind} has {len(view)} bytes")
        return np.frombuffer(view, kind.numpy).reshape(shape)
    if len(view) < 4 * (count + 1):
        raise CorruptData(f"{where}: a chunk of {count} {kind} has {len(view)} bytes")
    ends = np.frombuffer(view, "<u4", count + 1).astype(np.int64)
    text = bytes(view[4 * (count + 1) :])
    if ends[0] != 0 or ends[-1] != len(text) or (np.diff(ends) < 0).any():
        raise CorruptData(f"{where}: the lengths of a chunk of {kind} do not fit in it")
    places = ends.tolist()
    made = np.empty(count, object)
    try:
        for i in range(count):
            item = text[places[i] : places[i + 1]]
            made[i] = item.decode() if kind.name == "string" else item
    except UnicodeDecodeError:
        raise CorruptData(f"{where}: a string is no UTF-8") from None
    return made.reshape(shape)


def room(kind: Kind, shape: tuple[int, ...], fill: Any, where: str = "") -> np.ndarray[Any, Any]:
    """An array where nothing was written. MemoryError also for shapes that no memory holds."""
    value = kind.zero if fill is None else fill
    try:
        if kind.name == "string":
            return np.full(shape, value, STRINGS)
        if kind.name == "binary":
            made = np.empty(shape, object)
            made[...] = value
            return made
        if kind.numpy.kind == "M":
            return np.full(shape, value, np.int64).view(kind.numpy)
        return np.full(shape, value, kind.numpy) if value != 0 or str(value)[0] == "-" else np.zeros(shape, kind.numpy)
    except (ValueError, OverflowError):
        raise MemoryError(f"{where}: an array of {list(shape)} is larger than memory can be") from None

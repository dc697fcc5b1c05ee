# SPDX-License-Identifier: BSD-3-Clause
"""What a user passes, as what the core takes: nothing is rounded, wrapped or guessed on the way.

An array that the core can read as it stands is passed on without a copy.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from mrec import dtypes
from mrec.arrays import array_of
from mrec.dtypes import F32
from mrec.errors import SchemaError
from mrec.trajectory.schema import BlockSchema, Column, ValueSchema

Array = np.ndarray


class Text(NamedTuple):
    """Strings: UTF-8 of all elements, one after another, and u64 positions, one more than elements, from 0."""

    data: bytes
    offsets: Array


# ---- columns -----------------------------------------------------------------------------------------------------


def coerce_column(column: Column, values: Any, where: str = "", lead: int = 1) -> tuple[Array | Text, Array | None]:
    """The data of a column, and its mask or None (uint8, one a row, 0 = null).

    values: anything numpy takes as an array of shape (rows, *trailing); with lead=2 (frames, rows, *trailing).
    The result is a native, aligned array of the column's type (or float32, where the column takes that), contiguous
    within a row, with any stride but 0 between rows; `Text` for strings. It may be `values` itself. Data of null rows
    is the type's fill. SchemaError, which begins with `where`: the wrong type or shape, or a value that would change.
    """
    if type(values) is Array and not column.trailing:
        dtype = values.dtype
        if (dtype is column.dtype.numpy or (dtype is F32 and column.takes_f32)) and values.ndim == lead:
            flags = values.flags
            if flags.aligned and (flags.c_contiguous or 0 not in values.strides):
                return values, None
    try:
        return _coerce(column, values, lead)
    except ValueError as e:
        raise SchemaError(f"{where + ': ' if where else ''}column {column.name!r}: {e}") from None


def coerce_block(block: BlockSchema, columns: Mapping[str, Any]) -> tuple[int, list[tuple[Array | Text, Array | None]]]:
    """The number of rows, and of every column of the block, in the order of the schema, what `coerce_column` gives.

    SchemaError: a column is missing or not declared, the columns differ in rows, or their number is not that of the
    block's structural_shape. A block without columns takes its rows from `columns.nrows` (a `Block`), else 0.
    """
    where = f"block {block.name!r}"
    data = []
    rows = -1
    even = True
    for name, column in block.columns.items():
        if name not in columns:
            raise SchemaError(f"{where}: {names_differ(block, columns)}")
        taken = coerce_column(column, columns[name], where)
        count = _rows(column, taken[0])
        even = even and rows in (-1, count)
        rows = count
        data.append(taken)
    if len(columns) != len(data):
        raise SchemaError(f"{where}: {names_differ(block, columns)}")
    if not even:
        pairs = zip(block.columns.values(), data, strict=True)
        listed = ", ".join(f"{column.name} {_rows(column, values)}" for column, (values, _) in pairs)
        raise SchemaError(f"{where}: all columns have the same number of rows; these have: {listed}")
    if not data:
        rows = int(getattr(columns, "nrows", 0))
    if block.structural_shape is not None and rows != block.rows:
        raise SchemaError(
            f"{where} has {rows} rows; its structural_shape {block.structural_shape} asks for {block.rows}"
        )
    return rows, data


def _rows(column: Column, values: Array | Text) -> int:
    if isinstance(values, Text):
        return (len(values.offsets) - 1) // int(np.prod(column.trailing, dtype=np.int64))
    return len(values)


def names_differ(block: BlockSchema, columns: Mapping[str, Any]) -> str:
    """What to say when the columns given are not those declared."""
    missing = [name for name in block.columns if name not in columns]
    unknown = [name for name in columns if name not in block.columns]
    parts = [f"missing: {', '.join(map(repr, missing))}"] if missing else []
    parts += [f"not declared: {', '.join(map(repr, unknown))}"] if unknown else []
    return f"a frame gives all the declared columns and no other; {'; '.join(parts)}"


def _coerce(column: Column, values: Any, lead: int) -> tuple[Array | Text, Array | None]:
    # numpy's own strings drop NULs at the end, so a list of strings becomes an array of objects
    listed = column.dtype.name == "string" and not hasattr(values, "dtype")
    array = np.asanyarray(values, dtype=object) if listed else array_of(values)
    if array.ndim != lead + len(column.trailing) or array.shape[lead:] != column.trailing:
        raise ValueError(f"takes the shape {_shape(column, lead)}, not {array.shape}")
    valid = None
    if isinstance(array, np.ma.MaskedArray):
        valid = _valid(column, array, lead)
        array = array.filled(column.dtype.fill) if valid is not None else array.data
    array = np.asarray(array)
    untyped = not isinstance(values, Array) or array.dtype.kind == "O"
    if array.size == 0 and untyped and column.dtype.name != "string":
        array = np.zeros(array.shape, column.dtype.numpy)  # an empty list says nothing of its type
    if column.dtype.name == "string":
        return _text(array), valid
    return _addressable(_convert(column, array), lead), valid


def _shape(column: Column, lead: int) -> str:
    return f"({', '.join([*('frames', 'rows')[2 - lead :], *map(str, column.trailing)])})"


def _valid(column: Column, array: np.ma.MaskedArray, lead: int) -> Array | None:
    mask = np.ma.getmaskarray(array)
    if not mask.any():
        return None
    if not column.nullable:
        raise ValueError("has masked rows, and is not declared nullable; declare it so, or fill them")
    axes = tuple(range(lead, mask.ndim))
    null = mask.any(axis=axes)
    if axes and not np.array_equal(null, mask.all(axis=axes)):
        raise ValueError("masks part of a row; a row is null as a whole or not at all")
    return (~null).astype(np.uint8, order="C")  # the core goes from row to row


def _addressable(array: Array, lead: int) -> Array:
    """`array`, or a copy when the core cannot step through it: unaligned, stride 0, or not contiguous within a row."""
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    strides, inner = array.strides[:lead], array.itemsize
    for n, stride in zip(array.shape[: lead - 1 : -1], array.strides[: lead - 1 : -1], strict=True):
        if n != 1 and stride != inner:
            return np.ascontiguousarray(array)
        inner *= n
    return array if array.flags.aligned and 0 not in strides else np.array(array, order="C")


# ---- exact conversion --------------------------------------------------------------------------------------------

_TAKES = {"b": "b", "i": "iu", "u": "iu", "f": "fiu", "c": "cfiu"}
_SPOKEN = {"b": "bool", "i": "integers", "u": "integers", "f": "floats", "c": "complex numbers"}


def _convert(column: Column, array: Array) -> Array:
    wanted = column.dtype.numpy
    if array.dtype.kind == "O":
        array = array_of(array.tolist())
    kind = array.dtype.kind
    if kind not in _TAKES[wanted.kind]:
        raise ValueError(
            f"is {column.dtype} and takes {_SPOKEN[wanted.kind]}, not {array.dtype.name}; convert the data"
        )
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    if native.dtype == wanted:
        return native
    if kind == "f" and wanted.kind == "f" and native.itemsize < 8:
        return _widened(column, native)
    if np.can_cast(native.dtype, wanted, "safe") and not (
        kind in "iu" and wanted.kind in "fc" and native.itemsize == 8
    ):
        return native.astype(wanted)
    return _exact(column, native, wanted)


def _widened(column: Column, array: Array) -> Array:
    if not column.takes_f32:
        raise ValueError(f"is f64, the data is {array.dtype.name}; cast it to float64, or declare a precision")
    return array.astype(F32, copy=False)


def _exact(column: Column, array: Array, wanted: np.dtype) -> Array:
    """A cast that keeps every value; ValueError names the first row that it would change."""
    with np.errstate(all="ignore"):
        result = array.astype(wanted)
        if array.dtype.kind in "iu":
            changed = _integers_changed(array, result)
        else:
            changed = (result != array) & ~np.isnan(array)
    if changed.any():
        row = tuple(int(i) for i in np.argwhere(changed)[0])
        shown = row[0] if len(row) == 1 else row
        raise ValueError(f"is {column.dtype}, which cannot hold {array[row]!s} (row {shown}) exactly")
    return result


def _integers_changed(array: Array, result: Array) -> Array:
    if result.dtype.kind in "iu":
        info = np.iinfo(result.dtype)
        outside: Array = (array < info.min) | (array > info.max)
        return outside
    digits = 24 if result.dtype == np.complex64 else 53
    large: Array = (array > 2**digits) | (array < -(2**digits))
    for index in np.argwhere(large):
        i = tuple(index)
        large[i] = int(result[i].real) != int(array[i])
    return large


# ---- strings -----------------------------------------------------------------------------------------------------


def _text(array: Array) -> Text:
    kind = array.dtype.kind
    if array.size == 0:
        return Text(b"", np.zeros(1, np.uint64))
    if kind not in "OTU":
        hint = "; decode it" if kind == "S" else ""
        raise ValueError(f"is string and takes strings, not {array.dtype.name}{hint}")
    rows = array.ravel().tolist()
    try:
        joined = "".join(rows)
        data = joined.encode()
    except (TypeError, UnicodeEncodeError):
        raise ValueError(_bad_string(rows)) from None
    sizes = map(len, rows if len(data) == len(joined) else (row.encode() for row in rows))
    offsets = np.zeros(len(rows) + 1, np.uint64)
    np.cumsum(np.fromiter(sizes, np.uint64, len(rows)), out=offsets[1:])
    return Text(data, offsets)


def _bad_string(rows: list[Any]) -> str:
    for i, row in enumerate(rows):
        if not isinstance(row, str):
            hint = "decode it" if isinstance(row, bytes) else "a null row is a masked one"
            return f"takes strings, not {row!r} ({type(row).__name__}, row {i}); {hint}"
        try:
            dtypes.check_text(row)
        except ValueError as e:
            return f"row {i}: {e}"
    return "a surrogate cannot be stored as UTF-8"


# ---- per-step values ---------------------------------------------------------------------------------------------


def _packer(code: str) -> Callable[..., bytes]:
    return struct.Struct("=" + code).pack


_PACK = {"bool": "?", "i32": "i", "i64": "q", "u32": "I", "u64": "Q", "f64": "d"}
_PACKERS = {(name, width): _packer(f"{width}{code}") for name, code in _PACK.items() for width in (1, 3, 6, 9)}


def coerce_value(value: ValueSchema, given: Any) -> bytes:
    """One per-step value as the core takes it: its elements in native order, or the UTF-8 of a string or JSON text.

    SchemaError when `given` is not exactly of the declared type.
    """
    tag = value.tag
    if type(given) is float and tag.name == "f64":
        return _PACKERS["f64", 1](given)
    try:
        if tag.json:
            return dtypes.json_text(given).encode()
        if tag.dtype.name == "string":
            return str(dtypes.exact_scalar(tag.dtype, given)).encode()
        items = [given] if tag.width == 1 else dtypes.vector_items(tag, given)
        exact = [dtypes.exact_scalar(tag.dtype, item) for item in items]
    except ValueError as e:
        raise SchemaError(f"per-step value {value.name!r} is {tag}: {e}") from None
    return _PACKERS[tag.dtype.name, tag.width](*exact)


def coerce_values(value: ValueSchema, given: Any, frames: int) -> Array | Text:
    """A per-step value of many frames: an array of shape (frames,) or (frames, width), or `Text`.

    f64x9 also takes (frames, 3, 3). SchemaError as in `coerce_value`, or when the first axis is not `frames` long.
    """
    tag = value.tag
    try:
        if tag.json and (isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable)):
            raise ValueError(f"takes one value for each of the {frames} frames, not {type(given).__name__}")
        items = [dtypes.json_text(item) for item in given] if tag.json else given
        array = np.asanyarray(items, dtype=object) if tag.json else array_of(items)
        if tag.width == 9 and array.shape[1:] == (3, 3):
            array = array.reshape(-1, 9)
        if array.ndim == 0 or len(array) != frames:
            raise ValueError(f"takes one value for each of the {frames} frames, not the shape {array.shape}")
        if array.dtype.kind == "f" and array.itemsize < 8 and tag.dtype.name == "f64":
            array = array.astype(np.float64)
        data, _ = _coerce(value.as_column, array, 1)
    except (ValueError, TypeError) as e:
        raise SchemaError(f"per-step value {value.name!r} is {tag}: {e}") from None
    return data if isinstance(data, Text) else np.ascontiguousarray(data)


def fill_bytes(value: ValueSchema) -> bytes:
    """The fill of a per-step value, as `coerce_value` gives it; only when it has one."""
    return coerce_value(value, value.fill)

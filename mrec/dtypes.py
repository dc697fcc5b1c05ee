# SPDX-License-Identifier: BSD-3-Clause
"""The closed sets of types: column types, canonical columns, the sixteen per-step tags, and values as typed JSON."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrec.errors import SchemaError


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    name: ours ("f64"). code: its number in `enum mrec_dtype` (mrec.h). numpy: native byte order. zarr: the data type in
    zarr.json, and the other accepted name. fill: one element, as Python has it.
    """

    name: str
    code: int
    numpy: np.dtype
    zarr: str
    fill: Any

    def __str__(self) -> str:
        return self.name

    @property
    def itemsize(self) -> int:
        """Bytes of one element; 0 for strings."""
        return 0 if self.name == "string" else self.numpy.itemsize


def _table() -> dict[str, DType]:
    rows: list[tuple[str, Any, str, Any]] = [
        ("bool", np.bool_, "bool", False),
        *((f"i{n}", f"i{n // 8}", f"int{n}", 0) for n in (8, 16, 32, 64)),
        *((f"u{n}", f"u{n // 8}", f"uint{n}", 0) for n in (8, 16, 32, 64)),
        ("f64", np.float64, "float64", 0.0),
        ("c64", np.complex64, "complex64", 0j),
        ("c128", np.complex128, "complex128", 0j),
        ("string", np.dtypes.StringDType(), "string", ""),
    ]
    return {name: DType(name, code, np.dtype(dt), zarr, fill) for code, (name, dt, zarr, fill) in enumerate(rows)}


#: name -> type, in the order of `enum mrec_dtype`.
DTYPES: dict[str, DType] = _table()
_BY_ZARR = {d.zarr: d for d in DTYPES.values()}
_BY_NUMPY = {d.numpy: d for d in DTYPES.values() if d.name != "string"}

F32 = np.dtype(np.float32)
_NARROW_FLOATS = {"f32", "f16", "float32", "float16"}

_U64 = "id atomic_number type_id mol_id res_id atom_map atomi atomj atomk atoml ibead bond_type bond_number"
_F64 = "x y z vx vy vz fx fy fz charge mass occupancy b_factor quatw quati quatj quatk mux muy muz axis_x axis_y axis_z"
_STRING = "element type name res_name chain icode altloc bead_type style"

#: Columns that have one type wherever they appear: name -> type.
CANONICAL: dict[str, DType] = {
    column: DTYPES[dtype]
    for dtype, columns in {
        "f64": _F64,
        "u64": _U64,
        "i64": "formal_charge",
        "i32": "ix iy iz",
        "bool": "free is_14 exclude_14",
        "string": _STRING,
    }.items()
    for column in columns.split()
}

#: Per-step values that are always f64.
CANONICAL_VALUES = frozenset({"pe", "ke", "etotal", "temp", "press", "volume"})


def column_type(spec: Any) -> DType:
    """The column type that `spec` names: "f64", "float64", np.float64, a numpy dtype of any byte order, float, str ...

    Raises SchemaError when it is none of the closed set.
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, str):
        found = DTYPES.get(spec) or _BY_ZARR.get(spec)
        if found:
            return found
        if spec in _NARROW_FLOATS:
            raise SchemaError(_narrow(spec))
    try:
        dtype = np.dtype(spec) if spec is not None else None
    except TypeError:
        dtype = None
    if dtype is not None:
        if dtype.kind in "UT":
            return DTYPES["string"]
        found = _BY_NUMPY.get(dtype.newbyteorder("="))
        if found:
            return found
        if dtype.kind == "f" and dtype.itemsize < 8:
            raise SchemaError(_narrow(dtype.name))
    raise SchemaError(f"{spec!r} is no column type; choose one of {', '.join(DTYPES)}")


def _narrow(name: str) -> str:
    return f"{name} is no column type; use f64 (with precision=... it takes little space) and cast the data to float64"


@dataclass(frozen=True, slots=True)
class Tag:
    """The type of a per-step value: `width` elements of `dtype` a step; json: a string holding a compact JSON text."""

    name: str
    dtype: DType
    width: int = 1
    json: bool = False

    def __str__(self) -> str:
        return self.name


def _tags() -> dict[str, Tag]:
    tags = [Tag(name, DTYPES[name]) for name in ("bool", "i32", "i64", "u32", "u64", "f64", "string")]
    tags.append(Tag("json", DTYPES["string"], json=True))
    tags.append(Tag("bool3", DTYPES["bool"], 3))
    tags += [Tag(f"{name}x3", DTYPES[name], 3) for name in ("i32", "i64", "u32", "u64", "f64")]
    tags += [Tag(f"f64x{width}", DTYPES["f64"], width) for width in (6, 9)]
    return {tag.name: tag for tag in tags}


#: name -> tag; the closed set of sixteen.
TAGS: dict[str, Tag] = _tags()


def value_tag(spec: Any) -> Tag:
    """The tag that `spec` names: "f64x9", "f64", "float64", np.int64, float ... Raises SchemaError for any other."""
    if isinstance(spec, Tag):
        return spec
    if isinstance(spec, str) and spec in TAGS:
        return TAGS[spec]
    try:
        return TAGS[column_type(spec).name]
    except (SchemaError, KeyError):
        raise SchemaError(f"{spec!r} is no type of a per-step value; choose one of {', '.join(TAGS)}") from None


# ---- exact values ------------------------------------------------------------------------------------------------


def int_range(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest integer of an integer type."""
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def exact_scalar(dtype: DType, value: Any) -> Any:
    """`value` as a Python bool, int, float or str, when it is exactly an element of `dtype`; else ValueError says why.

    An integer is taken for f64 when a double holds it; a real for an integer, a bool for a number, and a number for a
    bool are refused.
    """
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if dtype.name == "string":
        if not isinstance(value, str):
            raise ValueError(f"{_kind(value)} is no string")
        check_text(value)
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        if dtype.name == "bool":
            return bool(value)
        raise ValueError(f"a bool is no {dtype}; pass a number")
    if dtype.name == "bool":
        raise ValueError(f"{_kind(value)} is no bool; pass True or False")
    if isinstance(value, (int, np.integer)):
        number = int(value)
        if dtype.name == "f64":
            return _exact_float(number)
        low, high = int_range(dtype)
        if low <= number <= high:
            return number
        raise ValueError(f"{number} is outside the range of {dtype}")
    if isinstance(value, (float, np.floating)) and dtype.name == "f64":
        real = float(value)
        if real == value or math.isnan(real):
            return real
        raise ValueError(f"{value!r} is not exactly a double; round it first")
    raise ValueError(f"{_kind(value)} is no {dtype}")


def check_text(text: str) -> None:
    """ValueError when `text` holds a lone surrogate, which UTF-8 cannot store."""
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise ValueError(f"a lone surrogate at character {e.start} of {text!r} cannot be stored as UTF-8") from None


def _exact_float(number: int) -> float:
    try:
        result = float(number)
    except OverflowError:
        result = math.inf
    if result != number:
        raise ValueError(f"{number} is not exactly a double; round it first")
    return result


def _kind(value: Any) -> str:
    return f"{value!r} ({type(value).__name__})"


# ---- JSON --------------------------------------------------------------------------------------------------------


def json_text(value: Any) -> str:
    """A JSON document as the compact text that a store holds. ValueError: not finite, no JSON, a lone surrogate."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
    except (TypeError, ValueError, RecursionError) as e:
        raise ValueError(f"no JSON document: {e}") from None
    check_text(text)
    _check_keys(value)
    return text


def _check_keys(value: Any) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            odd = next((key for key in item if not isinstance(key, str)), None)
            if odd is not None or None in item:
                raise ValueError(f"no JSON document: the key {odd!r} is no string")
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)


def _plain(value: Any) -> Any:
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return value.item()
    raise TypeError(f"{_kind(value)} has no JSON form")


_EXACT = 2**53
_DECIMAL = re.compile(r"-?[1-9][0-9]{15,19}", re.ASCII)
_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_json(tag: Tag, value: Any) -> Any:
    """`value` in the typed JSON form of its tag; ValueError when it is not exactly of that type.

    NaN and infinities become strings, integers beyond 2^53 decimal strings, vectors lists of elements, documents
    themselves.
    """
    if tag.json:
        return json.loads(json_text(value))
    if tag.width == 1:
        return _element_to_json(tag.dtype, value)
    return [_element_to_json(tag.dtype, item) for item in vector_items(tag, value)]


def vector_items(tag: Tag, value: Any) -> list[Any]:
    """The `tag.width` elements of a vector value; a 3x3 array counts as nine, row by row. ValueError: another shape."""
    array = value if isinstance(value, np.ndarray) else np.array(value, dtype=object)
    if array.shape != (tag.width,) and not (tag.width == 9 and array.shape == (3, 3)):
        raise ValueError(f"{tag} takes {tag.width} elements, not the shape {array.shape}")
    return list(array.ravel())


def _element_to_json(dtype: DType, value: Any) -> Any:
    value = exact_scalar(dtype, value)
    if dtype.name == "f64" and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and abs(value) > _EXACT:
        return str(value)
    return value


def from_json(tag: Tag, document: Any) -> Any:
    """The inverse of `to_json`: bool, int, float, str, a numpy vector, or the document. ValueError: another form.

    An exact JSON integer beyond 2^53 is accepted beside its decimal string.
    """
    if tag.json:
        json_text(document)
        return document
    if tag.width == 1:
        return _element_from_json(tag.dtype, document)
    if not isinstance(document, list) or len(document) != tag.width:
        raise ValueError(f"{tag} takes a list of {tag.width} elements, not {document!r}")
    return np.array([_element_from_json(tag.dtype, item) for item in document], dtype=tag.dtype.numpy)


def untagged(document: Any) -> str:
    """The name of the tag that a value in JSON is read under when none is stored with it."""
    if isinstance(document, bool):
        return "bool"
    if isinstance(document, int) and -(2**63) <= document < 2**64:
        return "i64" if document < 2**63 else "u64"
    if isinstance(document, (int, float)):
        return "f64"
    return "string" if isinstance(document, str) else "json"


def _element_from_json(dtype: DType, item: Any) -> Any:
    if dtype.name == "f64":
        if isinstance(item, str) and item in _NON_FINITE:
            return _NON_FINITE[item]
        if isinstance(item, int) and not isinstance(item, bool):
            return _nearest_float(item)
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f'{item!r} is no JSON number; write "NaN", "Infinity" or "-Infinity"')
    elif isinstance(item, str) and dtype.name not in ("string", "bool"):
        if not _DECIMAL.fullmatch(item) or abs(int(item)) <= _EXACT:
            raise ValueError(f"{item!r} is no {dtype}: only integers beyond 2^53 stand as decimal strings")
        item = int(item)
    return exact_scalar(dtype, item)


def _nearest_float(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        raise ValueError(f"the number is beyond the range of f64 ({number.bit_length()} bits)") from None


def room(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array to read into; MemoryError also where what a document claims is more than numpy can count."""
    try:
        return np.empty(shape, dtype)
    except ValueError:
        raise MemoryError(f"an array of {list(shape)} values is larger than memory can be") from None

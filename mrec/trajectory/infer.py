# SPDX-License-Identifier: BSD-3-Clause
"""The declaration that one frame shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mrec import dtypes
from mrec.arrays import array_of
from mrec.dtypes import CANONICAL, CANONICAL_VALUES, TAGS, DType
from mrec.errors import SchemaError
from mrec.frame import Block, Frame
from mrec.trajectory.coerce import coerce_column
from mrec.trajectory.schema import Schema


def schema_of(
    schema: Schema,
    frame: Any,
    precision: float | Mapping[str, float] | None,
    nullable: Iterable[str],
    values: Mapping[str, Any],
) -> Schema:
    """`schema` with the blocks and values of `frame` declared; the arguments are those of `Schema.from_frame`."""
    if not isinstance(frame, Frame):
        if not isinstance(frame, Mapping):
            raise SchemaError(f"a schema is made from a Frame or a mapping of blocks, not {type(frame).__name__}")
        frame = Frame(frame)
    grids = _grids(precision)
    nulls = {nullable} if isinstance(nullable, str) else set(nullable)
    unused = (set(grids) if isinstance(precision, Mapping) else set()) | nulls
    for name, block in frame.blocks.items():
        schema.block(name, rows=block.nrows, structural_shape=block.structural_shape, targets=block.targets or None)
        for column, data in block.items():
            _declare(schema, name, block, column, data, grids.get(column), column in nulls)
            unused.discard(column)
    if unused:
        raise SchemaError(
            f"no block has a column {', '.join(map(repr, sorted(unused)))}, which precision or nullable name"
        )
    for name, value in {**frame.values, **values}.items():
        schema.value(name, infer_tag(name, value))
    return schema


def _grids(precision: float | Mapping[str, float] | None) -> dict[str, float]:
    if precision is None:
        return {}
    return dict(precision) if isinstance(precision, Mapping) else dict.fromkeys("xyz", precision)


def _declare(
    schema: Schema, name: str, block: Block, column: str, data: np.ndarray, grid: float | None, nullable: bool
) -> None:
    if grid is None:
        grid = block.precision.get(column)
    where = f"block {name!r}"
    try:
        dtype = CANONICAL.get(column) or infer_column(data, grid is not None)
    except SchemaError as e:
        raise SchemaError(f"{where}: column {column!r}: {e}") from None
    nullable = nullable or isinstance(data, np.ma.MaskedArray)
    schema.column(column, dtype, precision=grid, trailing=data.shape[1:], nullable=nullable)
    coerce_column(schema.blocks[name].columns[column], data, where)  # what does not fit is better said now


def infer_column(data: np.ndarray, rounded: bool) -> DType:
    """The type of a column by what its data is; rounded: float32 data is taken for f64."""
    if data.dtype.kind == "O":
        if all(isinstance(item, str) for item in np.ma.compressed(data).tolist()):
            return dtypes.DTYPES["string"]
        raise SchemaError("an array of objects is taken only when all are strings; give it a dtype")
    if data.dtype.kind == "f" and data.dtype.itemsize < 8 and rounded:
        return dtypes.DTYPES["f64"]
    return dtypes.column_type(data.dtype)


_HINT = "declare it with .value(), or in meta_types where it is of a document"


# ---- per-step values ---------------------------------------------------------------------------------------------


def infer_tag(name: str, value: Any, what: str = "per-step value") -> str:
    """The tag of a value: canonical, or by what it is; sequences of 3, 6 or 9 numbers are vectors."""
    if name in CANONICAL_VALUES:
        return "f64"
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, np.generic) and not isinstance(value, (str, float)):
        return _numpy_tag(f"{what} {name!r}", value.dtype, 1)
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "i64" if value < 2**63 else "u64"
    if isinstance(value, float):
        return "f64"
    if isinstance(value, str):
        return "string"
    if isinstance(value, np.ndarray):
        return _vector_tag(f"{what} {name!r}", value)
    if isinstance(value, (list, tuple)) and _numeric(value):
        return _vector_tag(f"{what} {name!r}", array_of(value))
    if value is None or isinstance(value, (dict, list, tuple)):
        return "json"
    raise SchemaError(f"{what} {name!r}: no type is known for {type(value).__name__}; {_HINT}")


def _numeric(value: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list is a vector or a 3x3 of numbers, rather than a JSON document."""
    if len(value) == 3 and all(isinstance(row, (list, tuple)) and len(row) == 3 for row in value):
        return all(_numeric(row) for row in value)
    numbers = all(isinstance(item, (int, float, np.number, np.bool_)) for item in value)
    return numbers and len(value) in (3, 6, 9)


def _vector_tag(what: str, value: np.ndarray) -> str:
    if value.shape == (3,):
        return _numpy_tag(what, value.dtype, 3)
    if value.shape in ((6,), (9,), (3, 3)) and value.dtype.kind in "iuf":
        return f"f64x{value.size}"
    raise SchemaError(
        f"{what}: no type has the shape {value.shape} of {value.dtype.name}; "
        "the vectors are 3 of any number, 6 and 9 of f64"
    )


def _numpy_tag(what: str, dtype: np.dtype, width: int) -> str:
    if dtype.kind in "bf":
        base = "bool" if dtype.kind == "b" else "f64"
    elif dtype.kind in "iu":
        base = dtypes.column_type(dtype).name if dtype.itemsize >= 4 else "i64"
    else:
        raise SchemaError(f"{what}: no type is known for {dtype.name}; {_HINT}")
    tag = base if width == 1 else f"{base}x{width}" if base != "bool" else "bool3"
    assert tag in TAGS
    return tag

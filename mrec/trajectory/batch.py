# SPDX-License-Identifier: BSD-3-Clause
"""Many frames at once, checked and converted before the first of them is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mrec import dtypes
from mrec.box import Box
from mrec.errors import InvalidValue, SchemaError
from mrec.trajectory.coerce import coerce_column, coerce_value, coerce_values, names_differ
from mrec.trajectory.schema import BlockSchema, ValueSchema


def check_steps(steps: Any, last: int | None) -> np.ndarray:
    """i64[F], ascending and above `last`."""
    array = np.asarray(steps)
    if np.ma.is_masked(steps):
        raise InvalidValue("steps is one whole number a frame, and some are masked")
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidValue(f"steps is one whole number a frame, not {array.dtype.name}{list(array.shape)}")
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        raise InvalidValue("a step is a whole number of 64 bits")
    array = np.ascontiguousarray(array, np.int64)
    low = np.flatnonzero(array[1:] <= array[:-1])
    if len(low):
        raise InvalidValue(f"steps have to increase: steps[{low[0] + 1}] is {array[low[0] + 1]} after {array[low[0]]}")
    if len(array) and last is not None and array[0] <= last:
        raise InvalidValue(f"steps[0] is {array[0]}, which is not above the last step, {last}")
    return array


def check_times(times: Any, frames: int, before: int, had: bool | None) -> np.ndarray | None:
    """f64[F] or None; as the frames before, of which there are `before`, had them."""
    if before and (times is not None) != had:
        raise InvalidValue(
            "no times are given, but the frames before have them; pass times="
            if had
            else "times are given, but the frames before have none; all frames have one or none has"
        )
    if times is None:
        return None
    if np.ma.is_masked(times):
        raise InvalidValue("times is one number a frame, and some are masked")
    array = np.asarray(times)
    if array.shape != (frames,) or (frames and array.dtype.kind not in "fiu"):
        raise InvalidValue(f"times is one number a frame ({frames},), not {array.dtype.name}{list(array.shape)}")
    exact = np.ascontiguousarray(array, np.float64)
    listed = times if isinstance(times, (list, tuple)) else array  # as an array, integers beside floats are rounded
    for i in range(frames) if array.itemsize > 8 else np.flatnonzero(abs(exact) >= 2**53):
        try:
            dtypes.exact_scalar(dtypes.DTYPES["f64"], listed[i])
        except ValueError as e:
            raise InvalidValue(f"times[{i}]: {e}") from None
    return exact


def cells(box: Any, frames: int, first: int) -> list[Box] | None:
    """One cell a frame: the same for all, or each its own. first: the ordinal of the first of the frames."""
    if box is None:
        return None
    listed = [Box.coerce(box)] * frames if _is_one(box) else [Box.coerce(b) for b in box]
    if len(listed) != frames:
        raise InvalidValue(f"box has {len(listed)} cells for {frames} frames; give one for all, or one each")
    for i, cell in enumerate(listed):
        if cell.defined != listed[0].defined:
            raise SchemaError(
                f"frame {first + i}: the cell is {_spoken(cell)}, but it was {_spoken(listed[0])} in the frames "
                "before; a trajectory has one or the other"
            )
        if cell.defined and not (np.isfinite(cell.vectors).all() and np.isfinite(cell.origin).all()):
            raise InvalidValue(f"frame {first + i}: the cell holds a value that is not finite")
    return listed


def _is_one(box: Any) -> bool:
    """Whether it is one cell rather than a sequence of them."""
    if isinstance(box, np.ndarray) and box.dtype.kind != "O":
        return box.ndim < 2
    if not isinstance(box, (Sequence, np.ndarray)):
        return True
    return len(box) > 0 and not isinstance(box[0], Box) and np.ndim(box[0]) == 0


def _spoken(cell: Box) -> str:
    return "defined" if cell.defined else "undefined"


def blocks(block: BlockSchema, columns: Mapping[str, Any], frames: int) -> tuple[int, list[Any]]:
    """The rows of a frame, and each column with its mask, shape (frames, rows, *trailing), as `coerce_block` does."""
    where = f"block {block.name!r}"
    if columns.keys() != block.columns.keys():
        raise SchemaError(f"{where}: {names_differ(block, columns)}")
    out: list[Any] = []
    rows = None if block.columns else int(getattr(columns, "nrows", 0))
    for name, column in block.columns.items():
        shape = _shape(columns[name], f"{where}, column {name!r}")
        if len(shape) < 2 or shape[0] != frames:
            raise SchemaError(f"{where}, column {name!r} takes the shape ({frames}, rows, ...), not {shape}")
        if rows not in (None, shape[1]):
            raise SchemaError(f"{where}: column {name!r} has {shape[1]} rows a frame, the columns before {rows}")
        rows = shape[1]
        out.append(coerce_column(column, columns[name], where, lead=2))
    assert rows is not None
    if block.structural_shape is not None and rows != block.rows:
        raise SchemaError(
            f"{where} has {rows} rows; its structural_shape {block.structural_shape} asks for {block.rows}"
        )
    return rows, out


def _shape(given: Any, where: str) -> tuple[int, ...]:
    try:
        return np.shape(given)
    except ValueError:
        raise SchemaError(f"{where}: all frames of one call have the same rows; append them one by one") from None


def values(value: ValueSchema, given: Any, frames: int) -> list[bytes]:
    """A per-step value of many frames: for each what `coerce_value` gives."""
    if isinstance(given, (list, tuple)) and len(given) == frames:
        return [_value(value, one, i) for i, one in enumerate(given)]  # as an array they would take one type
    data = coerce_values(value, given, frames)
    if isinstance(data, np.ndarray):
        size = data.nbytes // max(len(data), 1)
        whole = data.tobytes()
        return [whole[i * size : (i + 1) * size] for i in range(len(data))]
    ends = data.offsets.tolist()
    return [data.data[a:b] for a, b in pairwise(ends)]


def _value(value: ValueSchema, given: Any, i: int) -> bytes:
    try:
        return coerce_value(value, given)
    except SchemaError as e:
        raise SchemaError(f"{e} (frame {i} of the call)") from None

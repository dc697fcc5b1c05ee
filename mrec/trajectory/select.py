# SPDX-License-Identifier: BSD-3-Clause
"""Columns of many frames as one array."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mrec.dtypes import room
from mrec.errors import FrameIndexError, InvalidValue, MrecError, SchemaError, UnknownName
from mrec.trajectory.forms import BlockForm, rows_at
from mrec.trajectory.schema import Column
from mrec.zarr.store import AnySource

#: Bytes that are worth a thread of their own, and how many such threads there are.
PIECE = 2 << 20
#: Bytes of columns beside one another that are filled together, while they are in the processor's cache.
BLOCK = 256 << 10
THREADS = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


#: What reads a column or its flags, and where they go.
Parts = list[tuple[AnySource, np.ndarray]]


def pick(selection: Any, n: int, what: str) -> range | np.ndarray:
    """The ordinals that a selection names out of n: None (all), a slice, a range, integers, or n booleans."""
    if selection is None:
        return range(n)
    if isinstance(selection, slice):
        return range(*selection.indices(n))
    chosen = _ordinals(selection)
    if chosen.dtype == np.bool_ and chosen.shape == (n,):
        return np.flatnonzero(chosen)
    if chosen.size == 0 and chosen.ndim == 1:
        return np.empty(0, np.int64)
    if chosen.dtype.kind not in "iu" or chosen.ndim > 1 or np.ma.is_masked(selection):
        raise InvalidValue(f"{what} are chosen by a slice, integers, or {n} booleans, not by {selection!r}")
    chosen = np.atleast_1d(chosen)
    wrong = (chosen < -n) | (chosen >= n)  # before unsigned ones may wrap
    if wrong.any():
        raise FrameIndexError(f"there is no {what[:-1]} {chosen[wrong][0]} among {n}")
    chosen = chosen.astype(np.int64)
    return np.where(chosen < 0, chosen + n, chosen)


def _ordinals(selection: Any) -> np.ndarray:
    try:
        return np.asarray(selection)
    except ValueError:  # rows of several lengths
        return np.empty((0, 0))


def as_array(picked: range | np.ndarray) -> np.ndarray:
    """Ordinals, i64."""
    return np.arange(picked.start, picked.stop, picked.step) if isinstance(picked, range) else picked


def chosen_columns(form: BlockForm, columns: str | Sequence[str]) -> tuple[list[Column], tuple[int, ...]]:
    """The columns of these names, all of one type and one shape, and the shape of their axis: none for one name."""
    try:
        names = form.schema.together(columns) if isinstance(columns, str) else tuple(columns)
    except TypeError:
        raise InvalidValue(f"columns are a name or several, not {columns!r}") from None
    if not names:
        raise InvalidValue("name at least one column")
    for name in names:
        if not isinstance(name, str) or name not in form.schema.columns:
            there = ", ".join(map(repr, form.schema.columns)) or "none"
            raise UnknownName(f"block {form.name!r} has no column {name!r}; there are: {there}")
    found = [form.schema.columns[name] for name in names]
    for other in found[1:]:
        if (other.dtype, other.trailing) != (found[0].dtype, found[0].trailing):
            raise SchemaError(f"{found[0]!r} and {other!r} do not fit into one array; read them one by one")
    return found, () if isinstance(columns, str) and len(found) == 1 else (len(found),)


def read_block(
    form: BlockForm,
    columns: str | Sequence[str],
    frames: np.ndarray,
    rows: Any,
    out: np.ndarray | None,
    single: bool = False,
) -> np.ndarray:
    """(frames, rows, columns, ...) of one block; see `Trajectory.read`. single: out has no axis of frames."""
    chosen, axis = chosen_columns(form, columns)
    updates = form.updates_at(frames)
    count = _common_count(form, frames, updates)
    wanted = pick(rows, count, "rows")
    shape = (len(frames), len(wanted), *axis, *chosen[0].trailing)
    dtype = chosen[0].dtype.numpy
    if out is None:
        out = room(shape, dtype)
    else:
        check_out(out, shape[1:] if single else shape, dtype)
        out = out[None] if single else out
    masks = [form.mask(column) for column in chosen]
    valid = np.ones(shape[: 2 + len(axis)], np.bool_) if any(masks) else None
    parts: Parts = []
    for i, (column, mask) in enumerate(zip(chosen, masks, strict=True)):
        at = (slice(None), slice(None), i) if axis else (slice(None), slice(None))
        parts.append((form.column(column.name), out[at]))
        if mask is not None and valid is not None:
            parts.append((mask, valid[at]))
    if out.size:
        _read_rows(parts, form.first_row(updates), wanted)
    return masked(out, valid)


def check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """InvalidValue unless `out` is an array of this shape and type, each element of which can be written."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise InvalidValue(f"out is a numpy array without a mask, not {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise InvalidValue(f"out is {out.dtype}{list(out.shape)}; {dtype}{list(shape)} is read")
    if not out.flags.writeable:
        raise InvalidValue("out is read-only")
    if out.size and any(stride == 0 and n > 1 for n, stride in zip(out.shape, out.strides, strict=True)):
        raise InvalidValue("out has elements that share memory; pass an array of its own, as np.empty makes it")


def masked(values: np.ndarray, valid: np.ndarray | None) -> np.ndarray:
    """The values, masked where they are not valid; as they are when all of them are."""
    if valid is None or valid.all():
        return values
    invalid = ~valid.reshape(valid.shape + (1,) * (values.ndim - valid.ndim))
    return np.ma.MaskedArray(values, np.broadcast_to(invalid, values.shape).copy())


def _common_count(form: BlockForm, frames: np.ndarray, updates: np.ndarray) -> int:
    if len(frames) == 0:
        return int(form.counts()[0]) if form.n else 0
    if form.uniform is not None and updates.min() >= 0:
        return form.uniform
    counts = rows_at(form, frames)
    odd = np.flatnonzero(counts != counts[0]) if counts[0] >= 0 else np.array([0])
    if len(odd) == 0:
        return int(counts[0])
    at = odd[0]
    if counts[at] < 0:
        raise SchemaError(f"block {form.name!r} is absent at frame {frames[at]}; use read_ragged")
    raise SchemaError(
        f"block {form.name!r} has {counts[at]} rows at frame {frames[at]}, {counts[0]} at frame {frames[0]}; "
        "use read_ragged"
    )


def _read_rows(parts: Parts, updates: np.ndarray, picked: range | np.ndarray) -> None:
    """The picked rows of the updates that begin at some rows, from each source into its (updates, rows, ...)."""
    if _in_a_row(picked):
        gather(parts, updates + int(picked[0]))
        return
    wanted = as_array(picked)
    low, high = int(wanted.min()), int(wanted.max()) + 1
    starts = updates + low
    for source, out in parts:
        step = max(1, PIECE // max(1, (high - low) * (out.nbytes // max(1, out.shape[0] * out.shape[1]))))
        for at in range(0, len(starts), step):
            some = starts[at : at + step]
            between = np.empty((len(some), high - low, *out.shape[2:]), out.dtype)
            gather([(source, between)], some)
            out[at : at + step] = between[:, wanted - low]


def _in_a_row(picked: range | np.ndarray) -> bool:
    if len(picked) == 1:
        return True
    return picked.step == 1 if isinstance(picked, range) else bool((np.diff(picked) == 1).all())


def gather(parts: Parts, starts: np.ndarray) -> None:
    """Rows of each source from many starts on into its (starts, rows, ...), at any strides; large reads on threads."""
    pieces = sum(out.nbytes for _, out in parts) // PIECE
    if THREADS == 1 or pieces < 2:
        _gather_some(parts, starts)
        return
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and most reads need none

    groups = [parts] if len(starts) >= THREADS else [[part] for part in parts]
    bounds = [i * len(starts) // min(pieces, len(starts)) for i in range(min(pieces, len(starts)) + 1)]
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [
            pool.submit(_gather_some, [(source, out[low:high]) for source, out in group], starts[low:high])
            for group in groups
            for low, high in pairwise(bounds)
        ]:
            done.result()


def _gather_some(parts: Parts, starts: np.ndarray) -> None:
    """The same in one thread, a block at a time."""
    step = len(starts) if len(parts) == 1 else max(2, BLOCK // max(1, sum(out[:1].nbytes for _, out in parts)))
    for low in range(0, len(starts), step):
        for source, out in parts:
            _gather_one(source, out[low : low + step], starts[low : low + step])


def _gather_one(source: AnySource, out: np.ndarray, starts: np.ndarray) -> None:
    if out.ndim == 2 or _close(out):
        source.gather(starts, out)
    else:
        between = np.empty(out.shape, out.dtype)
        source.gather(starts, between)
        out[...] = between


def _close(out: np.ndarray) -> bool:
    """Whether the axes after the first two are close together."""
    close = out.dtype.itemsize
    for length, stride in zip(reversed(out.shape[2:]), reversed(out.strides[2:]), strict=True):
        if length > 1 and stride != close:
            return False
        close *= length
    return True


def runs(updates: np.ndarray) -> Iterator[tuple[int, int]]:
    """The stretches [start, stop) over which updates follow one another."""
    if len(updates):
        ends = np.flatnonzero(np.diff(updates) != 1) + 1
        yield from pairwise([0, *ends.tolist(), len(updates)])


def read_ragged(form: BlockForm, columns: str | Sequence[str], frames: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows of all frames, columns, ...) and where each frame's begin; see `Trajectory.read_ragged`."""
    chosen, axis = chosen_columns(form, columns)
    updates = form.updates_at(frames)
    offsets = np.zeros(len(frames) + 1, np.int64)
    np.cumsum(np.maximum(rows_at(form, frames), 0), out=offsets[1:])
    values = room((int(offsets[-1]), *axis, *chosen[0].trailing), chosen[0].dtype.numpy)
    masks = [form.mask(column) for column in chosen]
    valid = np.ones(values.shape[: 1 + len(axis)], np.bool_) if any(masks) else None
    for start, stop in runs(updates):
        if updates[start] < 0:  # -1 and 0 follow one another, and the absent frame has no rows
            start += 1
        if start == stop or offsets[start] == offsets[stop]:
            continue
        row, rows = np.array([form.first_row(int(updates[start]))]), slice(int(offsets[start]), int(offsets[stop]))
        parts: Parts = []
        for i, (column, mask) in enumerate(zip(chosen, masks, strict=True)):
            at = (None, rows, i) if axis else (None, rows)
            parts.append((form.column(column.name), values[at]))
            if mask is not None and valid is not None:
                parts.append((mask, valid[at]))
        gather(parts, row)
    return masked(values, valid), offsets


def frame_number(index: Any, n: int) -> int:
    """A frame ordinal, also counted from the end; FrameIndexError outside."""
    try:
        i = operator.index(index)
    except TypeError:
        raise TypeError(
            f"frames are indexed by integers and slices, not by {index!r}; see read(..., frames=)"
        ) from None
    if not -n <= i < n:
        raise FrameIndexError(f"there is no frame {i} among {n}")
    return i + n if i < 0 else i


def closest_step(steps: np.ndarray, wanted: float) -> tuple[int, bool]:
    """The frame whose step comes closest, the earlier of two, and whether it is that step. steps: i64, they ascend."""
    after = int(np.searchsorted(steps, math.ceil(min(max(wanted, -(2**63)), 2**63 - 1))))
    around = [i for i in (after - 1, after) if 0 <= i < len(steps)]
    closest = min(around, key=lambda i: abs(int(steps[i]) - wanted))
    return closest, int(steps[closest]) == wanted


def closest_time(times: np.ndarray, wanted: float) -> tuple[int, bool]:
    """The same for a time, which is met up to rounding."""
    with np.errstate(invalid="ignore"):
        distance = np.where(times == wanted, 0.0, np.abs(times - wanted))
    closest = int(np.argmin(np.nan_to_num(distance, nan=np.inf)))
    return closest, bool(np.isclose(times[closest], wanted, rtol=1e-9, atol=0.0))


# ---- row references ----------------------------------------------------------------------------------------------


def check_rows(values: Any, rows: int, where: str, target: str, error: type[MrecError]) -> None:
    """The error when a column is not u64, or a value of it that is not null is no row of its target."""
    found = np.ma.compressed(values)
    if np.asanyarray(values).dtype not in (np.dtype("<u8"), np.dtype(">u8")):
        raise error(f"{where}: it refers to rows of {target!r} and is {np.asanyarray(values).dtype}, not u64")
    if found.size and found.max() >= rows:
        raise error(f"{where}: {found.max()} is no row of {target!r}, which has {rows}")

# SPDX-License-Identifier: BSD-3-Clause
"""The forms that blocks, cell, steps and times have on disk, and how a frame ordinal resolves in each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mrec.box import Box
from mrec.errors import CorruptData, SchemaError
from mrec.trajectory.boxes import Boxes
from mrec.trajectory.schema import BlockSchema, Column, Schema, ValueSchema
from mrec.trajectory.standing import ROOT, Standing, column_type
from mrec.zarr.codecs import is_int
from mrec.zarr.metadata import ArrayMeta
from mrec.zarr.store import AnySource, Store

Ints = np.ndarray

#: Entries of an index that are read at once.
_PIECE = 1 << 16


class Arrays:
    """The arrays of a standing state: checked against what they have to be, opened when first read."""

    def __init__(self, standing: Standing, store: Store) -> None:
        self.standing = standing
        self.store = store.again()
        self._sources: dict[str, AnySource] = {}
        self._lengths: dict[str, int] = {}

    def source(self, path: str) -> AnySource:
        """What reads the array at a path below `trajectory/`.

        It ends where the state does, not where the document says: the core has to know which chunk is still open.
        """
        found = self._sources.get(path)
        if found is None:
            meta = self.standing.array(path)
            if meta is None:
                raise CorruptData(f"{ROOT}/{path}: the array is missing")
            if self._lengths.get(path, meta.shape[0]) != meta.shape[0]:
                meta = replace(meta, shape=(self._lengths[path], *meta.shape[1:]))
            loss, tail = self.standing.absent_is_loss, self.standing.tails.get(path)
            found = self.store.source(f"{ROOT}/{path}", meta, absent_is_loss=loss, tail=tail)
            self._sources[path] = found
        return found

    def check(self, path: str, dtype: str, trailing: tuple[int, ...], least: int) -> ArrayMeta | None:
        """The document of an array that has to have a type, trailing axes and at least `least` rows.

        None when it is not there and needs no rows.
        """
        meta = self.standing.array(path)
        if meta is None:
            if least > 0:
                raise CorruptData(f"{ROOT}/{path}: the array is missing; {least} rows are claimed")
            return None
        if column_type(meta) != dtype or len(meta.shape) != 1 + len(trailing) or meta.shape[1:] != trailing:
            declared = f"{dtype}[rows]{''.join(f'[{n}]' for n in trailing)}"
            raise SchemaError(f"{ROOT}/{path}: {meta.data_type}{list(meta.shape)} is stored, {declared} declared")
        if meta.shape[0] < least:
            raise CorruptData(f"{ROOT}/{path}: the array has {meta.shape[0]} rows, fewer than the {least} claimed")
        self._lengths[path] = least
        return meta

    def read_index(self, path: str, nstep: int) -> Ints:
        """The entries of a `step_index` that stand: below nstep, strictly ascending."""
        meta = self.check(path, "u64", (), 0)
        # A live array may stand longer than it is; it is never longer than one entry a frame.
        n = 0 if meta is None else min(meta.shape[0], nstep)
        self._lengths[path] = n
        parts, last = [np.empty(0, np.int64)], -1
        for start in range(0, n, _PIECE):  # what is claimed and not there ends the reading before it takes memory
            piece = self.source(path).read(start, min(start + _PIECE, n))
            below = piece < nstep
            piece = piece if below.all() else piece[: np.argmin(below)]
            if len(piece) and (piece[0] <= last or (piece[1:] <= piece[:-1]).any()):
                raise CorruptData(f"{ROOT}/{path}: the frames of the updates do not ascend")
            parts.append(piece.astype(np.int64))
            if not below.all():
                break
            last = int(piece[-1])
        return np.concatenate(parts)


# ---- blocks ------------------------------------------------------------------------------------------------------


class BlockForm:
    """One block's series of updates.

    n: updates. uniform: rows of every update while regular, else None. step_index (i64[n]) and offset (i64[n + 1]) are
    there while not regular.
    """

    def __init__(self, arrays: Arrays, block: BlockSchema, nstep: int) -> None:
        self.name = block.name
        self.schema = block
        self.precision = {c.name: c.precision for c in block.columns.values() if c.precision is not None}
        self.arrays = arrays
        self.uniform: int | None = None
        self.step_index = np.empty(0, np.int64)
        self.offset = np.zeros(1, np.int64)
        self.n = 0
        group = arrays.standing.group(block.name)
        if group is None:
            return
        attributes = group.attributes
        if "uniform_rows" in attributes or "dense_updates" in attributes:
            self._regular(attributes, nstep)
        else:
            self._indexed(nstep)
        self._check_shape()

    def _regular(self, attributes: dict[str, Any], nstep: int) -> None:
        rows = attributes.get("uniform_rows")
        if not is_int(rows, 1, 2**62) or attributes.get("dense_updates") is not True or not self.schema.columns:
            raise SchemaError(
                f"{ROOT}/{self.name}: uniform_rows is {rows!r} and dense_updates {attributes.get('dense_updates')!r}; "
                "a regular block has columns, a positive number of rows and true"
            )
        self.uniform = rows
        lengths = [self._column_length(column, 1) for column in self.schema.columns.values()] if nstep else [0]
        self.n = min(min(lengths) // self.uniform, nstep)
        for column in self.schema.columns.values():
            self._column_length(column, self.n * self.uniform)
        self._check_masks(self.n * self.uniform)

    def _indexed(self, nstep: int) -> None:
        self.step_index = self.arrays.read_index(f"{self.name}/step_index", nstep)
        self.n = len(self.step_index)
        if self.n:
            path = f"{self.name}/offset"
            self.arrays.check(path, "u64", (), self.n + 1)
            offset = self.arrays.source(path).read(0, self.n + 1)
            if offset[0] != 0 or (offset[1:] < offset[:-1]).any() or offset[-1] > 2**62:
                raise CorruptData(f"{ROOT}/{path}: the offsets do not start at 0 and ascend")
            self.offset = offset.astype(np.int64)
        rows = int(self.offset[-1])
        for column in self.schema.columns.values():
            self._column_length(column, rows)
        self._check_masks(rows)

    def _column_length(self, column: Column, least: int) -> int:
        meta = self.arrays.check(f"{self.name}/{column.name}", column.dtype.name, column.trailing, least)
        return 0 if meta is None else meta.shape[0]

    def _check_masks(self, rows: int) -> None:
        for column in self.schema.columns.values():
            if self.has_mask(column):
                self.arrays.check(self._mask(column.name), "bool", (), rows)

    def _mask(self, column: str) -> str:
        return f"{self.name}/_validity/{column}"

    def has_mask(self, column: Column) -> bool:
        """Whether the column has a mask array; a nullable one without (another program's) is valid everywhere."""
        return column.nullable and self._mask(column.name) in self.arrays.standing.nodes

    def _check_shape(self) -> None:
        if self.schema.structural_shape is None or self.n == 0:
            return
        rows = math.prod(self.schema.structural_shape)
        if (self.uniform is not None and self.uniform != rows) or (self.counts() != rows).any():
            raise CorruptData(
                f"{ROOT}/{self.name}: an update has another number of rows than structural_shape "
                f"{list(self.schema.structural_shape)} has"
            )

    def counts(self) -> Ints:
        """The rows of each update; for a regular block one number stands for all."""
        return np.array([self.uniform]) if self.uniform is not None else np.diff(self.offset)

    def update_at(self, frame: int) -> int:
        """The update that frame `frame` sees; -1 before the first."""
        if self.uniform is not None:
            return min(frame, self.n - 1)
        return int(np.searchsorted(self.step_index, frame, side="right")) - 1

    def updates_at(self, frames: Ints) -> Ints:
        """The same for many frames."""
        if self.uniform is not None:
            return np.minimum(frames, self.n - 1)
        return np.searchsorted(self.step_index, frames, side="right") - 1

    def updates_between(self, start: int, stop: int) -> list[int]:
        """The same for the frames [start, stop)."""
        if self.uniform is not None:
            return [min(frame, self.n - 1) for frame in range(start, stop)]
        if stop - start == 1:
            return [self.update_at(start)]
        return self.updates_at(np.arange(start, stop)).tolist()

    def first_row(self, update: Any) -> Any:
        """The first row of an update, or of many; of update n: where the rows end."""
        return update * self.uniform if self.uniform is not None else self.offset[update]

    def bounds(self, first: int, last: int) -> Sequence[int]:
        """Where the rows of the updates first ... last begin, and where those of the last end."""
        if self.uniform is not None:
            return range(first * self.uniform, (last + 1) * self.uniform + 1, self.uniform)
        return self.offset[first : last + 2].tolist()

    @cached_property
    def readers(self) -> list[tuple[str, AnySource, AnySource | None]]:
        """Each column with what reads its values and its flags."""
        return [(c.name, self.column(c.name), self.mask(c)) for c in self.schema.columns.values()]

    def column(self, name: str) -> AnySource:
        """What reads a column."""
        return self.arrays.source(f"{self.name}/{name}")

    def mask(self, column: Column) -> AnySource | None:
        """What reads a column's flags; None when it has none."""
        return self.arrays.source(self._mask(column.name)) if self.has_mask(column) else None


def check_aligned(schema: Schema, blocks: dict[str, BlockForm]) -> None:
    """Refuse blocks whose `aligned_with` does not hold at every frame."""
    for name, block in schema.blocks.items():
        if block.aligned_with is None:
            continue
        other = schema.blocks.get(block.aligned_with)
        if other is None or other is block or other.aligned_with is not None or block.structural_shape is not None:
            raise SchemaError(f"{ROOT}/{name}: aligned_with names {block.aligned_with!r}, which it cannot")
        shared = block.columns.keys() & other.columns.keys()
        if shared:
            raise SchemaError(f"{ROOT}/{name}: column {min(shared)!r} stands also in {other.name!r}, its aligned_with")
        frames = np.union1d(_changes(blocks[name]), _changes(blocks[other.name]))
        mine, theirs = (rows_at(blocks[b], frames) for b in (name, other.name))
        wrong = np.flatnonzero((mine >= 0) & (mine != theirs))
        if len(wrong):
            frame = frames[wrong[0]]
            raise CorruptData(f"{ROOT}/{name}: frame {frame} has not the rows of {other.name!r}, its aligned_with")


def _changes(block: BlockForm) -> Ints:
    """The frames from which on a block may have another number of rows."""
    return np.zeros(min(block.n, 1), np.int64) if block.uniform is not None else block.step_index


def rows_at(block: BlockForm, frames: Ints) -> Ints:
    """The rows that each frame sees; -1 where the block is absent."""
    updates = block.updates_at(frames)
    counts = block.counts()
    if block.uniform is not None or len(counts) == 0:
        counts = np.full(max(block.n, 1), counts[0] if len(counts) else 0)
    return np.where(updates >= 0, counts[np.maximum(updates, 0)], -1)


# ---- cell --------------------------------------------------------------------------------------------------------


@dataclass
class BoxForm:
    """The cell over time: `fixed` at every frame, or one update each at `step_index`."""

    arrays: Arrays
    nstep: int
    fixed: Box | None = None
    defined: bool = True
    n: int = 0

    def __post_init__(self) -> None:
        self.step_index = np.empty(0, np.int64)
        group = self.arrays.standing.group("box")
        attributes = group.attributes if group else {}
        self.defined = cell_defined(attributes)
        if self._changes("vectors" in attributes):
            self._check_changing()
        elif "vectors" in attributes and self.nstep > 0:
            self.fixed = fixed_cell(attributes, self.defined)

    def _changes(self, has_attribute: bool) -> bool:
        """Whether the arrays hold; beside attributes a lone `vectors` is what a crash left."""
        vectors = self.arrays.standing.array("box/vectors")
        if vectors is None:
            return False
        indexed = self.arrays.standing.array("box/step_index") is not None
        return not has_attribute or indexed or vectors.shape[:1] == (1,)

    def _check_changing(self) -> None:
        vectors = self.arrays.standing.array("box/vectors")
        assert vectors is not None
        if self.arrays.standing.array("box/step_index") is not None:
            self.step_index = self.arrays.read_index("box/step_index", self.nstep)
        elif vectors.shape[:1] == (1,):
            self.step_index = np.zeros(min(1, self.nstep), np.int64)
        elif vectors.shape[:1] != (0,):
            raise CorruptData(f"{ROOT}/box: several cells without a step_index")
        self.n = len(self.step_index)
        self.arrays.check("box/vectors", "f64", (3, 3), self.n)
        self.has_origin = self._optional("box/origin", "f64")
        self.has_boundary = self._optional("box/boundary", "bool")

    def _optional(self, path: str, dtype: str) -> bool:
        if self.n == 0 or path not in self.arrays.standing.nodes:
            return False
        return self.arrays.check(path, dtype, (3,), self.n) is not None

    def update_at(self, frame: int) -> int:
        """The update that frame `frame` sees; -1 before the first."""
        return int(np.searchsorted(self.step_index, frame, side="right")) - 1

    def updates(self, start: int, stop: int) -> Boxes:
        """The cells of the updates [start, stop)."""
        n = stop - start
        vectors = self.arrays.source("box/vectors").read(start, stop)
        origin = self.arrays.source("box/origin").read(start, stop) if self.has_origin else np.zeros((n, 3))
        if self.has_boundary:
            periodic = self.arrays.source("box/boundary").read(start, stop)
        else:
            periodic = np.full((n, 3), self.defined)
        if not self.defined:
            _refuse_periodic(periodic)
            vectors[:] = np.eye(3)
        return Boxes(vectors, origin, periodic, np.ones(n, np.bool_), self.defined)

    def cells(self, start: int, stop: int) -> list[Box | None]:
        """The same, one by one."""
        return list(self.updates(start, stop))

    def boxes(self, start: int, stop: int) -> Boxes | None:
        """The cells of the frames [start, stop); None when there is no cell at any frame of the trajectory."""
        if self.fixed is not None:
            return Boxes.of(self.fixed, stop - start)
        if self.n == 0:
            return None
        updates = np.searchsorted(self.step_index, np.arange(start, stop), side="right") - 1
        present = updates >= 0
        first, last = (int(updates[present][0]), int(updates[-1])) if present.any() else (0, 0)
        return self.updates(first, last + 1).at(np.maximum(updates - first, 0), present)


def cell_defined(attributes: dict[str, Any]) -> bool:
    """Whether the cells of a trajectory are cells at all. CorruptData."""
    defined = attributes.get("cell_defined", True)
    if not isinstance(defined, bool):
        raise CorruptData(f"{ROOT}/box: cell_defined is {defined!r}")
    return defined


def _refuse_periodic(periodic: np.ndarray) -> None:
    if periodic.any():
        raise CorruptData(f"{ROOT}/box: an undefined cell has a periodic axis")


def fixed_cell(attributes: dict[str, Any], defined: bool) -> Box:
    """The cell that the attributes of `box/` hold. CorruptData."""
    rows = attributes["vectors"]
    if not isinstance(rows, list) or len(rows) != 3:
        raise CorruptData(f"{ROOT}/box: vectors is {rows!r}")
    vectors = [_numbers(row, "vectors") for row in rows]
    origin = _numbers(attributes["origin"], "origin") if "origin" in attributes else [0.0] * 3
    boundary = attributes.get("boundary", [defined] * 3)
    if not isinstance(boundary, list) or len(boundary) != 3 or not all(isinstance(b, bool) for b in boundary):
        raise CorruptData(f"{ROOT}/box: boundary is {boundary!r}")
    if not defined:
        _refuse_periodic(np.array(boundary))
        return Box(vectors=np.eye(3), origin=origin, periodic=False, defined=False)
    return Box(vectors=vectors, origin=origin, periodic=boundary)


def _numbers(values: Any, what: str) -> list[float]:
    if isinstance(values, list) and len(values) == 3:
        numbers = [_number(value) for value in values]
        if None not in numbers:
            return [float(n) for n in numbers if n is not None]
    raise CorruptData(f"{ROOT}/box: {what} is {values!r}, not three numbers")


def _finite(value: Any) -> float | None:
    return None if isinstance(value, str) else _number(value)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


# ---- steps, times, per-step values -------------------------------------------------------------------------------


def count_frames(arrays: Arrays) -> int:
    """nstep; without it the length of `step`."""
    standing = arrays.standing
    if standing.nstep is not None:
        return standing.nstep
    for key in ("step_progression", "time_progression"):
        if key in standing.attributes:
            raise CorruptData(f"{ROOT}: a {key} without nstep")
    step = arrays.check("step", "i64", (), 0)
    return 0 if step is None else step.shape[0]


def check_steps(arrays: Arrays, nstep: int) -> None:
    """Refuse steps, times and values that are shorter than nstep."""
    attributes = arrays.standing.attributes
    if nstep and progression(attributes, "step_progression", nstep) is None:
        arrays.check("step", "i64", (), nstep)
    if nstep and progression(attributes, "time_progression", nstep) is None and arrays.standing.array("time"):
        arrays.check("time", "f64", (), nstep)
    for value in arrays.standing.schema.values.values():
        check_value(arrays, value, nstep)


def check_value(arrays: Arrays, value: ValueSchema, nstep: int) -> None:
    """Refuse a per-step array that is shorter than nstep or of another type."""
    trailing = () if value.tag.width == 1 else (value.tag.width,)
    meta = arrays.check(f"meta/{value.name}", value.tag.dtype.name, trailing, nstep)
    stated = meta.attributes.get("meta_dtype", value.tag.name) if meta else value.tag.name
    if stated != value.tag.name:
        raise SchemaError(f"{ROOT}/meta/{value.name}: meta_dtype is {stated!r}, {value.tag.name} is declared")


def read_steps(arrays: Arrays, nstep: int) -> np.ndarray:
    """The stored steps, i64[nstep]."""
    steps = arrays.source("step").read(0, nstep)
    if (steps[1:] <= steps[:-1]).any():
        raise CorruptData(f"{ROOT}/step: the steps do not ascend")
    return steps


def read_times(arrays: Arrays, nstep: int) -> np.ndarray | None:
    """The stored times, f64[nstep]; None when no times were given."""
    if nstep == 0 or arrays.standing.array("time") is None:
        return None
    return arrays.source("time").read(0, nstep)


def progressing_steps(found: tuple[int, int], nstep: int, start: int, stop: int) -> np.ndarray:
    """The steps of the frames [start, stop) of nstep, i64, by start and stride. CorruptData when they do not ascend."""
    first, stride = found
    check_ascending(found, nstep)
    return first + np.arange(start, stop, dtype=np.int64) * stride


def check_ascending(found: tuple[int, int], nstep: int) -> None:
    """CorruptData when nstep steps by start and stride do not ascend."""
    first, stride = found
    if nstep > 1 and (stride < 1 or first + (nstep - 1) * stride >= 2**63):
        raise CorruptData(f"{ROOT}: step_progression {found} does not ascend within 64 bits over {nstep} frames")


def progressing_times(found: tuple[float, float], start: int, stop: int) -> np.ndarray:
    """The times of the frames [start, stop), f64, by start and stride."""
    first, stride = found
    times = first + np.arange(start, stop) * np.float64(stride)
    if start == 0 < stop:
        times[0] = first  # also -0.0
    return times


def progression(attributes: dict[str, Any], key: str, nstep: int) -> tuple[Any, Any] | None:
    """Start and stride (0 for one frame) of a progression; None when there is none."""
    if key not in attributes:
        return None
    found = attributes[key]
    whole = key == "step_progression"
    if not isinstance(found, dict) or not {"start"} <= found.keys() <= {"start", "stride"}:
        raise CorruptData(f"{ROOT}: {key} is {found!r}")
    if "stride" not in found and nstep > 1:
        raise CorruptData(f"{ROOT}: {key} has no stride for {nstep} frames")
    numbers: tuple[Any, Any] = found["start"], found.get("stride", 0)
    if whole and not all(is_int(n, -(2**63), 2**63 - 1) for n in numbers):
        raise CorruptData(f"{ROOT}: {key} is {found!r}, no integers of 64 bits")
    if not whole:
        numbers = _finite(numbers[0]), _finite(numbers[1])
        if None in numbers:
            raise CorruptData(f"{ROOT}: {key} is {found!r}, no numbers")
    return numbers

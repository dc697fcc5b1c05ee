# SPDX-License-Identifier: BSD-3-Clause
"""The values of a block: precision, null rows, references, and that every update says something new."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from mrec import _core
from mrec.trajectory.schema import BlockSchema, Column
from mrec.verify.arrays import Stored
from mrec.verify.tree import ROOT, Tree
from mrec.verify.updates import Updates

#: Elements of a column that are looked at together.
_WINDOW = 1 << 20

Mask = np.ndarray | None


class BlockCheck:
    """Goes through the chunks of a block's columns. needed: u64 column -> for each update the rows that
    another block must have for its values to be rows of that."""

    def __init__(self, tree: Tree, block: BlockSchema, updates: Updates) -> None:
        self.tree, self.block, self.updates = tree, block, updates
        self.needed: dict[str, np.ndarray] = {}
        counts = updates.counts
        self._changed = np.ones(len(counts), np.bool_)
        self._changed[1:] = counts[1:] != counts[:-1]
        self.columns = [(column, self._column(column), self._mask(column)) for column in block.columns.values()]

    @property
    def chunks(self) -> int:
        """The number of chunks there are to read."""
        return sum(stored.chunks for _, *both in self.columns for stored in both if stored is not None)

    def run(self) -> None:
        """Read them all."""
        for column, stored, mask in self.columns:
            both = [array for array in (stored, mask) if array is not None]
            if stored is not None and all(array.rows == self.updates.rows for array in both):
                for first, last in self._windows(column):
                    self._check(column, stored, mask, first, last)
            if stored is None or any(array.faults or array.rows < self.updates.rows for array in both):
                self._changed[:] = True  # what cannot be read may be new
        for update in np.flatnonzero(~self._changed)[:1]:
            where, frame = f"{ROOT}/{self.block.name}", int(self.updates.frames[update])
            more = np.count_nonzero(~self._changed) - 1
            message = "its update is bit for bit the one before, and so has no place" + f"; {more} more" * bool(more)
            self.tree.log.add("carry-forward", where, message, frame=frame)

    # ---- arrays --------------------------------------------------------------------------------------------------

    def _column(self, column: Column) -> Stored | None:
        path = f"{self.block.name}/{column.name}"
        return self._opened(path, column.dtype.name, column.trailing)

    def _mask(self, column: Column) -> Stored | None:
        path = f"{self.block.name}/_validity/{column.name}"
        if not column.nullable:
            return None
        if self.tree.node(path) is None:
            if self.updates.rows and self.tree.is_ours(f"{self.block.name}/{column.name}"):
                severity = self.tree.doubt()
                message = "it is not there; a nullable column with rows has its mask"
                self.tree.log.add("mask", f"{ROOT}/{path}", message, severity=severity)
            return None
        return self._opened(path, "bool", ())

    def _opened(self, path: str, dtype: str, trailing: tuple[int, ...]) -> Stored | None:
        stored = self.tree.array(path, dtype, trailing, self.updates.rows)
        if stored is not None:
            stored.frame_of = self.updates.frame_of
        return stored

    def _windows(self, column: Column) -> Iterator[tuple[int, int]]:
        """Ranges of updates that are neither many rows nor many."""
        width = int(np.prod(column.trailing, dtype=np.int64))
        offset, first = self.updates.offset, 0
        while first < len(offset) - 1:
            last = int(np.searchsorted(offset, offset[first] + max(_WINDOW // width, 1), side="right")) - 1
            last = max(last, first + 1)
            yield first, last
            first = last

    # ---- values --------------------------------------------------------------------------------------------------

    def _check(self, column: Column, stored: Stored, mask: Stored | None, first: int, last: int) -> None:
        """Updates [first, last) of a column, compared also with the one before."""
        before, offset = max(first - 1, 0), self.updates.offset
        values = stored.read(offset[before], offset[last])
        valid = mask.read(offset[before], offset[last]) if mask else None
        self._compare(values, valid, before, last)
        new = int(offset[first] - offset[before])
        values, valid = values[new:], None if valid is None else valid[new:]
        if column.precision is not None:
            for row in off_grid(values, valid, column.precision)[:1].tolist():
                row += int(offset[first])
                message = f"row {row} is no multiple of the grid of its precision {column.precision!r}"
                self.tree.log.add("precision", stored.path, message, frame=self.updates.frame_of(row))
        if column.dtype.name == "u64" and not column.trailing:
            self._note_needed(column.name, values, valid, first, last)

    def _compare(self, values: np.ndarray, valid: Mask, before: int, last: int) -> None:
        open_ = before + 1 + np.flatnonzero(~self._changed[before + 1 : last])
        counts, offset = self.updates.counts, self.updates.offset
        open_ = open_[counts[open_] > 0]
        if len(open_) == 0:
            return
        sizes = counts[open_]
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        rows = np.arange(sizes.sum()) + np.repeat(offset[open_] - offset[before] - starts, sizes)
        bits = _bits(values)
        unlike = (bits[rows] != bits[rows - np.repeat(sizes, sizes)]).any(axis=1)
        if valid is not None:
            unlike |= valid[rows] != valid[rows - np.repeat(sizes, sizes)]
        self._changed[open_] |= np.logical_or.reduceat(unlike, starts)

    def _note_needed(self, name: str, values: np.ndarray, valid: Mask, first: int, last: int) -> None:
        needed = self.needed.setdefault(name, np.zeros(len(self.updates.counts)))
        counts = self.updates.counts[first:last]
        given = np.flatnonzero(counts)
        if len(given):
            rows = values.astype(np.float64) + 1  # which does not wrap around
            if valid is not None:
                rows[~valid] = 0
            starts = (self.updates.offset[first:last] - self.updates.offset[first])[given]
            needed[first + given] = np.maximum.reduceat(rows, starts)


def _bits(values: np.ndarray) -> np.ndarray:
    """Rows as they are compared: one axis of integers, or of strings."""
    flat = _flat(np.ascontiguousarray(values))
    if flat.dtype.kind == "O":
        return flat
    return flat.view("u8" if flat.dtype.itemsize == 16 else f"u{flat.dtype.itemsize}")


def _flat(values: np.ndarray) -> np.ndarray:
    """Rows with one axis behind them."""
    return values.reshape(len(values), math.prod(values.shape[1:]))


def off_grid(values: np.ndarray, valid: Mask, precision: float) -> np.ndarray:
    """The rows with a value that is no multiple of the grid, where it has to be."""
    q = _core.grid(precision)
    flat = _flat(values)
    with np.errstate(all="ignore"):
        held = np.isfinite(flat) & (np.abs(flat) < 2.0**52 * q) & (np.rint(flat / q) * q != flat)
    if valid is not None:
        held &= valid[:, None]
    return np.flatnonzero(held.any(axis=1))

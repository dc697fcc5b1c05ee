# SPDX-License-Identifier: BSD-3-Clause
"""What of a trajectory verifies: every chunk is read, and each part of it gets the frames at which it is lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from mrec.dtypes import json_text
from mrec.errors import CorruptData, MrecError
from mrec.repair.cells import Cells
from mrec.repair.series import Flags, Ints, Series, series_of
from mrec.trajectory.forms import progressing_steps, progressing_times, progression
from mrec.trajectory.schema import BlockSchema, Column, Schema, ValueSchema
from mrec.verify.arrays import Stored
from mrec.verify.columns import off_grid
from mrec.verify.references import CONVENTION, section_rows
from mrec.verify.trajectory import json_fault
from mrec.verify.tree import ROOT, Tree
from mrec.zarr.json import parse

#: Elements that are looked at together.
_WINDOW = 1 << 18

Rows = list[tuple[int, int]]


@dataclass
class Stores:
    """The arrays of a column; mask: None where every row has a value. None for what is not to be read at all."""

    values: Stored | None
    mask: Stored | None = None


@dataclass
class Scan:
    """A trajectory of which parts may be lost.

    lost: part -> bool[nstep], the frames at which it does not verify; parts are called by their paths below
    `trajectory/`, a block by its name where it is not known which rows a frame has. steps: i64[nstep]; times:
    f64[nstep] or None. What stands in any of them at a frame where it is lost means nothing.
    """

    tree: Tree
    schema: Schema
    nstep: int
    lost: dict[str, Flags] = field(default_factory=dict)
    series: dict[str, Series] = field(default_factory=dict)
    columns: dict[tuple[str, str], Stores] = field(default_factory=dict)
    values: dict[str, Stored] = field(default_factory=dict)
    steps: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    times: np.ndarray | None = None

    def __post_init__(self) -> None:
        self.cells = Cells(self.tree, self.nstep)
        self._needed: dict[tuple[str, str], np.ndarray] = {}
        for block in self.schema.blocks.values():
            self._open(block)
        for value in self.schema.values.values():
            self._open_value(value)
        self._expect()

    def run(self) -> None:
        """Read everything."""
        if self.nstep == 0:
            return
        self._scan_steps()
        self._scan_times()
        self.lose("box", self.cells.scan())
        for value in self.schema.values.values():
            self._scan_value(value)
        for block in self.schema.blocks.values():
            for column in block.columns.values():
                self._scan_column(block, column)
        for block in self.schema.blocks.values():
            self._check_references(block)
            self._check_aligned(block)

    def lose(self, part: str, frames: Flags) -> None:
        """Note that a part is lost at some frames."""
        if frames.any():
            self.lost[part] = self.lost[part] | frames if part in self.lost else frames

    def present(self, part: str) -> Flags:
        """bool[nstep]: the frames that have a part."""
        block = part.partition("/")[0]
        if block in self.series:
            return self.series[block].present()
        return np.ones(self.nstep, np.bool_)

    def is_whole_lost(self, part: str) -> bool:
        """Whether nothing of a part verifies."""
        gone = self.lost[part] | self.lost.get(part.partition("/")[0], False)
        return bool(gone[self.present(part)].all())

    # ---- opening -------------------------------------------------------------------------------------------------

    def _open(self, block: BlockSchema) -> None:
        found = self.series[block.name] = series_of(self.tree, block, self.nstep)
        self.lose(block.name, found.unsure)
        for column in block.columns.values():
            path = f"{block.name}/{column.name}"
            values = self.tree.array(path, column.dtype.name, column.trailing, found.rows)
            mask = self._open_mask(block, column, found) if column.nullable else None
            for stored in (values, mask):
                if stored is not None:
                    stored.frame_of = _frame_of(found)
            self.columns[block.name, column.name] = Stores(values, mask)

    def _open_mask(self, block: BlockSchema, column: Column, found: Series) -> Stored | None:
        path = f"{block.name}/_validity/{column.name}"
        if self.tree.node(path) is not None:
            return self.tree.array(path, "bool", (), found.rows)
        if found.rows and (self.tree.is_gone(path) or self.tree.is_ours(f"{block.name}/{column.name}")):
            message = "it is not there; a nullable column with rows has its mask"
            self.tree.log.add("mask", f"{ROOT}/{path}", message)
        return None

    def _open_value(self, value: ValueSchema) -> None:
        trailing = () if value.tag.width == 1 else (value.tag.width,)
        stored = self.tree.array(f"meta/{value.name}", value.tag.dtype.name, trailing, self.nstep)
        if stored is not None:
            stored.frame_of = _same
            self.values[value.name] = stored

    def _expect(self) -> None:
        """Chunks there are to read, now and when they are written."""
        both = [stored for stores in self.columns.values() for stored in (stores.values, stores.mask)]
        self.tree.log.expected = 2 * sum(s.chunks for s in (*both, *self.values.values()) if s is not None)

    # ---- steps, times, values ------------------------------------------------------------------------------------

    def _all(self) -> Flags:
        return np.ones(self.nstep, np.bool_)

    def _scan_steps(self) -> None:
        self.steps = np.zeros(self.nstep, np.int64)
        try:
            found = progression(self.tree.state.attributes, "step_progression", self.nstep)
            if found is not None:
                self.steps = progressing_steps(found, self.nstep, 0, self.nstep)
                return
        except CorruptData as e:
            self.tree.log.add("step-progression", f"{ROOT}/step", str(e))
            self.lose("step", self._all())
            return
        self.steps, lost = self._dense("step", "i64")
        self.lose("step", lost | _falls(self.steps, ~lost))
        if (self.lost.get("step", lost) & ~lost).any():
            self.tree.log.add("step-order", f"{ROOT}/step", "a step is not above the one before; either may be wrong")

    def _scan_times(self) -> None:
        try:
            found = progression(self.tree.state.attributes, "time_progression", self.nstep)
        except CorruptData as e:
            self.tree.log.add("time-progression", f"{ROOT}/time", str(e))
            self.lose("time", self._all())
            return
        if found is not None and not math.isfinite(found[0] + float(self.nstep - 1) * found[1]):
            self.tree.log.add(
                "time-progression", f"{ROOT}/time", f"from {found[0]} by {found[1]} it leaves the numbers"
            )
            self.lose("time", self._all())
        elif found is not None:
            self.times = progressing_times(found, 0, self.nstep)
        elif self.tree.meta("time") is not None or self.tree.is_gone("time"):
            self.times, lost = self._dense("time", "f64")
            self.lose("time", lost)

    def _dense(self, path: str, dtype: str) -> tuple[np.ndarray, Flags]:
        """The rows of an array with one for each frame, and those that are lost."""
        stored = self.tree.array(path, dtype, (), self.nstep)
        if stored is None:
            return np.zeros(self.nstep, np.int64 if dtype == "i64" else np.float64), self._all()
        stored.frame_of = _same
        found = stored.read(0, stored.rows)
        padded = np.concatenate([found, np.zeros(self.nstep - stored.rows, found.dtype)])
        return padded, _flags(_lost_rows(stored, self.nstep), self.nstep)

    def _scan_value(self, value: ValueSchema) -> None:
        part, stored = f"meta/{value.name}", self.values.get(value.name)
        if stored is None:
            self.lose(part, self._all())
            return
        wrong = np.zeros(self.nstep, np.bool_)
        for start, rows in _windows(stored, stored.rows):
            wrong |= _flags(stored.lost(), self.nstep)
            for i in range(len(rows)) if value.tag.json else ():
                if not wrong[start + i] and not _is_json(rows[i]):
                    fault = json_fault(rows[i]) or "the text is no JSON"
                    self.tree.log.add("json-text", stored.path, fault, frame=start + i)
                    wrong[start + i] = True
        self.lose(part, wrong | _flags(_lost_rows(stored, self.nstep), self.nstep))

    # ---- columns -------------------------------------------------------------------------------------------------

    def _scan_column(self, block: BlockSchema, column: Column) -> None:
        found, stores = self.series[block.name], self.columns[block.name, column.name]
        part, masked = f"{block.name}/{column.name}", self._is_masked(block, column)
        if stores.values is None or (masked and stores.mask is None):
            if found.rows or self.tree.is_gone(part):
                self.lose(part, found.present())
            return
        wrong: Rows = []
        both = [stored for stored in (stores.values, stores.mask) if stored is not None]
        for start, values in _windows(stores.values, min(stored.rows for stored in both)):
            valid = None if stores.mask is None else stores.mask.read(start, start + len(values))
            if column.precision is not None:
                wrong += self._off_grid(stores.values, start, off_grid(values, valid, column.precision), found)
            if column.dtype.name == "u64" and not column.trailing:
                self._note_needed(block, column, start, values, valid)
        for stored in both:
            wrong += _lost_rows(stored, found.rows)
        self.lose(part, found.frames_of(wrong))

    def _is_masked(self, block: BlockSchema, column: Column) -> bool:
        """Whether a column has a mask, or had one."""
        path = f"{block.name}/_validity/{column.name}"
        known = self.tree.node(path) is not None or self.tree.is_gone(path)
        return column.nullable and (known or self.tree.is_ours(f"{block.name}/{column.name}"))

    def _off_grid(self, stored: Stored, start: int, rows: Ints, found: Series) -> Rows:
        ends = np.flatnonzero(np.diff(rows) != 1)
        runs = [(int(run[0]) + start, int(run[-1]) + start + 1) for run in np.split(rows, ends + 1) if len(run)]
        for first, _ in runs[:1]:
            message = f"row {first} is no multiple of the grid of its precision"
            self.tree.log.add("precision", stored.path, message, frame=stored.frame_of(first))
        return runs

    def _note_needed(
        self, block: BlockSchema, column: Column, start: int, values: np.ndarray, valid: np.ndarray | None
    ) -> None:
        """For each update the rows that another block must have for its values to be rows of that."""
        if column.name not in CONVENTION and column.name not in (block.targets or {}):
            return
        found = self.series[block.name]
        needed = self._needed.setdefault((block.name, column.name), np.zeros(len(found.frames)))
        given = np.flatnonzero(found.counts > 0)
        if len(given) == 0:
            return
        row = np.arange(start, start + len(values))
        update = np.searchsorted(found.start[given], row, side="right") - 1
        own = (update >= 0) & (row < found.stop[given][update])  # and not one that is not known
        rows = values.astype(np.float64) + 1
        if valid is not None:
            own &= valid
        np.maximum.at(needed, given[update[own]], rows[own])

    # ---- blocks among each other ---------------------------------------------------------------------------------

    def _check_references(self, block: BlockSchema) -> None:
        targets = block.targets or {}
        for column, target in targets.items():
            part = f"{block.name}/{column}"
            there = self._target_rows(target)
            if there is None or (block.name, column) not in self._needed:
                declared = block.columns.get(column)
                if there is None or declared is None or declared.dtype.name != "u64":
                    self.tree.log.add("targets", f"{ROOT}/{part}", f"its target {target!r} is none for it")
                    self.lose(part, self.series[block.name].present())
                continue
            self._lose_references(block.name, column, target, np.maximum(there, 0))
        for column in CONVENTION:
            if column not in targets and (block.name, column) in self._needed and "atoms" in self.series:
                self._check_convention(block.name, column)

    def _target_rows(self, target: str) -> Ints | None:
        """The rows of a target at each frame; None when it is no block."""
        if target in self.series:
            return self.series[target].rows_at()
        rows = section_rows(self.tree.files, target) if target.startswith("/") else None
        return None if rows is None else np.full(self.nstep, rows)

    def _lose_references(self, block: str, column: str, target: str, there: Ints) -> None:
        found = self.series[block]
        update = found.updates_at(np.arange(self.nstep))
        sure = (update >= 0) & ~found.unsure & ~self.lost.get(target, np.zeros(self.nstep, np.bool_))
        wrong = np.zeros(self.nstep, np.bool_)
        wrong[sure] = self._needed[block, column][update[sure]] > there[sure]
        for frame in np.flatnonzero(wrong)[:1]:
            message = f"it refers to a row of {target!r} that is not there"
            self.tree.log.add("targets", f"{ROOT}/{block}/{column}", message, frame=int(frame))
        self.lose(f"{block}/{column}", wrong)

    def _check_convention(self, block: str, column: str) -> None:
        """Undeclared references have to fit where they are given."""
        found, there = self.series[block], self.series["atoms"].rows_at()[self.series[block].frames]
        wrong = (there >= 0) & (self._needed[block, column] > there)
        for frame in found.frames[wrong][:1]:
            message = "it refers to a row of 'atoms' that is not there"
            self.tree.log.add("reference", f"{ROOT}/{block}/{column}", message, frame=int(frame))
        rows = list(zip(found.start[wrong].tolist(), found.stop[wrong].tolist(), strict=True))
        self.lose(f"{block}/{column}", found.frames_of(rows))

    def _check_aligned(self, block: BlockSchema) -> None:
        if block.aligned_with is None:
            return
        other = self.schema.blocks.get(block.aligned_with)
        fits = other is not None and other is not block and other.aligned_with is None
        if other is None or not fits or block.structural_shape is not None or block.columns.keys() & other.columns:
            self.tree.log.add("aligned", f"{ROOT}/{block.name}", f"it cannot be aligned with {block.aligned_with!r}")
            self.lose(block.name, self.series[block.name].present())
            return
        mine, theirs = self.series[block.name].rows_at(), self.series[other.name].rows_at()
        wrong = (mine >= 0) & (mine != theirs) & ~self.series[other.name].unsure
        for frame in np.flatnonzero(wrong)[:1]:
            message = f"it has not the rows of {other.name!r}, its aligned_with"
            self.tree.log.add("aligned", f"{ROOT}/{block.name}", message, frame=int(frame))
        self.lose(block.name, wrong)


# ---- rows and frames ---------------------------------------------------------------------------------------------


def _is_json(text: str) -> bool:
    try:
        json_text(parse(text, "the text"))
    except (MrecError, ValueError):
        return False
    return True


def _same(row: int) -> int:
    return row


def _frame_of(series: Series) -> Callable[[int], int | None]:
    """The frame of the update that owns a row, where it is known."""
    given = np.flatnonzero(series.counts > 0)
    stop, frames = series.stop[given], series.frames[given]

    def frame_of(row: int) -> int | None:
        at = int(np.searchsorted(stop, row, side="right"))
        return int(frames[at]) if at < len(frames) else None

    return frame_of


def _lost_rows(stored: Stored, rows: int) -> Rows:
    """The rows of an array that do not verify, of so many there should be."""
    return [*stored.lost(), *([(stored.rows, rows)] if stored.rows < rows else [])]


def _flags(rows: Rows, n: int) -> Flags:
    found = np.zeros(n, np.bool_)
    for start, stop in rows:
        found[start:stop] = True
    return found


def _falls(steps: Ints, known: Flags) -> Flags:
    """The frames whose steps stand between ascending: where one is not above the one before, both go."""
    wrong = np.zeros(len(steps), np.bool_)
    if (np.diff(steps[known]) > 0).all():
        return wrong
    kept: list[int] = []
    values = steps.tolist()
    for frame in np.flatnonzero(known).tolist():
        if kept and values[frame] <= values[kept[-1]]:
            wrong[frame] = wrong[kept.pop()] = True
        else:
            kept.append(frame)
    return wrong


def _windows(stored: Stored, rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, rows) of windows over an array."""
    width = max(1, _WINDOW // math.prod(stored.meta.shape[1:]))
    for start in range(0, rows, width):
        yield start, stored.read(start, min(start + width, rows))

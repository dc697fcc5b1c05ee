# SPDX-License-Identifier: BSD-3-Clause
"""What a record must hold after a run of frames, worked out from the rules alone and with nothing of mrec."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NUMPY = {
    "bool": np.dtype(bool),
    "i8": np.dtype("i1"),
    "i16": np.dtype("i2"),
    "i32": np.dtype("i4"),
    "i64": np.dtype("i8"),
    "u8": np.dtype("u1"),
    "u16": np.dtype("u2"),
    "u32": np.dtype("u4"),
    "u64": np.dtype("u8"),
    "f64": np.dtype("f8"),
    "c64": np.dtype("c8"),
    "c128": np.dtype("c16"),
    "string": np.dtype(object),
    "json": np.dtype(object),
}

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Column:
    dtype: str
    trailing: tuple[int, ...] = ()
    precision: float | None = None
    nullable: bool = False


@dataclass(frozen=True)
class Value:
    tag: str
    fill: Any = ...  # ... : every frame gives it

    @property
    def dtype(self) -> np.dtype:
        return NUMPY["bool" if self.tag == "bool3" else self.tag.split("x")[0]]


@dataclass(frozen=True)
class Cell:
    """vectors as stored: the lattice vectors are the columns."""

    vectors: np.ndarray
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
    periodic: tuple[bool, bool, bool] = (True, True, True)

    def bits(self) -> bytes:
        return self.vectors.tobytes() + np.array(self.origin).tobytes() + np.array(self.periodic, bool).tobytes()


@dataclass(frozen=True)
class Frame:
    """A frame as it is given to a writer; resolved(), the same as a reader must see it."""

    step: int
    time: float | None = None
    blocks: dict[str, Columns] = field(default_factory=dict)
    cell: Cell | None = None
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Record:
    name: str
    blocks: dict[str, dict[str, Column]]
    frames: list[Frame]
    values: dict[str, Value] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # of mrec.TrajectoryWriter

    def stored(self, block: str, columns: Columns) -> Columns:
        """The columns after rounding, in the order and type of the declaration."""
        declared = self.blocks[block]
        return {name: _stored(declared[name], columns[name]) for name in declared}

    def resolved(self) -> Iterator[Frame]:
        """Every frame as a reader must see it: blocks and cell carried forward, values with their fills."""
        blocks: dict[str, Columns] = {}
        cell = None
        for frame in self.frames:
            blocks |= {name: self.stored(name, columns) for name, columns in frame.blocks.items()}
            cell = frame.cell or cell
            values = {name: frame.values.get(name, value.fill) for name, value in self.values.items()}
            yield Frame(frame.step, frame.time, dict(blocks), cell, values)

    def arrays(self) -> dict[str, np.ndarray]:
        """Every Zarr array under trajectory/, by its path there."""
        found = self._numbering()
        resolved = list(self.resolved())
        for name, value in self.values.items():
            given = [frame.values[name] for frame in resolved]
            found[f"meta/{name}"] = np.array([Json(g) for g in given] if value.tag == "json" else given, value.dtype)
        for name in self.blocks:
            found |= {f"{name}/{key}": array for key, array in self._block_arrays(name).items()}
        return found | {f"box/{key}": array for key, array in self._box_arrays().items()}

    def _numbering(self) -> dict[str, np.ndarray]:
        found = {}
        steps = [frame.step for frame in self.frames]
        if len(set(np.diff(steps))) > 1:
            found["step"] = np.array(steps, "i8")
        if self.frames[0].time is not None:
            times = np.array([frame.time for frame in self.frames], "f8")
            with np.errstate(invalid="ignore", over="ignore"):
                stride = times[1] - times[0] if len(times) > 1 else 0.0
                progression = times[0] + np.arange(len(times), dtype="f8") * stride
            progression[0] = times[0]
            if not np.isfinite(times).all() or progression.tobytes() != times.tobytes():
                found["time"] = times
        return found

    def _block_arrays(self, name: str) -> dict[str, np.ndarray]:
        updates: list[tuple[int, Columns]] = []
        for ordinal, frame in enumerate(self.frames):
            if name in frame.blocks:
                columns = self.stored(name, frame.blocks[name])
                if not updates or _bits(columns) != _bits(updates[-1][1]):
                    updates.append((ordinal, columns))
        found = {}
        for key, column in self.blocks[name].items():
            empty = np.ma.empty((0, *column.trailing), NUMPY[column.dtype])
            parts = [empty, *(columns[key] for _, columns in updates)]
            whole = np.ma.concatenate(parts) if column.nullable else np.concatenate([np.asarray(p) for p in parts])
            found[key] = whole
            if column.nullable and updates:
                found[f"_validity/{key}"] = ~null_rows(whole)
        ordinals = [ordinal for ordinal, _ in updates]
        rows = [len(next(iter(columns.values()))) for _, columns in updates]
        regular = ordinals == list(range(len(updates))) and len(set(rows)) == 1 and rows[0] > 0
        if updates and not regular:
            found["step_index"] = np.array(ordinals, "u8")
            found["offset"] = np.cumsum([0, *rows], dtype="u8")
        return found

    def _box_arrays(self) -> dict[str, np.ndarray]:
        updates: list[tuple[int, Cell]] = []
        for ordinal, frame in enumerate(self.frames):
            if frame.cell and (not updates or frame.cell.bits() != updates[-1][1].bits()):
                updates.append((ordinal, frame.cell))
        if not updates or (len(updates) == 1 and updates[0][0] == 0):
            return {}
        cells = [cell for _, cell in updates]
        found = {
            "step_index": np.array([ordinal for ordinal, _ in updates], "u8"),
            "vectors": np.array([cell.vectors for cell in cells]),
        }
        if any(np.array(cell.origin).tobytes() != bytes(24) for cell in cells):
            found["origin"] = np.array([cell.origin for cell in cells])
        if not all(all(cell.periodic) for cell in cells):
            found["boundary"] = np.array([cell.periodic for cell in cells])
        return found


@dataclass(frozen=True)
class Json:
    """A per-step JSON value: the text on disk may differ in nothing but its spelling."""

    value: Any


def null_rows(column: np.ndarray) -> np.ndarray:
    """One flag a row: a null row is null along all its trailing axes."""
    return np.ma.getmaskarray(column).any(axis=tuple(range(1, column.ndim)))


def round_to(values: np.ndarray, precision: float) -> np.ndarray:
    """The rule for a declared precision, with numpy's own rounding (half to even)."""
    q = 2.0 ** (np.frexp(precision)[1] - 1)
    small = np.abs(values) < 2.0**52 * q
    rounded = np.copysign(np.rint(np.where(small, values, 0.0) / q) * q, values)
    return np.where(small, rounded, values)


def _stored(column: Column, given: np.ndarray) -> np.ndarray:
    values = np.ma.getdata(given).astype(NUMPY[column.dtype])
    if column.precision is not None:
        values = round_to(values, column.precision)
    return np.ma.array(values, mask=np.ma.getmaskarray(given)) if column.nullable else values


def _bits(columns: Columns) -> list[Any]:
    return [
        (
            np.ma.getdata(c).tolist() if c.dtype == object else np.ma.getdata(c).tobytes(),
            c.shape,
            np.ma.getmaskarray(c).tobytes(),
        )
        for c in columns.values()
    ]

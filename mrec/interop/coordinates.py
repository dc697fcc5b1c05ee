# SPDX-License-Identifier: BSD-3-Clause
"""Positions, velocities and forces of a record as whole arrays, and what else frames have, many at once."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

import mrec
from mrec.box import Box
from mrec.errors import MrecError
from mrec.interop.atoms import KINDS, kinds_of, positions_block, standard
from mrec.interop.units import Factors, factors, warn_of_unknown
from mrec.trajectory.boxes import Boxes
from mrec.trajectory.forms import BlockForm, rows_at

#: Bytes of coordinates that are read together when frames are read in order, and frames whose other data is.
READ_AHEAD = 1 << 20
PAGE = 256
#: How many such pages are kept.
PAGES = 256


def names_record(thing: Any) -> bool:
    """Whether something is the path of a record, by its name."""
    if not isinstance(thing, (str, os.PathLike)):
        return False
    return os.fsdecode(thing).rstrip("/").endswith((".mrec", ".mrec.zip"))


class Moment(NamedTuple):
    """What a frame has beside its atoms. sizes: lengths and angles of the cell, None without one; turn: the rotation
    (x @ turn) that puts a along x and b into the xy plane, None when they are there."""

    step: int
    time: float | None
    sizes: np.ndarray | None
    turn: np.ndarray | None
    values: dict[str, Any]


class Cells(NamedTuple):
    """Cells of some frames. sizes: lengths and angles, f64 (n, 6). there: bool (n,). turns: frame -> rotation."""

    sizes: np.ndarray
    there: np.ndarray
    turns: dict[int, np.ndarray]


class _Page(NamedTuple):
    """What some frames have beside their atoms."""

    start: int
    cells: Cells
    values: dict[str, np.ndarray]


class Coordinates:
    """The frames of a record, each with the same atoms. MrecError when their number changes.

    path: the record. Lengths are in angstrom, times in ps, forces in kJ/mol/angstrom; native: in the record's units.
    kinds: which of positions, velocities and forces there are. times: f64 (frames), in ps, or None. Pickles by path.
    """

    def __init__(self, path: str | os.PathLike[str], native: bool = False) -> None:
        record = mrec.open(path)
        self.path = record.path
        self.frames = record.trajectory
        self.block = positions_block(self.frames.schema)
        self.kinds = kinds_of(self.frames.schema.blocks[self.block])
        self.factors = Factors() if native else factors(record.units)
        warn_of_unknown(self.factors, record.path)
        self.n_frames = len(self.frames)
        self.n_atoms = self._count()
        self._factor = dict(zip(KINDS, (self.factors.length, self.factors.velocity, self.factors.force), strict=True))
        self._names = list(self.frames.schema.values)
        self._pages: dict[int, _Page] = {}
        same = self.frames._read(lambda state: state.box.fixed is not None or state.box.n == 0)
        self._fixed = self._read_cells(0, 1) if same else None
        self._steps = self.frames.steps
        times = self.frames.times
        self.times = None if times is None else times[: self.n_frames] * self.factors.time

    def _count(self) -> int:
        """The number of atoms of every frame."""
        if not self.n_frames:
            raise MrecError(f"{self.path} has no frames")
        block = self.block
        counts = self.frames._read(lambda state: _counts(state.block(block), self.n_frames))
        if counts[0] < 0:
            raise MrecError(f"{self.path}: frame 0 has no block {block!r}, so that it has no atoms")
        odd = np.flatnonzero(counts != counts[0])
        if len(odd):
            raise MrecError(
                f"{self.path}: frame {odd[0]} has {counts[odd[0]]} atoms, the frames before {counts[0]}; a program "
                "with one topology takes one number. `mrec convert --start, --stop` cuts out those that have the same, "
                "`mrec.open` reads all of them"
            )
        return int(counts[0])

    @property
    def ahead(self) -> int:
        """How many frames are read together."""
        return max(1, READ_AHEAD // max(1, 24 * self.n_atoms))

    def read(self, kind: str, frames: Any, rows: Any = None, out: np.ndarray | None = None) -> np.ndarray:
        """f64 (frames, atoms, 3), in a masked array where some are null. frames, rows, out: as of `Trajectory.read`."""
        found = self.frames.read(self.block, KINDS[kind], frames=frames, rows=rows, out=out)
        if self._factor[kind] != 1.0:
            found *= self._factor[kind]
        return found

    def present(self, kind: str, values: np.ndarray, frame: int) -> bool:
        """Whether a frame has values of a kind, from what was read of it. MrecError when some of them are null."""
        if not np.ma.isMA(values):
            return True
        null = np.ma.getmaskarray(values)
        if null.any() and (kind == "positions" or not null.all()):
            row = int(np.argmax(null.any(axis=-1)))
            raise MrecError(f"{self.path}: frame {frame} has null {kind} in row {row}, which no other program has")
        return not null.any()

    def moment(self, frame: int) -> Moment:
        """The step, time, cell and values of a frame."""
        start, cells = 0, self._fixed
        values: dict[str, np.ndarray] = {}
        if cells is None or self._names:
            page = self._page(frame // PAGE)
            start, values = page.start, page.values
            cells = page.cells if cells is None else cells
        i = frame - start
        at = 0 if cells is self._fixed else i
        return Moment(
            int(self._steps[frame]),
            None if self.times is None else float(self.times[frame]),
            cells.sizes[at] if cells.there[at] else None,
            cells.turns.get(at),
            {name: _python(column[i]) for name, column in values.items()},
        )

    def _page(self, number: int) -> _Page:
        """A page, from those that were read last."""
        page = self._pages.pop(number, None)
        if page is None:
            start, stop = number * PAGE, min((number + 1) * PAGE, self.n_frames)
            values = {name: self.frames[start:stop].values(name) for name in self._names}
            page = _Page(start, self.cells(start, stop), values)
            if len(self._pages) >= PAGES:
                del self._pages[next(iter(self._pages))]
        self._pages[number] = page
        return page

    def cells(self, start: int, stop: int) -> Cells:
        """The cells of the frames [start, stop).

        A cell that is periodic along no axis is none: programs that only know lengths and angles take all for periodic.
        """
        fixed, n = self._fixed, stop - start
        if fixed is None:
            return self._read_cells(start, stop)
        turns = dict.fromkeys(range(n), fixed.turns[0]) if fixed.turns else {}
        return Cells(np.broadcast_to(fixed.sizes[0], (n, 6)), np.broadcast_to(fixed.there[0], n), turns)

    def _read_cells(self, start: int, stop: int) -> Cells:
        boxes = self.frames[start:stop].boxes
        if boxes is None or not boxes.defined:
            return Cells(np.full((stop - start, 6), np.nan), np.zeros(stop - start, np.bool_), {})
        there = boxes.present & boxes.periodic.any(axis=1)
        sizes, upright = _sizes(boxes)
        sizes[:, :3] *= self.factors.length
        turns = {}
        for i in np.flatnonzero(there & ~upright).tolist():
            cell = Box(vectors=boxes.vectors[i] * self.factors.length, periodic=boxes.periodic[i])
            sizes[i], turn = standard(cell, f"{self.path}: frame {start + i}")
            if turn is not None:
                turns[i] = turn
        return Cells(sizes, there, turns)

    def fill(self, kind: str, frames: range, rows: Any, out: np.ndarray, scale: float = 1.0) -> None:
        """What `read` gives, times `scale`, into a float32 array (frames, atoms, 3), a piece at a time.

        MrecError when a value is null.
        """
        room = np.empty((min(self.ahead, len(frames)), *out.shape[1:]))
        factor = self._factor[kind] * scale
        for low in range(0, len(frames), self.ahead):
            some = frames[low : low + self.ahead]
            chosen = slice(some.start, some.stop) if some.step == 1 else np.asarray(some)
            found = self.frames.read(self.block, KINDS[kind], frames=chosen, rows=rows, out=room[: len(some)])
            for i, rows_of_one in zip(some, found, strict=True) if np.ma.isMA(found) else ():
                self.present(kind, rows_of_one, i)
            np.multiply(found, factor, out=out[low : low + len(some)], casting="same_kind")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pages": {}}


def _counts(form: BlockForm, n_frames: int) -> np.ndarray:
    """The rows of each frame, or of one when all have the same."""
    regular = form.uniform is not None and form.n
    return rows_at(form, np.arange(1 if regular else n_frames))


def _python(value: Any) -> Any:
    """A number of Python's for a scalar; arrays and documents as they are."""
    return value.item() if isinstance(value, np.generic) else value


def _sizes(boxes: Boxes) -> tuple[np.ndarray, np.ndarray]:
    """Lengths and angles of each cell (n, 6), and whether it lies with a along x and b in the xy plane already."""
    rows = boxes.rows
    lengths = boxes.lengths
    i, j = [1, 0, 0], [2, 2, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        dots = (rows[:, i] * rows[:, j]).sum(axis=2) / (lengths[:, i] * lengths[:, j])
        angles = np.degrees(np.arccos(np.clip(dots, -1.0, 1.0)))
    angles[dots == 0] = 90.0  # exactly
    above = rows[:, [0, 0, 1], [1, 2, 2]]
    diagonal = rows[:, [0, 1, 2], [0, 1, 2]]
    finite = np.isfinite(rows).all(axis=(1, 2))
    return np.concatenate([lengths, angles], axis=1), finite & (above == 0).all(axis=1) & (diagonal > 0).all(axis=1)

# SPDX-License-Identifier: BSD-3-Clause
"""The cell over time, as far as it verifies."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrec.box import Box
from mrec.errors import CorruptData
from mrec.repair.series import Flags, Series, absent, lost, read_index
from mrec.trajectory.forms import cell_defined, fixed_cell
from mrec.verify.arrays import Stored
from mrec.verify.tree import ROOT, Tree

_WINDOW = 1 << 14


class Cells:
    """The cell at each frame: always the same one, or that of the last of its updates."""

    def __init__(self, tree: Tree, nstep: int) -> None:
        self.tree, self.nstep = tree, nstep
        self.series = absent(nstep)
        self._fixed: Box | None = None
        self._defined = True
        self._arrays: dict[str, Stored] = {}

    def scan(self) -> Flags:
        """Read all cells; bool[nstep]: the frames that have one that does not verify."""
        group = self.tree.group("box")
        attributes = {} if group is None else group.attributes
        try:
            if self.tree.is_gone("box"):
                raise CorruptData("the document of the group is gone")
            self._defined = cell_defined(attributes)
            if self._changes("vectors" in attributes):
                self._open()
            elif "vectors" in attributes:
                self._fixed = fixed_cell(attributes, self._defined)
            elif self.tree.is_gone("box/vectors") or self.tree.meta("box/step_index") is not None:
                raise CorruptData("the vectors are gone")
        except CorruptData as e:
            self.tree.log.add("box", f"{ROOT}/box", str(e))
            self.series = lost(self.nstep)
        return self.series.unsure | self.series.frames_of(self._wrong())

    def at(self, frame: int) -> Box | None:
        """The cell of a frame where it is not lost; the same object as long as it is the same cell."""
        if self._fixed is not None:
            return self._fixed
        update = int(np.searchsorted(self.series.frames, frame, side="right")) - 1
        return None if update < 0 else self._cell(int(self.series.start[update]))

    def update_at(self, frame: int) -> Any:
        """What tells the cells of frames apart."""
        return 0 if self._fixed is not None else int(np.searchsorted(self.series.frames, frame, side="right"))

    # ---- arrays --------------------------------------------------------------------------------------------------

    def _changes(self, has_attribute: bool) -> bool:
        """Whether the arrays hold; beside attributes a lone `vectors` is what a crash left."""
        vectors = self.tree.meta("box/vectors")
        if vectors is None:
            return False
        return not has_attribute or self.tree.meta("box/step_index") is not None or vectors.shape[:1] == (1,)

    def _open(self) -> None:
        vectors = self.tree.meta("box/vectors")
        assert vectors is not None
        index = read_index(self.tree, "box/step_index", self.nstep)
        if self.tree.meta("box/step_index") is None and not self.tree.is_gone("box/step_index"):
            if vectors.shape[:1] not in ((0,), (1,)):
                raise CorruptData(f"vectors has the shape {list(vectors.shape)} and there is no step_index")
            index = np.zeros(min(vectors.shape[0], self.nstep), np.int64), np.zeros(self.nstep, np.bool_)
        if index is None:
            raise CorruptData("it is not known at which frames it changes")
        frames, unsure = index
        rows = np.flatnonzero(frames >= 0)
        self.series = Series(frames[rows], rows, rows + 1, unsure)
        for name, dtype, shape in (("vectors", "f64", (3, 3)), ("origin", "f64", (3,)), ("boundary", "bool", (3,))):
            there = self.tree.node(f"box/{name}") is not None
            stored = self.tree.array(f"box/{name}", dtype, shape, len(frames)) if there and len(frames) else None
            if stored is not None:
                stored.frame_of = self._frame_of
                self._arrays[name] = stored
            elif len(frames) and (there or self.tree.is_gone(f"box/{name}")):
                raise CorruptData(f"{name} is gone")

    def _frame_of(self, row: int) -> int | None:
        at = int(np.searchsorted(self.series.start, row))
        return int(self.series.frames[at]) if at < len(self.series.frames) else None

    def _wrong(self) -> list[tuple[int, int]]:
        """The rows that do not verify."""
        wrong: list[tuple[int, int]] = []
        for name, stored in self._arrays.items():
            for start in range(0, stored.rows, _WINDOW):
                found = stored.read(start, min(start + _WINDOW, stored.rows))
                if name == "boundary" and not self._defined:
                    wrong += [(start + int(row), start + int(row) + 1) for row in np.flatnonzero(found.any(axis=1))]
            wrong += [*stored.lost(), *([(stored.rows, self.series.rows)] if stored.rows < self.series.rows else [])]
        if wrong and not any(stored.faults for stored in self._arrays.values()):
            self.tree.log.add("box", f"{ROOT}/box", "a cell that is not defined has a periodic axis")
        return wrong

    def _cell(self, row: int) -> Box:
        found = {name: stored.read(row, row + 1)[0] for name, stored in self._arrays.items()}
        if not self._defined:
            return Box(vectors=np.eye(3), origin=found.get("origin"), periodic=False, defined=False)
        return Box(vectors=found["vectors"], origin=found.get("origin"), periodic=found.get("boundary", True))

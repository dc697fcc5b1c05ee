# SPDX-License-Identifier: BSD-3-Clause
"""The atoms of a record as other programs have them: in angstrom and ps, with names and a cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mrec.box import Box
from mrec.errors import CorruptData, MrecError
from mrec.frame import Block, Frame, same_bits
from mrec.interop.units import Factors, factors

#: kind of data -> its columns.
KINDS = {"positions": ("x", "y", "z"), "velocities": ("vx", "vy", "vz"), "forces": ("fx", "fy", "fz")}


@dataclass
class Atoms:
    """One frame: positions, velocities, forces f64 (n, 3), the latter two or None; in angstrom, ps, kJ/mol.

    cell: lengths in angstrom, or None. block: the columns of the frame as they are stored, of the atoms taken.
    """

    index: int
    step: int
    time: float | None
    cell: Box | None
    positions: np.ndarray
    velocities: np.ndarray | None
    forces: np.ndarray | None
    block: Block
    values: dict[str, Any] = field(default_factory=dict)


class AtomSource:
    """The frames of a record's trajectory as atoms.

    block: the name of the block that has the positions: "atoms", or the only one with x, y, z. chosen: rows of a
    selection, or None for all. notes: what a user of the result may not expect; complete when the frames were read.
    """

    def __init__(self, record: Any, frames: Any) -> None:
        self.frames = frames
        self.schema = frames.schema
        self.block = positions_block(self.schema)
        self.system: Frame | None = record.system
        self.factors: Factors = factors(record.units)
        self.chosen: np.ndarray | None = None
        self.notes: list[str] = list(self.factors.notes)
        self.kinds = kinds_of(self.schema.blocks[self.block])

    def __len__(self) -> int:
        return len(self.frames)

    @property
    def columns(self) -> set[str]:
        """The names of what is known of an atom, from frames and system."""
        beside = self.system[self.block] if self.system is not None and self.block in self.system else {}
        return set(self.schema.blocks[self.block].columns) | set(beside)

    def column(self, atoms: Atoms, name: str) -> np.ndarray | None:
        """A column of the atoms that are taken: from the frame, else from the system; None when neither has it."""
        if name in atoms.block:
            return atoms.block[name]
        if self.system is not None and self.block in self.system and name in self.system[self.block]:
            return self._taken(self.system[self.block][name])
        return None

    def names(self, atoms: Atoms, *columns: str, missing: str = "X") -> list[str]:
        """The first of these columns that has a text for each atom; `missing` where none has."""
        for column in columns:
            found = self.column(atoms, column)
            if found is not None and found.dtype.kind in "OTU":
                texts = np.ma.filled(found.astype(object), "") if np.ma.isMA(found) else found
                return [str(text) or missing for text in texts.tolist()]
        return [missing] * len(atoms.positions)

    def pairs(self) -> np.ndarray:
        """The rows (i, j) of the system's bonds between atoms that are taken, as numbers of these."""
        return self.links("bonds", 2)

    def links(self, name: str, width: int) -> np.ndarray:
        """The same for a block of the system that names so many atoms in a row: "angles", "dihedrals" ..."""
        columns = ("atomi", "atomj", "atomk", "atoml")[:width]
        if self.system is None or name not in self.system or not set(columns) <= self.system[name].keys():
            return np.empty((0, width), np.int64)
        rows = np.stack([np.ma.filled(self.system[name][c], 0).astype(np.int64) for c in columns], axis=1)
        if self.chosen is None:
            return rows
        place = np.full(max(int(rows.max(initial=0)), int(self.chosen.max())) + 1, -1)
        place[self.chosen] = np.arange(len(self.chosen))
        rows = place[rows]
        return rows[(rows >= 0).all(axis=1)]

    def __iter__(self) -> Iterator[Atoms]:
        yield from map(self.atoms, self.frames)

    def atoms(self, frame: Frame) -> Atoms:
        """A frame of the record as atoms. MrecError when it has no such block, or positions that are null."""
        at = f"frame {frame.index}"
        if self.block not in frame:
            raise MrecError(f"{at} has no block {self.block!r}; take frames that have it (--start)")
        block = frame[self.block]
        if self.chosen is not None:
            block = Block({name: self._taken(values) for name, values in block.items()})
        positions = self._vectors(block, "positions", self.factors.length, at)
        if positions is None:
            raise MrecError(f"{at} has null positions, which no other format has; leave it out (--start, --stop)")
        velocities = self._vectors(block, "velocities", self.factors.velocity, at)
        forces = self._vectors(block, "forces", self.factors.force, at)
        cell = self._cell(frame.box)
        step = 0 if frame.step is None else frame.step
        time = None if frame.time is None else frame.time * self.factors.time
        number = 0 if frame.index is None else frame.index
        return Atoms(number, step, time, cell, positions, velocities, forces, block, frame.values)

    def _vectors(self, block: Block, kind: str, factor: float, at: str) -> np.ndarray | None:
        """The three columns of a kind as (n, 3). None when they are not declared or all null."""
        if kind not in self.kinds:
            return None
        columns = [block[name] for name in KINDS[kind]]
        null = np.any([np.ma.getmaskarray(column) for column in columns], axis=0)
        if null.any():
            if not null.all():
                raise MrecError(f"{at} has null {kind} in row {int(np.argmax(null))}; no other format has null rows")
            return None
        return np.stack([np.asarray(column) for column in columns], axis=1) * factor

    def _cell(self, box: Box | None) -> Box | None:
        if box is None or not box.defined:
            return None
        return Box(vectors=box.vectors * self.factors.length, origin=box.origin * self.factors.length,
                   periodic=box.periodic)  # fmt: skip

    def _taken(self, values: np.ndarray) -> np.ndarray:
        return values if self.chosen is None else values[self.chosen]

    def note(self, text: str) -> None:
        """Keep a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def select(self, selection: str) -> None:
        """Take only the atoms of a selection in MDAnalysis's language, as it holds in the first of the frames."""
        from mrec.interop.mdanalysis_out import selected

        self.chosen = selected(self, selection)


def kinds_of(block: Any) -> list[str]:
    """Which of positions, velocities and forces a block declares."""
    return [kind for kind, names in KINDS.items() if all(name in block.columns for name in names)]


def positions_block(schema: Any) -> str:
    """The block that has the positions."""
    having = [name for name, block in schema.blocks.items() if all(c in block.columns for c in "xyz")]
    if "atoms" in having:
        return "atoms"
    if len(having) == 1:
        return str(having[0])
    found = f"blocks {', '.join(map(repr, having))} have" if having else "no block has"
    raise MrecError(f"{found} columns x, y and z; positions are taken from the block 'atoms' or the only one")


def constant_atoms(source: AtomSource) -> Atoms:
    """The first frame with those columns only that the last one has alike. MrecError when there is no frame."""
    if not len(source):
        raise MrecError("the record has no frames")
    atoms, last = source.atoms(source.frames[0]), source.frames[-1]
    for name in list(atoms.block):
        if source.block not in last or not same_bits(atoms.block[name], last[source.block][name]):
            del atoms.block[name]
    return atoms


def residues_of(source: AtomSource, atoms: Atoms) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The residue of each atom, their ids, and the first atom of each: neighbours of one id, name and chain."""
    n = len(atoms.positions)
    ids = source.column(atoms, "res_id")
    if ids is None:
        ids = source.column(atoms, "res_id_signed")
    keys = [np.zeros(n, np.int64) if ids is None else np.asarray(ids).astype(np.int64)]
    keys += [np.asarray(found, object) for c in ("res_name", "chain", "icode", "segment")
             if (found := source.column(atoms, c)) is not None]  # fmt: skip
    new = np.ones(n, bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    firsts = np.flatnonzero(new)
    return np.cumsum(new) - 1, keys[0][firsts] if ids is not None else np.arange(1, len(firsts) + 1), firsts


def standard(cell: Box, at: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Lengths and angles of a cell, and the rotation (x @ r) to the place that these give it: a along x, b in xy.

    The rotation is None when the cell is there already. MrecError for a left-handed cell, CorruptData for a flat one.
    """
    sizes = np.concatenate([cell.lengths, cell.angles])
    if not np.all(np.isfinite(sizes)) or not cell.volume > 0:
        raise CorruptData(f"{at}: the cell has no volume")
    rows = cell.rows
    if np.linalg.det(rows) < 0:
        raise MrecError(
            f"{at}: the cell is left-handed, which lengths and angles cannot say; .extxyz can (`mrec export`)"
        )
    upright = Box.from_lengths_angles(*sizes.tolist()).rows
    if np.allclose(rows, upright, rtol=0, atol=1e-6 * float(cell.lengths.max())):
        return sizes, None
    return sizes, np.linalg.solve(rows, upright)


def same_number(source: AtomSource, frames: Iterable[Atoms], what: str) -> Iterator[Atoms]:
    """The frames; MrecError when one has another number of atoms than the first."""
    n = None
    for atoms in frames:
        if n not in (None, len(atoms.positions)):
            raise MrecError(
                f"frame {atoms.index} has {len(atoms.positions)} atoms, the frames before {n}; "
                f"{what} has one number: use --start and --stop, or export to .extxyz"
            )
        n = len(atoms.positions)
        yield atoms

# SPDX-License-Identifier: BSD-3-Clause
"""The frames of a record in an nglview widget."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any
from uuid import uuid4

import numpy as np

import mrec.record
from mrec.errors import MrecError
from mrec.extras import extra
from mrec.interop.atoms import Atoms, AtomSource


def view(frames: Any, **options: Any) -> Any:
    """An `nglview.NGLWidget` of a trajectory or a slice of one; MissingLibrary without nglview."""
    with extra("view", "view()"):
        nglview = import_module("nglview")
    if not len(frames):
        raise MrecError("there is no frame to show")
    with mrec.record.open(frames._trajectory._store.root) as record:
        source = AtomSource(record, frames)
    adaptor: Any = type("Shown", (Shown, nglview.Trajectory, nglview.Structure), {})  # it looks for its own classes
    return nglview.NGLWidget(adaptor(source), **options)


class Shown:
    """What nglview asks of a structure that moves: the first frame as PDB, and positions in angstrom by frame."""

    ext = "pdb"

    def __init__(self, source: AtomSource) -> None:
        self.id = str(uuid4())
        self.params: dict[str, Any] = {}
        self.shown = True
        self._source = source
        self._first = source.atoms(source.frames[0])

    def get_structure_string(self) -> str:
        """The first frame in PDB."""
        return "\n".join([*_atoms(self._source, self._first), *_bonds(self._source), "END\n"])

    @property
    def n_frames(self) -> int:
        """How many frames there are."""
        return len(self._source)

    def get_coordinates(self, index: int) -> np.ndarray:
        """f32 (atoms, 3), in angstrom. MrecError when the frame has another number of atoms than the first."""
        positions = self._source.atoms(self._source.frames[index]).positions
        if positions.shape != self._first.positions.shape:
            n, first = len(positions), len(self._first.positions)
            raise MrecError(f"frame {index} has {n} atoms, the first {first}; nglview shows one number of atoms")
        return positions.astype(np.float32)


def _atoms(source: AtomSource, atoms: Atoms) -> Iterator[str]:
    """A line an atom. What does not fit its columns is cut: the picture needs no more."""
    elements = [name if name != "X" else "" for name in source.names(atoms, "element")]  # it then goes by the name
    names = source.names(atoms, "name", "element", "type")
    residues = source.names(atoms, "res_name")
    chains = source.names(atoms, "chain")
    found = source.column(atoms, "res_id")
    numbers = np.ones(len(names), np.int64) if found is None else np.ma.filled(found, 0)
    for i, (x, y, z) in enumerate(np.clip(atoms.positions, -999.0, 9999.0).tolist()):
        name = names[i][:4] if len(elements[i]) > 1 or len(names[i]) > 3 else " " + names[i][:3]
        yield (
            f"ATOM  {(i + 1) % 100000:5d} {name:<4s} {residues[i][:3]:>3s} {chains[i][:1]}{int(numbers[i]) % 10000:4d}"
            f"    {x:8.3f}{y:8.3f}{z:8.3f}  1.00  0.00          {elements[i][:2]:>2s}"
        )


def _bonds(source: AtomSource) -> Iterator[str]:
    pairs = source.pairs()
    if pairs.max(initial=0) < 99999:
        yield from (f"CONECT{i + 1:5d}{j + 1:5d}" for i, j in pairs.tolist())

# SPDX-License-Identifier: BSD-3-Clause
"""What MDAnalysis knows of atoms, as the `system` of a record."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrec.frame import Block, Frame

#: Topology attribute -> column: those of atoms, of residues and of segments.
ATOMS = {
    "ids": "id",
    "names": "name",
    "elements": "element",
    "types": "type",
    "masses": "mass",
    "charges": "charge",
    "formalcharges": "formal_charge",
    "radii": "radius",
    "chainIDs": "chain",
    "altLocs": "altloc",
    "occupancies": "occupancy",
    "tempfactors": "b_factor",
    "record_types": "record_type",
}
RESIDUES = {"resids": "res_id", "resnames": "res_name", "icodes": "icode", "molnums": "mol_id", "moltypes": "mol_type"}
SEGMENTS = {"segids": "segment"}
#: Lists of atoms that belong together, and how many of them.
_CONNECTIONS = {"bonds": 2, "angles": 3, "dihedrals": 4, "impropers": 4}


def topology_of(atoms: Any, guessed: bool = True) -> Frame:
    """Block "atoms" of an AtomGroup, and "bonds", "angles" ... between its atoms, counted from 0.

    Nothing is guessed here; guessed=False leaves out also what the universe guessed.
    """
    known = atoms.universe._topology
    without = () if guessed else {attribute.attrname for attribute in known.guessed_attributes}
    block = Block(nrows=len(atoms))
    for attribute, column in (ATOMS | RESIDUES | SEGMENTS).items():
        if hasattr(known, attribute) and attribute not in without:
            values = getattr(atoms, attribute, None)
            if values is not None:
                column, values = _fitting(column, values)
                if not (column == "segment" and not set(values) - {"", "SYSTEM"}):  # what parsers say for want of one
                    block[column] = values
    frame = Frame({"atoms": block})
    for name, width in _CONNECTIONS.items():
        if hasattr(known, name) and name not in without:
            rows = _connections(atoms, getattr(known, name).values, width)
            if len(rows):
                frame[name] = dict(zip(("atomi", "atomj", "atomk", "atoml"), rows.T, strict=False))
    return frame


def _connections(atoms: Any, listed: Any, width: int) -> np.ndarray:
    rows = np.array(listed, dtype=np.int64).reshape(-1, width)
    place = np.full(len(atoms.universe.atoms), -1, dtype=np.int64)
    place[atoms.indices] = np.arange(len(atoms))
    rows = place[rows]
    return rows[(rows >= 0).all(axis=1)].astype(np.uint64)


def _fitting(column: str, values: Any) -> tuple[str, np.ndarray]:
    """A column's values in the type the column has; numbers that are no u64 go under another name."""
    array = np.asarray(values)
    if array.dtype.kind in "OU":
        return column, np.array([str(value) for value in array.tolist()], dtype=np.dtypes.StringDType())
    if column in ("id", "res_id", "mol_id"):
        if array.size and array.min() < 0:
            return f"{column}_signed", array.astype(np.int64)
        return column, array.astype(np.uint64)
    return column, array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)

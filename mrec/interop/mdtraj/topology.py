# SPDX-License-Identifier: BSD-3-Clause
"""The topology of a record, for mdtraj."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from mdtraj import Topology
from mdtraj.core import element as elements

import mrec
from mrec.interop.atoms import AtomSource, constant_atoms, residues_of


def load_topology(path: str | os.PathLike[str]) -> Topology:
    """What a record says of its atoms in its `system`, and in columns of the trajectory that stay as they are.

    An atom without an element is a virtual site; one without a name has its element's.
    """
    record = mrec.open(path)
    source = AtomSource(record, record.trajectory)
    atoms = constant_atoms(source)
    names = source.names(atoms, "name", "element", "type")
    residue_of, ids, firsts = residues_of(source, atoms)
    res_names = source.names(atoms, "res_name", missing="UNK")
    chains, segments = (source.names(atoms, column, missing="") for column in ("chain", "segment"))
    serials = source.column(atoms, "id")
    charges = source.column(atoms, "formal_charge")
    kinds = _elements(source, atoms)
    made = Topology()
    residue = chain = last = None
    for i, name in enumerate(names):
        if i == 0 or residue_of[i] != residue_of[i - 1]:
            place = chains[i], segments[i]
            if chain is None or place != last:
                chain, last = made.add_chain(chains[i] or None), place
            residue = made.add_residue(res_names[i], chain, int(ids[residue_of[i]]), segments[i])
        serial = None if serials is None else int(serials[i])
        charge = None if charges is None or np.ma.is_masked(charges[i]) else int(charges[i])
        made.add_atom(name, kinds[i], residue, serial=serial, formal_charge=charge)
    placed = list(made.atoms)
    for i, j in source.pairs().tolist():
        made.add_bond(placed[i], placed[j])
    return made


def _elements(source: AtomSource, atoms: Any) -> list[Any]:
    numbers = source.column(atoms, "atomic_number")
    if numbers is not None:
        return [elements.Element.getByAtomicNumber(int(z)) if z else elements.virtual for z in numbers.tolist()]
    found = {}
    symbols = source.names(atoms, "element")
    for symbol in set(symbols):
        try:
            found[symbol] = elements.Element.getBySymbol(symbol)
        except KeyError:
            found[symbol] = elements.virtual
    return [found[symbol] for symbol in symbols]

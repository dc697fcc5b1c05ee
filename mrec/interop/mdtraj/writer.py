# SPDX-License-Identifier: BSD-3-Clause
"""mdtraj's trajectories, written to a record."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from mdtraj import Topology, Trajectory

from mrec.box import Box
from mrec.frame import Block, Frame
from mrec.interop.atoms import KINDS
from mrec.record import open as open_record
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import TrajectoryWriter

_UNITS = {"length": "nm", "time": "ps"}
_TEXT = np.dtypes.StringDType()


def save_mrec(
    trajectory: Trajectory,
    filename: str | os.PathLike[str],
    force_overwrite: bool = True,
    precision: float | None = None,
    **options: Any,
) -> None:
    """Write a trajectory to a record; `trajectory.save("run.mrec")` calls it.

    Frames are numbered. force_overwrite: replace a record that is there, as mdtraj does. precision: of positions, in
    nm; None keeps every bit. options: those of `mrec.TrajectoryWriter`.
    """
    schema = Schema().block("atoms", rows=trajectory.n_atoms)
    for name in KINDS["positions"]:
        schema.column(name, "f64", precision=precision)
    lengths, angles = trajectory.unitcell_lengths, trajectory.unitcell_angles
    with TrajectoryWriter(filename, schema, units=_UNITS, overwrite=force_overwrite, **options) as writer:
        for i, positions in enumerate(trajectory.xyz):
            cell = None if lengths is None else Box.from_lengths_angles(*lengths[i].tolist(), *angles[i].tolist())
            writer.append(i, time=float(trajectory.time[i]), box=cell, atoms={KINDS["positions"]: positions})
    if trajectory.topology is not None:
        open_record(writer.path).system = _system(trajectory.topology)


def _system(topology: Topology) -> Frame:
    """What a topology says of the atoms: block "atoms", and "bonds" between them."""
    atoms = list(topology.atoms)
    chains = _chain_names(topology)
    block = Block(nrows=len(atoms))
    block["name"] = np.array([atom.name for atom in atoms], _TEXT)
    numbers = [0 if atom.element is None else atom.element.atomic_number for atom in atoms]
    block["atomic_number"] = np.array(numbers, np.uint64)
    block["element"] = np.array(
        [atom.element.symbol if z else "" for atom, z in zip(atoms, numbers, strict=True)], _TEXT
    )
    block["res_name"] = np.array([atom.residue.name for atom in atoms], _TEXT)
    ids = np.array([atom.residue.resSeq for atom in atoms], np.int64)
    if ids.min(initial=0) < 0:
        block["res_id_signed"] = ids
    else:
        block["res_id"] = ids.astype(np.uint64)
    block["chain"] = np.array([chains[atom.residue.chain.index] for atom in atoms], _TEXT)
    block["segment"] = np.array([atom.residue.segment_id or "" for atom in atoms], _TEXT)
    serials = [atom.serial for atom in atoms]
    if all(serial is not None and serial >= 0 for serial in serials):
        block["id"] = np.array(serials, np.uint64)
    charges = [getattr(atom, "formal_charge", None) for atom in atoms]
    if any(charge is not None for charge in charges):
        unknown = [charge is None for charge in charges]
        block["formal_charge"] = np.ma.array([charge or 0 for charge in charges], np.int64, mask=unknown)
    frame = Frame({"atoms": block})
    if topology.n_bonds:
        pairs = np.array([(a.index, b.index) for a, b in topology.bonds], np.uint64)
        frame["bonds"] = {"atomi": pairs[:, 0], "atomj": pairs[:, 1]}
    return frame


def _chain_names(topology: Topology) -> list[str]:
    """The names of the chains; letters when there are several and one has no name, or a neighbour's."""
    names = [chain.chain_id or "" for chain in topology.chains]
    told_apart = all(names) and all(a != b for a, b in zip(names, names[1:], strict=False))
    return names if told_apart or len(names) == 1 else [chr(ord("A") + i % 26) for i in range(len(names))]

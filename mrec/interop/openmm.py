# SPDX-License-Identifier: BSD-3-Clause
"""A reporter that writes the frames of an OpenMM simulation to a record."""

from __future__ import annotations

import os
import weakref
from collections.abc import Sequence
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np

from mrec.box import Box
from mrec.errors import InvalidValue, RecordExists, RecordNotFound, SchemaError
from mrec.frame import Frame
from mrec.interop.atoms import KINDS
from mrec.record import open as open_record
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import PathLike, TrajectoryWriter, written_path

#: OpenMM's own, in which everything is written.
UNITS = {"length": "nm", "time": "ps", "velocity": "nm/ps", "force": "kJ/mol/nm", "energy": "kJ/mol", "mass": "Da"}

#: The options that count for a record that is there; the others are those it was made with.
REOPENING = ("flush_every", "durable_every", "durable", "threads")


class MrecReporter:
    """Writes a frame every `reportInterval` steps. Give it to `simulation.reporters`, as OpenMM's own reporters.

    file: the record, by convention `<stem>.mrec`. append: go on with the record that is there; frames of it after the
    step where the simulation stands are cut, so that a run from a checkpoint leaves none doubled. Otherwise the record
    is made: RecordExists when there is one, unless overwrite=True.
    enforcePeriodicBox: whether molecules are put into one periodic box; None: when the system is periodic.
    atomSubset: the atoms to write, by their index; None: all.

    velocities, forces, energies: what to write besides positions, time and cell. precision: of positions, in nm; None
    keeps every bit. options: those of `mrec.TrajectoryWriter`, such as flush_every and overwrite. A record that is
    appended to keeps its precision, compression and chunks.

    The record's `system` gets names, elements, masses, residues, chains and bonds of the topology. `close` ends the
    record; when nobody calls it, that happens once the reporter is no longer used, at the latest when Python ends.
    """

    def __init__(
        self,
        file: PathLike,
        reportInterval: int,
        append: bool = False,
        enforcePeriodicBox: bool | None = None,
        atomSubset: Sequence[int] | None = None,
        *,
        velocities: bool = False,
        forces: bool = False,
        energies: bool = False,
        precision: float | None = None,
        **options: Any,
    ) -> None:
        self.path = written_path(file)
        unknown = options.keys() - (signature(TrajectoryWriter).parameters.keys() - {"path", "schema", "units"})
        if unknown:
            raise TypeError(f"MrecReporter has no option {min(unknown)!r}")
        if not isinstance(reportInterval, (int, np.integer)) or reportInterval < 1:
            raise InvalidValue(f"reportInterval is {reportInterval!r}; use a positive whole number of steps")
        if append and not os.path.lexists(self.path):
            raise RecordNotFound(f"{self.path}: there is no record to append to")
        if not append and not options.get("overwrite") and os.path.lexists(self.path):
            raise RecordExists(f"{self.path} is there already; pass append=True to go on with it, or overwrite=True")
        self._interval = reportInterval
        self._append = append
        self._periodic = enforcePeriodicBox
        self._subset = None if atomSubset is None else _indices(atomSubset)
        self._velocities = velocities
        self._forces = forces
        self._energies = energies
        self._precision = precision
        self._options = options
        self._writer: TrajectoryWriter | None = None
        self._closing: weakref.finalize[..., Any] | None = None

    def describeNextReport(self, simulation: Any) -> tuple[int, bool, bool, bool, bool, bool | None]:
        """When the next frame is due, and what it takes; OpenMM asks."""
        if self._writer is None:
            self._writer = self._reopen(simulation) if self._append else self._create(simulation)
            self._closing = weakref.finalize(self, self._writer.close)
        steps = self._interval - simulation.currentStep % self._interval
        return steps, True, self._velocities, self._forces, self._energies, self._periodic

    def report(self, simulation: Any, state: Any) -> None:
        """Append a frame; called by OpenMM, with the state that was asked for."""
        unit = import_module("openmm.unit")
        assert self._writer is not None
        atoms: dict[Any, Any] = {KINDS["positions"]: self._rows(state.getPositions(asNumpy=True), unit.nanometer)}
        if self._velocities:
            velocities = state.getVelocities(asNumpy=True)
            atoms[KINDS["velocities"]] = self._rows(velocities, unit.nanometer / unit.picosecond)
        if self._forces:
            forces = state.getForces(asNumpy=True)
            atoms[KINDS["forces"]] = self._rows(forces, unit.kilojoule_per_mole / unit.nanometer)
        values = {}
        if self._energies:
            values["pe"] = state.getPotentialEnergy().value_in_unit(unit.kilojoule_per_mole)
            values["ke"] = state.getKineticEnergy().value_in_unit(unit.kilojoule_per_mole)
        box = None
        if simulation.system.usesPeriodicBoundaryConditions():
            box = Box.from_rows(state.getPeriodicBoxVectors(asNumpy=True).value_in_unit(unit.nanometer))
        time = state.getTime().value_in_unit(unit.picosecond)
        self._writer.append(simulation.currentStep, time=time, box=box, blocks={"atoms": atoms}, values=values)

    def close(self) -> None:
        """Publish what waits and end the record. Closing twice is no error."""
        if self._closing is not None:
            self._closing()

    def _rows(self, quantity: Any, unit: Any) -> np.ndarray:
        rows = quantity.value_in_unit(unit)
        return rows if self._subset is None else rows[self._subset]

    def _create(self, simulation: Any) -> TrajectoryWriter:
        system = system_of(simulation.topology, simulation.system, self._subset)
        schema = Schema().block("atoms", rows=system["atoms"].nrows)
        for name in KINDS["positions"]:
            schema.column(name, "f64", precision=self._precision)
        for name in KINDS["velocities"] * self._velocities + KINDS["forces"] * self._forces:
            schema.column(name, "f64")
        if self._energies:
            schema.value("pe", "f64").value("ke", "f64")
        writer = TrajectoryWriter(self.path, schema, units=UNITS, **self._options)
        open_record(self.path).system = system
        return writer

    def _reopen(self, simulation: Any) -> TrajectoryWriter:
        system = system_of(simulation.topology, simulation.system, self._subset)
        found = open_record(self.path).system
        if found is not None and found["atoms"].nrows != system["atoms"].nrows:
            raise SchemaError(
                f"{self.path} has {found['atoms'].nrows} atoms, and {system['atoms'].nrows} are to be written; append "
                "to the record of the same system, with the same atomSubset"
            )
        options = {name: self._options[name] for name in REOPENING if name in self._options}
        return TrajectoryWriter.open(self.path, truncate_after_step=simulation.currentStep, **options)


def _indices(atoms: Sequence[int]) -> np.ndarray:
    given = np.asarray(atoms)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise InvalidValue(f"atomSubset is a list of atoms by their index, not {atoms!r}")
    return given.astype(np.int64)


def system_of(topology: Any, system: Any, subset: np.ndarray | None = None) -> Frame:
    """What a topology and a System say of the atoms: block "atoms", and "bonds" between them. Masses in Da."""
    unit = import_module("openmm.unit")
    atoms = list(topology.atoms())
    rows = np.arange(len(atoms)) if subset is None else subset
    outside = rows[(rows < 0) | (rows >= len(atoms))]
    if len(outside):
        raise InvalidValue(f"atomSubset names atom {outside[0]} of {len(atoms)}; they count from 0")
    place = np.full(len(atoms), -1)
    place[rows] = np.arange(len(rows))
    taken = [atoms[row] for row in rows.tolist()]
    block: dict[str, Any] = {
        "name": [atom.name for atom in taken],
        "element": [atom.element.symbol if atom.element is not None else "" for atom in taken],
        "mass": [system.getParticleMass(atom.index).value_in_unit(unit.dalton) for atom in taken],
        "res_name": [atom.residue.name for atom in taken],
        "chain": [atom.residue.chain.id for atom in taken],
    }
    if all(atom.residue.id.isdecimal() for atom in taken):
        block["res_id"] = np.array([int(atom.residue.id) for atom in taken], dtype=np.uint64)
    frame = Frame({"atoms": block})
    pairs = np.array([(bond[0].index, bond[1].index) for bond in topology.bonds()], dtype=np.int64).reshape(-1, 2)
    pairs = place[pairs]
    pairs = pairs[(pairs >= 0).all(axis=1)].astype(np.uint64)
    if len(pairs):
        frame["bonds"] = {"atomi": pairs[:, 0], "atomj": pairs[:, 1]}
    return frame

# SPDX-License-Identifier: BSD-3-Clause
"""Frames of MDAnalysis, written to a record."""

from __future__ import annotations

from typing import Any

import numpy as np
from MDAnalysis.coordinates.base import WriterBase

from mrec.box import Box
from mrec.errors import InvalidValue, SchemaError
from mrec.interop.atoms import KINDS
from mrec.interop.mdanalysis_topology import topology_of
from mrec.record import open as open_record
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import TrajectoryWriter, new_record_path

#: MDAnalysis's own, in which readers give their data and writers take it.
UNITS = {"time": "ps", "length": "Angstrom", "velocity": "Angstrom/ps", "force": "kJ/(mol*Angstrom)"}
_UNITS = {"length": "angstrom", "time": "ps", "velocity": "angstrom/ps", "force": "kJ/mol/angstrom"}
_UNITS |= {"mass": "Da", "charge": "e"}

#: What ts.data has that is no value of the frame.
_OWN = ("step", "time", "dt", "time_offset")


class MrecWriter(WriterBase):
    """Writes a record; `MDAnalysis.Writer("run.mrec", n_atoms)` makes one. A context manager.

    The first frame decides what the others have: velocities, forces, and per-step values, which are the numbers of
    ts.data. What the universe knows of the atoms goes to the record's `system`, without what it only guessed.

    precision: of positions, in angstrom; None keeps every bit. dt: the time between frames in ps, instead of theirs.
    number: number the frames 0, 1, 2 ... instead of taking the steps of their source. options: those of
    `mrec.TrajectoryWriter`, such as overwrite=True: a record that is there is not replaced unasked.
    """

    format = "MREC"
    multiframe = True
    units = UNITS

    def __init__(
        self,
        filename: Any,
        n_atoms: int,
        convert_units: bool = True,
        precision: float | None = None,
        dt: float | None = None,
        number: bool = False,
        **options: Any,
    ) -> None:
        self._writer: TrajectoryWriter | None = None
        for name in ("start", "step", "multiframe", "bonds"):  # MDAnalysis hands these to every writer
            options.pop(name, None)
        self.filename = new_record_path(filename)
        self.n_atoms = n_atoms
        self._convert = convert_units
        self._precision = precision
        self._dt = dt
        self._number = number
        self._options = options
        self._has_cell = False

    def _write_next_frame(self, obj: Any) -> None:
        """Append the frame where the universe of an AtomGroup stands."""
        try:
            atoms = obj.atoms
            ts = atoms.universe.trajectory.ts
        except AttributeError:
            raise TypeError(f"{type(obj).__name__} is neither an AtomGroup nor a Universe") from None
        if len(atoms) != self.n_atoms:
            raise SchemaError(f"the writer was made for {self.n_atoms} atoms; {len(atoms)} are given")
        if self._writer is None:
            self._writer = self._create(atoms, ts)
        step = self._step(ts)
        columns: dict[Any, Any] = {KINDS[kind]: self._rows(atoms, ts, kind) for kind in self._kinds}
        for kind in KINDS.keys() - set(self._kinds):
            if getattr(ts, f"has_{kind}"):
                raise SchemaError(f"frame {ts.frame} has {kind}, the first frame written had none")
        values = {name: ts.data.get(name) for name in self._values}
        missing = [name for name, value in values.items() if value is None]
        if missing:
            raise SchemaError(f"frame {ts.frame} has no {missing[0]!r} in ts.data, the first frame written had one")
        self._writer.append(step, time=self._time(ts), box=self._cell(ts), blocks={"atoms": columns}, values=values)

    def _create(self, atoms: Any, ts: Any) -> TrajectoryWriter:
        self._kinds = [kind for kind in KINDS if getattr(ts, f"has_{kind}")]
        if "positions" not in self._kinds:
            raise SchemaError(f"frame {ts.frame} has no positions")
        schema = Schema().block("atoms", rows=self.n_atoms)
        for kind in self._kinds:
            for name in KINDS[kind]:
                schema.column(name, "f64", precision=self._precision if kind == "positions" else None)
        self._values = {name: tag for name, value in ts.data.items() if (tag := _tag(name, value)) is not None}
        for name, tag in self._values.items():
            schema.value(name, tag)
        self._steps = "step" in ts.data and not self._number
        self._times = self._dt is not None or "time" in ts.data or "dt" in ts.data
        units = _UNITS if self._convert else None
        writer = TrajectoryWriter(self.filename, schema, units=units, **self._options)
        open_record(self.filename).system = topology_of(atoms, guessed=False)
        return writer

    def _step(self, ts: Any) -> int | None:
        assert self._writer is not None
        if not self._steps:
            return None
        step, last = int(ts.data["step"]), self._writer.last_step
        if last is not None and step <= last:
            raise InvalidValue(
                f"frame {ts.frame} has the step {step}, after {last}; a record's steps increase. Pass number=True to "
                "number the frames instead"
            )
        return step

    def _time(self, ts: Any) -> float | None:
        if not self._times:
            return None
        assert self._writer is not None
        return float(ts.time) if self._dt is None else self._dt * self._writer.nframes

    def _cell(self, ts: Any) -> Box | None:
        """The cell of a frame; without a volume it is none, as MDAnalysis has it."""
        if ts.dimensions is None or not ts.triclinic_dimensions.any():
            if self._has_cell:
                raise SchemaError(f"frame {ts.frame} has no cell, a frame before it had one; a record cannot say so")
            return None
        self._has_cell = True
        return Box.from_lengths_angles(*ts.dimensions.astype(np.float64).tolist())

    def _rows(self, atoms: Any, ts: Any, kind: str) -> np.ndarray:
        if not getattr(ts, f"has_{kind}"):
            raise SchemaError(f"frame {ts.frame} has no {kind}, the first frame written had them")
        rows: np.ndarray = getattr(atoms, kind)
        return rows

    def close(self) -> None:
        """Publish what waits and end the record. Closing twice is no error."""
        if self._writer is not None:
            self._writer.close()


def _tag(name: str, value: Any) -> str | None:
    """How a value of ts.data is kept; None when it is not."""
    if name in _OWN:
        return None
    array = np.asarray(value)
    scalar = {"b": "bool", "i": "i64", "u": "u64", "f": "f64"}.get(array.dtype.kind)
    if scalar is None or (array.ndim and (array.ndim > 1 or scalar != "f64" or len(array) not in (3, 6, 9))):
        return None
    return scalar if array.ndim == 0 else f"f64x{len(array)}"

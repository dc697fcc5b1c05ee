# SPDX-License-Identifier: BSD-3-Clause
"""ASE's Atoms, written to a record."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np
from ase import Atoms, units
from ase.data import chemical_symbols
from ase.parallel import world

from mrec.box import Box
from mrec.errors import InvalidValue, SchemaError
from mrec.frame import Frame, same_bits
from mrec.interop.ase.layout import ENERGY, INFO, ROWS, UNITS, VALUES, column_of, results_of, to_document
from mrec.interop.atoms import KINDS
from mrec.record import open as open_record
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import PathLike, TrajectoryWriter, new_record_path

#: Arrays of the Atoms that have columns of their own.
_OWN = ("positions", "numbers", "momenta", "masses")
_CONSTANT = ("atomic_number", "element", "mass")


class MrecTrajectory:
    """Writes Atoms to a record, as `ase.io.Trajectory` does to its file: `dynamics.attach(trajectory, interval=10)`.

    mode: "w" makes the record: RecordExists when there is one, unless overwrite=True. "a" goes on with the one that is
    there, or makes it. atoms: what `write()` without an argument writes. dynamics: the molecular dynamics or optimiser,
    which tells the step and the time of a frame; without it frames are numbered, or have info["step"] and info["time"]
    (in fs) when the first one has both.

    The first frame decides what the others have: momenta, the results of the calculator, arrays. changing: the elements
    and the number of atoms may differ from frame to frame; otherwise they stand in the record's `system`, once.
    precision: of positions, in angstrom; None keeps every bit. options: those of `mrec.TrajectoryWriter`.

    With several processes (ase.parallel) the first one writes.
    """

    def __init__(
        self,
        filename: PathLike,
        mode: str = "w",
        atoms: Atoms | None = None,
        *,
        dynamics: Any = None,
        changing: bool = False,
        precision: float | None = None,
        **options: Any,
    ) -> None:
        if mode not in ("w", "a"):
            raise InvalidValue(f'mode is {mode!r}; use "w" or "a", and ase.io.read(..., format="mrec") to read')
        self.path = new_record_path(filename)
        if not self.path.endswith(".mrec"):
            raise InvalidValue(f"{self.path}: a record is called <name>.mrec; mrec.pack makes one file of it")
        self._atoms = atoms
        self._dynamics = dynamics
        self._changing = changing
        self._precision = precision
        self._options = options
        self._master = world.rank == 0
        self._writer: TrajectoryWriter | None = None
        self._first = (0, 0.0)
        if mode == "a" and self._master and os.path.lexists(self.path):
            self._reopen()

    def write(self, atoms: Atoms | None = None) -> None:
        """Append a frame."""
        atoms = self._atoms if atoms is None else atoms
        if atoms is None:
            raise InvalidValue("there are no atoms to write: give them to write() or to MrecTrajectory(..., atoms=)")
        if not self._master:
            return
        results = results_of(atoms)
        columns = _columns(atoms, results)
        if self._writer is None:
            self._writer = self._create(atoms, results, columns)
        step, time = self._moment(atoms)
        if self._dynamics is not None and self._writer.last_step == step:
            return  # where the run before ended
        if not self._changing:
            self._check_constant(columns)
        values = self._values(results)
        if self._has_info:
            values[INFO] = to_document(_rest(atoms.info, self._timed))
        self._writer.append(step, time=time, box=self._box(atoms), blocks={"atoms": columns}, values=values)

    __call__ = write

    def _create(self, atoms: Atoms, results: dict[str, Any], columns: dict[Any, Any]) -> TrajectoryWriter:
        self._results = [name for name in VALUES if name in results]
        self._timed = self._dynamics is None and {"step", "time"} <= atoms.info.keys()
        self._has_info = True
        self._has_cell = bool(atoms.cell.any() or atoms.pbc.any())
        schema = Schema().block("atoms", rows=len(atoms))
        for key, values in columns.items():
            for name in (key,) if isinstance(key, str) else key:
                if name not in _CONSTANT or self._changing:
                    trailing = values.shape[1:] if isinstance(key, str) else ()
                    kind = "string" if values.dtype.kind in "OTU" else values.dtype
                    precision = self._precision if name in KINDS["positions"] else None
                    schema.column(name, kind, trailing=trailing, precision=precision)
        for name in self._results:
            schema.value(ENERGY if name == "energy" else name, VALUES[name])
        schema.value(INFO, "json", fill=None)
        writer = TrajectoryWriter(self.path, schema, units=UNITS, **self._options)
        if not self._changing:
            self._system = {name: columns[name] for name in _CONSTANT}
            open_record(self.path).system = Frame({"atoms": self._system})
        return writer

    def _reopen(self) -> None:
        record = open_record(self.path)
        if record.units != UNITS:
            raise SchemaError(f"{self.path} has the units {record.units}, which are not those of ASE; nothing is added")
        self._writer = TrajectoryWriter.open(self.path, **self._options)
        frames = record.trajectory
        schema = frames.schema
        self._changing = record.system is None
        if record.system is not None:
            self._system = dict(record.system.blocks.get("atoms", {}))
        self._results = [name for name in VALUES if (ENERGY if name == "energy" else name) in schema.values]
        self._has_info = INFO in schema.values
        self._timed = self._dynamics is None and frames.times is not None
        box = frames[-1].box if len(frames) else None
        self._has_cell = box is None or box.defined
        if len(frames):
            self._first = (int(frames.steps[-1]), 0.0 if frames.times is None else float(frames.times[-1]))

    def _check_constant(self, columns: dict[Any, Any]) -> None:
        """Take out of the columns what stands in the system, and is the same."""
        for name in _CONSTANT:
            given = columns.pop(name)
            if name in self._system and not same_bits(given, self._system[name]):
                frame = len(self)
                raise SchemaError(f"frame {frame} has other atoms than the first ({name!r} differs); say changing=True")

    def _values(self, results: dict[str, Any]) -> dict[str, Any]:
        missing = [name for name in self._results if name not in results]
        if missing:
            raise SchemaError(f"frame {len(self)} has no {missing[0]!r} from its calculator, the first frame had one")
        return {ENERGY if name == "energy" else name: _value(results[name]) for name in self._results}

    def _moment(self, atoms: Atoms) -> tuple[int | None, float | None]:
        if self._dynamics is not None:
            time = self._dynamics.get_time() if hasattr(self._dynamics, "get_time") else None
            step = self._first[0] + int(self._dynamics.nsteps)
            return step, None if time is None else self._first[1] + float(time) / units.fs
        if not self._timed:
            return None, None
        if not {"step", "time"} <= atoms.info.keys():
            raise SchemaError("a frame has no step and time in its info, the first one had both")
        return int(atoms.info["step"]), float(atoms.info["time"])

    def _box(self, atoms: Atoms) -> Box:
        if not self._has_cell:
            if atoms.cell.any() or atoms.pbc.any():
                raise SchemaError("a frame has a cell, the first one had none; a trajectory has one or the other")
            return Box.undefined()
        return Box.from_rows(atoms.cell.array, periodic=atoms.pbc)

    def close(self) -> None:
        """Publish what waits and end the record. Closing twice is no error."""
        if self._writer is not None:
            self._writer.close()

    def __len__(self) -> int:
        return 0 if self._writer is None else self._writer.nframes

    def __enter__(self) -> MrecTrajectory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def write_mrec(
    filename: str | os.PathLike[str], images: Atoms | Sequence[Atoms], append: bool = False, **options: Any
) -> None:
    """Write Atoms to a record, as `ase.io.write(..., format="mrec")` does. options: those of `MrecTrajectory`."""
    listed = [images] if isinstance(images, Atoms) else list(images)
    if not (append and os.path.lexists(filename)):
        if not listed:
            raise InvalidValue(f"{os.fsdecode(filename)}: there are no atoms to write")
        first = listed[0]
        changing = any(not np.array_equal(atoms.numbers, first.numbers) for atoms in listed) or any(
            not np.array_equal(atoms.get_masses(), first.get_masses()) for atoms in listed
        )
        options.setdefault("changing", changing)
    with MrecTrajectory(filename, "a" if append else "w", **options) as trajectory:
        for atoms in listed:
            trajectory.write(atoms)


def _columns(atoms: Atoms, results: dict[str, Any]) -> dict[Any, Any]:
    """The columns of a frame; three of them together where they are a vector."""
    numbers = atoms.numbers
    columns: dict[Any, Any] = {
        "atomic_number": numbers.astype(np.uint64),
        "element": np.array([chemical_symbols[z] for z in numbers], np.dtypes.StringDType()),
        "mass": atoms.get_masses(),
        KINDS["positions"]: atoms.positions,
    }
    if atoms.has("momenta"):
        columns[KINDS["velocities"]] = _velocities(atoms) * units.fs
    if "forces" in results:
        columns[KINDS["forces"]] = results["forces"]
    columns |= {column: results[name] for name, column in ROWS.items() if name in results}
    for name, values in atoms.arrays.items():
        if name not in _OWN:
            columns[column_of(name)] = _kept(name, values)
    return columns


def _velocities(atoms: Atoms) -> np.ndarray:
    """Those of atoms without a mass are 0. SchemaError when one of them has a momentum."""
    momenta, masses = atoms.get_momenta(), atoms.get_masses()[:, None]
    if momenta[masses[:, 0] == 0].any():
        raise SchemaError("an atom without a mass has a momentum, which is kept as a velocity and has none")
    return np.divide(momenta, masses, out=np.zeros_like(momenta), where=masses != 0)


def _kept(name: str, values: np.ndarray) -> np.ndarray:
    """float32 as float64, which holds it exactly; texts as the strings they are. SchemaError for other objects."""
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    if values.dtype.kind == "O" and not all(isinstance(value, str) for value in values.ravel().tolist()):
        raise SchemaError(f"the array {name!r} has objects that are no texts, and no column can hold")
    return values.astype(np.dtypes.StringDType()) if values.dtype.kind in "OU" else values


def _value(result: np.ndarray) -> Any:
    return result.ravel() if result.ndim else float(result)


def _rest(info: dict[str, Any], timed: bool) -> dict[str, Any]:
    return {name: value for name, value in info.items() if not (timed and name in ("step", "time"))}

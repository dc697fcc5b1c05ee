# SPDX-License-Identifier: BSD-3-Clause
"""Frames of a LAMMPS simulation that Python drives, written to a record."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np

from mrec.box import Box
from mrec.errors import MrecError
from mrec.frame import Frame
from mrec.record import open as open_record
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import PathLike, TrajectoryWriter, written_path

#: LAMMPS's `units` -> what lengths, times and masses are in.
UNITS = {
    "lj": {"length": "sigma", "time": "tau", "mass": "m"},
    "real": {"length": "angstrom", "time": "fs", "mass": "Da"},
    "metal": {"length": "angstrom", "time": "ps", "mass": "Da"},
    "si": {"length": "m", "time": "s", "mass": "kg"},
    "cgs": {"length": "cm", "time": "s", "mass": "g"},
    "electron": {"length": "bohr", "time": "fs", "mass": "Da"},
    "micro": {"length": "um", "time": "us", "mass": "pg"},
    "nano": {"length": "nm", "time": "ns", "mass": "ag"},
}

_COORDINATES, _IMAGES = ("x", "y", "z"), ("ix", "iy", "iz")


class LammpsWriter:
    """Writes a frame at every step that `every` divides, during the runs of a LAMMPS object; a context manager.

    lmp: a `lammps.lammps` whose box and atoms are there, on one process. file: the record, by convention
    `<stem>.mrec`. append: go on with the record that is there; its frames after the step where LAMMPS stands are cut,
    so that a run from a restart file leaves none doubled. precision: of positions, in LAMMPS's length; None keeps every
    bit. options: those of `mrec.TrajectoryWriter`.

    A frame has the block "atoms" with the columns id, x, y, z and ix, iy, iz (how often an atom went through the box),
    sorted by id, the cell, and the time. The record's `system` gets ids, types, masses and bonds.

    It is a `fix external` of the name `fix`, which adds no forces. An exception in it ends the run at that step, as a
    timeout does, and is raised by `close`.
    """

    def __init__(
        self,
        lmp: Any,
        file: PathLike,
        every: int,
        *,
        append: bool = False,
        precision: float | None = None,
        fix: str = "mrec",
        **options: Any,
    ) -> None:
        if lmp.extract_setting("world_size") != 1:
            raise MrecError("the atoms are spread over several processes; LammpsWriter writes those of one")
        path = written_path(file)
        if append:
            at = int(lmp.extract_global("ntimestep"))
            self._writer = TrajectoryWriter.open(path, truncate_after_step=at, **options)
        else:
            self._writer = _create(lmp, path, precision, options)
        self._lmp = lmp
        self._fix = fix
        self._error: Exception | None = None
        try:
            lmp.command(f"fix {fix} all external pf/callback {every} 1")
            lmp.set_fix_external_callback(fix, self._called, lmp)
        except BaseException:
            self._writer.close()
            raise

    def _called(self, lmp: Any, step: int, nlocal: int, tag: np.ndarray, x: np.ndarray, force: np.ndarray) -> None:
        # An exception that leaves here would be printed and forgotten.
        try:
            if self._error is None and self._writer.last_step != step:  # where the run before ended
                self._append(step, tag, x)
        except Exception as e:
            self._error = e
            lmp.force_timeout()

    def _append(self, step: int, tag: np.ndarray, x: np.ndarray) -> None:
        order = np.argsort(tag)
        atoms: dict[Any, Any] = {"id": tag[order].astype(np.uint64), _COORDINATES: x[order]}
        atoms[_IMAGES] = _images(self._lmp)[order]
        self._writer.append(step, time=_time(self._lmp, step), box=_cell(self._lmp), blocks={"atoms": atoms})

    def close(self) -> None:
        """Take the fix out, publish what waits, and end the record. Raises what went wrong during a run."""
        if not self._writer.closed:
            try:
                self._lmp.command(f"unfix {self._fix}")
            finally:  # a `clear` has taken the fix out already
                self._writer.close()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def __enter__(self) -> LammpsWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _create(lmp: Any, path: str, precision: float | None, options: dict[str, Any]) -> TrajectoryWriter:
    system = _system(lmp)
    schema = Schema().block("atoms", rows=system["atoms"].nrows).column("id", "u64")
    for name in _COORDINATES:
        schema.column(name, "f64", precision=precision)
    for name in _IMAGES:
        schema.column(name, "i32")
    writer = TrajectoryWriter(path, schema, units=UNITS[lmp.extract_global("units")], **options)
    open_record(path).system = system
    return writer


def _system(lmp: Any) -> Frame:
    """Ids, types and masses of the atoms, sorted by id, and the bonds between them."""
    n = lmp.extract_setting("nlocal")
    tag, types = lmp.numpy.extract_atom("id")[:n], lmp.numpy.extract_atom("type")[:n]
    order = np.argsort(tag)
    own = lmp.numpy.extract_atom("rmass")
    mass = lmp.numpy.extract_atom("mass")[types].ravel() if own is None else own[:n]
    ids = tag[order].astype(np.uint64)
    frame = Frame({"atoms": {"id": ids, "type_id": types[order].astype(np.uint64), "mass": mass[order].copy()}})
    if lmp.extract_setting("molecule_flag") and lmp.extract_global("nbonds"):
        kinds, first, second = lmp.numpy.gather_bonds().T.astype(np.uint64)
        rows = {"atomi": np.searchsorted(ids, first), "atomj": np.searchsorted(ids, second)}
        frame["bonds"] = {**{name: row.astype(np.uint64) for name, row in rows.items()}, "bond_type": kinds}
    return frame


def _images(lmp: Any) -> np.ndarray:
    """(n, 3) int32 out of the three bit fields that LAMMPS keeps in one number."""
    packed = lmp.numpy.extract_atom("image")[: lmp.extract_setting("nlocal")].reshape(-1, 1)
    bits = 10 if lmp.extract_setting("imageint") == 4 else 21
    fields = packed >> np.array([0, bits, 2 * bits], dtype=packed.dtype)
    fields[:, :2] &= 2**bits - 1
    return np.asarray(fields - 2 ** (bits - 1), dtype=np.int32)


def _time(lmp: Any, step: int) -> float:
    since = step - lmp.extract_global("atimestep")
    return float(lmp.extract_global("atime") + since * lmp.extract_global("dt"))


def _cell(lmp: Any) -> Box:
    low, high, xy, yz, xz, periodic, _ = lmp.extract_box()
    a, b, c = np.subtract(high, low)
    return Box.from_rows([[a, 0, 0], [xy, b, 0], [xz, yz, c]], origin=low, periodic=[bool(p) for p in periodic])

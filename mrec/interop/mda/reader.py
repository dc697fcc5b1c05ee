# SPDX-License-Identifier: BSD-3-Clause
"""The frames of a record, for MDAnalysis."""

from __future__ import annotations

import errno
from typing import Any

import numpy as np
from MDAnalysis.coordinates.base import ReaderBase
from MDAnalysis.lib.util import store_init_arguments

from mrec.interop.coordinates import Coordinates, names_record
from mrec.interop.mda.writer import UNITS, MrecWriter

#: Names that MDAnalysis keeps its own data under.
_TAKEN = ("step", "time", "dt", "time_offset")


class MrecReader(ReaderBase):
    """Reads a record: in order, by index and by slice, at the same price.

    Positions, velocities and forces come in MDAnalysis's units, or in the record's with convert_units=False.
    ts.data has the step and the per-step values of a frame by their names ("value_" before the few that MDAnalysis uses
    itself). A record that is being written shows the frames that were published when it was opened.

    dt: the time between frames in ps, instead of the record's times.
    """

    format = "MREC"
    units = UNITS

    @staticmethod
    def _format_hint(thing: Any) -> bool:
        return names_record(thing)

    @store_init_arguments
    def __init__(self, filename: Any, convert_units: bool = True, dt: float | None = None, **kwargs: Any) -> None:
        self._found: Coordinates | None = None
        self._held: dict[str, np.ndarray] = {}
        self._range = range(0)
        self._room: dict[str, np.ndarray] = {}
        super().__init__(filename, convert_units=convert_units, **({} if dt is None else {"dt": dt}), **kwargs)
        self.n_atoms, self.n_frames = self._coordinates.n_atoms, self._coordinates.n_frames
        self._own_times = dt is None
        self.ts = self._Timestep(self.n_atoms, **self._ts_kwargs)
        times = self._coordinates.times
        if times is not None and self._own_times and self.n_frames > 1:
            self.ts.dt = float(times[1] - times[0])
        self._frame = 0
        self._show(0)

    @property
    def _coordinates(self) -> Coordinates:
        if self._found is None:
            self._found = Coordinates(self.filename, native=not self.convert_units)
            names = self._found.frames.schema.values
            self._names = {name: f"value_{name}" if name in _TAKEN else name for name in names}
        return self._found

    @classmethod
    def parse_n_atoms(cls, filename: Any, **kwargs: Any) -> int:
        """The number of atoms of a record."""
        return Coordinates(filename).n_atoms

    def close(self) -> None:
        """Let go of the record; it is opened again when it is used."""
        self._found, self._held, self._range, self._room = None, {}, range(0), {}

    def _reopen(self) -> None:
        self._frame = -1
        self.ts.frame = 0

    def _read_next_timestep(self, ts: Any = None) -> Any:
        if self._frame >= self.n_frames - 1:
            raise OSError(errno.EIO, "there is no further frame")
        return self._read_frame(self._frame + 1)

    def _read_frame(self, i: int) -> Any:
        # Frames are read ahead where they are asked for in their order; the first may be all that is wanted.
        if i not in self._range:
            self._load(i, min(i + self._coordinates.ahead, self.n_frames) if 0 < i == self._frame + 1 else i + 1)
        self._frame = i
        return self._show(i)

    def _load(self, start: int, stop: int) -> None:
        found = self._coordinates
        for kind in found.kinds:
            room = self._room.get(kind)
            if room is None or len(room) < stop - start:
                room = self._room[kind] = np.empty((stop - start, self.n_atoms, 3))
            self._range = range(0)
            self._held[kind] = found.read(kind, slice(start, stop), out=room[: stop - start])
        self._range = range(start, stop)

    def _show(self, i: int) -> Any:
        """Fill the time step with a frame."""
        found, ts = self._coordinates, self.ts
        if i not in self._range:
            self._load(i, i + 1)
        moment = found.moment(i)
        ts.frame = i
        ts.dimensions = moment.sizes
        for kind, values in self._held.items():
            rows = values[i - self._range.start]
            there = found.present(kind, rows, i)
            setattr(ts, f"has_{kind}", there)
            if there:
                getattr(ts, kind)[...] = rows if moment.turn is None else rows @ moment.turn
        if moment.time is not None and self._own_times:
            ts.time = moment.time
        ts.data["step"] = moment.step
        for name, value in moment.values.items():
            ts.data[self._names[name]] = value
        return ts

    def timeseries(
        self,
        asel: Any = None,
        atomgroup: Any = None,
        start: int | None = None,
        stop: int | None = None,
        step: int | None = None,
        order: str | None = "fac",
    ) -> np.ndarray:
        """The positions of many frames as one float32 array; see MDAnalysis's own readers.

        Only the atoms of the group are copied.
        """
        found = self._coordinates
        group = asel if atomgroup is None else atomgroup
        plain = asel is None and not self.transformations and (group is None or len(group) > 0)
        if not plain or order is None or sorted(order) != ["a", "c", "f"] or self._turned():
            return super().timeseries(asel, atomgroup, start, stop, step, order)
        chosen = range(*self.check_slice_indices(start, stop, step))
        rows = None if group is None else group.indices
        result = np.empty((len(chosen), self.n_atoms if rows is None else len(rows), 3), np.float32)
        found.fill("positions", chosen, rows, result)
        return np.moveaxis(result, ["fac".index(axis) for axis in order], [0, 1, 2])

    def _turned(self) -> bool:
        """Whether a frame's cell has to be turned, and its atoms with it."""
        return bool(self._coordinates.cells(0, self.n_frames).turns)

    def Writer(self, filename: Any, n_atoms: int | None = None, **kwargs: Any) -> MrecWriter:
        """A writer of records for as many atoms."""
        return MrecWriter(filename, self.n_atoms if n_atoms is None else n_atoms, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_held": {}, "_range": range(0), "_room": {}}

# SPDX-License-Identifier: BSD-3-Clause
"""Frames of a record, for mdtraj: in nm and ps, float32."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

import numpy as np
from mdtraj import Topology, Trajectory
from mdtraj.utils import cast_indices

from mrec.errors import InvalidValue, MrecError
from mrec.interop.coordinates import Coordinates
from mrec.interop.mdtraj.topology import load_topology
from mrec.record.settled import mark_of

_NM = 0.1

#: The record that was opened last, and what it was: `load_frame` opens one anew for each frame.
_last: tuple[Any, Coordinates] | None = None


def _opened(filename: str | os.PathLike[str]) -> Coordinates:
    """The frames of a record; those that were opened last when the record is as it was."""
    global _last
    identity = _identity(os.path.abspath(os.fsdecode(filename)))
    last = _last
    if last is None or last[0] != identity:
        last = _last = (identity, Coordinates(filename))
    return last[1]


def _identity(path: str) -> tuple[Any, ...]:
    """What changes when a record is replaced, or appended to: its documents are new files then."""
    parts = ("zarr.json", "meta/zarr.json", "system", "trajectory/zarr.json")
    return path, mark_of(path), *(mark_of(os.path.join(path, part)) for part in parts)


def load_mrec(
    filename: str | os.PathLike[str],
    top: Any = None,
    stride: int | None = None,
    atom_indices: Any = None,
    frame: int | None = None,
    standard_names: bool = True,
) -> Trajectory:
    """A record as an `mdtraj.Trajectory`; `mdtraj.load` calls it.

    top: its topology, or the name of a file that has it, in place of that of the record. stride: every so many frames.
    atom_indices: these atoms only.
    frame: this frame only. standard_names is of no effect: names stay as they are.
    """
    with MrecTrajectoryFile(filename) as file:
        if frame is not None:
            file.seek(frame)
            stride = None
        return file.read_as_traj(top, None if frame is None else 1, stride, atom_indices)


def parsed(top: Any) -> Topology:
    """What mdtraj's functions take for a topology: the name of a file, a trajectory, or one."""
    from mdtraj.core.trajectory import _parse_topology  # the one that knows records

    return _parse_topology(top)


def _count(name: str, given: int | None, least: int) -> int:
    if given is not None and given < least:
        raise InvalidValue(f"{name} is {given}; it is {least} or more")
    return 1 if given is None else int(given)


def _rows(atom_indices: Any, n_atoms: int) -> np.ndarray | None:
    """The rows of these atoms; None for all. InvalidValue for one that is not there."""
    if atom_indices is None:
        return None
    given = cast_indices(atom_indices)
    rows = np.arange(n_atoms)[given] if isinstance(given, slice) else np.asarray(given)
    outside = rows[(rows < 0) | (rows >= n_atoms)]
    if len(outside):
        raise InvalidValue(f"atom_indices has {outside[0]}; there are {n_atoms} atoms, counted from 0")
    return rows


class MrecTrajectoryFile:
    """A record as mdtraj's other file objects; `mdtraj.open` makes one. It reads only: the frames that there are
    when it is made.

    A frame is where `seek` puts it; `read` and `read_as_traj` go on from there.
    """

    distance_unit = "nanometers"

    def __init__(self, filename: str | os.PathLike[str], mode: str = "r", force_overwrite: bool = True) -> None:
        if mode != "r":
            raise InvalidValue(f"mdtraj does not write records (mode {mode!r}); mrec.TrajectoryWriter does")
        self._coordinates = _opened(filename)
        self._topology: Topology | None = None
        self._at = 0

    @property
    def topology(self) -> Topology:
        """What the record says of its atoms."""
        if self._topology is None:
            self._topology = load_topology(self._coordinates.path)
        return self._topology

    def read(
        self, n_frames: int | None = None, stride: int | None = None, atom_indices: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
        """The next frames, every `stride`-th: positions (frames, atoms, 3) in nm, times in ps, lengths and angles.

        Without times frames are numbered. Lengths and angles are None when there is no cell.
        """
        found, step = self._coordinates, _count("stride", stride, 1)
        stop = found.n_frames if n_frames is None else self._at + _count("n_frames", n_frames, 0) * step
        frames = range(self._at, max(self._at, min(stop, found.n_frames)), step)
        rows = _rows(atom_indices, found.n_atoms)
        xyz = np.empty((len(frames), found.n_atoms if rows is None else len(rows), 3), np.float32)
        times = np.arange(found.n_frames, dtype=np.float64) if found.times is None else found.times
        cells = found.cells(frames.start, frames.stop) if frames else found.cells(0, 0)
        there = cells.there[::step]
        if len(frames):
            found.fill("positions", frames, rows, xyz, _NM)
        if there.any() and not there.all():
            raise MrecError(
                f"{found.path}: some frames have a cell and others have none; mdtraj has one for all or none"
            )
        for i, turn in cells.turns.items():
            if i % step == 0:
                xyz[i // step] = xyz[i // step] @ turn
        self._at = frames.stop
        if not there.any():
            return xyz, times[frames.start : frames.stop : step], None, None
        sizes = cells.sizes[::step].astype(np.float32)
        sizes[:, :3] = cells.sizes[::step, :3] * _NM
        return xyz, times[frames.start : frames.stop : step], sizes[:, :3], sizes[:, 3:]

    def read_as_traj(
        self,
        topology: Any = None,
        n_frames: int | None = None,
        stride: int | None = None,
        atom_indices: Any = None,
    ) -> Trajectory:
        """The next frames as a trajectory. topology: that of all atoms, in place of the record's."""
        topology = self.topology if topology is None else parsed(topology)
        if topology.n_atoms != self._coordinates.n_atoms:
            raise ValueError(
                f"{self._coordinates.path} has {self._coordinates.n_atoms} atoms, the topology {topology.n_atoms}"
            )
        xyz, times, lengths, angles = self.read(n_frames, stride, atom_indices)
        if atom_indices is not None:
            topology = topology.subset(_rows(atom_indices, topology.n_atoms))
        return Trajectory(xyz, topology, time=times, unitcell_lengths=lengths, unitcell_angles=angles)

    def seek(self, offset: int, whence: int = 0) -> None:
        """Go to a frame, counted from the beginning (0), from here (1) or from the end (2)."""
        at = offset + (0, self._at, len(self))[whence]
        if not 0 <= at <= len(self):
            raise IndexError(f"frame {at} of {len(self)}")
        self._at = at

    def tell(self) -> int:
        """The frame that `read` begins with."""
        return self._at

    def __len__(self) -> int:
        return self._coordinates.n_frames

    def close(self) -> None:
        """Nothing: a record that is read needs no closing."""

    def __enter__(self) -> MrecTrajectoryFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

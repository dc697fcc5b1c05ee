# SPDX-License-Identifier: BSD-3-Clause
"""What a peer is: a program that writes and reads trajectories, by its fastest public calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mrec.bench.data import DataSet

XYZ = ("x", "y", "z")
Frame = tuple[np.ndarray, np.ndarray, np.ndarray]


class Unsupported(Exception):
    """The peer has no way to do this; the text says so in the report."""


class Peer:
    """A program beside mrec. A process makes one, so its imports belong into `__init__`: ImportError means missing.

    name: as on the command line. packages: the distributions whose versions are reported. suffix: of what it writes.
    precisions: which it can store to, None being what it has without any. single: it keeps float32, and so is compared.
    threaded: it writes with more than one thread where there are cores for them.

    An *item* is what reading gives: [x, y, z], each (..., atoms), or where `by_rows` one array (..., atoms, 3). Where a
    method raises Unsupported, the peer does not take part in the job.
    """

    name: str
    packages: tuple[str, ...] = ()
    suffix = ""
    precisions: tuple[float | None, ...] = (None, 1e-3, 1e-2)
    single = False
    by_rows = False
    threaded = False

    # ---- writing ---------------------------------------------------------------------------------------------------

    def given(self, data: DataSet, precision: float | None) -> list[Any]:
        """The frames as the simulation has them, made before the clock starts: (x, y, z) each."""
        return [(x, y, z) for x, y, z in data.xyz]

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        """Make the file or directory `path` of frames that come one at a time, and close it. Nothing is synced."""
        raise NotImplementedError

    def write_threaded(self, path: Path, frames: list[Any], precision: float | None) -> None:
        """`write` with two threads, on two cores."""
        self.write(path, frames, precision)

    def write_durably(self, path: Path, frames: list[Any], precision: float | None) -> None:
        """`write` where each frame is on the disk before the next comes."""
        raise Unsupported("has no durable flush")

    def write_ragged(self, path: Path, frames: list[Frame], precision: float | None) -> None:
        """`write` of frames (x, y, z) that have a number of atoms of their own."""
        raise Unsupported("takes the same number of atoms in each frame")

    def read_ragged(self, path: Path) -> Iterator[list[np.ndarray]]:
        """The frames [x, y, z] that `write_ragged` wrote."""
        raise NotImplementedError

    def write_sparse(
        self, path: Path, frames: list[Any], bonds: dict[int, np.ndarray], precision: float | None
    ) -> None:
        """`write` with bonds i64 (2, bonds) that change at some frames only, and hold until the next of these."""
        raise Unsupported("has no bonds that change")

    def read_bonds(self, path: Path, frames: int) -> Iterator[np.ndarray]:
        """The bonds (2, bonds) of each of the frames that `write_sparse` wrote."""
        raise NotImplementedError

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        """Open what `write` made, add frames, close it. Nothing is synced."""
        raise Unsupported("does not append to a file that is there")

    def pack(self, path: Path) -> Path:
        """Make one file of what `write` made, synced; where it is."""
        raise Unsupported("does not pack")

    # ---- reading ---------------------------------------------------------------------------------------------------

    def open(self, path: Path, data: DataSet) -> Any:
        """A handle to what `write` made; nothing decoded is kept from an earlier one."""
        raise NotImplementedError

    def open_packed(self, path: Path, data: DataSet) -> Any:
        """A handle to what `pack` made."""
        raise Unsupported("reads no packed file")

    def close(self, handle: Any) -> None:
        """Let go of it."""

    def frame(self, handle: Any, i: int) -> Any:
        """Item of one frame."""
        raise NotImplementedError

    def frames(self, handle: Any, data: DataSet) -> Iterator[Any]:
        """An item for each frame, in order."""
        return (self.frame(handle, i) for i in range(data.frames))

    def strided(self, handle: Any, data: DataSet, step: int) -> Iterator[Any]:
        """An item for every step-th frame."""
        return (self.frame(handle, i) for i in range(0, data.frames, step))

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        """An item for every n frames together."""
        raise Unsupported("reads one frame at a time")

    def atom(self, handle: Any, data: DataSet, row: int) -> np.ndarray:
        """One atom over all frames, (frames, 3); here by reading all of them."""
        if self.by_rows:
            return np.array([frame[row] for frame in self.frames(handle, data)])
        return np.array([[column[row] for column in frame] for frame in self.frames(handle, data)])

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        """The x of all atoms over all frames, (frames, atoms); here by reading all three."""
        if self.by_rows:
            return np.array([frame[:, 0] for frame in self.frames(handle, data)])
        return np.array([frame[0] for frame in self.frames(handle, data)])

    # ---- comparing -------------------------------------------------------------------------------------------------

    def in_angstrom(self, values: np.ndarray, precision: float | None) -> np.ndarray:
        """What was read, where a program has a unit of its own."""
        return values

    def tolerance(self, data: DataSet, precision: float | None) -> float:
        """How far what is read may be from what was written."""
        single = 4 * float(np.spacing(np.float32(data.edge))) if self.single else 0.0
        return (precision or 0.0) / 2 + single


class RowPeer(Peer):
    """A program that takes and gives frames as float32 (atoms, 3)."""

    single = True
    by_rows = True
    precisions: tuple[float | None, ...] = (None,)

    def given(self, data: DataSet, precision: float | None) -> list[Any]:
        """One (atoms, 3) a frame."""
        return list(data.rows)


def slab_frames(atoms: int) -> int:
    """Frames in about a megabyte of a column."""
    return max(1, 2**20 // (8 * atoms))


def chunk_frames(atoms: int) -> int:
    """Frames of a chunk that holds a frame, or 16 KiB of a column of small ones."""
    return max(1, 2**14 // (8 * atoms))


def grid(precision: float) -> float:
    """The power of two at or below a precision, whose multiples compress well."""
    return float(2.0 ** np.floor(np.log2(precision)))


def rounded(values: np.ndarray, precision: float | None) -> np.ndarray:
    """To the grid, for programs that leave it to the caller."""
    return values if precision is None else np.rint(values / grid(precision)) * grid(precision)


def batches(frames: list[Any], n: int) -> Iterable[tuple[int, list[Any]]]:
    """Every n frames together, with the number of the first."""
    return ((start, frames[start : start + n]) for start in range(0, len(frames), n))

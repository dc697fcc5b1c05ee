# SPDX-License-Identifier: BSD-3-Clause
"""XTC, TRR and DCD by mdtraj, MDAnalysis and chemfiles, and GSD: float32, one frame after the other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mrec.bench.data import DataSet
from mrec.bench.peer import RowPeer


class _Xtc(RowPeer):
    """XTC keeps integers, 1000 to a nanometre unless told otherwise: 0.01 angstrom."""

    suffix = ".xtc"
    precisions: tuple[float | None, ...] = (1e-3, 1e-2)


class _Mdtraj(RowPeer):
    """A file of mdtraj.formats, which seeks and reads."""

    packages = ("mdtraj",)
    format: str

    def __init__(self) -> None:
        self.file = getattr(import_module("mdtraj.formats"), f"{self.format}TrajectoryFile")

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self.file(str(path), "w") as file:
            for frame in frames:
                file.write(frame[None])

    def open(self, path: Path, data: DataSet) -> Any:
        return self.file(str(path), "r")

    def close(self, handle: Any) -> None:
        handle.close()

    @staticmethod
    def _coordinates(read: Any) -> np.ndarray:
        return read[0]

    def frame(self, handle: Any, i: int) -> Any:
        handle.seek(i)
        return self._coordinates(handle.read(1))[0]

    def frames(self, handle: Any, data: DataSet) -> Iterator[Any]:
        for _ in range(data.frames):
            yield self._coordinates(handle.read(1))[0]

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        for _ in range(0, data.frames, n):
            yield self._coordinates(handle.read(n))

    def atom(self, handle: Any, data: DataSet, row: int) -> np.ndarray:
        return self._coordinates(handle.read(atom_indices=np.array([row])))[:, 0]

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        return self._coordinates(handle.read())[:, :, 0]


class XtcMdtraj(_Mdtraj, _Xtc):
    """mdtraj has 1000 steps a unit and no other precision; for 0.001 angstrom it gets angstrom for nanometres."""

    name = "xtc-mdtraj"
    format = "XTC"

    def given(self, data: DataSet, precision: float | None) -> list[Any]:
        return list(data.rows if precision == 1e-3 else data.rows * np.float32(0.1))

    def in_angstrom(self, values: np.ndarray, precision: float | None) -> np.ndarray:
        return values if precision == 1e-3 else values * 10.0


class TrrMdtraj(_Mdtraj):
    """TRR has no unit that matters here."""

    name = "trr-mdtraj"
    format = "TRR"
    suffix = ".trr"


class DcdMdtraj(_Mdtraj):
    """DCD."""

    name = "dcd-mdtraj"
    format = "DCD"
    suffix = ".dcd"


class _Mdanalysis(RowPeer):
    """A file of MDAnalysis.lib.formats."""

    packages = ("MDAnalysis",)
    kind: tuple[str, str]

    def __init__(self) -> None:
        module, name = self.kind
        self.file = getattr(import_module(f"MDAnalysis.lib.formats.{module}"), name)

    def open(self, path: Path, data: DataSet) -> Any:
        return self.file(str(path), "r")

    def close(self, handle: Any) -> None:
        handle.close()

    def frame(self, handle: Any, i: int) -> Any:
        handle.seek(i)
        return self._next(handle)

    def frames(self, handle: Any, data: DataSet) -> Iterator[Any]:
        for _ in range(data.frames):
            yield self._next(handle)

    def _next(self, handle: Any) -> np.ndarray:
        return handle.read().x


class XtcMdanalysis(_Mdanalysis, _Xtc):
    """What is written is angstrom all the same; the precision is said in its steps."""

    name = "xtc-mdanalysis"
    kind = ("libmdaxdr", "XTCFile")

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        box = np.eye(3, dtype=np.float32)
        with self.file(str(path), "w") as file:
            for i, frame in enumerate(frames):
                file.write(frame, box, i, float(i), 1 / (precision or 1e-3))


class TrrMdanalysis(_Mdanalysis):
    """TRR."""

    name = "trr-mdanalysis"
    kind = ("libmdaxdr", "TRRFile")
    suffix = ".trr"

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        box = np.eye(3, dtype=np.float32)
        with self.file(str(path), "w") as file:
            for i, frame in enumerate(frames):
                file.write(frame, None, None, box, i, float(i), 0.0, len(frame))


class DcdMdanalysis(_Mdanalysis):
    """DCD, which reads many frames at once."""

    name = "dcd-mdanalysis"
    kind = ("libdcd", "DCDFile")
    suffix = ".dcd"

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        box = np.array([1, 1, 1, 90, 90, 90], np.float64)
        with self.file(str(path), "w") as file:
            file.write_header("", len(frames[0]), 0, 1, 1.0, 0)
            for frame in frames:
                file.write(frame, box)

    def _next(self, handle: Any) -> np.ndarray:
        return handle.read().xyz.copy()  # the next frame comes to the same place

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        for start in range(0, data.frames, n):
            yield handle.readframes(start, min(start + n, data.frames)).xyz

    def strided(self, handle: Any, data: DataSet, step: int) -> Iterator[Any]:
        yield from handle.readframes(0, data.frames, step).xyz

    def atom(self, handle: Any, data: DataSet, row: int) -> np.ndarray:
        return handle.readframes(indices=[row]).xyz[:, 0]


class _Chemfiles(RowPeer):
    """chemfiles, which has the unit of each format, and one frame that is filled again and again."""

    packages = ("chemfiles",)
    single = True

    def __init__(self) -> None:
        self.chemfiles = import_module("chemfiles")

    def given(self, data: DataSet, precision: float | None) -> list[Any]:
        return list(data.rows.astype(np.float64))

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        self._write(path, "w", frames, precision)

    def _write(self, path: Path, mode: str, frames: list[Any], precision: float | None) -> None:
        frame = self.chemfiles.Frame()
        frame.resize(len(frames[0]))
        if precision is not None:
            frame["xtc_precision"] = 10 / precision  # steps a nanometre
        with self.chemfiles.Trajectory(str(path), mode) as file:
            for positions in frames:
                frame.positions[:] = positions
                file.write(frame)

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        self._write(path, "a", frames, precision)

    def open(self, path: Path, data: DataSet) -> Any:
        return self.chemfiles.Trajectory(str(path), "r")

    def close(self, handle: Any) -> None:
        handle.close()

    def frame(self, handle: Any, i: int) -> Any:
        return self._positions(handle.read_step(i))

    def frames(self, handle: Any, data: DataSet) -> Iterator[Any]:
        for _ in range(data.frames):
            yield self._positions(handle.read())

    @staticmethod
    def _positions(frame: Any) -> np.ndarray:
        """A copy: what chemfiles gives is gone with its frame."""
        return frame.positions.copy()


class XtcChemfiles(_Chemfiles, _Xtc):
    """XTC."""

    name = "xtc-chemfiles"


class TrrChemfiles(_Chemfiles):
    """TRR."""

    name = "trr-chemfiles"
    suffix = ".trr"


class DcdChemfiles(_Chemfiles):
    """DCD."""

    name = "dcd-chemfiles"
    suffix = ".dcd"


class Gsd(RowPeer):
    """GSD by its file layer, as gsd.hoomd writes."""

    name = "gsd"
    packages = ("gsd",)
    suffix = ".gsd"

    def __init__(self) -> None:
        self.fl = import_module("gsd.fl")

    def _open(self, path: Path, mode: str) -> Any:
        return self.fl.open(str(path), mode, application="mrec bench", schema="hoomd", schema_version=(1, 4))

    def _add(self, file: Any, frames: list[Any], first: int) -> None:
        for i, frame in enumerate(frames, first):
            file.write_chunk("configuration/step", np.array([i], np.uint64))
            if i == 0:
                file.write_chunk("particles/N", np.array([len(frame)], np.uint32))
            file.write_chunk("particles/position", frame)
            file.end_frame()

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self._open(path, "w") as file:
            self._add(file, frames, 0)

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self._open(path, "r+") as file:
            self._add(file, frames, file.nframes)

    def open(self, path: Path, data: DataSet) -> Any:
        return self._open(path, "r")

    def close(self, handle: Any) -> None:
        handle.close()

    def frame(self, handle: Any, i: int) -> Any:
        return handle.read_chunk(frame=i, name="particles/position")

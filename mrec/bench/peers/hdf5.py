# SPDX-License-Identifier: BSD-3-Clause
"""One dataset (frames, atoms, 3): HDF5 as H5MD lays it out, and NetCDF as AMBER does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mrec.bench.data import DataSet
from mrec.bench.peer import Frame, Peer, RowPeer, batches, chunk_frames, rounded, slab_frames


class _Dataset(Peer):
    """A handle is (file, dataset), and the dataset is indexed as an array."""

    by_rows = True

    def close(self, handle: Any) -> None:
        handle[0].close()

    def frame(self, handle: Any, i: int) -> Any:
        return handle[1][i]

    def frames(self, handle: Any, data: DataSet) -> Iterator[Any]:
        for slab in self.slabs(handle, data, slab_frames(data.atoms)):
            yield from slab

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        for start in range(0, data.frames, n):
            yield handle[1][start : start + n]

    def atom(self, handle: Any, data: DataSet, row: int) -> np.ndarray:
        return handle[1][:, row]

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        return handle[1][:, :, 0]


class H5md(_Dataset):
    """h5py; a chunk is written when it is full, and with a precision goes through shuffle and gzip 1.

    (zstd needs a plug-in.)
    """

    name = "h5py"
    packages = ("h5py",)
    suffix = ".h5"

    def __init__(self) -> None:
        self.h5py = import_module("h5py")

    def given(self, data: DataSet, precision: float | None) -> list[Any]:
        return list(np.ascontiguousarray(data.xyz.transpose(0, 2, 1)))

    def _create(self, path: Path, atoms: int, precision: float | None) -> Any:
        file = self.h5py.File(path, "w", libver="latest")
        group = file.create_group("particles/all/position")
        how = {} if precision is None else {"shuffle": True, "compression": "gzip", "compression_opts": 1}
        group.create_dataset(
            "value", (0, atoms, 3), "f8", maxshape=(None, atoms, 3), chunks=(chunk_frames(atoms), atoms, 3), **how
        )
        group.create_dataset("step", (0,), "i8", maxshape=(None,), chunks=(4096,))
        return file

    def _add(self, file: Any, frames: list[Any], n: int, precision: float | None) -> None:
        value, step = (file["particles/all/position"][name] for name in ("value", "step"))
        there = len(value)
        for start, batch in batches(frames, n):
            at = there + start
            value.resize(at + len(batch), axis=0)
            step.resize(at + len(batch), axis=0)
            value[at:] = rounded(np.array(batch), precision)
            step[at:] = np.arange(at, at + len(batch))

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        atoms = len(frames[0])
        with self._create(path, atoms, precision) as file:
            self._add(file, frames, chunk_frames(atoms), precision)

    def write_durably(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self._create(path, len(frames[0]), precision) as file:
            handle = file.id.get_vfd_handle()
            for frame in frames:
                self._add(file, [frame], 1, precision)
                file.flush()
                os.fdatasync(handle)

    def write_ragged(self, path: Path, frames: list[Frame], precision: float | None) -> None:
        with self.h5py.File(path, "w", libver="latest") as file:
            value = file.create_dataset("value", (0, 3), "f8", maxshape=(None, 3), chunks=(2048, 3))
            ends = file.create_dataset("ends", (0,), "i8", maxshape=(None,), chunks=(4096,))
            for start, batch in batches(frames, chunk_frames(len(frames[0][0]))):
                rows = np.concatenate([np.stack(frame, axis=1) for frame in batch])
                at = len(value)
                value.resize(at + len(rows), axis=0)
                value[at:] = rounded(rows, precision)
                ends.resize(start + len(batch), axis=0)
                ends[start:] = at + np.cumsum([len(frame[0]) for frame in batch])

    def read_ragged(self, path: Path) -> Iterator[list[np.ndarray]]:
        with self.h5py.File(path, "r") as file:
            start = 0
            for stop in file["ends"][:].tolist():
                yield list(file["value"][start:stop].T)
                start = stop

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self.h5py.File(path, "r+", libver="latest") as file:
            self._add(file, frames, len(frames), precision)

    def open(self, path: Path, data: DataSet) -> Any:
        file = self.h5py.File(path, "r")
        return file, file["particles/all/position/value"]


class NetCdf(_Dataset, RowPeer):
    """netCDF4, in the conventions of AMBER; float32."""

    name = "netcdf"
    packages = ("netCDF4",)
    suffix = ".nc"

    def __init__(self) -> None:
        self.dataset = import_module("netCDF4").Dataset

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self.dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as file:
            file.set_fill_off()
            file.createDimension("frame", None)
            file.createDimension("atom", len(frames[0]))
            file.createDimension("spatial", 3)
            file.setncatts({"Conventions": "AMBER", "ConventionVersion": "1.0"})
            value = file.createVariable("coordinates", "f4", ("frame", "atom", "spatial"))
            value.units = "angstrom"
            for i, frame in enumerate(frames):
                value[i] = frame

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self.dataset(path, "a") as file:
            value = file["coordinates"]
            there = len(value)
            for i, frame in enumerate(frames):
                value[there + i] = frame

    def open(self, path: Path, data: DataSet) -> Any:
        file = self.dataset(path, "r")
        file.set_auto_mask(False)
        return file, file["coordinates"]

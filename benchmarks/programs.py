# SPDX-License-Identifier: BSD-3-Clause
"""Each program by its fastest public way: frames come one at a time, and what is read ends as arrays in memory.

No program syncs. A read yields [x, y, z], each (atoms,) or, in slabs, (frames, atoms).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import mdtraj.formats
import molrs
import numpy as np
import zarr
from molrs.io.mrec import MrecReader, MrecWriter, SequenceSchema
from zarr.codecs import ZstdCodec
from zarr.codecs.numcodecs import Shuffle

import mrec
from benchmarks.data import PRECISION, Water

XYZ = ("x", "y", "z")
COLUMNS = [("atoms", name) for name in XYZ]


def slab(water: Water) -> int:
    """Frames in about a megabyte a column."""
    return max(1, 2**20 // (8 * water.atoms))


class Program:
    """write() makes the file or directory at `path`; the readers then work on what open() keeps."""

    name: str
    modes = ("raw", "p=1e-3")

    def write(self, path: Path, water: Water, precise: bool) -> None:
        raise NotImplementedError

    def open(self, path: Path, water: Water) -> Any:
        raise NotImplementedError

    def frame(self, opened: Any, i: int) -> list[np.ndarray]:
        raise NotImplementedError

    def frames(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]]:
        for i in range(water.frames):
            yield self.frame(opened, i)

    def slabs(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]] | None:
        """None: there is no such way."""
        return None


class Mrec(Program):
    name = "mrec"

    def write(self, path: Path, water: Water, precise: bool) -> None:
        schema = mrec.Schema().block("atoms", rows=water.atoms)
        for name in XYZ:
            schema.column(name, "f64", precision=PRECISION if precise else None)
        with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
            for i, (x, y, z) in enumerate(water.xyz):
                writer.append(i, atoms={"x": x, "y": y, "z": z})

    def open(self, path: Path, water: Water) -> Any:
        return mrec.open(path).trajectory

    def frame(self, opened: Any, i: int) -> list[np.ndarray]:
        atoms = opened[i]["atoms"]
        return [atoms["x"], atoms["y"], atoms["z"]]

    def frames(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]]:
        for frame in opened:
            atoms = frame["atoms"]
            yield [atoms["x"], atoms["y"], atoms["z"]]

    def slabs(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]]:
        n = slab(water)
        for start in range(0, water.frames, n):
            yield [opened.read("atoms", name, frames=slice(start, start + n)) for name in XYZ]


class Molrs(Program):
    name = "molrs"

    def write(self, path: Path, water: Water, precise: bool) -> None:
        schema = SequenceSchema.from_frames([]).declare_block("atoms", water.atoms)
        for name in XYZ:
            schema.declare_column("atoms", name, "f64")
            if precise:
                schema.declare_precision("atoms", name, PRECISION)
        with MrecWriter(path, schema, durable=False) as writer:
            for i, (x, y, z) in enumerate(water.xyz):
                writer.append(molrs.Frame({"atoms": {"x": x, "y": y, "z": z}}), i)

    def open(self, path: Path, water: Water) -> Any:
        return MrecReader(path)

    def frame(self, opened: Any, i: int) -> list[np.ndarray]:
        atoms = opened.frame_columns(i, COLUMNS)["atoms"]
        return [atoms["x"], atoms["y"], atoms["z"]]


class Zarr(Program):
    """Whole shards at a time; frame by frame it would write each chunk many times over."""

    name = "zarr-python"

    def write(self, path: Path, water: Water, precise: bool) -> None:
        group = zarr.create_group(path)
        chunk = max(1, 2**14 // (8 * water.atoms))
        shard = chunk * max(1, 4 * slab(water) // chunk)
        compressors = [Shuffle(elementsize=8), ZstdCodec(level=3)] if precise else None
        for name in XYZ:
            group.create_array(
                name,
                shape=(water.frames, water.atoms),
                chunks=(chunk, water.atoms),
                shards=(shard, water.atoms),
                dtype="f8",
                compressors=compressors,
            )
        for start in range(0, water.frames, shard):
            for k, name in enumerate(XYZ):
                group[name][start : start + shard] = water.xyz[start : start + shard, k]

    def open(self, path: Path, water: Water) -> Any:
        group = zarr.open_group(path, mode="r")
        return [group[name] for name in XYZ]

    def frame(self, opened: Any, i: int) -> list[np.ndarray]:
        return [array[i] for array in opened]

    def frames(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]] | None:
        return None

    def slabs(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]]:
        n = 4 * slab(water)
        for start in range(0, water.frames, n):
            yield [array[start : start + n] for array in opened]


class H5py(Program):
    """A chunk holds a frame or 16 KiB; for the precision, shuffle and gzip 1 (zstd needs a plug-in)."""

    name = "h5py"

    def write(self, path: Path, water: Water, precise: bool) -> None:
        chunk = max(1, 2**14 // (8 * water.atoms))
        with h5py.File(path, "w", libver="latest") as file:
            options = {"shuffle": True, "compression": "gzip", "compression_opts": 1} if precise else {}
            shape = (water.frames, water.atoms)
            x, y, z = (
                file.create_dataset(n, shape, "f8", chunks=(min(chunk, water.frames), water.atoms), **options)
                for n in XYZ
            )
            for start in range(0, water.frames, chunk):
                block = water.xyz[start : start + chunk]
                x[start : start + chunk], y[start : start + chunk], z[start : start + chunk] = block.swapaxes(0, 1)

    def open(self, path: Path, water: Water) -> Any:
        file = h5py.File(path, "r")
        return [file[name] for name in XYZ]

    def frame(self, opened: Any, i: int) -> list[np.ndarray]:
        return [dataset[i] for dataset in opened]

    def slabs(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]]:
        n = slab(water)
        for start in range(0, water.frames, n):
            yield [dataset[start : start + n] for dataset in opened]


class Xtc(Program):
    """XTC keeps 1000 steps a unit of length; angstroms are passed as they are, for a grid of 0.001 angstrom."""

    name = "XTC"
    modes = ("p=1e-3",)

    def write(self, path: Path, water: Water, precise: bool) -> None:
        with mdtraj.formats.XTCTrajectoryFile(str(path), "w") as file:
            for frame in water.rows:
                file.write(frame[None])

    def open(self, path: Path, water: Water) -> Any:
        file = mdtraj.formats.XTCTrajectoryFile(str(path), "r")
        len(file)  # the pass over the file that finds the frames
        return file

    def frame(self, opened: Any, i: int) -> list[np.ndarray]:
        opened.seek(i)
        return list(opened.read(1)[0][0].T)

    def frames(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]]:
        opened.seek(0)
        for _ in range(water.frames):
            yield list(opened.read(1)[0][0].T)

    def slabs(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]]:
        opened.seek(0)
        n = slab(water)
        for _ in range(0, water.frames, n):
            yield list(opened.read(n)[0].transpose(2, 0, 1))


class Plain(Program):
    """The floor: the same bytes through one buffered file."""

    name = "plain file"
    modes = ("raw",)

    def write(self, path: Path, water: Water, precise: bool) -> None:
        with open(path, "wb") as file:
            for frame in water.xyz:
                for column in frame:
                    file.write(column)

    def open(self, path: Path, water: Water) -> Any:
        return os.open(path, os.O_RDONLY), water.atoms

    def frame(self, opened: Any, i: int) -> list[np.ndarray]:
        return [column[0] for column in self._read(opened, i, 1)]

    def slabs(self, opened: Any, water: Water) -> Iterator[list[np.ndarray]]:
        n = slab(water)
        for start in range(0, water.frames, n):
            yield self._read(opened, start, min(n, water.frames - start))

    def _read(self, opened: Any, start: int, n: int) -> list[np.ndarray]:
        file, atoms = opened
        xyz = np.empty((n, 3, atoms))
        os.preadv(file, [xyz], start * 24 * atoms)
        return [xyz[:, 0], xyz[:, 1], xyz[:, 2]]


PROGRAMS: list[Program] = [Mrec(), Molrs(), Zarr(), H5py(), Xtc(), Plain()]

# SPDX-License-Identifier: BSD-3-Clause
"""Records: mrec itself, with another chunk too, and molrs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import mrec
from mrec.bench.data import DataSet
from mrec.bench.peer import XYZ, Frame, Peer


class Mrec(Peer):
    """mrec as it comes."""

    name = "mrec"
    packages = ("mrec",)
    suffix = ".mrec"
    threaded = True

    def options(self, atoms: int) -> dict[str, Any]:
        """Of the writer, beside those that a job sets."""
        return {}

    def writer(self, path: Path, atoms: int, precision: float | None, bonds: int = 0, **options: Any) -> Any:
        """For the columns x, y and z, and those of so many bonds."""
        schema = mrec.Schema().block("atoms", rows=atoms)
        for name in XYZ:
            schema.column(name, "f64", precision=precision)
        if bonds:
            schema.block("bonds", rows=bonds).column("i", "i64").column("j", "i64")
        return mrec.TrajectoryWriter(path, schema, **{"durable": False, **self.options(atoms), **options})

    def write(self, path: Path, frames: list[Any], precision: float | None, **options: Any) -> None:
        with self.writer(path, len(frames[0][0]), precision, **options) as writer:
            append = writer.append
            for i, (x, y, z) in enumerate(frames):
                append(i, atoms={"x": x, "y": y, "z": z})

    def write_threaded(self, path: Path, frames: list[Any], precision: float | None) -> None:
        self.write(path, frames, precision, threads=2)

    def write_durably(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self.writer(path, len(frames[0][0]), precision, durable=True) as writer:
            for i, (x, y, z) in enumerate(frames):
                writer.append(i, atoms={"x": x, "y": y, "z": z})
                writer.flush()

    def write_ragged(self, path: Path, frames: list[Frame], precision: float | None) -> None:
        with self.writer(path, max(len(frame[0]) for frame in frames), precision) as writer:
            for i, (x, y, z) in enumerate(frames):
                writer.append(i, atoms={"x": x, "y": y, "z": z})

    def read_ragged(self, path: Path) -> Iterator[list[np.ndarray]]:
        for frame in mrec.open(path).trajectory:
            yield [frame["atoms"][name] for name in XYZ]

    def write_sparse(
        self, path: Path, frames: list[Any], bonds: dict[int, np.ndarray], precision: float | None
    ) -> None:
        with self.writer(path, len(frames[0][0]), precision, bonds=bonds[0].shape[1]) as writer:
            for i, (x, y, z) in enumerate(frames):
                atoms = {"x": x, "y": y, "z": z}
                if i in bonds:
                    writer.append(i, atoms=atoms, bonds={"i": bonds[i][0], "j": bonds[i][1]})
                else:
                    writer.append(i, atoms=atoms)

    def read_bonds(self, path: Path, frames: int) -> Iterator[np.ndarray]:
        for frame in mrec.open(path).trajectory:
            yield np.array([frame["bonds"]["i"], frame["bonds"]["j"]])

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with mrec.TrajectoryWriter.open(path, durable=False) as writer:
            for x, y, z in frames:
                writer.append(atoms={"x": x, "y": y, "z": z})

    def pack(self, path: Path) -> Path:
        return Path(mrec.pack(path))

    def open(self, path: Path, data: DataSet) -> Any:
        return mrec.open(path)

    def open_packed(self, path: Path, data: DataSet) -> Any:
        return mrec.open(path)

    def close(self, handle: Any) -> None:
        handle.close()

    def frame(self, handle: Any, i: int) -> Any:
        atoms = handle.trajectory[i]["atoms"]
        return [atoms["x"], atoms["y"], atoms["z"]]

    def frames(self, handle: Any, data: DataSet) -> Iterator[Any]:
        for frame in handle.trajectory:
            atoms = frame["atoms"]
            yield [atoms["x"], atoms["y"], atoms["z"]]

    def strided(self, handle: Any, data: DataSet, step: int) -> Iterator[Any]:
        for frame in handle.trajectory[::step]:
            atoms = frame["atoms"]
            yield [atoms["x"], atoms["y"], atoms["z"]]

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        read = handle.trajectory.read
        for start in range(0, data.frames, n):
            yield [read("atoms", name, frames=slice(start, start + n)) for name in XYZ]

    def atom(self, handle: Any, data: DataSet, row: int) -> np.ndarray:
        return handle.trajectory.read("atoms", XYZ, rows=[row])[:, 0]

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        return handle.trajectory.read("atoms", "x")


class MrecCoarse(Mrec):
    """mrec with 256 KiB in a chunk: smaller files, coarser random access."""

    name = "mrec-256KiB"

    def options(self, atoms: int) -> dict[str, Any]:
        return {"chunk": "256KiB"}


class MrecDense(Mrec):
    """mrec with 768 KiB in a chunk and 4 chunks in a shard, whose index then takes next to nothing of a small file."""

    name = "mrec-768KiB"

    def options(self, atoms: int) -> dict[str, Any]:
        return {"chunk": "768KiB", "chunks_per_shard": 4}


class Molrs(Peer):
    """molrs, which has a durable flush of its own and threads that it takes by itself."""

    name = "molrs"
    packages = ("molcrafts-molrs",)
    suffix = ".mrec"
    threaded = True

    def __init__(self) -> None:
        self.molrs = import_module("molrs")
        self.mrec = import_module("molrs.io.mrec")
        self.columns = [("atoms", name) for name in XYZ]

    def writer(self, path: Path, atoms: int, precision: float | None, bonds: int = 0, **options: Any) -> Any:
        """As that of mrec."""
        schema = self.mrec.SequenceSchema.from_frames([]).declare_block("atoms", atoms)
        for name in XYZ:
            schema.declare_column("atoms", name, "f64")
            if precision is not None:
                schema.declare_precision("atoms", name, precision)
        if bonds:
            schema.declare_block("bonds", bonds)
            schema.declare_column("bonds", "i", "i64")
            schema.declare_column("bonds", "j", "i64")
        return self.mrec.MrecWriter(path, schema, **{"durable": False, **options})

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        frame = self.molrs.Frame
        with self.writer(path, len(frames[0][0]), precision) as writer:
            for i, (x, y, z) in enumerate(frames):
                writer.append(frame({"atoms": {"x": x, "y": y, "z": z}}), i)

    def write_durably(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self.writer(path, len(frames[0][0]), precision, durable=True) as writer:
            for i, (x, y, z) in enumerate(frames):
                writer.append(self.molrs.Frame({"atoms": {"x": x, "y": y, "z": z}}), i)
                writer.flush()

    def write_ragged(self, path: Path, frames: list[Frame], precision: float | None) -> None:
        with self.writer(path, max(len(frame[0]) for frame in frames), precision) as writer:
            for i, (x, y, z) in enumerate(frames):
                writer.append(self.molrs.Frame({"atoms": {"x": x, "y": y, "z": z}}), i)

    def read_ragged(self, path: Path) -> Iterator[list[np.ndarray]]:
        reader = self.mrec.MrecReader(path)
        return (self.frame(reader, i) for i in range(len(reader)))

    def write_sparse(
        self, path: Path, frames: list[Any], bonds: dict[int, np.ndarray], precision: float | None
    ) -> None:
        with self.writer(path, len(frames[0][0]), precision, bonds=bonds[0].shape[1]) as writer:
            for i, (x, y, z) in enumerate(frames):
                blocks = {"atoms": {"x": x, "y": y, "z": z}}
                if i in bonds:
                    blocks["bonds"] = {"i": bonds[i][0], "j": bonds[i][1]}
                writer.append(self.molrs.Frame(blocks), i)

    def read_bonds(self, path: Path, frames: int) -> Iterator[np.ndarray]:
        reader = self.mrec.MrecReader(path)
        for i in range(frames):
            found = reader.frame_columns(i, [("bonds", "i"), ("bonds", "j")])["bonds"]
            yield np.array([found["i"], found["j"]])

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        with self.mrec.MrecWriter.open(path, durable=False) as writer:
            for x, y, z in frames:
                writer.append(self.molrs.Frame({"atoms": {"x": x, "y": y, "z": z}}))

    def pack(self, path: Path) -> Path:
        self.mrec.pack_mrec_zip(path)
        return path.with_name(path.name + ".zip")

    def open(self, path: Path, data: DataSet) -> Any:
        return self.mrec.MrecReader(path)

    def open_packed(self, path: Path, data: DataSet) -> Any:
        return self.mrec.MrecReader(path)

    def frame(self, handle: Any, i: int) -> Any:
        atoms = handle.frame_columns(i, self.columns)["atoms"]
        return [atoms["x"], atoms["y"], atoms["z"]]

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        return np.array([handle.frame_columns(i, self.columns[:1])["atoms"]["x"] for i in range(data.frames)])

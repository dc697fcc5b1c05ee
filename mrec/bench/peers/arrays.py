# SPDX-License-Identifier: BSD-3-Clause
"""Zarr by other programs: one sharded array a column, whole shards at a time.

Frame by frame they would write each chunk of a shard many times over.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mrec.bench.data import DataSet
from mrec.bench.peer import XYZ, Peer, batches, chunk_frames, rounded, slab_frames


def shard_frames(atoms: int, frames: int) -> int:
    """A multiple of the chunk, of about 4 MiB."""
    chunk = chunk_frames(atoms)
    return chunk * max(1, min(4 * slab_frames(atoms), frames) // chunk)


class ZarrPython(Peer):
    """zarr-python, compressing with byte shuffle and zstd where there is a precision."""

    name = "zarr-python"
    packages: tuple[str, ...] = ("zarr",)
    suffix = ".zarr"
    threaded = True

    def __init__(self) -> None:
        self.zarr = import_module("zarr")
        self.zip = import_module("zarr.storage").ZipStore
        self.codecs = import_module("zarr.codecs")
        self.shuffle = import_module("zarr.codecs.numcodecs").Shuffle

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        atoms = len(frames[0][0])
        shard = shard_frames(atoms, len(frames))
        compress = None if precision is None else [self.shuffle(elementsize=8), self.codecs.ZstdCodec(level=3)]
        group = self.zarr.create_group(path)
        arrays = [
            group.create_array(
                name,
                shape=(len(frames), atoms),
                chunks=(chunk_frames(atoms), atoms),
                shards=(shard, atoms),
                dtype="f8",
                compressors=compress,
            )
            for name in XYZ
        ]
        for start, batch in batches(frames, shard):
            for k, array in enumerate(arrays):
                array[start : start + len(batch)] = rounded(np.array([frame[k] for frame in batch]), precision)

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        group = self.zarr.open_group(path, mode="r+")
        for k, name in enumerate(XYZ):
            group[name].append(rounded(np.array([frame[k] for frame in frames]), precision))

    def pack(self, path: Path) -> Path:
        packed = path.with_name(path.name + ".zip")
        with zipfile.ZipFile(packed, "w") as made:
            for file in sorted(path.rglob("*")):
                if file.is_file():
                    made.write(file, file.relative_to(path))
        return packed

    def open(self, path: Path, data: DataSet) -> Any:
        group = self.zarr.open_group(path, mode="r")
        return [group[name] for name in XYZ]

    def open_packed(self, path: Path, data: DataSet) -> Any:
        group = self.zarr.open_group(self.zip(path, mode="r"), mode="r")
        return [group[name] for name in XYZ]

    def frame(self, handle: Any, i: int) -> Any:
        return [array[i] for array in handle]

    def frames(self, handle: Any, data: DataSet) -> Iterator[Any]:
        for columns in self.slabs(handle, data, 0):
            yield from zip(*columns, strict=True)

    def strided(self, handle: Any, data: DataSet, step: int) -> Iterator[Any]:
        yield from zip(*(array[::step] for array in handle), strict=True)

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        n = shard_frames(data.atoms, data.frames)
        for start in range(0, data.frames, n):
            yield [array[start : start + n] for array in handle]

    def atom(self, handle: Any, data: DataSet, row: int) -> np.ndarray:
        return np.stack([array[:, row] for array in handle], axis=1)

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        return handle[0][:]


class Zarrs(ZarrPython):
    """zarr-python with the codecs of zarrs."""

    name = "zarrs"
    packages = ("zarrs", "zarr")

    def __init__(self) -> None:
        super().__init__()
        import_module("zarrs")
        self.zarr.config.set({"codec_pipeline.path": "zarrs.ZarrsCodecPipeline"})

    def open_packed(self, path: Path, data: DataSet) -> Any:
        return Peer.open_packed(self, path, data)  # its own store for zip files reads no local ones


class TensorStore(Peer):
    """tensorstore; its shuffle is that of blosc."""

    name = "tensorstore"
    packages = ("tensorstore",)
    suffix = ".zarr"
    threaded = True

    def __init__(self) -> None:
        self.tensorstore = import_module("tensorstore")

    def _open(self, path: Path, name: str, **options: Any) -> Any:
        kvstore = {"driver": "file", "path": str(path / name), "file_io_sync": False}
        return self.tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, **options).result()

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        atoms = len(frames[0][0])
        shard = shard_frames(atoms, len(frames))
        codecs: list[dict[str, Any]] = [{"name": "bytes", "configuration": {"endian": "little"}}]
        if precision is not None:
            blosc = {"cname": "zstd", "clevel": 3, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}
            codecs.append({"name": "blosc", "configuration": blosc})
        sharding = {"chunk_shape": [chunk_frames(atoms), atoms], "codecs": codecs}
        metadata = {
            "shape": [len(frames), atoms],
            "data_type": "float64",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [shard, atoms]}},
            "codecs": [{"name": "sharding_indexed", "configuration": sharding}],
        }
        make = self.tensorstore.open
        arrays = []
        for name in XYZ:
            kvstore = {"driver": "file", "path": str(path / name), "file_io_sync": False}
            spec = {"driver": "zarr3", "kvstore": kvstore, "metadata": metadata}
            arrays.append(make(spec, create=True, delete_existing=True).result())
        for start, batch in batches(frames, shard):
            waiting = [
                array[start : start + len(batch)].write(rounded(np.array([frame[k] for frame in batch]), precision))
                for k, array in enumerate(arrays)
            ]
            for write in waiting:
                write.result()

    def open(self, path: Path, data: DataSet) -> Any:
        return [self._open(path, name, read=True) for name in XYZ]

    def frame(self, handle: Any, i: int) -> Any:
        return [read.result() for read in [array[i].read() for array in handle]]

    def frames(self, handle: Any, data: DataSet) -> Iterator[Any]:
        for columns in self.slabs(handle, data, 0):
            yield from zip(*columns, strict=True)

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        n = shard_frames(data.atoms, data.frames)
        for start in range(0, data.frames, n):
            stop = min(start + n, data.frames)
            yield [read.result() for read in [array[start:stop].read() for array in handle]]

    def atom(self, handle: Any, data: DataSet, row: int) -> np.ndarray:
        return np.stack([read.result() for read in [array[:, row].read() for array in handle]], axis=1)

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        return handle[0].read().result()

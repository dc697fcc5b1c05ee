# SPDX-License-Identifier: BSD-3-Clause
"""What the same bytes cost without any format: a plain file, and zstandard with numpy."""

from __future__ import annotations

import functools
import os
import struct
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from mrec.bench.data import DataSet
from mrec.bench.peer import Frame, Peer, batches, chunk_frames, rounded

GATHER = 340  # frames of three columns in one call, of which a call takes 1024 buffers
LARGE = 2**20  # bytes that are worth a call of their own


class Plain(Peer):
    """The caller's arrays gathered into one file, and read back by preadv."""

    name = "plain"
    precisions = (None,)

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        self._add(file, frames)
        os.close(file)

    def _add(self, file: int, frames: list[Any]) -> None:
        size = frames[0][0].nbytes * 3
        at = os.fstat(file).st_size
        for _, batch in batches(frames, max(1, min(GATHER, LARGE // size))):
            at += os.pwritev(file, [column for frame in batch for column in frame], at)

    def write_durably(self, path: Path, frames: list[Any], precision: float | None) -> None:
        file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        for i, frame in enumerate(frames):
            os.pwritev(file, frame, i * frame[0].nbytes * 3)
            os.fdatasync(file)
        os.close(file)

    def write_ragged(self, path: Path, frames: list[Frame], precision: float | None) -> None:
        with open(path, "wb") as file:
            for frame in frames:
                file.write(struct.pack("<q", len(frame[0])))
                file.writelines(frame)

    def read_ragged(self, path: Path) -> Iterator[list[np.ndarray]]:
        with open(path, "rb") as file:
            while head := file.read(8):
                rows = struct.unpack("<q", head)[0]
                yield list(np.fromfile(file, "f8", 3 * rows).reshape(3, rows))

    def append(self, path: Path, frames: list[Any], precision: float | None) -> None:
        file = os.open(path, os.O_WRONLY)
        self._add(file, frames)
        os.close(file)

    def pack(self, path: Path) -> Path:
        """A copy inside the kernel."""
        packed = path.with_name(path.name + ".copy")
        with open(path, "rb") as source, open(packed, "wb") as target:
            at, size = 0, path.stat().st_size
            while at < size:
                at += os.sendfile(target.fileno(), source.fileno(), at, size - at)
            os.fsync(target.fileno())
        return packed

    def open(self, path: Path, data: DataSet) -> Any:
        return os.open(path, os.O_RDONLY), data.atoms

    def open_packed(self, path: Path, data: DataSet) -> Any:
        return self.open(path, data)

    def close(self, handle: Any) -> None:
        os.close(handle[0])

    def frame(self, handle: Any, i: int) -> Any:
        file, atoms = handle
        xyz = np.empty((3, atoms))
        os.preadv(file, [xyz], i * xyz.nbytes)
        return list(xyz)

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        file, atoms = handle
        for start in range(0, data.frames, n):
            xyz = np.empty((min(n, data.frames - start), 3, atoms))
            os.preadv(file, [xyz], start * 24 * atoms)
            yield [xyz[:, 0], xyz[:, 1], xyz[:, 2]]

    def atom(self, handle: Any, data: DataSet, row: int) -> np.ndarray:
        return np.array(self._mapped(handle, data)[:, :, row])

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        return np.array(self._mapped(handle, data)[:, 0])

    def _mapped(self, handle: Any, data: DataSet) -> np.ndarray:
        with os.fdopen(os.dup(handle[0]), "rb") as file:
            return np.memmap(file, "f8", "r", shape=(data.frames, 3, data.atoms))


class Zstandard(Peer):
    """numpy's rounding and byte shuffle with zstd level 3, a chunk a column, in one file: what any format would do."""

    name = "zstandard"
    packages = ("zstandard", "numpy")

    def __init__(self) -> None:
        self.zstandard = import_module("zstandard")

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        compress = self.zstandard.ZstdCompressor(level=3).compress
        index, at = [], 0
        with open(path, "wb") as file:
            for _, batch in batches(frames, chunk_frames(len(frames[0][0]))):
                for k in range(3):
                    values = rounded(np.array([frame[k] for frame in batch]), precision)
                    chunk = compress(values.reshape(-1).view(np.uint8).reshape(-1, 8).T.tobytes())
                    file.write(chunk)
                    index.append((at, len(chunk)))
                    at += len(chunk)
            file.write(np.array(index, np.int64).tobytes())
            file.write(struct.pack("<q", len(index)))

    def open(self, path: Path, data: DataSet) -> Any:
        file = os.open(path, os.O_RDONLY)
        end = os.fstat(file).st_size - 8
        (entries,) = struct.unpack("<q", os.pread(file, 8, end))
        index = np.frombuffer(os.pread(file, 16 * entries, end - 16 * entries), np.int64).reshape(-1, 3, 2).tolist()
        decompress = self.zstandard.ZstdDecompressor().decompress

        @functools.lru_cache(maxsize=6)
        def chunk(i: int, k: int) -> np.ndarray:
            offset, size = index[i][k]
            planes = np.frombuffer(decompress(os.pread(file, size, offset)), np.uint8).reshape(8, -1)
            return planes.T.copy().view(np.float64).reshape(-1, data.atoms)

        return file, len(index), chunk, chunk_frames(data.atoms)

    def close(self, handle: Any) -> None:
        os.close(handle[0])

    def frame(self, handle: Any, i: int) -> Any:
        chunk = handle[2]
        c, at = divmod(i, handle[3])
        return [chunk(c, k)[at] for k in range(3)]

    def slabs(self, handle: Any, data: DataSet, n: int) -> Iterator[Any]:
        for c in range(handle[1]):
            yield [handle[2](c, k) for k in range(3)]

    def column(self, handle: Any, data: DataSet) -> np.ndarray:
        return np.concatenate([handle[2](c, 0) for c in range(handle[1])])

# SPDX-License-Identifier: BSD-3-Clause
"""One variable of a container: its arrays, and their values from the blocks that have them."""

from __future__ import annotations

import struct
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np

from mrec._core import SegmentFooter, block_decode, crc32c
from mrec.collection import grid
from mrec.collection.elements import decode_chunk, dtype_of, room
from mrec.collection.kinds import Kind, stored_kind, unpack_fill
from mrec.collection.place import CONTAINER, Place
from mrec.errors import CorruptData

MAGIC = b"ARRF"
END = 12
FIRST_READ = 64 << 10
PIECE = 4 << 20


class BlockCache:
    """Decoded blocks, those used last, of at most so many bytes together. Thread-safe."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._lock = threading.Lock()
        self._blocks: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._held = 0

    def get(self, key: tuple[str, int]) -> bytes | None:
        """A block, which counts as used."""
        with self._lock:
            found = self._blocks.get(key)
            if found is not None:
                self._blocks.move_to_end(key)
            return found

    def put(self, key: tuple[str, int], block: bytes) -> None:
        """Keep it, unless it alone is too large."""
        with self._lock:
            if len(block) > self.nbytes or key in self._blocks:
                return
            self._blocks[key] = block
            self._held += len(block)
            while self._held > self.nbytes:
                self._held -= len(self._blocks.popitem(last=False)[1])


class ArrayInfo:
    """What a segment says of one array."""

    __slots__ = ("chunk_shape", "dims", "fill", "kind", "nchunks", "shape")

    def __init__(self, found: Any) -> None:
        code, self.shape, self.dims, self.chunk_shape, fill, self.nchunks = found
        self.kind: Kind = stored_kind(code)
        self.fill = unpack_fill(self.kind, fill)


class Segment:
    """A variable's part of the container."""

    def __init__(self, place: Place, name: str, offset: int, size: int, cache: BlockCache, crc: int | None) -> None:
        self.place = place
        self.name = name
        self.offset = offset
        self.size = size
        self.cache = cache
        self.where = f"{place.path(CONTAINER)}, variable {name!r}"
        end = self._tail()
        n, magic = struct.unpack("<Q4s", end[-END:])
        if magic != MAGIC or n > size - END:
            raise CorruptData(f"{self.where}: this is no segment")
        if crc is not None:
            self._check(crc)
        footer = end[-END - n : -END] if n + END <= len(end) else place.read(CONTAINER, offset + size - END - n, n)
        try:
            self.footer = SegmentFooter(footer, size - END - n)
            names = self.names = self.footer.names()
        except CorruptData as e:
            raise CorruptData(f"{self.where}: {e}") from None
        self.numbers = {dataset: i for i, dataset in enumerate(names)}
        if len(self.numbers) != len(names):
            raise CorruptData(f"{self.where}: a data set is there twice")

    def _tail(self) -> bytes:
        if self.size < END:
            raise CorruptData(f"{self.where}: {self.size} bytes are no segment")
        n = min(self.size, FIRST_READ)
        return self.place.read(CONTAINER, self.offset + self.size - n, n)

    def _check(self, expected: int) -> None:
        crc = 0
        for piece in self.pieces(0, self.size):
            crc = crc32c(piece, crc)
        if crc != expected:
            raise CorruptData(f"{self.where}: the checksum does not match")

    def pieces(self, offset: int, n: int) -> Iterator[bytes]:
        """n bytes as they are stored, from `offset` in the segment on."""
        for done in range(0, n, PIECE):
            yield self.place.read(CONTAINER, self.offset + offset + done, min(PIECE, n - done))

    def info(self, number: int) -> ArrayInfo:
        """Type, shape and so on of an array."""
        try:
            return ArrayInfo(self.footer.array(number))
        except CorruptData as e:
            raise CorruptData(f"{self.where}: {e}") from None

    def block(self, i: int) -> bytes:
        """A block, decoded."""
        self.place.check()
        found = self.cache.get((self.name, i))
        if found is None:
            offset, stored, raw, codec = self.footer.block(i)
            data = self.place.read(CONTAINER, self.offset + offset, stored)
            try:
                found = data if codec == 0 else block_decode(codec, data, raw)
            except CorruptData as e:
                raise CorruptData(f"{self.where}: {e}") from None
            self.cache.put((self.name, i), found)
        return found

    def read(self, number: int, info: ArrayInfo, index: Any) -> np.ndarray[Any, Any]:
        """`array[index]` of one array, from the chunks that meet it."""
        start, stop, take, dropped = grid.normal_index(index, info.shape)
        chunks = {chunk[0]: chunk for chunk in self.footer.chunks(number)}
        if len(chunks) != info.nchunks:
            raise CorruptData(f"{self.where}: a chunk is there twice")
        whole = self._whole(info, chunks, start, stop)
        out = whole if whole is not None else self._gather(info, chunks, start, stop)
        chosen: Any = (*take, Ellipsis)
        out = out[chosen]  # the dots keep an array of no axes one
        return out.squeeze(axis=dropped) if dropped else out

    def _whole(self, info: ArrayInfo, chunks: Any, start: Any, stop: Any) -> np.ndarray[Any, Any] | None:
        """All of an array that is one chunk."""
        if len(chunks) != 1 or stop != info.shape or any(start):
            return None
        chunk = next(iter(chunks.values()))
        if grid.clipped(chunk[0], info.chunk_shape, info.shape) != info.shape:
            return None
        return self.decoded(info, chunk).astype(dtype_of(info.kind))

    def _gather(self, info: ArrayInfo, chunks: Any, start: Any, stop: Any) -> np.ndarray[Any, Any]:
        shape = tuple(b - a for a, b in zip(start, stop, strict=True))
        out = room(info.kind, shape, info.fill, self.where)
        for coordinate, inside, outside in grid.pieces(start, stop, info.chunk_shape, chunks):
            out[outside] = self.decoded(info, chunks[coordinate])[inside]
        return out

    def decoded(self, info: ArrayInfo, chunk: tuple[grid.Shape, int, int, int]) -> np.ndarray[Any, Any]:
        """The elements of a chunk, as the footer names it; not to be written to."""
        coordinate, block, offset, size = chunk
        clipped = grid.clipped(coordinate, info.chunk_shape, info.shape)
        return decode_chunk(info.kind, memoryview(self.block(block))[offset : offset + size], clipped, self.where)

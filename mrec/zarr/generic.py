# SPDX-License-Identifier: BSD-3-Clause
"""Arrays whose codecs the core has no form for: shards in shards, and codecs around a shard. Slow, and seldom met."""

from __future__ import annotations

import itertools
import math
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mrec import _core
from mrec.dtypes import room
from mrec.errors import CorruptData, InvalidValue
from mrec.zarr.codecs import Chain, Shard
from mrec.zarr.metadata import ArrayMeta

_ABSENT = 2**64 - 1
#: Decoded bytes that one stored byte may stand for, beyond a first 64 MiB.
_RATIO, _ALLOWED = 2048, 64 << 20


class GenericSource:
    """What `mrec._core.Source` is, for any chain of codecs; `get` returns the value of a chunk key, or None."""

    def __init__(self, meta: ArrayMeta, get: Callable[[str], bytes | None]) -> None:
        self.meta = meta
        self.shape = meta.shape
        self.dtype = meta.dtype
        self._chain = meta.chain
        self._get = get

    def read(self, start: int, stop: int, out: np.ndarray | None = None) -> np.ndarray:
        """Rows [start, stop) as an array, or into `out`. An array without axes has the rows [0, 1)."""
        if not 0 <= start <= stop <= (self.shape[0] if self.shape else 1):
            raise InvalidValue(f"{self.meta.where}: rows {start} to {stop} of {self.shape[:1]}")
        if out is None:
            out = room((stop - start, *self.shape[1:]), self.dtype)
        if not self.shape:
            out[start:stop] = self.read_box([], [])
            return out
        self._fill_box([start, *[0] * (len(self.shape) - 1)], [stop, *self.shape[1:]], out)
        return out

    def read_box(self, low: Sequence[int], high: Sequence[int]) -> np.ndarray:
        """The elements from low[i] up to high[i] of each axis as a new array."""
        out = room(tuple(b - a for a, b in zip(low, high, strict=True)), self.dtype)
        self._fill_box(low, high, out)
        return out

    def _fill_box(self, low: Sequence[int], high: Sequence[int], out: np.ndarray) -> None:
        box = list(zip(low, high, strict=True))
        if any(a == b for a, b in box):
            return
        grids = [range(low // g, -(-high // g)) for (low, high), g in zip(box, self.meta.grid, strict=True)]
        for at in itertools.product(*grids):
            chunk = self._chunk(at)
            inside, outside = [], []
            for (first, end), i, g in zip(box, at, self.meta.grid, strict=True):
                begin, stop = max(first, i * g), min(end, (i + 1) * g)
                inside.append(slice(begin - i * g, stop - i * g))
                outside.append(slice(begin - first, stop - first))
            out[tuple(outside)] = chunk[tuple(inside)]

    read_strings = read

    def gather(self, starts: np.ndarray, out: np.ndarray) -> None:
        """Many stretches of rows into `out` (stretches, rows, ...): stretch i begins at row starts[i]."""
        for i, start in enumerate(starts.tolist()):
            self.read(start, start + out.shape[1], out[i])

    def refresh(self, length: int) -> None:
        """The first axis now has `length` entries."""
        self.shape = (length, *self.shape[1:])

    def _chunk(self, at: tuple[int, ...]) -> np.ndarray:
        key = self.meta.chunk_key(at)
        raw = self._get(key)
        if raw is None:
            return np.broadcast_to(np.array(self.meta.fill, self.dtype), self.meta.grid)
        try:
            return self._decode(raw, self._chain, self.meta.grid)
        except CorruptData as e:
            raise CorruptData(f"{os.path.dirname(self.meta.where)}: chunk {key}: {e}") from None

    def _decode(self, raw: bytes, chain: Chain, shape: tuple[int, ...]) -> np.ndarray:
        stored = tuple(shape[i] for i in chain.order)
        if chain.shard is not None:
            if chain.pipeline:  # without the codec that makes bytes: any of their number
                limit = _ALLOWED + _RATIO * len(raw)
                raw = _core.decode([("vlen-utf8", {}), *chain.pipeline], raw, limit=limit)
            found = self._decode_shard(raw, chain.shard, stored)
        elif self.meta.data_type == "string":
            found = self._strings(raw, chain, stored)
        else:
            size = self._justified(stored, raw)
            found = np.frombuffer(_core.decode(chain.pipeline, raw, size), self.dtype).reshape(stored)
        return found.transpose(np.argsort(chain.order)) if shape else found

    def _justified(self, shape: tuple[int, ...], raw: bytes) -> int:
        """The bytes of a chunk; refused when so few stored bytes can not stand for them."""
        size = math.prod(shape) * self.dtype.itemsize
        if size > _ALLOWED + _RATIO * 64 * len(raw):
            raise CorruptData(f"{len(raw)} bytes can not hold a chunk of {size}")
        return size

    def _strings(self, raw: bytes, chain: Chain, shape: tuple[int, ...]) -> np.ndarray:
        text = _core.decode(chain.pipeline, raw, limit=_ALLOWED + _RATIO * len(raw))
        ends = [4, *_core.vlen_ends(text, math.prod(shape)).tolist()]
        strings = [text[a + 4 : b].decode() for a, b in itertools.pairwise(ends)]
        return np.array(strings, self.dtype).reshape(shape)

    def _decode_shard(self, raw: bytes, shard: Shard, shape: tuple[int, ...]) -> np.ndarray:
        self._justified(shape, raw)
        counts = [s // c for s, c in zip(shape, shard.chunk_shape, strict=True)]
        n = math.prod(counts)
        size = 16 * n + 4 * shard.index_checked
        if size > len(raw):
            raise CorruptData(f"{len(raw)} bytes are less than the index")
        index = raw[len(raw) - size :] if shard.index_at_end else raw[:size]
        if shard.index_checked and struct.unpack("<I", index[-4:])[0] != _core.crc32c(index[:-4]):
            raise CorruptData("the checksum of the index does not match")
        entries = np.frombuffer(index, ">u8" if shard.index_big else "<u8", 2 * n).reshape(n, 2).tolist()
        low, high = (0, len(raw) - size) if shard.index_at_end else (size, len(raw))
        out = room(shape, self.dtype)
        out[...] = np.array(self.meta.fill, self.dtype)[()]
        for at, (offset, nbytes) in zip(itertools.product(*map(range, counts)), entries, strict=True):
            if offset == nbytes == _ABSENT:
                continue
            if offset < low or offset + nbytes > high:
                raise CorruptData("an entry of the index points outside the shard or into the index")
            place: list[Any] = [slice(i * c, (i + 1) * c) for i, c in zip(at, shard.chunk_shape, strict=True)]
            out[tuple(place)] = self._decode(raw[offset : offset + nbytes], shard.inner, shard.chunk_shape)
        return out

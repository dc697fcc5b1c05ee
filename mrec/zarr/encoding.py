# SPDX-License-Identifier: BSD-3-Clause
"""Files of an array from its elements, for any chain of codecs."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

import numpy as np

from mrec import _core
from mrec.dtypes import room
from mrec.errors import InvalidValue
from mrec.zarr.codecs import Chain, Codec, Shard
from mrec.zarr.metadata import ArrayMeta, fill_of, source_spec

_ABSENT = 2**64 - 1
#: What one file may hold that is written: a chunk of so many bytes, and so many of them.
MOST_BYTES, MOST_CHUNKS = 2**32, 2**24


def file_encoder(meta: ArrayMeta, *, skip_fill: bool = False, threads: int = 1) -> _core.Encoder | GenericEncoder:
    """What makes the files of an array. skip_fill: chunks, and files, that are all fill (bit for bit) are left out.

    threads: that encode the chunks of one shard. UnsupportedCodec names a codec that mrec does not know.
    """
    spec = source_spec(meta)
    _check_sizes(meta)
    if spec is None:
        return GenericEncoder(meta, skip_fill)
    return _core.Encoder(spec, meta.dtype, skip_fill=skip_fill, threads=threads)


def _check_sizes(meta: ArrayMeta) -> None:
    chain, shape, chunks = meta.chain, meta.grid, 1
    while chain.shard is not None:
        inner = chain.shard.chunk_shape
        chunks *= math.prod(shape[i] // c for i, c in zip(chain.order, inner, strict=True))
        shape, chain = inner, chain.shard.inner
    size = math.prod(shape) * meta.dtype.itemsize
    if size > MOST_BYTES or chunks > MOST_CHUNKS:
        raise InvalidValue(
            f"{meta.where}: {chunks} chunks of {size} bytes in a file are too many to be written; "
            f"at most {MOST_CHUNKS} and {MOST_BYTES}"
        )


class GenericEncoder:
    """What `mrec._core.Encoder` is, where the core has no form for the codecs: shards in shards, and codecs around one.

    Slow, and seldom met.
    """

    def __init__(self, meta: ArrayMeta, skip_fill: bool) -> None:
        self.meta = meta
        self._chain = meta.chain
        self._skip_fill = skip_fill
        self._encoders: dict[tuple[int, int], _core.Encoder] = {}

    def encode(self, values: np.ndarray) -> bytes | None:
        """The bytes of one file, or None when nothing is to be stored. values: the elements inside the array."""
        whole = room(self.meta.grid, self.meta.dtype)
        whole[...] = fill_of(self.meta)
        whole[tuple(slice(n) for n in values.shape)] = values
        return self._encode(whole, self._chain)

    def _encode(self, values: np.ndarray, chain: Chain) -> bytes | None:
        stored = values.transpose(chain.order) if chain.order else values
        if chain.shard is None:
            return self._flat(chain.pipeline, stored.size).encode(stored.reshape(-1))
        found = self._encode_shard(stored, chain.shard)
        if found is None or not chain.pipeline:
            return found
        return _core.encode([("bytes", {}), *chain.pipeline], found)

    def _flat(self, pipeline: tuple[Codec, ...], n: int) -> _core.Encoder:
        """The encoder of n elements in the order in which they are stored."""
        key = (id(pipeline), n)
        if key not in self._encoders:
            fill = self.meta.fill_bytes()
            spec = {"grid": (n,), "chunk": (n,), "order": (0,), "sharded": False, "pipeline": pipeline, "fill": fill}
            spec |= dict.fromkeys(("index_at_end", "index_checked", "index_big"), False)
            self._encoders[key] = _core.Encoder(spec, self.meta.dtype, skip_fill=self._skip_fill)
        return self._encoders[key]

    def _encode_shard(self, values: np.ndarray, shard: Shard) -> bytes | None:
        counts = [s // c for s, c in zip(values.shape, shard.chunk_shape, strict=True)]
        chunks = []
        for at in itertools.product(*map(range, counts)):
            place: tuple[Any, ...] = tuple(
                slice(i * c, (i + 1) * c) for i, c in zip(at, shard.chunk_shape, strict=True)
            )
            chunks.append(self._encode(values[(*place, ...)], shard.inner))  # of no axes still an array
        return None if all(chunk is None for chunk in chunks) else _assemble(shard, chunks)


def _assemble(shard: Shard, chunks: list[bytes | None]) -> bytes:
    """The chunks, None for those that are missing, with their index."""
    at = 0 if shard.index_at_end else 16 * len(chunks) + 4 * shard.index_checked
    numbers = []
    for chunk in chunks:
        numbers += [_ABSENT, _ABSENT] if chunk is None else [at, len(chunk)]
        at += len(chunk or b"")
    index = np.array(numbers, ">u8" if shard.index_big else "<u8").tobytes()
    if shard.index_checked:
        index += struct.pack("<I", _core.crc32c(index))
    stored = b"".join(chunk for chunk in chunks if chunk is not None)
    return stored + index if shard.index_at_end else index + stored

# SPDX-License-Identifier: BSD-3-Clause
"""One shard object: inner chunks in C order, the index at the end."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from mrec import _core
from mrec.errors import CorruptData
from mrec.zarr.codecs import Codec
from mrec.zarr.metadata import ArrayMeta, source_spec

_ABSENT = 2**64 - 1
#: Decoded bytes that one stored byte may stand for, beyond a first 64 MiB.
_RATIO, _ALLOWED = 1 << 17, 64 << 20


def encoder(meta: ArrayMeta, threads: int = 1) -> _core.Encoder:
    """What makes the objects of an array: from the elements of a shard that lie inside the array, in one call. The rest
    of a chunk is padded with zeros, a chunk without any element is left missing, and none that is zero is."""
    spec = source_spec(meta)
    assert spec is not None
    return _core.Encoder(spec, meta.dtype, threads=threads)


def decode_shard(
    data: Any,
    selection: Sequence[slice],
    dtype: np.dtype,
    chunk: Sequence[int],
    shard: Sequence[int],
    pipeline: Sequence[Codec],
    extent: Sequence[int],
    where: str,
) -> np.ndarray:
    """The elements of a shard that `selection` (slices with start < stop inside it) picks.

    data: has a length, and its slices are bytes; chunks that the selection does not touch are not read. extent: where
    elements have to be stored; a chunk that begins before it and is missing is CorruptData. Beyond it are zeros.
    """
    counts = [s // c for s, c in zip(shard, chunk, strict=True)]
    nbytes = math.prod(chunk) * dtype.itemsize
    entries = _index(data, math.prod(counts), where)
    out = np.zeros([s.stop - s.start for s in selection], dtype)
    ranges = [range(s.start // c, -(-s.stop // c)) for s, c in zip(selection, chunk, strict=True)]
    for at in itertools.product(*ranges):
        number = 0
        for i, n in zip(at, counts, strict=True):
            number = number * n + i
        offset, size = entries[number].tolist()
        if offset == size == _ABSENT:
            if all(i * c < n for i, c, n in zip(at, chunk, extent, strict=True)):
                raise CorruptData(f"{where}: chunk {list(at)} is missing")
            continue
        if offset + size > len(data) - 16 * len(entries) - 4:
            raise CorruptData(f"{where}: the index names bytes {offset} to {offset + size}, past the chunks")
        if nbytes > _ALLOWED + _RATIO * size:
            raise CorruptData(f"{where}: {size} bytes cannot hold a chunk of {nbytes}")
        try:
            raw = _core.decode(pipeline, data[offset : offset + size], nbytes)
        except CorruptData as e:
            raise CorruptData(f"{where}: chunk {list(at)}: {e}") from None
        _place(out, np.frombuffer(raw, dtype).reshape(chunk), at, chunk, selection)
    return out


def _index(data: Any, n: int, where: str) -> np.ndarray:
    size = 16 * n + 4
    if len(data) < size:
        raise CorruptData(f"{where}: {len(data)} bytes are less than the index of {n} chunks")
    raw = data[len(data) - size :]
    if struct.unpack("<I", raw[-4:])[0] != _core.crc32c(raw[:-4]):
        raise CorruptData(f"{where}: the checksum of the index does not match")
    return np.frombuffer(raw, "<u8", 2 * n).reshape(n, 2)


def _place(
    out: np.ndarray, block: np.ndarray, at: Sequence[int], chunk: Sequence[int], selection: Sequence[slice]
) -> None:
    inside, outside = [], []
    for i, c, s in zip(at, chunk, selection, strict=True):
        first, last = max(i * c, s.start), min((i + 1) * c, s.stop)
        inside.append(slice(first - i * c, last - i * c))
        outside.append(slice(first - s.start, last - s.start))
    out[tuple(outside)] = block[tuple(inside)]

# SPDX-License-Identifier: BSD-3-Clause
"""Bytes to elements, with a name for whatever is wrong on the way: index, place, checksum, codecs, elements."""

from __future__ import annotations

import itertools
import math
import struct
from typing import Any

import numpy as np

from mrec import _core
from mrec.errors import CorruptData, MrecError
from mrec.verify.files import FileValue, Value
from mrec.zarr.codecs import Chain, Shard
from mrec.zarr.metadata import ArrayMeta

NOWHERE = 2**64 - 1
#: Decoded bytes that one stored byte may stand for, beyond a first 64 MiB.
_RATIO, _ALLOWED = 2048, 64 << 20


class Fault(Exception):
    """A chunk is wrong: the rule, and what is the matter."""

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message)
        self.rule = rule


def element_type(meta: ArrayMeta) -> np.dtype:
    """The numpy type of elements here; strings are Python's."""
    return np.dtype(object) if meta.data_type == "string" else meta.dtype


def decode(meta: ArrayMeta, chain: Chain, shape: tuple[int, ...], raw: bytes) -> np.ndarray:
    """The elements of a chunk. Fault."""
    stored = tuple(shape[axis] for axis in chain.order)
    raw, pipeline = _without_checksum(raw, chain.pipeline)
    try:
        if chain.shard is not None:
            found = _nested(meta, chain.shard, stored, undo(pipeline, raw))
        elif meta.data_type == "string":
            found = _strings(undo(pipeline, raw), stored)
        else:
            found = _elements(meta, stored, pipeline, raw)
    except MrecError as e:
        raise Fault("decode", f"its codecs cannot be undone: {e}") from None
    return found.transpose(np.argsort(chain.order)) if stored else found


def undo(pipeline: Any, raw: bytes) -> bytes:
    """The bytes before a pipeline, of any number."""
    if not pipeline:
        return raw
    serial: list[Any] = [] if pipeline[0][0] == "vlen-utf8" else [("vlen-utf8", {})]
    return _core.decode([*serial, *pipeline], raw, limit=_ALLOWED + _RATIO * len(raw))


def _without_checksum(raw: bytes, pipeline: Any) -> tuple[bytes, Any]:
    """The bytes without their checksum, and the codecs that are left to undo."""
    if not pipeline or pipeline[-1][0] != "crc32c":
        return raw, pipeline
    if len(raw) < 4 or struct.unpack("<I", raw[-4:])[0] != _core.crc32c(raw[:-4]):
        raise Fault("checksum", f"the checksum of its {len(raw)} bytes does not match")
    return raw[:-4], pipeline[:-1]


def _elements(meta: ArrayMeta, shape: tuple[int, ...], pipeline: Any, raw: bytes) -> np.ndarray:
    size = math.prod(shape) * meta.dtype.itemsize
    if size > _ALLOWED + 64 * _RATIO * len(raw):
        raise CorruptData(f"{len(raw)} bytes cannot hold {size}")
    data = _core.decode(pipeline, raw, size)
    if meta.data_type == "bool" and np.frombuffer(data, np.uint8).max(initial=0) > 1:
        raise Fault("bool", "an element is neither 0 nor 1")
    return np.frombuffer(data, meta.dtype).reshape(shape)


def _strings(text: bytes, shape: tuple[int, ...]) -> np.ndarray:
    ends = [4, *_core.vlen_ends(text, math.prod(shape)).tolist()]
    found = np.empty(len(ends) - 1, object)
    try:
        found[:] = [text[a + 4 : b].decode() for a, b in itertools.pairwise(ends)]
    except UnicodeDecodeError as e:
        raise Fault("string", f"a string is not UTF-8: {e}") from None
    return found.reshape(shape)


def _nested(meta: ArrayMeta, shard: Shard, shape: tuple[int, ...], raw: bytes) -> np.ndarray:
    counts = [n // c for n, c in zip(shape, shard.chunk_shape, strict=True)]
    file = ShardFile(Value(raw), shard, math.prod(counts))
    if not file.whole:
        raise Fault("index-checksum", "the checksum of an inner index does not match")
    out = np.full(shape, np.array(meta.fill, element_type(meta))[()], element_type(meta))
    for number, at in enumerate(itertools.product(*map(range, counts))):
        inner = file.read(number)
        if inner is not None:
            place = tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, shard.chunk_shape, strict=True))
            out[place] = decode(meta, shard.inner, shard.chunk_shape, inner)
    return out


class ShardFile:
    """A shard of `count` chunks.

    entries: u64[count][2], offset and nbytes of each. whole: the checksum of the index fits.
    """

    def __init__(self, value: Value | FileValue, shard: Shard, count: int) -> None:
        self.value = value
        size = 16 * count + 4 * shard.index_checked
        total = value.size
        if total < size:
            raise Fault("index-size", f"the file has {total} bytes, its index alone has {size}")
        self._index = (total - size, total) if shard.index_at_end else (0, size)
        raw = exactly(value, self._index[0], size)
        self.whole = not shard.index_checked or struct.unpack("<I", raw[-4:])[0] == _core.crc32c(raw[:-4])
        order = ">u8" if shard.index_big else "<u8"
        self.entries = np.frombuffer(raw, order, 2 * count).reshape(count, 2).astype(np.uint64)

    def read(self, chunk: int) -> bytes | None:
        """The bytes of a chunk; None when the index says that there is none. Fault: it lies where none can be."""
        offset, nbytes = map(int, self.entries[chunk])
        if offset == nbytes == NOWHERE:
            return None
        if offset + nbytes > self.value.size:
            raise Fault("index-entry", f"the index says {nbytes} bytes at {offset}; the file has {self.value.size}")
        if nbytes and offset < self._index[1] and offset + nbytes > self._index[0]:
            raise Fault("index-entry", f"the index says {nbytes} bytes at {offset}, which lie in the index itself")
        return exactly(self.value, offset, nbytes)

    def overlaps(self, chunks: np.ndarray) -> list[tuple[int, int]]:
        """Pairs of these chunks, the lower number first, whose bytes lie over each other."""
        chunks = chunks[self.entries[chunks, 1] != np.uint64(NOWHERE)]
        order = np.argsort(self.entries[chunks, 0], kind="stable")
        chunks = chunks[order]
        starts, ends = self.entries[chunks, 0], self.entries[chunks].sum(axis=1)
        over = np.flatnonzero(starts[1:] < ends[:-1])
        return [(min(pair), max(pair)) for pair in zip(chunks[over].tolist(), chunks[over + 1].tolist(), strict=True)]


def exactly(value: Value | FileValue, start: int, nbytes: int) -> bytes:
    """Bytes of a value, all of them."""
    try:
        raw = value.read(start, nbytes)
    except OSError as e:
        raise Fault("read", f"it cannot be read: {e}") from None
    if len(raw) != nbytes:
        raise Fault("index-entry", f"the file ends before the {nbytes} bytes at {start} do")
    return raw

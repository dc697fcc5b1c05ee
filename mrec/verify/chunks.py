# SPDX-License-Identifier: BSD-3-Clause
"""Bytes to elements, with a name for whatever is wrong on the way: index, place, checksum, codecs, elements."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from mrec import _core
from mrec.errors import CorruptData, MrecError
from mrec.verify.files import Value
from mrec.zarr.codecs import Chain, Shard
from mrec.zarr.metadata import ArrayMeta

NOWHERE = 2**64 - 1
#: Decoded bytes that one stored byte may stand for, beyond a first 64 MiB.
_RATIO, ALLOWED = 2048, 64 << 20


def justify(size: int, nbytes: int) -> None:
    """Refuse to make `size` bytes of elements of what is stored in `nbytes`: no codec does."""
    if size > ALLOWED + 64 * _RATIO * nbytes:
        raise CorruptData(f"{nbytes} bytes cannot hold {size}")


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
    return in_order(found, chain.order)


def in_order(stored: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The axes as the array has them, of elements whose axis i is the array's order[i]."""
    return stored if order == tuple(range(len(order))) else stored.transpose(np.argsort(order))


def undo(pipeline: Any, raw: bytes) -> bytes:
    """The bytes before a pipeline, of any number."""
    if not pipeline:
        return raw
    serial: list[Any] = [] if pipeline[0][0] == "vlen-utf8" else [("vlen-utf8", {})]
    return _core.decode([*serial, *pipeline], raw, limit=ALLOWED + _RATIO * len(raw))


def _without_checksum(raw: bytes, pipeline: Any) -> tuple[bytes, Any]:
    """The bytes without their checksum, and the codecs that are left to undo."""
    if not pipeline or pipeline[-1][0] != "crc32c":
        return raw, pipeline
    if len(raw) < 4 or struct.unpack("<I", raw[-4:])[0] != _core.crc32c(raw[:-4]):
        raise Fault("checksum", f"the checksum of its {len(raw)} bytes does not match")
    return raw[:-4], pipeline[:-1]


def _elements(meta: ArrayMeta, shape: tuple[int, ...], pipeline: Any, raw: bytes) -> np.ndarray:
    size = math.prod(shape) * meta.dtype.itemsize
    justify(size, len(raw))
    data = _core.decode(pipeline, raw, size)
    if meta.data_type == "bool" and np.frombuffer(data, np.uint8).max(initial=0) > 1:
        raise Fault("bool", "an element is neither 0 nor 1")
    return np.frombuffer(data, meta.dtype).reshape(shape)


def _strings(text: bytes, shape: tuple[int, ...]) -> np.ndarray:
    count = math.prod(shape)
    if len(text) < 4 + 4 * count or int.from_bytes(text[:4], "little") != count:
        raise Fault("string", f"it does not hold {count} strings")
    found = np.empty(count, object)
    at = 4
    for i in range(count):
        start = at + 4
        at = start + int.from_bytes(text[at:start], "little")
        if start > len(text) or at > len(text):
            raise Fault("string", f"string {i} goes beyond its end")
        try:
            found[i] = text[start:at].decode()
        except UnicodeDecodeError as e:
            raise Fault("string", f"string {i} is not UTF-8: {e.reason} at byte {e.start}") from None
    if at != len(text):
        raise Fault("string", f"{len(text) - at} bytes follow its strings")
    return found.reshape(shape)


def _nested(meta: ArrayMeta, shard: Shard, shape: tuple[int, ...], raw: bytes) -> np.ndarray:
    justify(math.prod(shape) * meta.dtype.itemsize, len(raw))
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

    def __init__(self, value: Value, shard: Shard, count: int) -> None:
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
        wrong = self._misplaced(offset, nbytes, self.value.size)
        if wrong:
            raise Fault("index-entry", f"the index says {nbytes} bytes at {offset}{wrong}")
        return exactly(self.value, offset, nbytes)

    def _misplaced(self, offset: int, nbytes: int, size: int) -> str:
        """What is wrong with a place; "" when nothing is."""
        if offset + nbytes > size:
            return f"; the file has {size}"
        inside = nbytes and offset < self._index[1] and offset + nbytes > self._index[0]
        return ", which lie in the index itself" if inside else ""

    def overlaps(self, chunks: np.ndarray) -> list[tuple[int, int]]:
        """Pairs of these chunks, the lower number first, whose bytes lie over each other where bytes can lie."""
        size = self.value.size
        sound = [not self._misplaced(offset, nbytes, size) for offset, nbytes in self.entries[chunks].tolist()]
        chunks = chunks[np.array(sound, np.bool_)]
        order = np.argsort(self.entries[chunks, 0], kind="stable")
        chunks = chunks[order]
        starts, ends = self.entries[chunks, 0], self.entries[chunks].sum(axis=1)
        over = np.flatnonzero(starts[1:] < ends[:-1])
        return [(min(pair), max(pair)) for pair in zip(chunks[over].tolist(), chunks[over + 1].tolist(), strict=True)]


def tail_bytes(value: Value | None, tail: Sequence[int], chain: Chain) -> bytes:
    """The bytes that a tail (shard, chunk, offset, nbytes, crc32c) of a durable file names. Fault.

    Its crc32c is that of the chunk's own checksum, where the chunk has one.
    """
    _, _, offset, nbytes, crc = tail
    raw = b"" if value is None or offset + nbytes > value.size else value.read(offset, nbytes)
    pipeline = chain.shard.inner.pipeline if chain.shard is not None else ()
    checked = bool(pipeline) and pipeline[-1][0] == "crc32c"
    if len(raw) != nbytes or _core.crc32c(raw[:-4] if checked else raw) != crc:
        raise Fault("durable-tail", f"the {nbytes} bytes at {offset} are not those that .durable names")
    return raw


def exactly(value: Value, start: int, nbytes: int) -> bytes:
    """Bytes of a value, all of them."""
    try:
        raw = value.read(start, nbytes)
    except OSError as e:
        raise Fault("read", f"it cannot be read: {e}") from None
    if len(raw) != nbytes:
        raise Fault("index-entry", f"the file ends before the {nbytes} bytes at {start} do")
    return raw

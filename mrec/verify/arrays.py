# SPDX-License-Identifier: BSD-3-Clause
"""One array: every chunk that its rows need is looked at when it is first read."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrec.errors import MrecError
from mrec.verify.chunks import (
    ALLOWED,
    Fault,
    ShardFile,
    decode,
    element_type,
    exactly,
    in_order,
    justify,
    tail_bytes,
    undo,
)
from mrec.verify.files import Files, Value
from mrec.verify.report import Log
from mrec.zarr.metadata import ArrayMeta

#: How often bytes that another process may be replacing are read before they are called wrong.
_TRIES = 6
#: Decoded chunks that are kept: what a window of rows shares with the next.
_KEPT = 3


@dataclass(frozen=True)
class Trust:
    """What holds for an array.

    changing: a writer may be at work or was killed: bytes are read again before they are called wrong, and an index may
    be torn. absence: what a chunk that is not there is ("error", "warning"); None where it stands for fill.
    """

    changing: bool = False
    absence: str | None = None


@dataclass(frozen=True)
class _Place:
    """Where a chunk is: the file's key and its number along the first axis, the chunk's number in it, its first row."""

    key: str
    file: int
    chunk: int | None
    row: int


class Stored:
    """The first `rows` rows of an array; whatever is wrong with a chunk of them is logged.

    Of more rows than its files can hold there are none: to go through them would take for ever.

    tail: shard, chunk, offset, nbytes and crc32c of a chunk whose index entry is not believed. frame_of: the frame that
    a row belongs to. faults: the number of faults found so far; chunks that are wrong read as fill.
    """

    def __init__(
        self,
        log: Log,
        files: Files,
        path: str,
        meta: ArrayMeta,
        rows: int,
        trust: Trust,
        tail: tuple[int, ...] | None = None,
    ) -> None:
        self.path, self.meta, self.rows = path, meta, rows
        self.frame_of: Callable[[int], int | None] = lambda row: None
        self.faults = 0
        self._lost: set[int] = set()
        self._log, self._files, self._trust, self._tail = log, files, trust, tail
        self._chain, self._shard = meta.chain, meta.chain.shard
        self._extents = self._chunk_extents()
        self._kept: dict[int, np.ndarray] = {}
        self._open: tuple[str, Value | None, ShardFile | None] | None = None
        self._looked_at: set[str] = set()
        self._check_backed()

    def _check_backed(self) -> None:
        claimed = self.rows * math.prod(self.meta.shape[1:]) * self.meta.dtype.itemsize
        if claimed <= ALLOWED:
            return
        try:
            justify(claimed, self._files.stored(self.path))
        except MrecError as e:
            severity = self._trust.absence or "warning"  # another program may leave out what is fill
            self._log.add("backed", self.path, f"{self.rows} rows are claimed; {e}", severity=severity)
            self.rows, self.faults = 0, 1

    def _chunk_extents(self) -> tuple[int, ...]:
        """The shape of what is encoded one by one, in the axes of the array."""
        extents = list(self.meta.grid)
        if self._shard is not None:
            for stored, axis in enumerate(self._chain.order):
                extents[axis] = self._shard.chunk_shape[stored]
        return tuple(extents)

    @property
    def chunks(self) -> int:
        """The number of chunks that hold the rows."""
        shape = (self.rows, *self.meta.shape[1:]) if self.meta.shape else ()
        return math.prod(-(-n // c) for n, c in zip(shape, self._extents, strict=True))

    def lost(self) -> list[tuple[int, int]]:
        """The rows [start, stop) of chunks that were read and do not verify, in order."""
        step = self._extents[0] if self._extents else 1
        return [(k * step, min((k + 1) * step, self.rows)) for k in sorted(self._lost) if k * step < self.rows]

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows [start, stop); of an array without axes its element, as one row."""
        if not self.meta.shape:
            return self._chunk(()).reshape(1)
        step = self._extents[0]
        slabs = range(start // step, -(-stop // step)) if start < stop else ()
        parts = [self._slab(k)[max(start - k * step, 0) : stop - k * step] for k in slabs]
        if not parts:
            return np.empty((0, *self.meta.shape[1:]), element_type(self.meta))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    # ---- chunks --------------------------------------------------------------------------------------------------

    def _slab(self, k: int) -> np.ndarray:
        """All chunks with the number k along the first axis, put together."""
        if k not in self._kept:
            self._kept[k] = self._assembled(k)
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[k]

    def _assembled(self, k: int) -> np.ndarray:
        shape, extents = self.meta.shape[1:], self._extents[1:]
        if extents == shape:
            return self._chunk((k, *[0] * len(shape)))
        out = np.empty((self._extents[0], *shape), element_type(self.meta))
        for at in itertools.product(*(range(-(-n // c)) for n, c in zip(shape, extents, strict=True))):
            sizes = [min(c, n - i * c) for i, c, n in zip(at, extents, shape, strict=True)]
            there = tuple(slice(i * c, i * c + size) for i, c, size in zip(at, extents, sizes, strict=True))
            out[(slice(None), *there)] = self._chunk((k, *at))[(slice(None), *map(slice, sizes))]
        return out

    def _chunk(self, at: tuple[int, ...]) -> np.ndarray:
        """One chunk; fill when it is not there or wrong."""
        place = self._place(at)
        for attempt in range(1, _TRIES + 1):
            try:
                raw = self._raw(place)
                if raw is None:
                    break
                found = self._decoded(raw)
                self._log.read(len(raw))
                return found
            except Fault as fault:
                self._open = None
                if not self._trust.changing or attempt == _TRIES:
                    self._lose(fault.rule, str(fault), place)
                    break
                time.sleep(0.005 * attempt)
        return np.broadcast_to(np.array(self.meta.fill, element_type(self.meta)), self._extents)

    def _decoded(self, raw: bytes) -> np.ndarray:
        if self._shard is None:
            return decode(self.meta, self._chain, self._extents, raw)
        return in_order(decode(self.meta, self._shard.inner, self._shard.chunk_shape, raw), self._chain.order)

    def _lose(self, rule: str, message: str, place: _Place, **how: Any) -> None:
        """Tell that the rows of a chunk are not to be had."""
        self._lost.add(place.row // self._extents[0] if self._extents else 0)
        self._tell(rule, message, place, **how)

    def _tell(self, rule: str, message: str, place: _Place, *, of_file: bool = False, severity: str = "error") -> None:
        self.faults += 1
        where: dict[str, Any] = {"shard": place.key, "severity": severity}
        if not of_file:
            where |= {"chunk": place.chunk, "frame": self.frame_of(place.row)}
        self._log.add(rule, self.path, message, **where)

    # ---- places --------------------------------------------------------------------------------------------------

    def _place(self, at: tuple[int, ...]) -> _Place:
        per = [g // c for g, c in zip(self.meta.grid, self._extents, strict=True)]
        file = [i // n for i, n in zip(at, per, strict=True)]
        key = self.meta.separator.join([*([] if self.meta.v2_keys else ["c"]), *map(str, file)]) or "0"
        chunk = 0
        for axis in self._chain.order:
            chunk = chunk * per[axis] + at[axis] % per[axis]
        row = at[0] * self._extents[0] if at else 0
        return _Place(key, file[0] if file else 0, chunk if self._shard else None, row)

    def _raw(self, place: _Place) -> bytes | None:
        """The bytes of a chunk; None when there is none."""
        if place.chunk is None:
            value = self._files.open(f"{self.path}/{place.key}")
            return None if value is None else exactly(value, 0, value.size)
        if self._tail is not None and self._tail[:2] == (place.file, place.chunk):
            return tail_bytes(self._files.open(f"{self.path}/{place.key}"), self._tail, self._chain)
        file = self._file(place)
        raw = None if file is None else file.read(place.chunk)
        if raw is None and self._trust.absence is not None:
            self._lose_absent(place, of_file=file is None)
        elif raw is None and file is not None and not file.whole and not self._trust.changing:
            raise Fault("missing-chunk", "it is not there, by an index whose checksum does not match")
        return raw

    def _lose_absent(self, place: _Place, of_file: bool) -> None:
        rule = "missing-shard" if of_file else "missing-chunk"
        why = (
            "" if self._trust.absence == "error" else "; it was lost, unless another program wrote here and left it out"
        )
        message = "it is not there, and mrec stores every chunk"
        self._lose(rule, message + why, place, of_file=of_file, severity=self._trust.absence or "error")

    def _file(self, place: _Place) -> ShardFile | None:
        """The shard that a chunk is in; None when there is no file."""
        if self._open is None or self._open[0] != place.key:
            value = self._files.open(f"{self.path}/{place.key}")
            self._open = place.key, value, None if value is None else self._indexed(value, place)
        return self._open[2]

    def _indexed(self, value: Value, place: _Place) -> ShardFile:
        assert self._shard is not None
        if self._chain.pipeline:
            try:
                value = Value(undo(self._chain.pipeline, exactly(value, 0, value.size)))
            except MrecError as e:
                raise Fault("decode", f"the codecs around the shard cannot be undone: {e}") from None
        per = [self.meta.grid[axis] // self._extents[axis] for axis in self._chain.order]
        file = ShardFile(value, self._shard, math.prod(per))
        if not file.whole and not self._trust.changing:
            # Of an open record the last write of an index may be torn; each chunk still has its own checksum.
            self._tell("index-checksum", "the checksum of the index does not match", place, of_file=True)
        if place.key not in self._looked_at:
            self._looked_at.add(place.key)
            self._check_overlaps(file, place, per)
        return file

    def _check_overlaps(self, file: ShardFile, place: _Place, per: list[int]) -> None:
        if not per:  # of no axes: one chunk
            return
        along = np.unravel_index(np.arange(math.prod(per)), per)[self._chain.order.index(0)]
        rows = place.file * self.meta.grid[0] + along * self._extents[0]
        for one, two in file.overlaps(np.flatnonzero(rows < self.rows)):
            where = _Place(place.key, place.file, two, int(rows[two]))
            self._lose("overlap", f"its bytes lie over those of chunk {one}", where)
            self._lost.add(int(rows[one]) // self._extents[0])  # either may be the wrong one

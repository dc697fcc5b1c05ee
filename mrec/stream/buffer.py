# SPDX-License-Identifier: BSD-3-Clause
"""The shards of records that a writer holds open."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mrec._core import Encoder, PartialShard, add_rows, crc32c
from mrec.errors import CorruptData, SchemaError
from mrec.stream import region as regions
from mrec.stream.manifest import Sealed
from mrec.stream.place import Place
from mrec.stream.pool import Pool
from mrec.stream.region import Region
from mrec.stream.schema import StreamSchema, Variable
from mrec.stream.shard import decode_shard


class Part:
    """A variable's part of a region. extents: its lengths without time. cuts: where the elements of each of its shards
    are, without time."""

    def __init__(self, schema: StreamSchema, name: str, variable: Variable, region: Region, encoder: Encoder) -> None:
        bounds = regions.part(schema, variable, region)
        lengths = [schema.shard[d] for d in variable.dims if d != schema.time_dim]
        self.name, self.dtype, self.encoder = name, variable.numpy, encoder
        self._keys = partial(regions.object_keys, schema, name, variable, region)
        self.extents = tuple(stop - start for start, stop in bounds)
        self.cuts = [
            tuple(
                slice(k * n - start, min((k + 1) * n, stop) - start)
                for k, n, (start, stop) in zip(at, lengths, bounds, strict=True)
            )
            for at in regions.shards(schema, variable, region)
        ]

    def keys(self, *time: int) -> list[str]:
        """The keys of its objects. time: the position of the time shard; none for a static."""
        return self._keys(time)

    def taken(self, given: Any) -> np.ndarray:
        """Values of this part, of its type. SchemaError when they do not fit."""
        if np.ma.is_masked(given):
            raise SchemaError(f"{self.name!r} has masked elements; fill them")
        try:
            values = np.asarray(given)
        except (TypeError, ValueError) as e:
            raise SchemaError(f"{self.name!r} is no array: {e}") from None
        if values.dtype != self.dtype:
            rounds = self.dtype.kind == "f" and values.dtype.kind in "iu" and values.dtype.itemsize == 8
            if rounds or not np.can_cast(values.dtype, self.dtype, "safe"):
                raise SchemaError(f"{self.name!r} is {self.dtype.name}; {values.dtype} does not fit without loss")
            values = values.astype(self.dtype)
        if values.shape != self.extents:
            raise SchemaError(f"{self.name!r} has the shape {list(values.shape)}, not {list(self.extents)}")
        return values

    def objects(self, block: np.ndarray, *time: int) -> Iterator[tuple[str, bytes, Sealed]]:
        """Key, bytes and seal of every object."""
        for key, cut in zip(self.keys(*time), self.cuts, strict=True):
            data = self.encoder.encode(block[(*[slice(None)] * len(time), *cut)])
            assert data is not None  # every shard has an element
            yield key, data, Sealed(len(data), crc32c(data))


class OpenShard(ABC):
    """The records of one time shard, for the variables of a writer.

    have: rows that hold a record. dirty: some are not in the published objects. Used again for another shard by
    `begin`, so that its memory is there already.
    """

    def __init__(self, schema: StreamSchema, parts: Mapping[str, Part], pool: Pool) -> None:
        self.schema, self.parts, self.pool = schema, parts, pool
        self.index = self.first = self.capacity = 0
        self.have: set[int] = set()
        self.dirty = False

    def begin(self, index: int) -> OpenShard:
        """An empty shard at this place of the time axis."""
        size, n = self.schema.shard_time, self.schema.mode.n
        self.index, self.first = index, index * size
        self.capacity = size if n is None else min(size, n - self.first)
        self.have.clear()
        self.dirty = False
        return self

    @abstractmethod
    def set(self, i: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Take the record i."""

    @abstractmethod
    def objects(self) -> Iterator[tuple[str, Any, Sealed]]:
        """Key, bytes and seal of every object. Bytes that are let go of soon need not be copied."""

    def drop(self, i: int) -> None:  # noqa: B027
        """Forget the record i, where records may go."""

    @property
    def full(self) -> bool:
        """Whether every row holds a record."""
        return len(self.have) == self.capacity


class GrowingShard(OpenShard):
    """Of a stream that appends: each row of chunks is encoded once, when it is there; what is flushed in between is
    encoded once more."""

    def __init__(self, schema: StreamSchema, parts: Mapping[str, Part], pool: Pool) -> None:
        super().__init__(schema, parts, pool)
        self.chunk = schema.chunk[schema.time_dim]
        self.files = {name: [PartialShard(part.encoder) for _ in part.cuts] for name, part in parts.items()}
        rows = self.chunk if self.chunk > 1 else 0  # a row of its own is encoded from where it is
        self.tail = {name: np.empty((rows, *part.extents), part.dtype) for name, part in parts.items()}

    def begin(self, index: int) -> OpenShard:
        """An empty shard at this place of the time axis."""
        for file in (file for files in self.files.values() for file in files):
            file.kept = (0, 0, 0)
        return super().begin(index)

    def set(self, i: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Take the record i, the next one."""
        row = len(self.have)
        assert i == self.first + row
        if self.chunk == 1:
            self._add({name: values[None] for name, values in arrays.items()})
        else:
            for name, values in arrays.items():
                self.tail[name][row % self.chunk] = values
            if row % self.chunk == self.chunk - 1:
                self._add(self.tail)
        self.have.add(row)
        self.dirty = True

    def _add(self, blocks: Mapping[str, np.ndarray]) -> None:
        """The same rows of all variables, or of none."""
        rows = [
            (file, block[(slice(None), *cut)])
            for name, block in blocks.items()
            for file, cut in zip(self.files[name], self.parts[name].cuts, strict=True)
        ]
        before = [file.kept for file, _ in rows]
        try:
            self.pool.each(add_rows, [rows[k :: self.pool.threads] for k in range(self.pool.threads)])
        except BaseException:
            for (file, _), kept in zip(rows, before, strict=True):
                file.kept = kept
            raise

    def objects(self) -> Iterator[tuple[str, Any, Sealed]]:
        """Key, bytes and seal of every object."""
        rest = len(self.have) % self.chunk
        for name, part in self.parts.items():
            for key, file, cut in zip(part.keys(self.index), self.files[name], part.cuts, strict=True):
                data, checksum = file.seal(self.tail[name][(slice(rest), *cut)])
                yield key, data, Sealed(len(data), checksum)


class FixedShard(OpenShard):
    """Of an indexed stream: its records come in any order, and may change until they are committed."""

    def __init__(self, schema: StreamSchema, parts: Mapping[str, Part], pool: Pool) -> None:
        super().__init__(schema, parts, pool)
        self.arrays = {n: np.zeros((schema.shard_time, *part.extents), part.dtype) for n, part in parts.items()}
        self.old: set[int] = set()  # rows with something else than their record, or zeros

    def begin(self, index: int) -> OpenShard:
        """An empty shard at this place of the time axis."""
        self.old |= self.have
        return super().begin(index)

    def set(self, i: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Take the record i."""
        row = i - self.first
        self.old.add(row)
        self.have.discard(row)
        for name, values in arrays.items():
            self.arrays[name][row] = values
        self.old.discard(row)
        self.have.add(row)
        self.dirty = True

    def drop(self, i: int) -> None:
        """Forget the record i."""
        self.have.discard(i - self.first)
        self.old.add(i - self.first)

    def objects(self) -> Iterator[tuple[str, Any, Sealed]]:
        """Key, bytes and seal of every object."""
        for values in self.arrays.values():
            for row in self.old:
                values[row] = 0
        self.old.clear()
        for name, part in self.parts.items():
            yield from part.objects(self.arrays[name][: self.capacity], self.index)


def open_shard(schema: StreamSchema, parts: Mapping[str, Part], pool: Pool) -> OpenShard:
    """The kind of shard that a stream has."""
    return FixedShard(schema, parts, pool) if schema.mode.indexed else GrowingShard(schema, parts, pool)


def read_part(
    place: Place,
    schema: StreamSchema,
    name: str,
    variable: Variable,
    bounds: Sequence[tuple[int, int]],
    records: tuple[int, int] | None,
    stored: int,
    absent_is_fill: bool = False,
) -> np.ndarray:
    """A box of a variable: bounds along each dimension but time, and the records of one time shard.

    stored: records of that shard that have to be there, from its first.
    """
    time = [] if records is None else [records]
    box = [*time, *bounds]
    chunk, shard = [schema.chunk[d] for d in variable.dims], [schema.shard[d] for d in variable.dims]
    out = np.zeros([stop - start for start, stop in box], variable.numpy)
    pipeline = schema.pipeline(variable)
    grid = [range(start // s, -(-stop // s)) for (start, stop), s in zip(box, shard, strict=True)]
    lengths = [schema.dims[d] for d in variable.dims if d != schema.time_dim]
    for at in np.ndindex(*(len(r) for r in grid)):
        position = [r[k] for r, k in zip(grid, at, strict=True)]
        key = regions.object_key(name, position)
        origin = [p * s for p, s in zip(position, shard, strict=True)]
        inside = [slice(max(a, o) - o, min(b, o + s) - o) for (a, b), o, s in zip(box, origin, shard, strict=True)]
        extent = [*([stored] * len(time)), *(n - o for n, o in zip(lengths, origin[len(time) :], strict=True))]
        data = place.view(key)
        if data is None:
            if absent_is_fill:
                continue
            raise CorruptData(f"{place.name}: the object {key} of committed data is missing")
        needed = [0] * len(extent) if absent_is_fill else extent
        where = f"{place.name}: {key}"
        found = decode_shard(data, inside, variable.numpy, chunk, shard, pipeline, needed, where)
        target = [slice(o + s.start - a, o + s.stop - a) for o, s, (a, _) in zip(origin, inside, box, strict=True)]
        out[tuple(target)] = found
    return out

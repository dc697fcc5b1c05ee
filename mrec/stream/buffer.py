# SPDX-License-Identifier: BSD-3-Clause
"""The shards of records that a writer holds open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mrec._core import Encoder
from mrec.errors import CorruptData
from mrec.stream import region as regions
from mrec.stream.place import Place
from mrec.stream.region import Region
from mrec.stream.schema import StreamSchema, Variable
from mrec.stream.shard import decode_shard


class OpenShard:
    """The rows of one time shard, for the variables of a writer.

    have: rows that hold a record. dirty: some are not in the published objects. rows: how many are stored.
    """

    def __init__(self, schema: StreamSchema, index: int, variables: Mapping[str, Variable], region: Region) -> None:
        self.index = index
        self.first = index * schema.shard_time
        n = schema.mode.n
        self.capacity = schema.shard_time if n is None else min(schema.shard_time, n - self.first)
        self.grows = n is None
        self.have: set[int] = set()
        self.dirty = False
        self.arrays = {
            name: np.zeros((self.capacity, *extents(schema, variable, region)), variable.numpy)
            for name, variable in variables.items()
        }

    def set(self, i: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Take the record i."""
        for name, values in arrays.items():
            self.arrays[name][i - self.first] = values
        self.have.add(i - self.first)
        self.dirty = True

    def drop(self, i: int) -> None:
        """Forget the record i."""
        if i - self.first in self.have:
            self.have.remove(i - self.first)
            for values in self.arrays.values():
                values[i - self.first] = 0

    @property
    def full(self) -> bool:
        """Whether every row holds a record."""
        return len(self.have) == self.capacity

    @property
    def rows(self) -> int:
        """How many rows are stored: in a stream that grows, those that are there."""
        return max(self.have, default=-1) + 1 if self.grows else self.capacity


def extents(schema: StreamSchema, variable: Variable, region: Region) -> tuple[int, ...]:
    """The lengths of a variable's part in a region, without time."""
    return tuple(stop - start for start, stop in regions.part(schema, variable, region))


def encode_part(
    schema: StreamSchema,
    name: str,
    variable: Variable,
    region: Region,
    block: np.ndarray,
    lead: tuple[int, ...],
    encoder: Encoder,
) -> Iterator[tuple[str, bytes]]:
    """Key and bytes of every object of a variable's part. lead: the position of the time shard, () for a static."""
    spatial = [schema.shard[d] for d in variable.dims[len(lead) :]]
    part = regions.part(schema, variable, region)
    for at in regions.shards(schema, variable, region):
        cut = [
            slice(k * s - start, min((k + 1) * s, stop) - start)
            for k, s, (start, stop) in zip(at, spatial, part, strict=True)
        ]
        here = block[(*[slice(None)] * len(lead), *cut)]
        data = encoder.encode(here)
        assert data is not None  # every shard has an element
        yield regions.object_key(name, (*lead, *at)), data


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

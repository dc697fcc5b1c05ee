# SPDX-License-Identifier: BSD-3-Clause
"""Which part of a stream a writer is responsible for."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from mrec.errors import CommitError, RegionError, RegionNotShardAligned
from mrec.stream.schema import StreamSchema, Variable

#: Start and stop along dimensions; what is not named is whole.
Region = dict[str, tuple[int, int]]


def check_region(schema: StreamSchema, partition: Sequence[str], region: Mapping[str, Any] | None, who: str) -> Region:
    """A region, complete along the partition's dimensions. RegionError, RegionNotShardAligned with the numbers."""
    found: Region = {}
    if not isinstance(region, Mapping | None):
        raise RegionError(f"{who}: a region is {{dimension: (start, stop)}}, not {region!r}")
    for dim, bounds in (region or {}).items():
        if dim not in schema.dims:
            raise RegionError(f"{who}: there is no dimension {dim!r}; the stream has {', '.join(schema.dims)}")
        if dim == schema.time_dim:
            raise RegionError(f"{who}: the time dimension {dim!r} is never cut")
        start, stop = check_bounds(bounds, dim, who)
        length, shard = schema.dims[dim], schema.shard[dim]
        if not 0 <= start < stop <= length:
            raise RegionError(f"{who}: {dim} [{start}, {stop}) lies not in [0, {length})")
        if start % shard or (stop % shard and stop != length):
            raise RegionNotShardAligned(
                f"{who}: {dim} [{start}, {stop}) begins or ends inside a shard of {shard} (length {length})"
            )
        if dim not in partition and (start, stop) != (0, length):
            cut = ", ".join(partition) or "no dimension"
            raise RegionError(
                f"{who}: cuts {dim} [{start}, {stop}) of [0, {length}), but the stream is cut along {cut}"
            )
        found[dim] = (start, stop)
    return {dim: found.get(dim, (0, schema.dims[dim])) for dim in partition}


def check_partition(schema: StreamSchema, partition: Iterable[str]) -> tuple[str, ...]:
    """The dimensions that regions cut, in the order of the schema."""
    wanted = list(partition)
    for dim in wanted:
        if dim not in schema.dims or dim == schema.time_dim:
            raise RegionError(f"{dim!r} cannot be cut: it is no dimension, or the time")
    return tuple(dim for dim in schema.dims if dim in wanted)


def check_bounds(bounds: Any, dim: str, who: str) -> tuple[int, int]:
    """Start and stop as integers, from a pair or a slice. RegionError."""
    if isinstance(bounds, slice) and bounds.step is None:
        bounds = (bounds.start, bounds.stop)
    try:
        start, stop = bounds
    except (TypeError, ValueError):
        raise RegionError(f"{who}: along {dim} a region is (start, stop), not {bounds!r}") from None
    if any(isinstance(v, bool) or not isinstance(v, (int, np.integer)) for v in (start, stop)):
        raise RegionError(f"{who}: along {dim} a region is two integers, not {bounds!r}")
    return int(start), int(stop)


def writes(variable: Variable, partition: Sequence[str], region: Region, writer: int) -> bool:
    """Whether a writer is responsible for (its part of) a variable."""
    if not any(dim in partition for dim in variable.dims):
        return writer == 0
    return all(region[dim][0] == 0 for dim in partition if dim not in variable.dims)


def part(schema: StreamSchema, variable: Variable, region: Region) -> list[tuple[int, int]]:
    """The part of a variable in a region: bounds along each of its dimensions but time."""
    return [region.get(d, (0, schema.dims[d])) for d in variable.dims if d != schema.time_dim]


def shards(schema: StreamSchema, variable: Variable, region: Region) -> tuple[tuple[int, ...], ...]:
    """The grid positions of the shards in that part, without time."""
    return _grid(_ranges(schema, variable, region))


def object_keys(
    schema: StreamSchema, name: str, variable: Variable, region: Region, lead: Iterable[int] = ()
) -> list[str]:
    """The keys of the shards in that part, at these positions of the time axis; of a static without."""
    below = _below(_ranges(schema, variable, region))
    if schema.time_dim not in variable.dims:
        return [f"{name}/c{at}" for at in below]
    return [f"{name}/c/{time}{at}" for time in lead for at in below]


def object_key(name: str, at: Iterable[int]) -> str:
    """The key of a shard."""
    return "/".join([name, "c", *map(str, at)])


def _ranges(schema: StreamSchema, variable: Variable, region: Region) -> tuple[tuple[int, int], ...]:
    lengths = [schema.shard[d] for d in variable.dims if d != schema.time_dim]
    bounds = part(schema, variable, region)
    return tuple((start // n, -(-stop // n)) for n, (start, stop) in zip(lengths, bounds, strict=True))


@lru_cache(64)
def _grid(ranges: tuple[tuple[int, int], ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(itertools.product(*(range(start, stop) for start, stop in ranges)))


@lru_cache(64)
def _below(ranges: tuple[tuple[int, int], ...]) -> tuple[str, ...]:
    return tuple("".join(f"/{i}" for i in at) for at in _grid(ranges))


# ---- the whole ---------------------------------------------------------------------------------------------------


def check_cover(schema: StreamSchema, partition: Sequence[str], regions: Mapping[int, Region]) -> None:
    """CommitError unless the regions are disjoint and together give every partitioned variable its writers."""
    ids = sorted(regions)
    if partition:
        bounds = np.array([[regions[i][d] for d in partition] for i in ids])
        starts, stops = bounds[:, :, 0], bounds[:, :, 1]
        both = np.all((starts[:, None] < stops[None]) & (starts[None] < stops[:, None]), axis=2)
        np.fill_diagonal(both, False)
        if both.any():
            a, b = np.argwhere(both)[0].tolist()
            raise CommitError(
                f"the regions of writers {ids[a]} and {ids[b]} overlap: {_say(regions[ids[a]])} and "
                f"{_say(regions[ids[b]])}",
                retry=False,
            )
    for name, variable in {**schema.variables, **schema.statics}.items():
        carried = [d for d in partition if d in variable.dims]
        if carried:
            _check_gap(schema, name, carried, [regions[i] for i in ids if writes(variable, partition, regions[i], i)])


def _check_gap(schema: StreamSchema, name: str, dims: list[str], regions: list[Region]) -> None:
    """Regions are disjoint, so they cover when their volumes do."""
    volume = sum(int(np.prod([r[d][1] - r[d][0] for d in dims], dtype=object)) for r in regions)
    if volume == int(np.prod([schema.dims[d] for d in dims], dtype=object)):
        return
    cuts = [sorted({0, schema.dims[d], *(v for r in regions for v in r[d])}) for d in dims]
    for at in itertools.product(*(list(itertools.pairwise(c)) for c in cuts)):
        cell = dict(zip(dims, at, strict=True))
        if not any(all(r[d][0] <= cell[d][0] and cell[d][1] <= r[d][1] for d in dims) for r in regions):
            raise CommitError(f"no writer has {_say(cell)} of {name!r}", retry=False)


def _say(region: Region) -> str:
    return ", ".join(f"{dim} [{start}, {stop})" for dim, (start, stop) in region.items())

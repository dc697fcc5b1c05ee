# SPDX-License-Identifier: BSD-3-Clause
"""Random tilings: each element of each variable has exactly one writer, also of variables that lack dimensions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from mrec.errors import CommitError
from mrec.stream import StreamSchema, Variable
from mrec.stream.region import check_cover, check_region, part, writes


def tiling(rng: random.Random, s: StreamSchema, dims: list[str], n: int) -> list[dict[str, tuple[int, int]]]:
    """At most n tiles, by cutting one after another; not a grid."""
    tiles = [{d: (0, s.dims[d]) for d in dims}]
    for _ in range(20):
        if len(tiles) == n:
            break
        tile, dim = rng.choice(tiles), rng.choice(dims)
        start, stop = tile[dim]
        cuts = list(range(start + s.shard[dim], stop, s.shard[dim]))
        if cuts:
            cut = rng.choice(cuts)
            tiles.remove(tile)
            tiles += [{**tile, dim: (start, cut)}, {**tile, dim: (cut, stop)}]
    rng.shuffle(tiles)
    return tiles


def declaration(rng: random.Random) -> StreamSchema:
    lengths = {d: rng.randint(1, 9) for d in "xyz"}
    shard = {d: rng.randint(1, 4) for d in "xyz"}
    subsets = [[d for d in "xyz" if rng.random() < 0.6] for _ in range(4)]
    variables = {f"v{i}": Variable(("time", *dims), "u1") for i, dims in enumerate([*subsets, [], ["x", "y", "z"]])}
    statics = {f"s{i}": Variable(tuple(dims), "u1") for i, dims in enumerate(subsets) if dims}
    return StreamSchema(
        lengths, variables, {"time": 1, **dict.fromkeys("xyz", 1)}, {"time": 1, **shard}, statics=statics
    )


def test_no_gap_and_no_double_writer() -> None:
    """A sample; tests/long/test_streams.py has 5000."""
    check_tilings(range(300))


def check_tilings(seeds: range) -> None:
    for seed in seeds:
        rng = random.Random(seed)
        s = declaration(rng)
        dims = rng.sample("xyz", rng.randint(1, 3))
        tiles = tiling(rng, s, dims, rng.randint(2, 6))
        regions: dict[int, Any] = {i: check_region(s, dims, t, f"writer {i}") for i, t in enumerate(tiles)}
        check_cover(s, dims, regions)
        for name, variable in {**s.variables, **s.statics}.items():
            count = np.zeros([s.dims[d] for d in variable.dims if d != "time"], int)
            for i, region in regions.items():
                if writes(variable, dims, region, i):
                    count[tuple(slice(a, b) for a, b in part(s, variable, region))] += 1
            assert (count == 1).all(), (seed, name)
        if len(tiles) > 1:  # the check sees what is wrong
            without = {i: r for i, r in regions.items() if i}
            with pytest.raises(CommitError, match="no writer has"):
                check_cover(s, dims, without)
            with pytest.raises(CommitError, match="overlap"):
                check_cover(s, dims, {**regions, len(tiles): regions[0]})

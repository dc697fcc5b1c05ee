# SPDX-License-Identifier: BSD-3-Clause
"""Writers of one stream in one process, and the values they write."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mrec import stream
from mrec.stream import Contributor, MemoryStore, Owner, Single, StreamSchema, Variable
from mrec.stream.region import part

DIMS = {"lat": 13, "lon": 9, "lev": 2}


def schema(**changes: Any) -> StreamSchema:
    """Variables that carry every cut dimension, some, and none; a static; a coordinate."""
    found: dict[str, Any] = {
        "dims": DIMS,
        "variables": {
            "t2m": Variable(("time", "lat", "lon"), "f32", {"units": "K"}),
            "ps": Variable(("time", "lev", "lat", "lon"), "f64"),
            "zonal": Variable(("time", "lat"), "i32"),
            "merid": Variable(("time", "lon"), "u8"),
            "total": Variable(("time",), "f64"),
        },
        "statics": {"mask": Variable(("lat", "lon"), "bool"), "weight": Variable(("lon",), "f64")},
        "coords": {"lat": (np.linspace(-60, 60, 13), {"units": "degrees_north"}), "time": {"units": "s"}},
        "chunk": {"time": 1, "lat": 2, "lon": 3, "lev": 1},
        "shard": {"time": 3, "lat": 4, "lon": 3, "lev": 2},
    }
    return StreamSchema(**{**found, **changes})


def value(s: StreamSchema, name: str, i: int, salt: int = 0) -> np.ndarray:
    """All of a variable or static at a record."""
    variable = s.variables.get(name) or s.statics[name]
    shape = [s.dims[d] for d in variable.dims if d != s.time_dim]
    rng = np.random.default_rng([sum(name.encode()), i, salt])
    if variable.dtype == "bool":
        return rng.random(shape) < 0.5
    if variable.numpy.kind == "f":
        return rng.normal(size=shape).astype(variable.dtype)
    return rng.integers(0, 100, shape).astype(variable.dtype)


def cut(s: StreamSchema, name: str, region: Any, whole: np.ndarray) -> np.ndarray:
    """The part of a variable in a region."""
    variable = s.variables.get(name) or s.statics[name]
    return whole[tuple(slice(a, b) for a, b in part(s, variable, region))]


def tiles(**cuts: Iterable[int]) -> list[dict[str, tuple[int, int]]]:
    """Regions from bounds along each dimension."""
    spans = [[(d, span) for span in itertools.pairwise(bounds)] for d, bounds in cuts.items()]
    return [dict(tile) for tile in itertools.product(*spans)]


TWO_BY_TWO = tiles(lat=(0, 8, 13), lon=(0, 6, 9))
FOUR_ROWS = tiles(lat=(0, 4, 8, 12, 13))


class Crew:
    """An owner and its contributors, or a single writer when there are no regions."""

    def __init__(self, base: Any, s: StreamSchema, regions: list[Any] | None = None, **options: Any) -> None:
        self.base, self.schema, self.options = base, s, options
        if regions is None:
            self.writers = [stream.create(base, s, Single(), **options)]
        else:
            dims = [d for d in s.dims if any(d in r for r in regions)]
            owner = stream.create(base, s, Owner(len(regions)), regions[0], partition_dims=dims, **options)
            self._contributors(owner, regions, stream.join)

    def _contributors(self, owner: Any, regions: list[Any], come: Any) -> None:
        shared = {k: v for k, v in self.options.items() if k in ("durability", "threads")}
        self.writers = [owner]
        for r in range(1, len(regions)):
            self.writers.append(come(self.base, Contributor(r), regions[r], **shared))

    def resume(self, regions: list[Any] | None = None, **more: Any) -> None:
        """All drop what they have, and come back."""
        for writer in getattr(self, "writers", []):
            writer.fence.release()
        options = {k: v for k, v in self.options.items() if k != "overwrite"}
        if regions is None:
            self.writers = [stream.resume(self.base, Single(), **options, **more)]
        else:
            owner = stream.resume(self.base, Owner(len(regions)), regions[0], **options, **more)
            self._contributors(owner, regions, stream.resume)

    @property
    def owner(self) -> Any:
        return self.writers[0]

    def arrays(self, writer: Any, i: int, salt: int = 0) -> dict[str, np.ndarray]:
        return {n: cut(self.schema, n, writer.region, value(self.schema, n, i, salt)) for n in writer.mine}

    def write(self, *records: int, salt: int = 0, only: Any = None) -> None:
        """Records by all writers, at the time 10 i."""
        for i in records:
            for writer in only or self.writers:
                if self.schema.mode.indexed:
                    writer.write_record_at(i, 10.0 * i, self.arrays(writer, i, salt))
                else:
                    assert writer.write_record(10.0 * i, self.arrays(writer, i, salt)) == i

    def write_static(self, name: str, salt: int = 0) -> None:
        for writer in self.writers:
            if name in writer.my_statics:
                writer.write_static(name, cut(self.schema, name, writer.region, value(self.schema, name, 0, salt)))

    def flush(self) -> list[Any]:
        return [writer.flush() for writer in self.writers]

    def commit(self, tokens: list[Any] | None = None) -> Any:
        """Flush, commit, acknowledge."""
        tokens = self.flush() if tokens is None else tokens
        if isinstance(self.owner.role, Single):
            return tokens[0]
        receipt = self.owner.commit(tokens)
        for writer in self.writers:
            writer.acknowledge(receipt.to_json())
        return receipt

    def close(self) -> None:
        for writer in self.writers:
            writer.close()


def check(base: Any, s: StreamSchema, records: Iterable[int], salt: int = 0) -> None:
    """The stream has these records, and no other, bit for bit."""
    found = stream.Stream(base)
    m = found.manifest
    records = list(records)
    assert m.readable() == records
    for name in s.variables:
        for i in records:
            wanted = value(s, name, i, salt)
            got = found.read_record(name, i)
            assert got.dtype == wanted.dtype and got.tobytes() == wanted.tobytes() and got.shape == wanted.shape
    assert found.times().tolist() == [10.0 * i for i in records]


def contents(base: Any) -> dict[str, bytes]:
    """Every file of a stream."""
    if isinstance(base, MemoryStore):
        return dict(base.values)
    root = Path(base)
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


def data(base: Any) -> dict[str, bytes]:
    """The objects of arrays and their documents: all that does not tell who wrote when."""
    return {k: v for k, v in contents(base).items() if not k.startswith(("locks/", "tmp/", "output_manifest"))}

# SPDX-License-Identifier: BSD-3-Clause
"""Reading back: committed data only, by what the manifest says before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from mrec import _core
from mrec.errors import CorruptData, InvalidValue, NotCommitted, RegionError, UnknownName
from mrec.stream import region as regions
from mrec.stream.buffer import read_part
from mrec.stream.fence import require_manifest
from mrec.stream.manifest import KEY, Manifest, blob_key, numpy_times
from mrec.stream.opening import read_times
from mrec.stream.place import Place, place_of
from mrec.stream.schema import Variable
from mrec.zarr.metadata import ArrayMeta, parse_node

T = TypeVar("T")

#: How often a reader begins again while the stream changes under it.
_TRIES = 8


def read_manifest(base: Any) -> Manifest:
    """What is committed. NotARecord when there is no stream."""
    return Stream(base).manifest


def read_record(base: Any, var: str, i: int, region: Mapping[str, Any] | None = None) -> np.ndarray:
    """One variable of a committed record, whole or in a region {dim: (start, stop)}. NotCommitted."""
    return Stream(base).read_record(var, i, region)


def read_static(base: Any, var: str, region: Mapping[str, Any] | None = None) -> np.ndarray:
    """A committed static, whole or in a region. NotCommitted."""
    return Stream(base).read_static(var, region)


def read_blob(base: Any, scope: int | str, writer: int, key: str) -> bytes:
    """A committed blob of a writer. scope: "static", or the index of a record. NotCommitted."""
    return Stream(base).read_blob(scope, writer, key)


class Stream:
    """A stream for reading. Each call reads the manifest before and after its data. Pickles by its base."""

    def __init__(self, base: Any) -> None:
        self.base = base
        self.place: Place = place_of(base).session(False)
        self._parsed: tuple[bytes, Manifest] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Stream, (self.base,)

    @property
    def manifest(self) -> Manifest:
        """What is committed now."""
        raw = self.place.get(KEY)
        if self._parsed is None or raw != self._parsed[0]:
            found = require_manifest(self.place, raw)
            if found.version == 1:
                dtype = self.meta(found.schema.time_dim).data_type
                found.schema = replace(found.schema, time_dtype=dtype)
            self._parsed = (raw or b"", found)
        return self._parsed[1]

    def meta(self, name: str) -> ArrayMeta:
        """The document of an array. UnknownName."""
        raw = self.place.get(f"{name}/zarr.json")
        node = None if raw is None else parse_node(raw, f"{self.place.name}/{name}/zarr.json")
        if not isinstance(node, ArrayMeta):
            raise UnknownName(f"{self.place.name}: there is no array {name!r}")
        return node

    def read_record(self, var: str, i: int, region: Mapping[str, Any] | None = None) -> np.ndarray:
        """One variable of a committed record."""
        return self.read_records(var, [i], region)[0]

    def read_records(self, var: str, indices: Sequence[int], region: Mapping[str, Any] | None = None) -> np.ndarray:
        """One variable of committed records, (records, ...), as of one state of the stream."""

        def read(m: Manifest) -> np.ndarray:
            variable = m.schema.variables.get(var)
            if variable is None:
                raise UnknownName(f"{self.place.name}: the stream has no variable {var!r}")
            for i in indices:
                self._check(m, i)
            return self._rows(m, var, variable, list(indices), _bounds(m, variable, region))

        return self._steady(read, indices)

    def _check(self, m: Manifest, i: Any) -> None:
        if isinstance(i, bool) or not isinstance(i, (int, np.integer)):
            raise InvalidValue(f"a record has an integer index, not {i!r}")
        if not m.has(int(i)):
            raise NotCommitted(f"{self.place.name}: record {i} is not committed ({m.n_records} are)")
        if m.schema.mode.rotate and i != m.highest():
            raise NotCommitted(f"{self.place.name}: slot {i} may be written again; the one to read is {m.highest()}")

    def _rows(
        self, m: Manifest, var: str, variable: Variable, indices: list[int], bounds: list[tuple[int, int]]
    ) -> np.ndarray:
        if m.blosc:
            return _through_zarr(self.place, var, indices, bounds)
        size = m.schema.shard_time
        out = np.zeros((len(indices), *(stop - start for start, stop in bounds)), variable.numpy)
        at = 0
        while at < len(indices):
            shard, end = indices[at] // size, at
            while end < len(indices) and indices[end] // size == shard:
                end += 1
            here = np.array(indices[at:end])
            low, high = int(here.min()), int(here.max()) + 1
            stored = high - shard * size
            self._check_sealed(m, var, variable, shard, bounds)
            fill = low < m.v1_records
            block = read_part(self.place, m.schema, var, variable, bounds, (low, high), stored, fill)
            out[at:end] = block[here - low]
            at = end
        return out

    def _check_sealed(
        self, m: Manifest, var: str, variable: Variable, shard: int, bounds: list[tuple[int, int]]
    ) -> None:
        """A profile without checksums has those of the manifest, where they bind."""
        if m.schema.profile != "wasm" or m.version == 1:
            return
        size = m.schema.shard_time
        if all(m.has(i) for i in range(shard * size, min((shard + 1) * size, m.schema.mode.n or (shard + 1) * size))):
            dims = [d for d in variable.dims if d != m.schema.time_dim]
            for at in regions.shards(m.schema, variable, dict(zip(dims, bounds, strict=True))):
                key = regions.object_key(var, (shard, *at))
                sealed = m.objects.get(key)
                if sealed is not None and self.place.checksum(key) != (sealed.size, sealed.crc32c):
                    raise CorruptData(f"{self.place.name}: {key} has not the checksum that the manifest has")

    def read_static(self, var: str, region: Mapping[str, Any] | None = None) -> np.ndarray:
        """A committed static."""

        def read(m: Manifest) -> np.ndarray:
            variable = m.schema.statics.get(var)
            if variable is None:
                raise UnknownName(f"{self.place.name}: the stream has no static {var!r}")
            if var not in m.statics:
                raise NotCommitted(f"{self.place.name}: the static {var!r} is not committed")
            return read_part(self.place, m.schema, var, variable, _bounds(m, variable, region), None, 0)

        return self._steady(read, [])

    def read_blob(self, scope: int | str, writer: int, key: str) -> bytes:
        """A committed blob, checked against the manifest."""
        where = None if scope == "static" else scope

        def read(m: Manifest) -> bytes:
            if where is not None:
                self._check(m, where)
            sealed = m.blobs.get((where, writer, key))  # type: ignore[arg-type]
            if sealed is None:
                raise NotCommitted(
                    f"{self.place.name}: no blob {key!r} of writer {writer}, scope {scope}, is committed"
                )
            name = blob_key(where, writer, key)  # type: ignore[arg-type]
            data = self.place.get(name)
            if data is None:
                raise CorruptData(f"{self.place.name}: the object {name} of committed data is missing")
            if (len(data), _core.crc32c(data)) != (sealed.size, sealed.crc32c):
                raise CorruptData(f"{self.place.name}: {name} has not the checksum that the manifest has")
            return data

        return self._steady(read, [] if where is None else [where])  # type: ignore[list-item]

    def times(self) -> np.ndarray:
        """The times of the records that may be read, in their order."""

        def read(m: Manifest) -> np.ndarray:
            if m.indexed:
                return numpy_times(m.schema, (m.times[i] for i in m.readable()))
            if m.blosc:
                return _through_zarr(self.place, m.schema.time_dim, list(range(m.count)), [])
            return read_times(self.place, m)

        return self._steady(read, [])

    def coordinate(self, name: str) -> np.ndarray | None:
        """The values of a dimension's coordinate; None when it has none."""
        m = self.manifest
        if name == m.schema.time_dim:
            return self.times()
        if self.place.get(f"{name}/zarr.json") is None:
            return None
        if m.blosc:
            return _through_zarr(self.place, name, None, [])
        variable = Variable((name,), self.meta(name).data_type)
        fill = m.version == 1 or m.v1_records > 0
        return read_part(self.place, m.schema, name, variable, [(0, m.schema.dims[name])], None, 0, fill)

    def _steady(self, read: Callable[[Manifest], T], indices: Sequence[int]) -> T:
        """What is read from one state of the stream; begun again when it changed meanwhile."""
        m = self.manifest
        for tried in range(_TRIES):
            failed: Exception | None = None
            found: Any = None
            try:
                found = read(m)
            except (CorruptData, OSError) as e:
                failed = e
            after = self.manifest
            if _same(m, after, indices):
                if failed is None:
                    return found
                if after.commit_seq == m.commit_seq or tried > 1:
                    raise failed
            m = after
        raise NotCommitted(f"{self.place.name}: the stream changed {_TRIES} times while it was read")


def _same(before: Manifest, after: Manifest, indices: Sequence[int]) -> bool:
    if (before.stream_id, before.epoch) != (after.stream_id, after.epoch):
        return False
    if not before.indexed:
        return all(i < after.count for i in indices)
    if before.schema.mode.rotate:
        return before.highest() == after.highest() and before.generation == after.generation
    return all(before.generation.get(i) == after.generation.get(i) for i in indices)


def _bounds(m: Manifest, variable: Variable, region: Mapping[str, Any] | None) -> list[tuple[int, int]]:
    """A box of a variable, at any place."""
    found = dict(region or {})
    bounds = []
    for dim in variable.dims:
        if dim == m.schema.time_dim:
            continue
        length = m.schema.dims[dim]
        given = found.pop(dim, (0, length))
        if isinstance(given, slice) and given.step is None:
            given = (given.start or 0, length if given.stop is None else given.stop)
        start, stop = regions.check_bounds(given, dim, "to read")
        if not 0 <= start < stop <= length:
            raise RegionError(f"{dim} [{start}, {stop}) lies not in [0, {length})")
        bounds.append((start, stop))
    if found:
        raise RegionError(f"there is no dimension {min(found)!r} to read a part of")
    return bounds


def _through_zarr(place: Place, var: str, indices: list[int] | None, bounds: list[tuple[int, int]]) -> np.ndarray:
    """A store of another program, packed by a codec that mrec has not."""
    import zarr

    array = zarr.open_array(getattr(place, "root", place.name), path=var, mode="r")
    cut = tuple(slice(start, stop) for start, stop in bounds)
    if indices is None:
        return np.asarray(array[...])
    low, high = min(indices, default=0), max(indices, default=-1) + 1
    return np.asarray(array[(slice(low, high), *cut)])[np.array(indices, np.intp) - low]

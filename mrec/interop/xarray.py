# SPDX-License-Identifier: BSD-3-Clause
"""`xarray.open_dataset(path, engine="mrec")`: streams, and the per-step values and regular blocks of trajectories.

Everything is lazy; with `chunks={}` dask takes one shard a task.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mrec.errors import MrecError
from mrec.extras import extra
from mrec.stream.manifest import KEY
from mrec.stream.read import Stream

with extra("xarray", __name__):
    from xarray import Dataset, Variable, decode_cf
    from xarray.backends import BackendArray, BackendEntrypoint
    from xarray.core import indexing

#: Bounds along each axis -> the elements.
Reader = Callable[[list[tuple[int, int]]], np.ndarray]


class MrecBackend(BackendEntrypoint):
    """Found by xarray through the entry point `mrec`."""

    description = "Open streams and trajectories of mrec"

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: Any = None,
        mask_and_scale: Any = True,
        decode_times: Any = True,
        concat_characters: bool = True,
        decode_coords: Any = True,
        use_cftime: Any = None,
        decode_timedelta: Any = None,
    ) -> Dataset:
        """The dataset of a stream (as of its last commit), decoded by the CF conventions, or of a trajectory."""
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        if not is_stream(filename_or_obj):
            found = open_trajectory(filename_or_obj)
            return found.drop_vars(dropped & set(found.variables))
        options = {"use_cftime": use_cftime} if use_cftime is not None else {}
        return decode_cf(
            open_stream(filename_or_obj),
            concat_characters=concat_characters,
            mask_and_scale=mask_and_scale,
            decode_times=decode_times,
            decode_coords=decode_coords,
            drop_variables=dropped,
            decode_timedelta=decode_timedelta,
            **options,
        )

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Whether a path holds a stream, or is called like a record."""
        if not isinstance(filename_or_obj, (str, os.PathLike)):
            return False
        name = os.fspath(filename_or_obj)
        return is_stream(name) or name.rstrip("/").endswith((".mrec", ".mrec.zip"))


def is_stream(path: Any) -> bool:
    """Whether there is a manifest; what is no path is taken for a store with one."""
    if not isinstance(path, (str, os.PathLike)):
        return True
    return "://" in os.fspath(path) or os.path.isfile(os.path.join(path, KEY))


class Lazy(BackendArray):
    """An array that is read when it is needed. read: bounds along each axis -> the elements."""

    def __init__(
        self, shape: tuple[int, ...], dtype: np.dtype, read: Callable[[list[tuple[int, int]]], np.ndarray]
    ) -> None:
        self.shape, self.dtype, self._read = shape, dtype, read

    def __getitem__(self, key: Any) -> Any:
        """Basic indexing; xarray makes the rest of it."""
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._basic)

    def _basic(self, key: tuple[Any, ...]) -> np.ndarray:
        bounds: list[tuple[int, int]] = []
        inside: list[Any] = []
        for part, n in zip(key, self.shape, strict=True):
            hit = range(n)[part if isinstance(part, slice) else slice(int(part), int(part) + 1)]
            low, high = (min(hit[0], hit[-1]), max(hit[0], hit[-1]) + 1) if hit else (0, 0)
            bounds.append((low, high))
            inside.append(slice(None, None, hit.step) if isinstance(part, slice) else 0)
        if any(low == high for low, high in bounds):
            return np.empty([high - low for low, high in bounds], self.dtype)[tuple(inside)]
        return self._read(bounds)[tuple(inside)]


# ---- streams -----------------------------------------------------------------------------------------------------


class _Records:
    """Reads a variable of the records that were committed when the dataset was opened."""

    def __init__(self, found: Stream, name: str, indices: list[int] | None, dims: tuple[str, ...]) -> None:
        self.stream, self.name, self.indices, self.dims = found, name, indices, dims

    def __call__(self, bounds: list[tuple[int, int]]) -> np.ndarray:
        if self.indices is None:
            return self.stream.read_static(self.name, dict(zip(self.dims, bounds, strict=True)))
        (start, stop), *rest = bounds
        return self.stream.read_records(
            self.name, self.indices[start:stop], dict(zip(self.dims[1:], rest, strict=True))
        )


def open_stream(base: Any) -> Dataset:
    """The committed records, statics and coordinates of a stream."""
    found = Stream(base)
    m = found.manifest
    s, indices = m.schema, m.readable()
    lengths = {**s.dims, s.time_dim: len(indices)}
    variables: dict[str, Variable] = {}
    statics = {name: v for name, v in s.statics.items() if name in m.statics}
    for name, variable in {**s.variables, **statics}.items():
        records = indices if name in s.variables else None
        shape = tuple(lengths[d] for d in variable.dims)
        lazy = Lazy(shape, variable.numpy, _Records(found, name, records, variable.dims))
        data = indexing.LazilyIndexedArray(lazy)
        chunks = {d: s.shard[d] for d in variable.dims}
        variables[name] = Variable(variable.dims, data, _attrs(found, name), {"preferred_chunks": chunks})
    coords = {}
    for dim in s.dims:
        values = found.times() if dim == s.time_dim else found.coordinate(dim)
        if values is not None:
            coords[dim] = Variable((dim,), values[: lengths[dim]], _attrs(found, dim))
    return Dataset(variables, coords, dict(m.attrs) if m.version == 2 else _group_attrs(found))


def _attrs(found: Stream, name: str) -> dict[str, Any]:
    return {k: v for k, v in found.meta(name).attributes.items() if k != "_ARRAY_DIMENSIONS"}


def _group_attrs(found: Stream) -> dict[str, Any]:
    from mrec.zarr.metadata import parse_node

    raw = found.place.get("zarr.json")
    return {} if raw is None else dict(parse_node(raw, "zarr.json").attributes)


# ---- trajectories ------------------------------------------------------------------------------------------------


class _Column:
    """Reads a column of a regular block; opened where it is needed, so that it travels to other processes."""

    def __init__(self, path: str, block: str, column: str) -> None:
        self.path, self.block, self.column = path, block, column

    def __call__(self, bounds: list[tuple[int, int]]) -> np.ndarray:
        import mrec

        with mrec.open(self.path) as record:
            (start, stop), (low, high), *rest = bounds
            read = record.trajectory.read(self.block, self.column, frames=slice(start, stop), rows=slice(low, high))
        return np.asarray(read[(slice(None), slice(None), *(slice(*b) for b in rest))])


def open_trajectory(path: Any) -> Dataset:
    """Per-step values, and the columns of blocks that have the same rows in every frame: (frame, <block>, ...)."""
    import mrec

    name = os.fspath(path)
    with mrec.open(name) as record:
        trajectory = record.trajectory
        n, schema = len(trajectory), trajectory.schema
        coords: dict[str, Any] = {"step": Variable(("frame",), np.asarray(trajectory.steps))}
        if trajectory.times is not None:
            coords["time"] = Variable(("frame",), np.asarray(trajectory.times))
        variables = {value: _values(value, trajectory) for value in schema.values}
        if n:
            for block, declared in schema.blocks.items():
                variables.update(_block(name, trajectory, block, declared, n))
        return Dataset({k: v for k, v in variables.items() if v is not None}, coords, record.meta)


def _values(name: str, trajectory: Any) -> Variable | None:
    values = np.asarray(trajectory.values(name))
    if values.dtype.kind not in "fiub":
        return None
    return Variable(("frame", *(f"{name}_{i}" for i in range(values.ndim - 1))), values)


def _block(path: str, trajectory: Any, block: str, declared: Any, n: int) -> Mapping[str, Variable]:
    """The columns of a block, when it is regular."""
    rows = _uniform(trajectory, block)
    if rows is None:
        return {}
    found = {}
    for column, kind in declared.columns.items():
        dtype = kind.dtype.numpy
        if dtype.kind in "fiub" and not kind.nullable:
            trailing = kind.trailing
            dims = ("frame", block, *(f"{block}_{column}_{i}" for i in range(len(trailing))))
            lazy = Lazy((n, rows, *trailing), dtype, _Column(path, block, column))
            name = f"{block}_{column}"
            found[name] = Variable(
                dims, indexing.LazilyIndexedArray(lazy), {}, {"preferred_chunks": _chunks(dims, rows, n)}
            )
    return found


def _uniform(trajectory: Any, block: str) -> int | None:
    """The rows that a block has in every frame; None when they differ."""
    try:
        form = trajectory._state.block(block)
    except MrecError:
        return None
    rows: int | None = form.uniform
    return rows if rows is not None and form.n == len(trajectory) else None


def _chunks(dims: Iterable[str], rows: int, n: int) -> dict[str, int]:
    """Frames of about 16 MiB a task."""
    frames = max(1, min(n, (16 << 20) // max(1, 8 * rows)))
    return {"frame": frames, **dict.fromkeys(list(dims)[1:2], rows)}

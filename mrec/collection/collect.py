# SPDX-License-Identifier: BSD-3-Clause
"""Into a collection: xarray Datasets, NetCDF files and Zarr stores, frames of records, ASE structures."""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from mrec.collection.place import CONTAINER
from mrec.collection.writer import CollectionWriter
from mrec.errors import InvalidValue, RecordNotFound, SchemaError
from mrec.extras import extra
from mrec.frame import Frame

#: Attributes that a frame's cell becomes. cell: its vectors, one after the other.
CELL, ORIGIN, PERIODIC = CELL_KEYS = "cell", "cell_origin", "cell_periodic"
#: Which variables of a Dataset were coordinates, where it cannot be seen.
COORDINATES = "_coordinates"
NETCDF = (".nc", ".nc4", ".cdf", ".netcdf")
#: How xarray says what stands for missing, in the order of its precedence.
FILLS = ("_FillValue", "missing_value")


def collect(
    target: str | os.PathLike[str],
    sources: Iterable[Any],
    *,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Make a collection of NetCDF files, Zarr stores, folders of both, records, Datasets and ASE structures.

    A file or a store becomes a data set of its name without its suffix; a record one for each frame, "<stem>.<frame>";
    `(name, Dataset)` and `(name, Atoms)` one of that name. options: of `CollectionWriter`. progress: called with
    each name. DatasetExists when two are of one name.
    """
    given = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    with CollectionWriter(target, **options) as writer:
        for source in given:
            for name in add(writer, source):
                if progress is not None:
                    progress(name)


def add(writer: CollectionWriter, source: Any) -> list[str]:
    """Add what a source has; the names of the data sets. See `collect`."""
    if isinstance(source, (str, os.PathLike)):
        return _add_path(writer, os.fspath(source))
    if not isinstance(source, tuple) or len(source) != 2:
        raise InvalidValue(f"{source!r} is no source: a path, (name, Dataset), (name, Frame) or (name, Atoms)")
    name, value = source
    if isinstance(value, Frame):
        add_frame(writer, name, value)
    elif hasattr(value, "get_positions"):
        add_atoms(writer, name, value)
    elif hasattr(value, "variables") and hasattr(value, "coords"):
        add_dataset(writer, name, value)
    else:
        raise InvalidValue(f"{name!r}: {type(value).__name__} is none of a Dataset, a Frame and Atoms")
    return [name]


def _add_path(writer: CollectionWriter, path: str) -> list[str]:
    base = os.path.basename(os.path.normpath(path))
    if not os.path.exists(path):
        raise RecordNotFound(f"{path}: there is nothing")
    if base.endswith((".mrec", ".mrec.zip")):
        return _add_record(writer, path, base.removesuffix(".zip").removesuffix(".mrec"))
    if os.path.isdir(path) and not _is_zarr(path):
        inside = [entry for entry in sorted(glob.glob(f"{glob.escape(path)}/*")) if _is_source(entry)]
        if not inside:
            if os.path.exists(os.path.join(path, CONTAINER)):
                raise InvalidValue(f"{path} is a collection already; mrec.collection.merge makes one of several")
            raise InvalidValue(f"{path} holds no NetCDF file, Zarr store or record")
        return [name for entry in inside for name in _add_path(writer, entry)]
    with extra("collection", f"reading {path}"):
        import xarray

    zarr = os.path.isdir(path)
    try:
        found = xarray.open_zarr(path, consolidated=False) if zarr else xarray.open_dataset(path)
    except (ValueError, OSError) as e:
        raise InvalidValue(f"{path} is no record, no Zarr store and no NetCDF file: {e}") from None
    with found:
        add_dataset(writer, os.path.splitext(base)[0], found)
    return [os.path.splitext(base)[0]]


def _is_zarr(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name)) for name in ("zarr.json", ".zgroup", ".zmetadata"))


def _is_source(path: str) -> bool:
    return path.endswith((*NETCDF, ".mrec", ".mrec.zip")) or (os.path.isdir(path) and _is_zarr(path))


# ---- xarray -----------------------------------------------------------------------------------------------------


def add_dataset(writer: CollectionWriter, name: str, source: Any) -> None:
    """An `xarray.Dataset`: its variables with dims and attributes. Values that are missing are the array's fill."""
    with writer.add_dataset(name) as dataset:
        for array, variable in source.variables.items():
            _add_variable(dataset, str(array), variable)
        odd = [str(c) for c in source.coords if source[c].dims != (c,)]
        if COORDINATES in source.attrs:
            raise SchemaError(
                f"{name!r} has an attribute {COORDINATES!r}, which says what the coordinates are; rename it"
            )
        for key, value in source.attrs.items():
            dataset.set_attribute(str(key), value)
        if odd:
            dataset.set_attribute(COORDINATES, odd)


def _add_variable(dataset: Any, name: str, variable: Any) -> None:
    values = np.asarray(variable.values)
    fill = next((variable.encoding[key] for key in FILLS if key in variable.encoding), None)
    if isinstance(fill, np.ndarray) and fill.size == 1:
        fill = fill.ravel()[0]
    attributes = dict(variable.attrs)
    if "dtype" in attributes and values.dtype.kind in "bm":
        raise SchemaError(f"{name!r} has an attribute 'dtype', which says that it is {values.dtype}; rename it")
    if values.dtype.kind == "b":
        values, attributes["dtype"] = values.astype(np.uint8), "bool"
    elif values.dtype.kind == "m":
        values, attributes["dtype"] = _durations(name, values).view(np.int64), "timedelta64[ns]"
    elif values.dtype.kind in "UTO":
        values = np.asarray(values, object)
        for item in values.ravel().tolist():
            if not isinstance(item, str):
                raise SchemaError(f"{name!r} holds {item!r}, which is no string")
        fill = None
    elif values.dtype.kind == "S":
        fill = None
    elif values.dtype.kind == "f":
        fill = np.nan
        values = values.astype(np.float32) if values.dtype.itemsize < 4 else values
    kind = "string" if values.dtype == object else values.dtype
    if values.dtype.kind == "M":
        fill = np.datetime64("NaT", "ns")
    dataset.define_array(name, kind, [str(dim) for dim in variable.dims], values.shape, fill_value=fill)
    if values.size:
        dataset.write_array(name, (0,) * values.ndim, values)
    for key, value in attributes.items():
        dataset.set_array_attribute(name, str(key), value)


def _durations(name: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """In nanoseconds; SchemaError when one is no whole number of them, or more than 292 years."""
    try:
        made = values.astype("m8[ns]")
        if np.array_equal(made.astype(values.dtype), values, equal_nan=True):
            return made
    except OverflowError:
        pass
    raise SchemaError(f"{name!r} has durations that are no whole number of nanoseconds, or longer than 292 years")


# ---- frames -----------------------------------------------------------------------------------------------------


def _add_record(writer: CollectionWriter, path: str, stem: str) -> list[str]:
    import mrec

    names: list[str] = []

    def add_next(frame: Frame) -> None:
        names.append(f"{stem}.{len(names)}")
        add_frame(writer, names[-1], frame)

    with mrec.open(path) as record:
        for frame in record.trajectory if "trajectory" in record else ():
            add_next(frame)
        if not names and record.frame is not None:
            add_next(record.frame)
    return names


def add_frame(writer: CollectionWriter, name: str, frame: Frame) -> None:
    """A frame: an array "<block>.<column>" for each column, per-step values, step, time and cell as attributes."""
    with writer.add_dataset(name) as dataset:
        for block, columns in frame.blocks.items():
            if "." in block:
                raise SchemaError(
                    f"{name!r}: the block {block!r} has a '.' in its name, which ends that of a block here"
                )
            for column, values in columns.items():
                _add_column(dataset, f"{block}.{column}", block, values)
        for key in ("step", "time"):
            if getattr(frame, key) is not None:
                dataset.set_attribute(key, getattr(frame, key))
        for key, value in frame.values.items():
            if key in ("step", "time", *CELL_KEYS):
                _warn(dataset, key, "an attribute of this name says something else of a frame")
            else:
                _set_or_warn(dataset, key, np.asarray(value)[()] if np.ndim(value) else value)
        if frame.box is not None and frame.box.defined:
            _set_cell(dataset, frame.box.rows, frame.box.origin, frame.box.periodic)


def _add_column(dataset: Any, name: str, rows: str, values: Any) -> None:
    if np.ma.isMaskedArray(values) and values.mask.any():
        raise SchemaError(f"{name!r} has null rows, which a collection cannot tell from values")
    array = np.asarray(values)
    flags = array.dtype == np.bool_
    array = array.astype(np.uint8) if flags else array
    kind = "string" if array.dtype.kind in "UT" else array.dtype
    dims = [rows, *(f"{name}.{axis}" for axis in range(1, array.ndim))]
    dataset.define_array(name, kind, dims, array.shape)
    if array.size:
        dataset.write_array(name, (0,) * array.ndim, array)
    if flags:
        dataset.set_array_attribute(name, "dtype", "bool")


def _set_or_warn(dataset: Any, key: str, value: Any) -> None:
    try:
        dataset.set_attribute(key, value)
    except SchemaError as e:  # a document, a matrix, None
        _warn(dataset, key, str(e).removeprefix(f"{key!r}: "))


def _warn(dataset: Any, key: str, why: str) -> None:
    warnings.warn(f"{dataset.name!r}: {key!r} is left out: {why}", stacklevel=4)


def _set_cell(dataset: Any, rows: Any, origin: Any, periodic: Any) -> None:
    dataset.set_attribute(CELL, np.asarray(rows, np.float64).ravel().tolist())
    dataset.set_attribute(ORIGIN, np.asarray(origin, np.float64).tolist())
    dataset.set_attribute(PERIODIC, [bool(flag) for flag in periodic])


# ---- ASE --------------------------------------------------------------------------------------------------------

_COLUMNS: Mapping[str, str] = {"positions": "positions", "numbers": "numbers", "forces": "forces"}


def add_atoms(writer: CollectionWriter, name: str, atoms: Any) -> None:
    """An `ase.Atoms`: positions, numbers, other arrays, forces; energy, cell and info as attributes."""
    with writer.add_dataset(name) as dataset:
        for key, values in atoms.arrays.items():
            _add_column(dataset, key, "atom", values)
        results = _results(dataset, atoms)
        forces = results.pop("forces", None)
        if forces is not None:
            _add_column(dataset, "forces", "atom", forces)
        for key, value in atoms.info.items():
            if key in CELL_KEYS or (key in results and not np.array_equal(results[key], value)):
                _warn(dataset, key, "the calculator's result or the cell has this name; rename it in info")
            else:
                _set_or_warn(dataset, str(key), value)
        for key, value in results.items():
            _set_or_warn(dataset, str(key), value)
        if atoms.constraints:
            _warn(dataset, "constraints", "a collection has no place for them")
        _set_cell(dataset, np.asarray(atoms.cell), np.ravel(atoms.get_celldisp()), atoms.pbc)


def _results(dataset: Any, atoms: Any) -> dict[str, Any]:
    """What the calculator knows of the structure as it is now."""
    found = dict(getattr(atoms.calc, "results", None) or {})
    if found and hasattr(atoms.calc, "check_state") and atoms.calc.check_state(atoms):
        _warn(dataset, ", ".join(found), "the structure has changed since this was calculated")
        return {}
    return found

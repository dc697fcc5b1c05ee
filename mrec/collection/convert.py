# SPDX-License-Identifier: BSD-3-Clause
"""Out of a collection: xarray, pandas, frames and records, ASE structures."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from mrec.box import Box
from mrec.collection.collect import CELL, COORDINATES, ORIGIN, PERIODIC
from mrec.errors import InvalidValue
from mrec.extras import extra
from mrec.frame import Block, Frame
from mrec.record.publish import remove_tree

if TYPE_CHECKING:
    import pandas
    import xarray

    from mrec.collection.reader import Collection, Dataset


def to_xarray(dataset: Dataset) -> xarray.Dataset:
    """A data set as an `xarray.Dataset`; an array that has the name of its only dimension is a coordinate.

    InvalidValue when its arrays have dimensions of one name and several lengths.
    """
    with extra("collection", "to_xarray"):
        import xarray

    attributes = dataset.attributes
    coordinates = {*attributes.pop(COORDINATES, []), *(name for name in dataset if dataset[name].dims == (name,))}
    variables = {name: _variable(dataset[name]) for name in dataset}
    data = {name: one for name, one in variables.items() if name not in coordinates}
    try:
        found = xarray.Dataset(data, attrs=attributes)
        return found.assign_coords({name: variables[name] for name in variables if name in coordinates})
    except ValueError as e:
        raise InvalidValue(f"{dataset.name!r} is no Dataset of xarray ({e}); take its arrays one by one") from None


def _values(array: Any) -> np.ndarray[Any, Any]:
    """The values of an array, flags as such."""
    values: np.ndarray[Any, Any] = array[...]
    return values.astype(bool) if values.dtype == np.uint8 and array.attributes.get("dtype") == "bool" else values


def _variable(array: Any) -> Any:
    values, attributes = _values(array), array.attributes
    kind = attributes.get("dtype")
    if values.dtype == np.bool_:
        del attributes["dtype"]
    elif kind == "timedelta64[ns]" and values.dtype == np.int64:
        values = values.view("m8[ns]")
        del attributes["dtype"]
    elif values.dtype.kind == "T":
        values = values.astype(object)
    fill = array.fill_value
    encoding = {} if fill is None or values.dtype.kind in "OM" else {"_FillValue": fill}
    return (array.dims, values, attributes, encoding)


def to_pandas(collection: Collection) -> pandas.DataFrame:
    """One row per data set: its attributes, and for each variable "<name>.min", ".max", ".null_count", ".row_count".

    InvalidValue when an attribute has the name of one of these.
    """
    with extra("collection", "to_pandas"):
        import pandas

    names = collection.names
    keys = dict.fromkeys(key for schema in collection.footer.schemas for key, _ in schema.attributes)
    columns: dict[str, dict[str, Any]] = {}
    for key in keys:
        if found := collection.attribute(key):
            columns[key] = found
    for variable in collection.variables:
        by_dataset = collection.stats_by_dataset(variable)
        for part in ("min", "max", "null_count", "row_count") if by_dataset else ():
            column = f"{variable}.{part}"
            if column in columns:
                raise InvalidValue(
                    f"{column!r} is an attribute and a statistic: take them by attribute() and stats_by_dataset()"
                )
            columns[column] = {name: getattr(one, part) for name, one in by_dataset.items()}
    index = pandas.Index(names, name="dataset")
    series = {}
    for key, found in columns.items():
        values = [found.get(name) for name in names]
        series[key] = pandas.Series(values, index, dtype=_column_dtype(values))
    return pandas.DataFrame(series, index=index)


def _column_dtype(values: list[Any]) -> Any:
    """One that keeps integers as they are, where pandas would make floats of them; None for what pandas takes."""
    types = {type(value) for value in values}
    integers = [value for value in values if type(value) is int]
    if integers and types <= {int, type(None)}:
        signed, unsigned = min(integers) < 0, max(integers) >= 1 << 63
        nullable = ("UInt64" if unsigned else "Int64") if type(None) in types else None
        return object if signed and unsigned else nullable
    inexact = float in types and any(int(float(value)) != value for value in integers)
    return object if inexact or types == {type(None)} else None


def to_frame(dataset: Dataset) -> Frame:
    """A data set whose arrays are "<block>.<column>" as a frame, as `mrec collect` makes it of one."""
    attributes = dataset.attributes
    blocks: dict[str, Block] = {}
    for name, array in dataset.items():
        block, dot, column = name.partition(".")
        if not dot:
            raise InvalidValue(f"the array {name!r} is no column: its name is not <block>.<column>")
        blocks.setdefault(block, Block())[column] = _values(array)
    step, time = attributes.pop("step", None), attributes.pop("time", None)
    box = None
    if CELL in attributes:
        rows = _cell_rows(dataset, attributes.pop(CELL))
        box = Box.from_rows(rows, origin=attributes.pop(ORIGIN, None), periodic=attributes.pop(PERIODIC, True))
    per_step: dict[str, Any] = {
        key: np.array(value) if isinstance(value, list) else value for key, value in attributes.items()
    }
    return Frame(blocks, step=step, time=time, box=box, values=per_step)


def _cell_rows(dataset: Dataset, cell: Any) -> np.ndarray[Any, Any]:
    if np.shape(cell) != (9,) or np.asarray(cell).dtype.kind not in "iuf":
        raise InvalidValue(f"{dataset.name!r} has the attribute {CELL!r} {cell!r}, which is no cell of nine numbers")
    return np.reshape(cell, (3, 3))


def to_record(collection: Collection, path: str | os.PathLike[str], names: str | Iterable[str] | None = None) -> None:
    """A record whose trajectory has the data sets as frames, in their order; all, or those named.

    The first one decides what the schema is. Steps are numbered anew unless those of the data sets increase.
    """
    import mrec

    chosen = collection.names if names is None else [names] if isinstance(names, str) else list(names)
    if not chosen:
        raise InvalidValue("a record needs one data set at least")
    frames = [to_frame(collection[name]) for name in chosen]
    steps: list[Any] = [frame.step for frame in frames]
    given = None not in steps and all(a < b for a, b in zip(steps, steps[1:], strict=False))
    writer = mrec.TrajectoryWriter(path, mrec.Schema.from_frame(frames[0]))
    try:
        with writer:
            for i, frame in enumerate(frames):
                frame.step = frame.step if given else i
                writer.append(None, frame)
    except BaseException:  # a record with some of the frames would be taken for all
        remove_tree(os.fspath(path))
        raise


def to_atoms(dataset: Dataset) -> Any:
    """A data set as `ase.Atoms`, with energy and forces where it has them."""
    with extra("ase", "to_atoms"):
        import ase
    from ase.calculators import calculator as properties
    from ase.calculators import singlepoint

    calculator: Any = singlepoint.SinglePointCalculator

    attributes = dataset.attributes
    cell, periodic = attributes.pop(CELL, None), attributes.pop(PERIODIC, False)
    origin = attributes.pop(ORIGIN, None)
    arrays = {name: _values(array) for name, array in dataset.items()}
    if "positions" not in arrays or "numbers" not in arrays:
        raise InvalidValue(f"{dataset.name!r} has no positions and numbers: these are no atoms")
    made: Any = ase.Atoms(arrays.pop("numbers"), arrays.pop("positions"), pbc=periodic)
    if cell is not None:
        made.set_cell(_cell_rows(dataset, cell))
    if origin is not None:
        made.set_celldisp(origin)
    results = {key: arrays.pop(key) for key in ("forces",) if key in arrays}
    for key in properties.all_properties:  # energy, stress, dipole ...
        if key in attributes:
            value = attributes.pop(key)
            results[key] = np.array(value) if isinstance(value, list) else value
    for key, values in arrays.items():
        texts = values.dtype.kind == "T"
        made.set_array(key, np.array(values.tolist(), str).reshape(values.shape) if texts else values)
    made.info.update(attributes)
    if results:
        made.calc = calculator(made, **results)
    return made

# SPDX-License-Identifier: BSD-3-Clause
"""The frames that a record should hold, in a list; worked out from the rules alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from mrec.frame import Block, Frame
from mrec.trajectory.schema import Column, Schema


class Model:
    """What was appended to a record.

    schema: as it was declared. given: the frames as they were appended. frames: the same as a reader must see them,
    with blocks and cell carried forward, values filled, columns rounded. published: how many of them readers see at
    least; durable: how many outlive a power loss at least.

    >>> model = Model(mrec.Schema().block("atoms").column("x", "f64").value("pe", "f64", fill=0.0))
    >>> model.append(mrec.Frame({"atoms": {"x": [1.5, 2.5]}}, step=0))
    >>> model.append(mrec.Frame(step=1, values={"pe": -3.0}))
    >>> model.frames[1]["atoms"]["x"].tolist(), model.frames[0].values["pe"]
    ([1.5, 2.5], 0.0)
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.given: list[Frame] = []
        self.frames: list[Frame] = []
        self.published = 0
        self.durable = 0

    def __len__(self) -> int:
        return len(self.frames)

    def append(self, frame: Frame) -> None:
        """Take one frame, which fits the schema."""
        last = self.frames[-1] if self.frames else Frame()
        blocks = dict(last.blocks)
        for name, block in frame.blocks.items():
            declared = self.schema.blocks[name]
            columns = {column.name: as_stored(column, block[column.name]) for column in declared.columns.values()}
            blocks[name] = Block(columns, nrows=block.nrows)
        values = {name: frame.values.get(name, value.fill) for name, value in self.schema.values.items()}
        box = last.box if frame.box is None else frame.box
        self.given.append(frame)
        self.frames.append(Frame(blocks, step=frame.step, time=frame.time, box=box, values=values))

    def flushed(self, durable: bool) -> None:
        """All of them were published, and synced if durable."""
        self.published = len(self.frames)
        self.durable = self.published if durable else self.durable

    def cut(self, n: int) -> None:
        """The first n are left, and published."""
        del self.given[n:], self.frames[n:]
        self.published = n
        self.durable = min(self.durable, n)


def as_stored(column: Column, given: Any) -> np.ndarray:
    """A column as a reader must see it: of the declared type, rounded; null rows hold the fill."""
    array = np.asanyarray(given)
    null = np.ma.getmaskarray(array)
    values = np.ma.getdata(array)
    if column.dtype.name == "string":
        values = np.array([str(text) for text in values.ravel()], object).reshape(values.shape)
    else:
        values = values.astype(column.dtype.numpy)
    if column.precision is not None:
        values = rounded(values, column.precision)
    if not null.any():
        return values
    return np.ma.MaskedArray(np.where(null, column.dtype.fill, values).astype(values.dtype), null)


def rounded(values: np.ndarray, precision: float) -> np.ndarray:
    """The multiples of the largest power of two not above `precision`, ties to even; what is too large stays."""
    grid = 2.0 ** (np.frexp(precision)[1] - 1)
    with np.errstate(all="ignore"):
        small = np.abs(values) < 2.0**52 * grid
        on_grid = np.copysign(np.rint(np.where(small, values, 0.0) / grid) * grid, values)
    return np.where(small, on_grid, values)


# ---- comparison --------------------------------------------------------------------------------------------------


def bits(array: Any) -> Any:
    """An array as a value that is equal only bit for bit: shape, type, null rows, and all that is not null."""
    array = np.asanyarray(array)
    null = np.ma.getmaskarray(array)
    values = np.ma.getdata(array)
    if values.dtype.kind in "OTU":
        texts = [None if n else str(text) for text, n in zip(values.ravel().tolist(), null.ravel(), strict=True)]
        return values.shape, "string", texts
    values = np.where(null, np.zeros((), values.dtype), values) if null.any() else values
    return values.shape, values.dtype.str, null.tobytes(), np.ascontiguousarray(values).tobytes()


def value_bits(schema: Schema, name: str, value: Any) -> Any:
    """A per-step value likewise."""
    tag = schema.values[name].tag
    if tag.json:
        return json.dumps(value, sort_keys=True)
    if tag.dtype.name == "string":
        return str(value)
    return np.asarray(value, tag.dtype.numpy).ravel().tobytes()


def assert_same_frame(schema: Schema, got: Frame, want: Frame, where: str) -> None:
    """AssertionError unless two frames are the same bit for bit: step, time, cell, blocks and values."""
    assert got.step == want.step, f"{where}: the step is {got.step}, not {want.step}"
    times = [None if time is None else bits(np.float64(time)) for time in (got.time, want.time)]
    assert times[0] == times[1], f"{where}: the time is {got.time}, not {want.time}"
    assert _cell(got) == _cell(want), f"{where}: the cell is {got.box}, not {want.box}"
    assert got.blocks.keys() == want.blocks.keys(), f"{where}: blocks {list(got.blocks)}, not {list(want.blocks)}"
    for name, block in want.blocks.items():
        assert got[name].keys() == block.keys(), f"{where}, {name}: columns {list(got[name])}, not {list(block)}"
        for column in block:
            assert_same(got[name][column], block[column], f"{where}, {name}/{column}")
    assert got.values.keys() == want.values.keys(), f"{where}: values {list(got.values)}, not {list(want.values)}"
    for name, value in want.values.items():
        found = got.values[name]
        same = value_bits(schema, name, found) == value_bits(schema, name, value)
        assert same, f"{where}, {name}: {found!r}, not {value!r}"


def assert_same(got: Any, want: Any, where: str) -> None:
    """AssertionError unless two arrays are the same bit for bit."""
    assert bits(got) == bits(want), f"{where}: {got!r}, not {want!r}"


def _cell(frame: Frame) -> Any:
    box = frame.box
    if box is None or not box.defined:
        return box is None
    return box.vectors.tobytes(), box.origin.tobytes(), box.periodic.tobytes()

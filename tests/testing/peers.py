# SPDX-License-Identifier: BSD-3-Clause
"""The state machine of mrec.testing, whose closed records zarr-python and molrs read too."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np

import mrec
from mrec.testing import Model, WriterMachine
from tests.interop.compare import assert_frames, assert_same
from tests.interop.model import Cell, Column, Frame, Record, Value
from tests.interop.zarr_side import read_zarr

WITH_MOLRS = importlib.util.find_spec("molrs") is not None


class PeerMachine(WriterMachine):
    """Also compares each array with what tests/interop/model.py makes of the frames."""

    def read_elsewhere(self, path: str, model: Model) -> None:
        if not len(model):
            return
        record = as_record(model)
        arrays = read_zarr(Path(path) / "trajectory")
        for name, want in self.forms(record, arrays).items():
            assert_same(arrays[name], want, f"zarr-python, {name}")
        if WITH_MOLRS and molrs_reads(record):
            from tests.interop import molrs_side

            assert_frames(molrs_side.read(record, Path(path)), record.resolved(), "molrs")

    def forms(self, record: Record, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The arrays that have to be there. A form that was left for a frame that is cut does not come back."""
        want = record.arrays()
        there = {name for name, array in arrays.items() if len(array)}
        assert want.keys() <= there | {name for name, array in want.items() if not len(array)}, want.keys() - there
        optional = {"step", "time"} | {
            f"{group}/{name}"
            for group in (*record.blocks, "box")
            for name in ("step_index", "offset", "vectors", "origin", "boundary")
        }
        assert there - want.keys() <= optional | {name for name in there if "/_validity/" in name}
        return {name: array for name, array in want.items() if name in there}


def as_record(model: Model) -> Record:
    """What the model was given, as the independent model of tests/interop takes it."""
    schema = model.schema
    blocks = {
        name: {c.name: Column(c.dtype.name, c.trailing, c.precision, c.nullable) for c in block.columns.values()}
        for name, block in schema.blocks.items()
    }
    values = {
        name: Value(value.tag.name, *([value.fill] if value.has_fill else [])) for name, value in schema.values.items()
    }
    return Record("drawn", blocks, [as_frame(frame) for frame in model.given], values)


def as_frame(frame: mrec.Frame) -> Frame:
    box = frame.box
    cell = None if box is None else Cell(box.vectors, tuple(box.origin), tuple(box.periodic))
    blocks = {name: {column: without_nulls(b[column]) for column in b} for name, b in frame.blocks.items()}
    return Frame(frame.step, frame.time, blocks, cell, frame.values)


def without_nulls(array: np.ndarray) -> np.ndarray:
    """What stands under a mask means nothing, and does not make a frame another one."""
    if not np.ma.isMaskedArray(array):
        return array
    mask = np.ma.getmaskarray(array)
    return np.ma.array(np.where(mask, "" if array.dtype == object else array.dtype.type(0), array.data), mask=mask)


def molrs_reads(record: Record) -> bool:
    """Whether molrs shows all of it: its strings come as numpy's of a fixed width, which end at their last NUL."""
    columns = (column for frame in record.frames for block in frame.blocks.values() for column in block.values())
    texts = (text for column in columns if column.dtype == object for text in np.ma.getdata(column).ravel())
    return not any(text.endswith("\0") for text in texts)

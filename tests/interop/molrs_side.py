# SPDX-License-Identifier: BSD-3-Clause
"""Records of the model through molrs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import molrs
import numpy as np
from molrs.core import MetaDocument, MetaValue
from molrs.io.mrec import MrecReader, MrecWriter, SequenceSchema

from tests.interop.model import Cell, Columns, Frame, Record, null_rows


def schema(record: Record) -> SequenceSchema:
    nullable = [block for block, columns in record.blocks.items() if any(c.nullable for c in columns.values())]
    shown = [{b: _block(c) for b, c in frame.blocks.items() if b in nullable} for frame in record.frames if nullable]
    # Only frames with nulls can say that a column is nullable.
    declared = SequenceSchema.from_frames([molrs.Frame(blocks) for blocks in shown])
    for block, columns in record.blocks.items():
        if block not in nullable:
            declared.declare_block(block, record.rows.get(block))
        for name, column in columns.items():
            if block not in nullable:
                declared.declare_column(block, name, column.dtype, list(column.trailing))
            if column.precision is not None:
                declared.declare_precision(block, name, column.precision)
    for name, value in record.values.items():
        fill = () if value.fill is ... else (MetaValue(value.tag, value.fill),)
        declared.declare_meta(name, value.tag, *fill)
    return declared


def write(record: Record, path: Path, frames: Iterable[Frame]) -> None:
    with MrecWriter(path, schema(record)) as writer:
        _append(record, writer, frames)


def append(record: Record, path: Path, frames: Iterable[Frame]) -> None:
    with MrecWriter.open(path) as writer:
        _append(record, writer, frames)


def _append(record: Record, writer: MrecWriter, frames: Iterable[Frame]) -> None:
    for frame in frames:
        blocks = {name: _block(columns) for name, columns in frame.blocks.items()}
        meta = {name: MetaValue(record.values[name].tag, value) for name, value in frame.values.items()}
        box = frame.cell and molrs.Box(frame.cell.vectors, frame.cell.origin, frame.cell.periodic)
        writer.append(molrs.Frame(blocks, meta=meta, box=box), frame.step, frame.time)


def _block(columns: Columns) -> molrs.Block:
    block = molrs.Block()
    for name, column in columns.items():
        values = np.ma.getdata(column)
        validity = ~null_rows(column) if np.ma.isMaskedArray(column) else None
        block.insert(name, values.tolist() if values.dtype == object else np.ascontiguousarray(values), validity)
    return block


def read(record: Record, path: Path) -> Iterator[Frame]:
    reader = MrecReader(path)
    times = reader.time or [None] * len(reader)
    for i, (step, time) in enumerate(zip(reader.step, times, strict=True)):
        frame = reader[i]
        blocks = {name: _columns(frame[name]) for name in frame.keys()}
        box = frame.box
        cell = box and Cell(box.matrix, tuple(box.origin), tuple(box.pbc))
        yield Frame(step, time, blocks, cell, {name: _plain(value) for name, value in frame.meta.items()})


def _columns(block: molrs.Block) -> Columns:
    columns = {}
    for name in block.keys():
        values, validity = block[name], block.validity(name)
        if validity is not None:
            mask = np.zeros(values.shape, bool)
            mask[~validity] = True
            values = np.ma.array(values, mask=mask)
        columns[name] = values
    return columns


def _plain(value: Any) -> Any:
    """JSON as json.loads gives it; vectors stay tuples (molrs shows JSON lists as tuples too)."""
    if isinstance(value, MetaDocument):
        value = value.copy()
    return value

# SPDX-License-Identifier: BSD-3-Clause
"""Records of the model through mrec."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import mrec
from tests.interop.model import Cell, Frame, Record


def schema(record: Record) -> mrec.Schema:
    declared = mrec.Schema()
    for block, columns in record.blocks.items():
        declared.block(block, rows=record.rows.get(block, 0))
        for name, c in columns.items():
            declared.column(name, c.dtype, trailing=c.trailing, precision=c.precision, nullable=c.nullable)
    for name, value in record.values.items():
        declared.value(name, value.tag, **({} if value.fill is ... else {"fill": value.fill}))
    return declared


def box(cell: Cell | None) -> mrec.Box | None:
    return cell and mrec.Box.from_columns(cell.vectors, origin=cell.origin, periodic=cell.periodic)


def write(record: Record, path: Path, frames: Iterable[Frame]) -> None:
    with mrec.TrajectoryWriter(path, schema(record), **record.options) as writer:
        _append(writer, frames)


def append(record: Record, path: Path, frames: Iterable[Frame]) -> None:
    with mrec.TrajectoryWriter.open(path) as writer:
        _append(writer, frames)


def _append(writer: mrec.TrajectoryWriter, frames: Iterable[Frame]) -> None:
    for f in frames:
        writer.append(f.step, time=f.time, box=box(f.cell), blocks=f.blocks, values=f.values)


def read(record: Record, path: Path) -> Iterator[Frame]:
    with mrec.open(path) as opened:
        for f in opened.trajectory:
            blocks = {name: {key: block[key] for key in block} for name, block in f.blocks.items()}
            cell = f.box and Cell(f.box.vectors, tuple(f.box.origin), tuple(f.box.periodic))
            yield Frame(f.step, f.time, blocks, cell, dict(f.values))

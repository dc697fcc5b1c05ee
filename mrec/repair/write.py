# SPDX-License-Identifier: BSD-3-Clause
"""Writing the frames that are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrec.frame import Block
from mrec.record.carry import replace_document
from mrec.repair.plan import Plan
from mrec.trajectory.schema import Schema, ValueSchema
from mrec.trajectory.select import masked
from mrec.trajectory.standing import MARKER
from mrec.trajectory.storage import options_of
from mrec.trajectory.writer import TrajectoryWriter
from mrec.zarr.json import parse
from mrec.zarr.metadata import parse_group
from mrec.zarr.store import FilesystemStore


def write_frames(path: str, plan: Plan) -> Schema:
    """Make a record of the frames of a plan, bit for bit; what it declares."""
    scan, declared = plan.scan, plan.schema()
    schema = _writable(declared)
    counts = {name: set(scan.series[name].counts.tolist()) for name in schema.blocks}
    for name, block in schema.blocks.items():
        block.rows = max(counts[name], default=0)
    compression, per_chunk = options_of(schema, scan.tree.meta, counts)
    with TrajectoryWriter(
        path, schema, compression=compression, frames_per_chunk=per_chunk, durable_every=None
    ) as writer:
        given: dict[str, int] = {}
        times = scan.times if plan.keeps("time") else None
        for frame in np.flatnonzero(plan.frames).tolist():
            writer.append(
                int(scan.steps[frame]),
                time=None if times is None else float(times[frame]),
                box=_cell(plan, frame, given),
                blocks=_blocks(plan, schema, frame, given),
                values={name: _value(plan, value, frame) for name, value in schema.values.items()},
            )
    if schema.to_json() != declared.to_json():
        _declare(path, declared)
    return declared


def _writable(declared: Schema) -> Schema:
    """The same without what a writer cannot keep true by itself, and what holds for these frames as they are."""
    document = declared.to_json()
    for block in document["blocks"].values():
        block.pop("targets", None)
        block.pop("aligned_with", None)
    return Schema.from_json(document)


def _declare(path: str, declared: Schema) -> None:
    store = FilesystemStore(path)
    marker = parse_group(store.get(MARKER) or b"", MARKER)
    marker.attributes["sequence_schema"] = declared.to_json()
    replace_document(store.path(MARKER), marker)


def undeclare_target(path: str, block: str, column: str) -> bool:
    """Let a closed record no longer declare what a column refers to. False: it does not."""
    store = FilesystemStore(path)
    declared = Schema.from_json(parse_group(store.get(MARKER) or b"", MARKER).attributes["sequence_schema"])
    targets = declared.blocks[block].targets or {}
    if column not in targets:
        return False
    declared.blocks[block].targets = {name: target for name, target in targets.items() if name != column} or None
    _declare(path, declared)
    return True


def _cell(plan: Plan, frame: int, given: dict[str, int]) -> Any:
    """The cell, when it is another than that of the frame before."""
    cells = plan.scan.cells
    if not plan.keeps("box") or given.get("box") == cells.update_at(frame):
        return None
    given["box"] = cells.update_at(frame)
    return cells.at(frame)


def _blocks(plan: Plan, schema: Schema, frame: int, given: dict[str, int]) -> dict[str, Block]:
    """The blocks of which the frame sees another update than the one before it."""
    found: dict[str, Block] = {}
    for name, block in schema.blocks.items():
        series = plan.scan.series[name]
        update = int(np.searchsorted(series.frames, frame, side="right")) - 1
        if update < 0 or given.get(name) == update:
            continue
        given[name] = update
        start, stop = int(series.start[update]), int(series.stop[update])
        columns = {column: _rows(plan, name, column, start, stop) for column in block.columns}
        found[name] = Block(columns, nrows=stop - start)
    return found


def _rows(plan: Plan, block: str, column: str, start: int, stop: int) -> np.ndarray:
    stores = plan.scan.columns[block, column]
    declared = plan.scan.schema.blocks[block].columns[column]
    if stores.values is None:
        return np.empty((0, *declared.trailing), declared.dtype.numpy)
    values = stores.values.read(start, stop)
    return masked(values, None if stores.mask is None else stores.mask.read(start, stop))


def _value(plan: Plan, value: ValueSchema, frame: int) -> Any:
    found = plan.scan.values[value.name].read(frame, frame + 1)[0]
    if value.tag.json:
        return parse(found, value.name)
    return found.item() if isinstance(found, np.generic) else found

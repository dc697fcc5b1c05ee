# SPDX-License-Identifier: BSD-3-Clause
"""`mrec convert` from record to record: fewer frames, rows or columns, other chunks, no dead bytes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mrec.cli.choice import WrongCall, chosen, frames
from mrec.cli.cut import BY_CONVENTION, cut_system
from mrec.cli.progress import progress
from mrec.cli.sizes import disk_usage, human
from mrec.display import counted
from mrec.errors import InvalidValue, MrecError, UnknownName
from mrec.frame import Block, Frame
from mrec.interop.atoms import AtomSource
from mrec.record.carry import carry
from mrec.record.output import new_record
from mrec.trajectory.schema import BlockSchema, Schema
from mrec.trajectory.storage import options_of
from mrec.zarr.store import open_store

_ROWS = re.compile(r"(.+)=(-?\d*):(-?\d*)(?::(\d+))?", re.S)


def run(arguments: argparse.Namespace) -> None:
    """Rewrite, then say what was made."""
    import mrec

    with mrec.open(arguments.input) as record, new_record(arguments.output, arguments.overwrite) as made:
        view = chosen(arguments.input, record.trajectory, frames(arguments))
        largest_rows(record.trajectory)
        rows = _rows(arguments, record, view)
        schema = _kept(view.schema, arguments.keep, arguments.drop)
        plan = Plan(schema, rows, **_storage(record, rows, arguments))
        plan.coarsen(arguments.precision)
        _fewer_rows(plan.schema, rows)
        write(made, plan, progress(view, len(view), "frames"))
        carry(open_store(record.path), made, record.trajectory.schema, plan.schema)
        cut_system(made, {name: np.arange(_count(record, name))[which] for name, which in rows.items()})
        _check(made)
        taken, before = len(view), disk_usage(record.path)[0]
    size = disk_usage(arguments.output)[0]
    print(f"{arguments.output}: {counted(taken, 'frame')}, {human(size)} (from {human(before)})")


@dataclass
class Plan:
    """A new trajectory: what of the old one it declares, the rows that are taken of a block, and how it is stored."""

    schema: Schema
    rows: Mapping[str, Any] = field(default_factory=dict)
    compression: str | None = None
    chunk: str | None = None
    frames_per_chunk: int | None = None

    def coarsen(self, precision: float | None) -> None:
        """Declare a precision for the columns x, y, z. InvalidValue when it is finer than what is stored."""
        if precision is None:
            return
        document = self.schema.to_json()
        found = False
        for name, block in document["blocks"].items():
            for column in {"x", "y", "z"} & block["columns"].keys():
                stored = block["columns"][column].get("precision")
                if stored is not None and precision < stored:
                    raise InvalidValue(f"{name}/{column} is stored to {stored:g}; --precision is that or more")
                block["columns"][column]["precision"] = precision
                found = True
        if not found:
            raise InvalidValue("--precision is for columns x, y and z, and there are none")
        self.schema = _with_rows(Schema.from_json(document), self.schema)


def write(path: str, plan: Plan, frames: Iterable[Frame]) -> None:
    """Write frames of records as a new record's trajectory."""
    import mrec

    with mrec.TrajectoryWriter(
        path,
        plan.schema,
        compression=plan.compression,
        chunk=plan.chunk,
        frames_per_chunk=plan.frames_per_chunk,
        durable_every=None,
    ) as writer:
        before: Frame | None = None
        for frame in frames:
            _check_carried(frame, before)
            blocks = {name: _taken(plan, frame, block) for name, block in plan.schema.blocks.items() if name in frame}
            values = {name: frame.values[name] for name in plan.schema.values}
            writer.append(frame.step, time=frame.time, box=frame.box, blocks=blocks, values=values)
            before = Frame({name: {} for name in frame}, step=frame.step, box=frame.box)


def _check_carried(frame: Frame, before: Frame | None) -> None:
    """A frame that says nothing of its cell or a block would get what was there before."""
    gone = [] if before is None else [repr(name) for name in before if name not in frame]
    if before is not None and before.box is not None and frame.box is None:
        gone.append("cell")
    if gone:
        raise MrecError(f"step {frame.step} has no {', '.join(gone)} and step {before.step if before else 0} before it "
                        "has; a record cannot say so")  # fmt: skip


def _taken(plan: Plan, frame: Frame, declared: BlockSchema) -> Block:
    block = frame[declared.name]
    which = plan.rows.get(declared.name)
    references = _references(declared, plan.rows)
    if which is None and not references:
        return Block({name: block[name] for name in declared.columns}, nrows=block.nrows)
    rows = np.arange(block.nrows)[slice(None) if which is None else which]
    columns = {name: block[name][rows] for name in declared.columns}
    if not references:
        return Block(columns, nrows=len(rows))
    chosen: dict[str, Any] = {}
    for target in references.values():
        if target not in frame:
            raise MrecError(f"step {frame.step}: {declared.name!r} refers to rows of {target!r}, and there are none")
        chosen[target] = np.arange(frame[target].nrows)[plan.rows[target]]
    keep = np.ones(len(rows), bool)
    for name, target in references.items():
        there = np.isin(columns[name], chosen[target]) | np.ma.getmaskarray(columns[name])
        if which is not None and not there.all():
            raise MrecError(
                f"step {frame.step}: a chosen row of {declared.name!r} refers to one of {target!r} that is not"
            )
        keep &= there
    columns = {name: values[keep] for name, values in columns.items()}
    for name, target in references.items():  # of a null row any number will do
        taken = chosen[target]
        order = np.argsort(taken)
        at = np.searchsorted(taken, np.ma.getdata(columns[name]), sorter=order)
        anew = np.append(order, 0)[at].astype(np.uint64)
        null = np.ma.getmaskarray(columns[name])
        columns[name] = np.ma.MaskedArray(anew, null) if null.any() else anew
    return Block(columns, nrows=int(keep.sum()))


def _references(declared: BlockSchema, rows: Mapping[str, Any]) -> dict[str, str]:
    """Column -> block whose rows it names and are chosen from: as declared, or by convention."""
    found = {name: "atoms" for name in BY_CONVENTION if name in declared.columns}
    found |= declared.targets or {}
    for name, target in found.items():
        if target.startswith("/system/") and target.removeprefix("/system/") in rows:
            raise MrecError(
                f"{declared.name}/{name} refers to rows of {target}, some of which would go; choose no rows"
            )
    return {name: target for name, target in found.items() if target in rows}


# ---- what is taken -----------------------------------------------------------------------------------------------


def _kept(schema: Schema, keep: list[str], drop: list[str]) -> Schema:
    """The schema with only some blocks, columns and per-step values. UnknownName."""
    document = schema.to_json()
    names = {f"{block}/{column}" for block, entry in document["blocks"].items() for column in entry["columns"]}
    names |= document["blocks"].keys() | document["meta"].keys()
    for name in [*keep, *drop]:
        if name not in names:
            raise UnknownName(
                f"there is no block, column or per-step value {name!r}; there are: {', '.join(sorted(names))}"
            )

    def stays(name: str, block: str | None = None) -> bool:
        within = {name} if block is None else {name, block}
        return (not keep or bool(within & set(keep))) and not within & set(drop)

    for block, entry in list(document["blocks"].items()):
        columns = {name: column for name, column in entry["columns"].items() if stays(f"{block}/{name}", block)}
        if not columns and not (stays(block) and not entry["columns"]):
            del document["blocks"][block]
        else:
            entry["columns"] = columns
    for entry in document["blocks"].values():
        _keep_relations(entry, document["blocks"])
    document["meta"] = {name: entry for name, entry in document["meta"].items() if stays(name)}
    return _with_rows(Schema.from_json(document), schema)


def _keep_relations(entry: dict[str, Any], blocks: Mapping[str, Any]) -> None:
    """Let a block say of others only what still can be said."""
    targets = {
        column: target
        for column, target in entry.pop("targets", {}).items()
        if column in entry["columns"] and (target.startswith("/") or target in blocks)
    }
    if targets:
        entry["targets"] = targets
    if entry.get("aligned_with") not in blocks:
        entry.pop("aligned_with", None)


def _fewer_rows(schema: Schema, rows: Mapping[str, Any]) -> None:
    for name, which in rows.items():
        if name in schema.blocks:
            schema.blocks[name].rows = len(np.arange(schema.blocks[name].rows)[which])


def _with_rows(schema: Schema, other: Schema) -> Schema:
    for name, block in schema.blocks.items():
        block.rows = other.blocks[name].rows
    return schema


def _rows(arguments: argparse.Namespace, record: Any, view: Any) -> dict[str, Any]:
    """Block -> slice or row numbers."""
    rows: dict[str, Any] = {}
    for text in arguments.rows:
        match = _ROWS.fullmatch(text)
        if match is None:
            raise WrongCall(f"--rows is {text!r}; write BLOCK=START:STOP or BLOCK=START:STOP:STRIDE")
        numbers = [int(number) if number else None for number in match.groups()[1:]]
        if numbers[2] == 0:
            raise WrongCall(f"--rows is {text!r}; its stride is at least 1")
        if match[1] not in view.schema.blocks:
            raise UnknownName(f"--rows: there is no block {match[1]!r}; there are: {', '.join(view.schema.blocks)}")
        rows[match[1]] = slice(*numbers)
    if arguments.select is not None:
        source = AtomSource(record, view)
        source.select(arguments.select)
        if source.block in rows:
            raise InvalidValue(f"--select and --rows both choose rows of {source.block!r}; give one of them")
        if len(set(record.trajectory._state.blocks[source.block].counts().tolist())) > 1:
            raise MrecError(f"block {source.block!r} changes its number of rows; choose them by --rows, not --select")
        rows[source.block] = source.chosen
    for name in rows:
        if view.schema.blocks[name].structural_shape is not None:
            raise InvalidValue(f"block {name!r} is a grid (structural_shape); its rows stay together")
    return rows


def _count(record: Any, name: str) -> int:
    """The rows of a block in the system, or the most it has in a frame."""
    system = record.system
    found = record.trajectory.schema.blocks[name].rows if system is None or name not in system else system[name].nrows
    return int(found)


# ---- how it is stored --------------------------------------------------------------------------------------------


def _storage(record: Any, rows: Mapping[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Compression and frames in a chunk: as said, else as they are."""
    compression, per_chunk = stored(record)
    chunk, frames = arguments.chunk, arguments.frames_per_chunk
    return {
        "compression": arguments.compression or compression,
        "chunk": chunk,
        "frames_per_chunk": frames or (None if rows or chunk else per_chunk),
    }


def largest_rows(trajectory: Any) -> None:
    """Set `rows` of each block of a trajectory's schema, which decides its chunks, to the most it has."""
    for name, block in trajectory.schema.blocks.items():
        block.rows = int(trajectory._state.blocks[name].counts().max(initial=0))


def stored(record: Any) -> tuple[str | None, int | None]:
    """The compression and frames in a chunk that a record's trajectory has, where the options can say it."""
    state = record.trajectory._state
    counts = {name: set(form.counts().tolist()) for name, form in state.blocks.items()}
    return options_of(state.schema, state.standing.array, counts)


def _check(path: str) -> None:
    """What was made opens: sections fit one another."""
    import mrec

    with mrec.open(path) as record:
        len(record.trajectory)
        _ = record.system

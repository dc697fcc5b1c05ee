# SPDX-License-Identifier: BSD-3-Clause
"""Opening a record to append: the state that stands, or a shorter one, described for the core (csrc/reopen.h)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mrec import dtypes
from mrec._core import Lock, Writer, release, sync_found
from mrec._core import reopen as core_reopen
from mrec.box import Box
from mrec.errors import InvalidValue, UnsupportedCodec
from mrec.record.record import Record
from mrec.trajectory.coerce import coerce_block
from mrec.trajectory.forms import BlockForm, progression
from mrec.trajectory.frames import State
from mrec.trajectory.schema import Schema
from mrec.trajectory.standing import MARKER, ROOT, Durable, read_standing
from mrec.trajectory.writer import lock_errors
from mrec.zarr.codecs import Shard
from mrec.zarr.metadata import ArrayMeta, parse_group
from mrec.zarr.store import FilesystemStore, Store

NONE, REGULAR, INDEXED = range(3)  # enum mrec_form

#: Attributes of the groups that the writer sets itself.
OWN = {
    "": {"sequence_schema", "nstep", "mrec_nstep", "step_progression", "time_progression"},
    "box": {"vectors", "origin", "boundary", "cell_defined"},
    "block": {"uniform_rows", "dense_updates"},
}


@dataclass
class ArrayPlan:
    """mrec_array_state: one array in force, `length` rows of it."""

    key: str
    prefix: str
    suffix: str
    code: int
    trailing: tuple[int, ...]
    rows_per_chunk: int
    chunks_per_shard: int
    pipeline: Any
    fill: bytes
    length: int
    doc_length: int | None
    tail: tuple[int, ...] | None


@dataclass
class FormPlan:
    """The form of a block, its updates and their rows."""

    form: int = NONE
    updates: int = 0
    rows: int = 0
    uniform_rows: int = 0


@dataclass
class Plan:
    """mrec_standing: what is in force, and what is not and goes."""

    schema_json: str
    other_attributes: str
    complete: bool
    nframes: int
    truncate: bool
    marker_text: str | None
    step: int = 0
    time: float | None = None
    box: Box | None = None
    last_blocks: list[Any] = field(default_factory=list)
    step_progression: tuple[int, int] = (0, 0)
    time_progression: tuple[float, float] = (0.0, 0.0)
    forms: dict[str, FormPlan] = field(default_factory=dict)
    cell_form: int = NONE
    cell_updates: int = 0
    arrays: dict[str, ArrayPlan] = field(default_factory=dict)
    groups: dict[str, tuple[bool, str]] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)


def reopen(root: str, options: dict[str, Any], at: str | None, after: int | None) -> tuple[Writer, Schema, list[Any]]:
    """The core writer of the record at `root`, cut back first when asked, its schema, and its last blocks."""
    if at is not None and after is not None:
        raise InvalidValue("say at= or truncate_after_step=, not both")
    Record(root).close()  # what is no record is refused before anything is touched
    if not os.path.isdir(root):
        raise InvalidValue(f"{root} is packed, and nothing is appended to a packed record; unpack it first")
    with lock_errors(root):
        lock = Lock(root)
    try:
        sync_found(root)
        store = FilesystemStore(root)
        state = _state(store)
        schema, found = state.schema, state.nstep
        schema.check_writable()
        keep = _frames_kept(state, at, after)
        plan = make_plan(state, store, found, False)
        del state  # and with it the files that it has open
        writer = core_reopen(root, lock, schema, options, plan)
        if keep < found:
            lock = release(writer)
            plan = make_plan(_state(store), store, keep, True)
            writer = core_reopen(root, lock, schema, options, plan)
        return writer, schema, plan.last_blocks
    finally:
        lock.release()  # a writer that came about has taken it over


def _state(store: Store) -> State:
    standing = read_standing(store)
    if standing is None:
        raise InvalidValue(
            f"{store.root} has no trajectory to append to; create one with TrajectoryWriter(path, schema)"
        )
    return State(standing, store)


# ---- how many frames stay ----------------------------------------------------------------------------------------


def _frames_kept(state: State, at: str | None, after: int | None) -> int:
    if after is not None:
        return int(np.searchsorted(state.steps, _whole(after), side="right"))
    if at is None:
        return state.nstep
    frames, step = parse_position(at)
    if frames > state.nstep:
        raise InvalidValue(
            f"the position counts {frames} frames, the record holds {state.nstep}: the last "
            f"{frames - state.nstep} were not flushed before the writer ended"
        )
    if frames and int(state.steps[frames - 1]) != step:
        raise InvalidValue(
            f"the position says that frame {frames - 1} has the step {step}, but it has {state.steps[frames - 1]}: it "
            "belongs to another record, or to another history of this one"
        )
    return frames


def _whole(step: Any) -> int:
    if isinstance(step, (bool, np.bool_)) or not hasattr(step, "__index__"):
        raise InvalidValue(f"truncate_after_step is a whole number, not {step!r}")
    return min(max(step.__index__(), -(2**63)), 2**63 - 1)


def parse_position(position: Any) -> tuple[int, int | None]:
    """Frames, and the step of the last of them, of a `TrajectoryWriter.position`."""
    frames, sign, step = position.partition("@") if isinstance(position, str) else ("", "", "")
    try:
        if sign and frames.isdecimal() and (int(frames) == 0) == (step == ""):
            return int(frames), int(step) if step else None
    except ValueError:
        pass
    raise InvalidValue(f"at= takes a TrajectoryWriter.position, not {position!r}")


# ---- the plan ----------------------------------------------------------------------------------------------------


def make_plan(state: State, store: Store, n: int, truncate: bool) -> Plan:
    """What the core has to know to append after the first n frames of `state`."""
    standing, attributes = state.standing, state.standing.attributes
    durable = standing.durable
    plan = Plan(
        schema_json=dtypes.json_text(attributes.get("sequence_schema", state.schema.to_json())),
        other_attributes=_members(attributes, OWN[""]),
        complete=standing.absent_is_loss,
        nframes=n,
        truncate=truncate,
        marker_text=None if durable is None else durable.documents[MARKER],
    )
    _plan_groups(plan, state, store, durable)
    _plan_ticks(plan, state, n)
    for name, form in state.blocks.items():
        _plan_block(plan, state, name, form, n)
    _plan_cell(plan, state, n)
    for name in state.schema.values:
        _plan_array(plan, state, f"meta/{name}", n)
    if n:
        _plan_last(plan, state, n)
    plan.dead = list(_dead(plan, state.schema, store))
    return plan


def _members(attributes: dict[str, Any], own: set[str]) -> str:
    return dtypes.json_text({key: value for key, value in attributes.items() if key not in own})[1:-1]


def _plan_groups(plan: Plan, state: State, store: Store, durable: Durable | None) -> None:
    kinds = {"box": OWN["box"], "meta": set()}
    for name in state.schema.blocks:
        kinds |= {name: OWN["block"], f"{name}/_validity": set()}
    for name, own in kinds.items():
        key = f"{ROOT}/{name}/zarr.json"
        raw = store.get(key) if durable is None else durable.documents.get(key)
        attributes = {} if raw is None else parse_group(raw, key).attributes
        plan.groups[name] = (raw is not None and durable is None, _members(attributes, own))
    for name, block in state.schema.blocks.items():
        on_disk, members = plan.groups[name]
        if block.structural_shape is not None and '"structural_shape"' not in members:
            shape = _members({"structural_shape": list(block.structural_shape)}, set())
            plan.groups[name] = (on_disk, f"{members},{shape}" if members else shape)


def _plan_ticks(plan: Plan, state: State, n: int) -> None:
    if n == 0:
        return
    plan.step = int(state.steps[n - 1])
    found = progression(state.standing.attributes, "step_progression", state.nstep)
    if found is None:
        _plan_array(plan, state, "step", n)
    else:
        plan.step_progression = found
    if state.times is None:
        return
    plan.time = float(state.times[n - 1])
    found = progression(state.standing.attributes, "time_progression", state.nstep)
    if found is None:
        _plan_array(plan, state, "time", n)
    else:
        plan.time_progression = (float(found[0]), float(found[1]))


def _plan_block(plan: Plan, state: State, name: str, form: BlockForm, n: int) -> None:
    if form.uniform is not None:
        updates = min(form.n, n)
        kind = REGULAR
    else:
        updates = int(np.searchsorted(form.step_index, n))
        kind = INDEXED
    rows = int(form.first_row(updates))
    if updates == 0:
        plan.forms[name] = FormPlan()
    else:
        plan.forms[name] = FormPlan(kind, updates, rows, form.uniform or 0)
        if kind == INDEXED:
            _plan_array(plan, state, f"{name}/step_index", updates)
            _plan_array(plan, state, f"{name}/offset", updates + 1)
    for column in form.schema.columns.values():
        _plan_array(plan, state, f"{name}/{column.name}", rows)
        if form.has_mask(column):
            _plan_array(plan, state, f"{name}/_validity/{column.name}", rows)


def _plan_cell(plan: Plan, state: State, n: int) -> None:
    box = state.box
    updates = int(np.searchsorted(box.step_index, n))
    if n and (box.fixed is not None or (updates == 1 and "box/step_index" not in state.standing.nodes)):
        plan.cell_form, plan.cell_updates = REGULAR, 1
    elif updates:
        plan.cell_form, plan.cell_updates = INDEXED, updates
        _plan_array(plan, state, "box/step_index", updates)
        _plan_array(plan, state, "box/vectors", updates)
        for name, there in (("box/origin", box.has_origin), ("box/boundary", box.has_boundary)):
            if there:
                _plan_array(plan, state, name, updates)


def _plan_last(plan: Plan, state: State, n: int) -> None:
    """The last frame, which the next one is compared with."""
    last = next(state.frames(n - 1, n))
    plan.box = last.box
    plan.last_blocks = [
        coerce_block(block, last.blocks[name]) if name in last.blocks else None
        for name, block in state.schema.blocks.items()
    ]


def _plan_array(plan: Plan, state: State, path: str, length: int) -> None:
    meta = state.standing.array(path)
    if meta is None:
        return
    tail = state.standing.tails.get(path) if length else None
    doc_length = meta.shape[0] if state.standing.durable is None else None
    plan.arrays[path] = _array_plan(f"{ROOT}/{path}", meta, length, doc_length, tail)


def appendable_shard(key: str, meta: ArrayMeta) -> Shard:
    """How an array is cut into shards that the writer can append to; UnsupportedCodec when it is laid out otherwise."""
    shard = meta.chain.shard
    plain = tuple(range(len(meta.shape)))
    appendable = (
        shard is not None
        and not meta.chain.pipeline
        and meta.chain.order == shard.inner.order == plain
        and shard.inner.shard is None
        and not (shard.index_at_end or shard.index_big)
        and shard.index_checked
        and meta.grid[1:] == shard.chunk_shape[1:] == meta.shape[1:]
        and meta.separator == "/"
        and not meta.v2_keys
    )
    if shard is None or not appendable:
        raise UnsupportedCodec(
            f"{key}: the writer appends to shards with a checked index at their start, cut along the first axis alone; "
            "this array is laid out otherwise"
        )
    return shard


def _array_plan(
    key: str, meta: ArrayMeta, length: int, doc_length: int | None, tail: tuple[int, ...] | None
) -> ArrayPlan:
    shard = appendable_shard(key, meta)
    prefix, suffix = meta.split_leading()
    return ArrayPlan(
        key=key,
        prefix=prefix,
        suffix=suffix,
        code=meta.code,
        trailing=meta.shape[1:],
        rows_per_chunk=shard.chunk_shape[0],
        chunks_per_shard=meta.grid[0] // shard.chunk_shape[0],
        pipeline=shard.inner.pipeline,
        fill=b"" if meta.data_type == "string" else meta.fill_bytes(),
        length=length,
        doc_length=doc_length,
        tail=tail,
    )


def _dead(plan: Plan, schema: Schema, store: Store) -> Iterator[str]:
    """Directories that a transition left, in the order in which they may go, and temporary files elsewhere.

    Only names that are the writer's own: an undeclared group is another program's, and stays.
    """
    own = ["box/vectors", "box/boundary", "box/origin", "box/step_index", "step", "time"]
    for name in schema.blocks:
        own += [f"{name}/step_index", f"{name}/offset"]
    gone = [f"{ROOT}/{path}/" for path in own if path not in plan.arrays and store.exists(f"{ROOT}/{path}")]
    yield from (path.rstrip("/") for path in gone)
    for key in store.walk(ROOT):
        name = os.path.basename(key)
        if name.startswith(".") and name.endswith(".tmp") and not key.startswith(tuple(gone)):
            yield key

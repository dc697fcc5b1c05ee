# SPDX-License-Identifier: BSD-3-Clause
"""The rules of a trajectory: declaration, steps, times, per-step values, and the blocks among each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mrec.dtypes import CANONICAL, CANONICAL_VALUES, json_text
from mrec.errors import MrecError
from mrec.trajectory.schema import Schema, ValueSchema
from mrec.verify.arrays import Stored
from mrec.verify.cell import check_cell
from mrec.verify.columns import BlockCheck
from mrec.verify.files import Files
from mrec.verify.references import check_aligned, check_beside_system, check_references
from mrec.verify.report import Log
from mrec.verify.state import MARKER, Token, check_durable, find_state
from mrec.verify.tree import COLUMN_TYPES, ROOT, Tree, live_order
from mrec.verify.updates import find_updates
from mrec.zarr.codecs import is_int
from mrec.zarr.json import parse
from mrec.zarr.metadata import ArrayMeta, GroupMeta

_WINDOW = 1 << 18


def check_trajectory(log: Log, files: Files, token: Token) -> None:
    """Everything below `trajectory/`, in the state that stands."""
    state = find_state(log, files, token)
    check_durable(log, files, token)
    if state is None:
        return
    tree = Tree(log, files, state)
    schema = read_schema(tree)
    if schema is None:
        return
    tree.load(live_order(schema))
    if state.closed:
        _check_described(tree, schema)
    nstep = count_frames(tree)
    if nstep is None:
        return
    log.report.frames = nstep
    found = {name: find_updates(tree, block, nstep) for name, block in schema.blocks.items()}
    updates = {name: known for name, known in found.items() if known is not None}
    checks = {name: BlockCheck(tree, schema.blocks[name], known) for name, known in updates.items()}
    values = [(value, stored) for value in schema.values.values() if (stored := _value(tree, value, nstep))]
    log.expected += log.report.chunks + sum(check.chunks for check in checks.values())
    log.expected += sum(stored.chunks for _, stored in values)
    _check_steps(tree, nstep)
    _check_times(tree, nstep)
    check_cell(tree, nstep)
    for value, stored in values:
        _check_value(log, value, stored)
    for check in checks.values():
        check.run()
    check_references(log, files, schema, checks)
    check_aligned(log, schema, updates)
    check_beside_system(log, files, checks)


def _check_described(tree: Tree, schema: Schema) -> None:
    """No node has lost its document: it reads as if it had never been."""
    for path in live_order(schema):
        parent, _, name = f"{ROOT}/{path}".rpartition("/")
        if path not in tree.nodes and path not in tree.broken and name in tree.files.names(parent):
            tree.log.add("document", f"{parent}/{name}", "it has no zarr.json, and its directory is there")


# ---- declaration -------------------------------------------------------------------------------------------------


def read_schema(tree: Tree) -> Schema | None:
    """The declaration; of a store that has none, what its groups show."""
    document = tree.state.attributes.get("sequence_schema")
    if "sequence_schema" not in tree.state.attributes:
        document = _derived(tree)
    try:
        schema = Schema.from_json(document)
    except MrecError as e:
        tree.log.add("schema", MARKER, str(e))
        return None
    for name, block in schema.blocks.items():
        for column in block.columns.values():
            if CANONICAL.get(column.name, column.dtype) != column.dtype:
                message = f"the column is {column.dtype}; it is {CANONICAL[column.name]} wherever it appears"
                tree.log.add("canonical", f"{ROOT}/{name}/{column.name}", message)
    for value in schema.values.values():
        if value.name in CANONICAL_VALUES and value.tag.name != "f64":
            message = f"the value is {value.tag}; it is f64 wherever it appears"
            tree.log.add("canonical", f"{ROOT}/meta/{value.name}", message)
    return schema


def _derived(tree: Tree) -> dict[str, Any]:
    blocks: dict[str, Any] = {}
    for name in tree.files.names(ROOT):
        if name in ("step", "time", "box", "meta") or not isinstance(tree.node(name), GroupMeta):
            continue
        columns = {
            column: _shown(tree, f"{name}/{column}") | {"nullable": tree.node(f"{name}/_validity/{column}") is not None}
            for column in tree.files.names(f"{ROOT}/{name}")
            if column not in ("offset", "step_index", "_validity")
            and isinstance(tree.node(f"{name}/{column}"), ArrayMeta)
        }
        blocks[name] = {"columns": columns}
    values = {name: {"dtype": _shown_tag(tree, f"meta/{name}")} for name in tree.files.names(f"{ROOT}/meta")}
    return {"blocks": blocks, "meta": values}


def _shown(tree: Tree, path: str) -> dict[str, Any]:
    meta = tree.meta(path)
    assert meta is not None
    return {"dtype": COLUMN_TYPES.get(meta.data_type, meta.data_type), "trailing": list(meta.shape[1:])}


def _shown_tag(tree: Tree, path: str) -> Any:
    meta = tree.meta(path)
    if meta is None:
        return None
    width = "" if len(meta.shape) == 1 else "x" + "x".join(map(str, meta.shape[1:]))
    shown = (COLUMN_TYPES.get(meta.data_type, meta.data_type) + width).replace("boolx", "bool")
    return meta.attributes.get("meta_dtype", shown)


# ---- frames ------------------------------------------------------------------------------------------------------


def count_frames(tree: Tree) -> int | None:
    """The number of frames; None when it is not to be known."""
    attributes = tree.state.attributes
    if "nstep" in attributes:
        return attributes["nstep"]
    if "step_progression" in attributes or "time_progression" in attributes:
        return None
    step = tree.meta("step")
    return step.shape[0] if step is not None and step.shape else 0


def _progression(tree: Tree, kind: str, nstep: int, fits: Callable[[Any], bool]) -> tuple[Any, Any] | None:
    """Start and stride of a progression, checked; None when it is not usable."""
    rule, found = f"{kind}-progression", tree.state.attributes[f"{kind}_progression"]
    keys = {"start"} if nstep == 1 else {"start", "stride"}
    if nstep == 0:
        tree.log.add(rule, MARKER, "it stands, and there are no frames")
    elif not isinstance(found, dict) or found.keys() != keys or not all(map(fits, found.values())):
        tree.log.add(rule, MARKER, f"it is {found!r} for {nstep} frames")
    else:
        return found["start"], found.get("stride", 0)
    return None


def _check_steps(tree: Tree, nstep: int) -> None:
    if "step_progression" in tree.state.attributes:
        found = _progression(tree, "step", nstep, lambda n: is_int(n, -(2**63), 2**63 - 1))
        if found is not None and nstep > 1 and (found[1] < 1 or found[0] + (nstep - 1) * found[1] >= 2**63):
            tree.log.add("step-progression", MARKER, f"from {found[0]} by {found[1]} it does not ascend within 64 bits")
        return
    stored = tree.array("step", "i64", (), nstep)
    if stored is None:
        return
    stored.frame_of = _same
    last: int | None = None
    for start, steps in _windows(stored):
        falls = np.flatnonzero(steps[1:] <= steps[:-1]) + 1
        if last is not None and steps[0] <= last:
            falls = np.array([0])
        if len(falls) and not stored.faults:
            frame = start + int(falls[0])
            tree.log.add("step-order", stored.path, f"step {steps[falls[0]]} is not above the one before", frame=frame)
            return
        last = int(steps[-1])


def _check_times(tree: Tree, nstep: int) -> None:
    if "time_progression" in tree.state.attributes:
        found = _progression(tree, "time", nstep, _is_finite)
        if found is not None and not math.isfinite(found[0] + float(nstep - 1) * found[1]):
            tree.log.add("time-progression", MARKER, f"from {found[0]} by {found[1]} it leaves the numbers")
        return
    if tree.meta("time") is None:
        return
    stored = tree.array("time", "f64", (), nstep)
    if stored is not None:
        stored.frame_of = _same
        for _ in _windows(stored):
            pass


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= math.nextafter(math.inf, 0)


def _same(row: int) -> int:
    return row


def _windows(stored: Stored) -> Any:
    """(first row, rows) of windows over an array."""
    for start in range(0, stored.rows, _WINDOW):
        yield start, stored.read(start, min(start + _WINDOW, stored.rows))


# ---- per-step values ---------------------------------------------------------------------------------------------


def _value(tree: Tree, value: ValueSchema, nstep: int) -> Stored | None:
    path = f"meta/{value.name}"
    trailing = () if value.tag.width == 1 else (value.tag.width,)
    stored = tree.array(path, value.tag.dtype.name, trailing, nstep)
    if stored is None:
        return None
    stored.frame_of = _same
    tag = stored.meta.attributes.get("meta_dtype")
    if tag != value.tag.name and (tag is not None or "sequence_schema" in tree.state.attributes):
        tree.log.add("meta-dtype", stored.path, f"meta_dtype is {tag!r}; {value.tag} is declared")
    return stored


def _check_value(log: Log, value: ValueSchema, stored: Stored) -> None:
    for start, rows in _windows(stored):
        for row in range(len(rows)) if value.tag.json and not stored.faults else ():
            fault = json_fault(rows[row])
            if fault:
                log.add("json-text", stored.path, fault, frame=start + row)
                return


def json_fault(text: str) -> str | None:
    """What is wrong with a stored JSON text; None when nothing is."""
    try:
        document = parse(text, "the text")
    except MrecError as e:
        return str(e)
    try:
        compact = json_text(document)
    except ValueError as e:
        return f"the text {text[:60]!r}: {e}"
    # Another program may write a number or escape a letter in another way; blanks it may not.
    return "the text is not compact JSON" if len(text) > len(compact) and _blank(text) else None


def _blank(text: str) -> bool:
    """Whether there are blanks outside strings."""
    inside = escaped = False
    for letter in text:
        if inside:
            inside, escaped = escaped or letter != '"', not escaped and letter == "\\"
        elif letter == '"':
            inside = True
        elif letter.isspace():
            return True
    return False

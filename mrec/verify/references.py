# SPDX-License-Identifier: BSD-3-Clause
"""What blocks say of each other: rows that columns refer to, aligned blocks, the system beside the trajectory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mrec.errors import MrecError
from mrec.trajectory.schema import Schema
from mrec.verify.arrays import Stored, Trust
from mrec.verify.columns import BlockCheck
from mrec.verify.files import Files
from mrec.verify.report import Log
from mrec.verify.tree import ROOT
from mrec.verify.updates import Updates
from mrec.zarr.codecs import is_int
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_node

#: Columns that are rows of `atoms` where nothing else is declared.
CONVENTION = ("atomi", "atomj", "atomk", "atoml")


def read_node(files: Files, path: str) -> ArrayMeta | GroupMeta | None:
    """The node at a path of the record; None where there is none, or its document is wrong, which is told elsewhere."""
    raw = files.get(f"{path}/zarr.json")
    try:
        return None if raw is None else parse_node(raw, "zarr.json")
    except MrecError:
        return None


def section_rows(files: Files, target: str) -> int | None:
    """The rows of a block that is named `/<section>/<block>`; None when there is no such block."""
    if target.count("/") != 2 or target.startswith("/trajectory/"):
        return None
    node = read_node(files, target[1:])
    count = node.attributes.get("count") if isinstance(node, GroupMeta) else None
    return count if is_int(count, 0, 2**63 - 1) else None


# ---- row references ----------------------------------------------------------------------------------------------


def check_references(log: Log, files: Files, schema: Schema, checks: Mapping[str, BlockCheck]) -> None:
    """Declared references at every frame; those by convention where they are given."""
    for name, check in checks.items():
        targets = check.block.targets or {}
        for column, target in targets.items():
            if target in checks or target not in schema.blocks:
                _check_target(log, files, checks, name, column, target)
        atoms = checks.get("atoms")
        for column in CONVENTION if atoms is not None else ():
            if column not in targets and column in check.needed:
                there = atoms.updates.rows_at(check.updates.frames)  # type: ignore[union-attr]
                wrong = np.flatnonzero((there >= 0) & (check.needed[column] > there))
                _tell(log, f"{ROOT}/{name}/{column}", "atoms", check, column, wrong, there, "reference")


def _check_target(
    log: Log, files: Files, checks: Mapping[str, BlockCheck], name: str, column: str, target: str
) -> None:
    where, check = f"{ROOT}/{name}/{column}", checks[name]
    declared = check.block.columns.get(column)
    if declared is None or declared.dtype.name != "u64":
        log.add("targets", where, f"targets names it; it is {declared.dtype if declared else 'no column'}, not u64")
        return
    rows = section_rows(files, target) if target.startswith("/") else None
    if target not in checks and rows is None:
        log.add("targets", where, f"its target {target!r} is no block")
        return
    if column not in check.needed:
        return
    frames = check.updates.frames
    points = frames if rows is not None else np.union1d(frames, checks[target].updates.frames)
    there = checks[target].updates.rows_at(points) if rows is None else np.full(len(points), rows)
    least = np.minimum.reduceat(there, np.searchsorted(points, frames)) if len(frames) else there[:0]
    wrong = np.flatnonzero(check.needed[column] > np.maximum(least, 0))
    _tell(log, where, target, check, column, wrong, least, "targets")


def _tell(
    log: Log, where: str, target: str, check: BlockCheck, column: str, wrong: np.ndarray, there: np.ndarray, rule: str
) -> None:
    for update in wrong[:1]:
        highest = int(check.needed[column][update]) - 1
        message = f"it refers to row {highest} of {target!r}, which has {max(int(there[update]), 0)}"
        log.add(rule, where, message, frame=int(check.updates.frames[update]))


# ---- alignment ---------------------------------------------------------------------------------------------------


def check_aligned(log: Log, schema: Schema, updates: Mapping[str, Updates]) -> None:
    """Blocks that have their rows in common with another at every frame."""
    for name, block in schema.blocks.items():
        if block.aligned_with is None:
            continue
        other, where = schema.blocks.get(block.aligned_with), f"{ROOT}/{name}"
        if other is None or other is block or other.aligned_with is not None or block.structural_shape is not None:
            log.add("aligned", where, f"it cannot be aligned with {block.aligned_with!r}")
            continue
        for column in block.columns.keys() & other.columns.keys():
            log.add("aligned", f"{where}/{column}", f"the column is also one of {other.name!r}, its aligned_with")
        if name not in updates or other.name not in updates:
            continue
        frames = np.union1d(updates[name].frames, updates[other.name].frames)
        mine, theirs = (updates[b].rows_at(frames) for b in (name, other.name))
        for i in np.flatnonzero((mine >= 0) & (mine != theirs))[:1]:
            message = f"it has {mine[i]} rows and {other.name!r}, its aligned_with, {max(theirs[i], 0)}"
            log.add("aligned", where, message, frame=int(frames[i]))


# ---- system beside trajectory ------------------------------------------------------------------------------------


def check_beside_system(log: Log, files: Files, checks: Mapping[str, BlockCheck]) -> None:
    """A block of the same name in `system/` has the rows of every update, and no column in common but an equal id."""
    for name, check in checks.items():
        rows = section_rows(files, f"/system/{name}")
        if rows is None:
            continue
        for update in np.flatnonzero(check.updates.counts != rows)[:1]:
            message = f"an update has {check.updates.counts[update]} rows, system/{name} has {rows}"
            log.add("system", f"{ROOT}/{name}", message, frame=int(check.updates.frames[update]))
        for column, stored, _ in check.columns:
            meta = read_node(files, f"system/{name}/{column.name}")
            if not isinstance(meta, ArrayMeta):
                continue
            if column.name != "id":
                log.add("system", f"{ROOT}/{name}/{column.name}", f"the column stands also in system/{name}")
            elif stored is not None and meta.shape == (rows,) and (check.updates.counts == rows).all():
                same = Stored(log, files, f"system/{name}/id", meta, rows, Trust())
                if same.rows == rows:
                    _check_ids(log, check.updates, stored, same.read(0, rows))


def _check_ids(log: Log, updates: Updates, stored: Stored, ids: np.ndarray) -> None:
    for update in range(len(updates.frames)):
        mine = stored.read(int(updates.offset[update]), int(updates.offset[update + 1]))
        if not np.array_equal(mine, ids):
            message = "the ids are not those of the system"
            log.add("system", stored.path, message, frame=int(updates.frames[update]))
            return

# SPDX-License-Identifier: BSD-3-Clause
"""Columns that name rows of a block: `targets`, within a frame-shaped section and from one section into another."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from mrec._core import Lock
from mrec.dtypes import CANONICAL, DTYPES
from mrec.errors import CorruptData, InvalidValue, MrecError, RecordLocked, SchemaError
from mrec.frame import Block
from mrec.record.whole import read_whole
from mrec.trajectory.relations import writer_of
from mrec.trajectory.select import check_rows
from mrec.trajectory.standing import MARKER, ROOT, read_standing
from mrec.trajectory.writer import lock_errors
from mrec.zarr.array import Array
from mrec.zarr.codecs import is_int
from mrec.zarr.group import Group
from mrec.zarr.store import FilesystemStore, Store

FRAMES = ("frame", "system", "forcefield")


def read_targets(group: Group) -> dict[str, str]:
    """What the columns of a stored block refer to, by column. CorruptData when that is no object of names."""
    targets = group.attrs.get("targets", {})
    if not isinstance(targets, dict) or not all(isinstance(target, str) for target in targets.values()):
        raise CorruptData(f"{group.path}: targets is {targets!r}, no object of names")
    return targets


def check_targets(store: Store, section: str, blocks: Mapping[str, Block], error: type[MrecError]) -> None:
    """The error when a declared reference of a section's blocks is not u64, or names no row of its target."""
    for name, block in blocks.items():
        for column, target in block.targets.items():
            where = f"{section}/{name}"
            if column not in block:
                raise error(f"{where}: targets names a column {column!r}, which is not there")
            rows = _rows(store, section, target, blocks)
            if rows is None:
                raise error(
                    f"{where}/{column}: its target {target!r} is no block; a target is a block beside it, or "
                    '"/<section>/<block>" of a section other than the trajectory'
                )
            values = block[column]
            if CANONICAL.get(column) is DTYPES["u64"]:
                values = values.astype(np.uint64)  # as it is stored
            check_rows(values, rows, f"{where}/{column}", target, error)


def _rows(store: Store, section: str, target: str, blocks: Mapping[str, Block]) -> int | None:
    """The rows of a target; None when there is no such block."""
    own = f"/{section}/"
    if not target.startswith("/") or target.startswith(own):
        block = blocks.get(target.removeprefix(own))
        return None if block is None else block.nrows
    return section_rows(store, target)


def section_rows(store: Store, target: str) -> int | None:
    """The rows of the block "/<section>/<block>"; None when there is none, or it is one of a trajectory."""
    if target.count("/") != 2 or target.startswith("/trajectory/"):
        return None
    root, path = Group(store), target[1:]
    found = root[path] if path in root else None
    count = found.attrs.get("count") if isinstance(found, Group) else None
    return int(count) if is_int(count, 0, 2**63 - 1) else None


# ---- beside a writer ---------------------------------------------------------------------------------------------


@contextmanager
def agreeing(root: str, section: str, blocks: Iterable[str] = ()) -> Iterator[Any]:
    """While inside, no other process appends frames that this section, with these blocks, has to agree with.

    What it yields is the writer of this process, or None; RecordLocked when one of another has the record. A section
    that the trajectory neither refers to nor stands beside is written without more ado.
    """
    writer = writer_of(root)
    if writer is not None or not _bound(FilesystemStore(root), section, set(blocks)):
        yield writer
        return
    try:
        with lock_errors(root):
            lock = Lock(root)
    except RecordLocked as e:
        raise RecordLocked(
            f"{e}: frames that a writer of another process appends have to agree with {section}/; "
            "write it there, or when that writer is closed"
        ) from None
    try:
        yield None
    finally:
        lock.release()


def _bound(store: Store, section: str, blocks: set[str]) -> bool:
    """Whether the trajectory refers to the section, or has namesakes of these blocks of the system."""
    standing = read_standing(store) if section in FRAMES and store.exists(MARKER) else None
    if standing is None:
        return False
    declared = standing.schema.blocks
    targets = (target for block in declared.values() for target in (block.targets or {}).values())
    return (section == "system" and not blocks.isdisjoint(declared)) or any(
        target.startswith(f"/{section}/") for target in targets
    )


# ---- into a section ----------------------------------------------------------------------------------------------


def check_referred(store: Store, section: str, rows: Mapping[str, int]) -> None:
    """Refuse a section whose blocks have too few rows (block -> rows) for what other sections refer to in it."""
    for where, column, target in _into(store, f"/{section}/"):
        name = target.split("/")[2]
        least = _least_rows(store, where, column)
        if name not in rows or least > rows[name]:
            there = f"it would have {rows[name]} of them" if name in rows else "it would be gone"
            raise SchemaError(f"{where}/{column} refers to rows of {target}, {least} of them are needed, and {there}")


def check_left_out(store: Store, without: Collection[str]) -> None:
    """Refuse to leave sections out of a copy when what stays in it refers to their rows."""
    for section in sorted(without):
        for where, column, target in _into(store, f"/{section}/", without):
            raise InvalidValue(
                f"{where}/{column} refers to rows of {target}; keep {section!r}, or leave "
                f"{where.partition('/')[0]!r} out as well"
            )


def _into(store: Store, prefix: str, without: Collection[str] = ()) -> Iterator[tuple[str, str, str]]:
    """Block, column and target of each reference that begins with `prefix`, of other sections but those `without`."""
    for section in FRAMES:
        if prefix == f"/{section}/" or section in without or not store.exists(f"{section}/zarr.json"):
            continue
        group = Group(store, section)
        for name in group:
            block = group[name]
            for column, target in read_targets(block).items() if isinstance(block, Group) else ():
                if target.startswith(prefix):
                    yield block.path, column, target
    standing = read_standing(store) if ROOT not in without and store.exists(MARKER) else None
    for name, declared in standing.schema.blocks.items() if standing else ():
        for column, target in (declared.targets or {}).items():
            if target.startswith(prefix):
                yield f"{ROOT}/{name}", column, target


def _least_rows(store: Store, block: str, column: str) -> int:
    """How many rows a target has to have for all that a stored column holds; null rows do not count."""
    if block.startswith(f"{ROOT}/"):
        return _least_rows_over_time(store, block.removeprefix(f"{ROOT}/"), column)
    group = Group(store, block)
    array = group[column] if column in group else None
    if not isinstance(array, Array):
        return 0
    values = read_whole(array)
    mask = group[f"_validity/{column}"] if f"_validity/{column}" in group else None
    if isinstance(mask, Array):
        values = values[read_whole(mask)]
    return int(values.max()) + 1 if values.size else 0


def _least_rows_over_time(store: Store, block: str, column: str) -> int:
    from mrec.trajectory.reader import Trajectory

    writer = writer_of(store.root)
    if writer is not None:
        writer.flush(durable=False)  # so that all its frames are looked at
    trajectory = Trajectory(store.root, store.again())
    least = 0
    for start in range(0, len(trajectory), 64):
        values, _ = trajectory.read_ragged(block, column, frames=slice(start, start + 64))
        found = np.ma.compressed(values)
        least = max(least, int(found.max()) + 1) if found.size else least
    return least

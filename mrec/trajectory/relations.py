# SPDX-License-Identifier: BSD-3-Clause
"""What blocks of a frame owe each other, checked before a frame is appended.

Rows that columns refer to (`targets`), blocks aligned with another, and blocks beside their namesakes in `system/`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mrec.errors import CorruptData, SchemaError
from mrec.trajectory.schema import BlockSchema, Schema
from mrec.zarr.array import Array
from mrec.zarr.codecs import is_int
from mrec.zarr.group import Group
from mrec.zarr.store import FilesystemStore

#: A block as the core takes it: rows, and data and mask of each column; None: not given.
Slot = Any


@dataclass(frozen=True)
class Seen:
    """What the last frame sees. rows: of each block that is present. needed: rows a reference's target has to have."""

    rows: Mapping[str, int] = field(default_factory=dict)
    needed: Mapping[tuple[str, str], int] = field(default_factory=dict)


class Relations:
    """The rules between the blocks of one trajectory that is being written."""

    def __init__(self, root: str, schema: Schema) -> None:
        self._root = root
        self._blocks = list(schema.blocks.values())
        self._system = _system(root, schema)
        self.seen = Seen()

    @classmethod
    def of(cls, root: str, schema: Schema) -> Relations | None:
        """Those of a trajectory; None when it has none."""
        made = cls(root, schema)
        declared = any(block.targets or block.aligned_with is not None for block in schema.blocks.values())
        return made if declared or made._system else None

    def after(self, slots: Sequence[Slot], frames: bool = False) -> Seen:
        """What is seen after a frame with these blocks, or after many (each array with a leading frame axis).

        SchemaError when one of them breaks a rule.
        """
        rows, needed, most = dict(self.seen.rows), dict(self.seen.needed), dict(self.seen.needed)
        for block, slot in zip(self._blocks, slots, strict=True):
            if slot is None:
                continue
            rows[block.name] = slot[0]
            self._check_system(block, slot, frames)
            for (column, _), (data, valid) in zip(block.columns.items(), slot[1], strict=True):
                if column in (block.targets or {}):
                    of_all = _least_rows(data, valid)
                    most[block.name, column] = of_all
                    needed[block.name, column] = _last_least_rows(data, valid) if frames else of_all
        for block in self._blocks:
            self._check_targets(block, rows, most)
            self._check_aligned(block, rows)
        return Seen(rows, needed)

    def _check_targets(self, block: BlockSchema, rows: Mapping[str, int], needed: Mapping[Any, int]) -> None:
        for column, target in (block.targets or {}).items():
            least = needed.get((block.name, column), 0)
            there = _section_rows(self._root, target) if target.startswith("/") else rows.get(target, 0)
            if there is None and block.name in rows:
                raise SchemaError(f"block {block.name!r}: column {column!r} refers to {target!r}, which is not there")
            if least > (there or 0):
                raise SchemaError(
                    f"block {block.name!r}: column {column!r} refers to row {least - 1} of {target!r}, "
                    f"which has {there or 0}"
                )

    def _check_aligned(self, block: BlockSchema, rows: Mapping[str, int]) -> None:
        other = block.aligned_with
        if other is not None and block.name in rows and rows.get(other) != rows[block.name]:
            there = f"{rows[other]} rows" if other in rows else "not given yet"
            raise SchemaError(
                f"block {block.name!r} has {rows[block.name]} rows and is aligned with {other!r}, which is {there}; "
                "give both with the same number"
            )

    def _check_system(self, block: BlockSchema, slot: Slot, frames: bool) -> None:
        beside = self._system.get(block.name)
        if beside is None:
            return
        count, ids = beside
        if slot[0] != count:
            raise SchemaError(f"block {block.name!r} has {slot[0]} rows, system/{block.name} has {count}")
        if ids is None:
            return
        data = slot[1][list(block.columns).index("id")][0]
        if not (np.asarray(data) == (ids[None] if frames else ids)).all():
            raise SchemaError(f"block {block.name!r}: the ids are not those of system/{block.name}")


def _least_rows(data: Any, valid: Any) -> int:
    values = np.asarray(data)
    if valid is not None:
        values = values[np.asarray(valid).astype(bool)]
    return int(values.max()) + 1 if values.size else 0


def _last_least_rows(data: Any, valid: Any) -> int:
    return _least_rows(data[-1], None if valid is None else valid[-1]) if len(data) else 0


# ---- other sections ----------------------------------------------------------------------------------------------


def _system(root: str, schema: Schema) -> dict[str, tuple[int, np.ndarray | None]]:
    """The rows, and the ids where both have them, of the system's blocks with a namesake in the trajectory."""
    store, found = FilesystemStore(root), {}
    for name, block in schema.blocks.items():
        if not store.exists(f"system/{name}/zarr.json"):
            continue
        group = Group(store, f"system/{name}")
        count = group.attrs.get("count")
        if not is_int(count, 0, 2**63 - 1):
            raise CorruptData(f"{store.path(group.path)}: count is {count!r}")
        shared = sorted((block.columns.keys() & set(group)) - {"id"})
        if shared:
            raise SchemaError(f"column {shared[0]!r} stands in system/{name} and in the trajectory's block {name!r}")
        ids = group["id"] if "id" in group and "id" in block.columns else None
        found[name] = (count, ids.read() if isinstance(ids, Array) else None)
    return found


def _section_rows(root: str, target: str) -> int | None:
    from mrec.record.references import section_rows

    return section_rows(FilesystemStore(root), target)


# ---- writers of this process -------------------------------------------------------------------------------------

_WRITERS: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
os.register_at_fork(after_in_child=_WRITERS.clear)  # they stay the parent's


def register(writer: Any) -> None:
    """Let sections that this process writes beside the writer be held against it."""
    _WRITERS[os.path.realpath(writer.path)] = writer


def writer_of(root: str) -> Any:
    """The writer that this process has of a record; None when it has none."""
    writer = _WRITERS.get(os.path.realpath(root))
    return None if writer is None or writer.closed else writer

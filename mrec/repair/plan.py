# SPDX-License-Identifier: BSD-3-Clause
"""What of a damaged trajectory goes into the copy: which frames, and which parts of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrec.errors import UnknownName
from mrec.repair.scan import Scan
from mrec.repair.series import Flags
from mrec.trajectory.schema import Schema


@dataclass(frozen=True)
class Plan:
    """frames: bool[nstep], those that are kept. left_out: the parts that no frame of the copy has."""

    scan: Scan
    frames: Flags
    left_out: frozenset[str]

    def keeps(self, part: str) -> bool:
        """Whether the frames of the copy have a part."""
        return part not in self.left_out and part.partition("/")[0] not in self.left_out

    def would_keep(self, part: str) -> int:
        """The number of frames that would be kept if one more part was left out."""
        return int(_sound(self.scan, self.left_out | {part}).sum())

    def schema(self) -> Schema:
        """What the copy declares."""
        document = self.scan.schema.to_json()
        blocks: dict[str, Any] = {name: entry for name, entry in document["blocks"].items() if self.keeps(name)}
        for name, entry in blocks.items():
            entry["columns"] = {c: column for c, column in entry["columns"].items() if self.keeps(f"{name}/{c}")}
            targets = entry.pop("targets", {})
            targets = {c: t for c, t in targets.items() if c in entry["columns"] and (t[:1] == "/" or t in blocks)}
            if targets:
                entry["targets"] = targets
            if entry.get("aligned_with") not in blocks:
                entry.pop("aligned_with", None)
        values = {name: entry for name, entry in document["meta"].items() if self.keeps(f"meta/{name}")}
        return Schema.from_json({"blocks": blocks, "meta": values})


def make_plan(scan: Scan, drop: Collection[str], keep_frames: bool) -> Plan:
    """Leave out what is dropped, and of which nothing verifies; the other frames that lost anything go.

    keep_frames: leave out what lost anything, and keep the frames. UnknownName for a part that there is not.
    """
    parts = _parts(scan)
    for name in drop:
        if name not in parts:
            raise UnknownName(f"there is no part {name!r} to drop; there are: {', '.join(parts)}")
    left_out = set(drop)
    left_out |= {part for part in scan.lost if part != "step" and (keep_frames or scan.is_whole_lost(part))}
    for name, block in scan.schema.blocks.items():
        if block.columns and all(f"{name}/{column}" in left_out for column in block.columns):
            left_out.add(name)
    return Plan(scan, _sound(scan, left_out), frozenset(left_out))


def _sound(scan: Scan, left_out: Collection[str]) -> Flags:
    """The frames of which everything verifies that is not left out."""
    sound = np.ones(scan.nstep, np.bool_)
    for part, lost in scan.lost.items():
        if part not in left_out and part.partition("/")[0] not in left_out:
            sound &= ~lost
    return sound


def _parts(scan: Scan) -> list[str]:
    blocks = [[name, *(f"{name}/{column}" for column in block.columns)] for name, block in scan.schema.blocks.items()]
    return [*sum(blocks, []), *(f"meta/{name}" for name in scan.schema.values), "time", "box"]

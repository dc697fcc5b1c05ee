# SPDX-License-Identifier: BSD-3-Clause
"""The updates of a block: at which frames they are and which rows they own, in whichever form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mrec.trajectory.schema import BlockSchema
from mrec.verify.report import Log
from mrec.verify.tree import ROOT, Tree
from mrec.zarr.codecs import is_int

Ints = np.ndarray


@dataclass(frozen=True)
class Updates:
    """frames: i64[n], the ordinal of each update. offset: i64[n + 1], where the rows of each begin."""

    frames: Ints
    offset: Ints

    @property
    def counts(self) -> Ints:
        """The rows of each update."""
        return np.diff(self.offset)

    @property
    def rows(self) -> int:
        """The rows of all updates."""
        return int(self.offset[-1])

    def frame_of(self, row: int) -> int | None:
        """The frame of the update that owns a row."""
        update = int(np.searchsorted(self.offset, row, side="right")) - 1
        return int(self.frames[update]) if 0 <= update < len(self.frames) else None

    def rows_at(self, frames: Ints) -> Ints:
        """i64: the rows that each of the frames sees, -1 where the block is absent."""
        if len(self.frames) == 0:
            return np.full(len(frames), -1, np.int64)
        update = np.searchsorted(self.frames, frames, side="right") - 1
        return np.where(update >= 0, self.counts[np.maximum(update, 0)], -1)


NONE = Updates(np.empty(0, np.int64), np.zeros(1, np.int64))


def find_updates(tree: Tree, block: BlockSchema, nstep: int) -> Updates | None:
    """The updates of a block, checked; None when they are not to be known."""
    group = tree.group(block.name)
    if group is None:
        return None if block.name in tree.broken else NONE
    if "uniform_rows" in group.attributes or "dense_updates" in group.attributes:
        found = _regular(tree, block, group.attributes, nstep)
    else:
        found = _indexed(tree, block.name, nstep)
    if found is not None and block.structural_shape is not None:
        _check_shape(tree.log, block, found)
    return found


def _regular(tree: Tree, block: BlockSchema, attributes: dict[str, object], nstep: int) -> Updates | None:
    uniform, where = attributes.get("uniform_rows"), f"{ROOT}/{block.name}"
    if not is_int(uniform, 1, 2**62) or attributes.get("dense_updates") is not True:
        dense = attributes.get("dense_updates")
        tree.log.add("regular", where, f"uniform_rows is {uniform!r} and dense_updates {dense!r}; both or none")
        return None
    if not block.columns:
        tree.log.add("regular", where, "a block without columns is regular; it has to keep its index")
        return None
    lengths = {}
    for column in block.columns:
        meta = tree.meta(f"{block.name}/{column}")
        if meta is None or not meta.shape:
            tree.array(f"{block.name}/{column}", block.columns[column].dtype.name, block.columns[column].trailing, 1)
            return None
        lengths[column] = meta.shape[0]
    _check_lengths(tree, block.name, lengths)
    n = min(min(lengths.values()) // uniform, nstep)
    columns = [
        tree.array(f"{block.name}/{c.name}", c.dtype.name, c.trailing, n * uniform) for c in block.columns.values()
    ]
    if min((stored.rows for stored in columns if stored is not None), default=0) < n * uniform:
        return None  # so many that no file holds them
    return Updates(np.arange(n), np.arange(n + 1) * uniform)


def _check_lengths(tree: Tree, name: str, lengths: dict[str, int]) -> None:
    """The shortest column decides how many updates there are; where lengths are exact none is shorter than another."""
    if len(set(lengths.values())) > 1 and all(tree.is_exact(f"{name}/{column}") for column in lengths):
        columns = ", ".join(f"{column} {length}" for column, length in lengths.items())
        tree.log.add(
            "length", f"{ROOT}/{name}", f"its columns have different lengths: {columns}", severity=tree.doubt()
        )


def _indexed(tree: Tree, name: str, nstep: int) -> Updates | None:
    path = f"{name}/step_index"
    if tree.meta(path) is None:
        return None if path in tree.broken else NONE
    frames = read_index(tree, path, nstep)
    if frames is None or len(frames) == 0:
        return None if frames is None else NONE
    stored = tree.array(f"{name}/offset", "u64", (), len(frames) + 1)
    if stored is None or stored.rows < len(frames) + 1:
        return None
    offset = stored.read(0, len(frames) + 1)
    if stored.faults:
        return None
    falls = np.flatnonzero(offset[1:] < offset[:-1])
    if offset[0] != 0 or len(falls) or offset[-1] > 2**62:
        at = int(falls[0]) if len(falls) else 0
        message = f"entry 0 is {offset[0]}" if offset[0] else f"entry {at + 1} is {offset[at + 1]} after {offset[at]}"
        tree.log.add("offset", stored.path, message, frame=int(frames[at]))
        return None
    return Updates(frames, offset.astype(np.int64))


def read_index(tree: Tree, path: str, nstep: int) -> Ints | None:
    """The entries of a `step_index` that stand; None when they say nothing."""
    meta = tree.meta(path)
    if meta is None or not meta.shape:
        return None
    # An array that stands longer than it is has the entries of later frames, or fill, behind its own.
    most = min(meta.shape[0], nstep) if not tree.is_exact(path) else meta.shape[0]
    stored = tree.array(path, "u64", (), most)
    if stored is None or stored.rows < most:
        return None
    index = stored.read(0, most)
    if stored.faults:
        return None
    beyond = np.flatnonzero(index >= nstep)
    n = int(beyond[0]) if len(beyond) else most
    if n < most and tree.is_exact(path):
        tree.log.add("update-index", stored.path, f"entry {n} is {index[n]}; there are {nstep} frames")
    falls = np.flatnonzero(index[1:n] <= index[: max(n - 1, 0)])
    if len(falls):
        at = int(falls[0]) + 1
        message = f"entry {at} is {index[at]} after {index[at - 1]}; they have to ascend"
        tree.log.add("update-index", stored.path, message, frame=int(index[at]))
        return None
    return index[:n].astype(np.int64)


def _check_shape(log: Log, block: BlockSchema, updates: Updates) -> None:
    assert block.structural_shape is not None
    rows = math.prod(block.structural_shape)
    for update in np.flatnonzero(updates.counts != rows)[:1]:
        message = f"an update has {updates.counts[update]} rows, structural_shape {block.structural_shape} has {rows}"
        log.add("structural-shape", f"{ROOT}/{block.name}", message, frame=int(updates.frames[update]))

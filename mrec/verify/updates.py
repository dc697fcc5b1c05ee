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

    def rows_at(self, nstep: int) -> Ints:
        """i64[nstep]: the rows that each frame sees, -1 where the block is absent."""
        if len(self.frames) == 0:
            return np.full(nstep, -1, np.int64)
        update = np.searchsorted(self.frames, np.arange(nstep), side="right") - 1
        return np.where(update >= 0, self.counts[np.maximum(update, 0)], -1)


NONE = Updates(np.empty(0, np.int64), np.zeros(1, np.int64))


def find_updates(tree: Tree, block: BlockSchema, nstep: int) -> Updates:
    """The updates of a block, checked."""
    group = tree.group(block.name)
    if group is None:
        return NONE
    if "uniform_rows" in group.attributes or "dense_updates" in group.attributes:
        found = _regular(tree, block, group.attributes, nstep)
    else:
        found = _indexed(tree, block.name, nstep)
    if block.structural_shape is not None:
        _check_shape(tree.log, block, found)
    return found


def _regular(tree: Tree, block: BlockSchema, attributes: dict[str, object], nstep: int) -> Updates:
    uniform, where = attributes.get("uniform_rows"), f"{ROOT}/{block.name}"
    if not is_int(uniform, 1, 2**62) or attributes.get("dense_updates") is not True:
        dense = attributes.get("dense_updates")
        tree.log.add("regular", where, f"uniform_rows is {uniform!r} and dense_updates {dense!r}; both or none")
        return NONE
    if not block.columns:
        tree.log.add("regular", where, "a block without columns is regular; it has to keep its index")
        return NONE
    metas = [tree.meta(f"{block.name}/{column}") for column in block.columns]
    lengths = [meta.shape[0] if meta is not None and meta.shape else 0 for meta in metas]
    n = min(min(lengths) // uniform, nstep)
    if max(lengths) >= uniform and nstep and n == 0:
        tree.log.add("length", where, f"it is regular with {uniform} rows, and a column has fewer")
    elif tree.state.closed and len(set(lengths)) > 1 and tree.is_exact(f"{block.name}/{next(iter(block.columns))}"):
        columns = ", ".join(f"{name} {length}" for name, length in zip(block.columns, lengths, strict=True))
        tree.log.add("length", where, f"its columns have different lengths: {columns}")
    return Updates(np.arange(n), np.arange(n + 1) * uniform)


def _indexed(tree: Tree, name: str, nstep: int) -> Updates:
    frames = read_index(tree, f"{name}/step_index", nstep)
    if frames is None or len(frames) == 0:
        return NONE
    stored = tree.array(f"{name}/offset", "u64", (), len(frames) + 1)
    if stored is None or stored.rows < len(frames) + 1:
        return NONE
    offset = stored.read(0, len(frames) + 1)
    if stored.faults:
        return NONE
    falls = np.flatnonzero(offset[1:] < offset[:-1])
    if offset[0] != 0 or len(falls) or offset[-1] > 2**62:
        at = int(falls[0]) if len(falls) else 0
        message = f"entry 0 is {offset[0]}" if offset[0] else f"entry {at + 1} is {offset[at + 1]} after {offset[at]}"
        tree.log.add("offset", stored.path, message, frame=int(frames[min(at, len(frames) - 1)]))
        return NONE
    return Updates(frames, offset.astype(np.int64))


def read_index(tree: Tree, path: str, nstep: int) -> Ints | None:
    """The entries of a `step_index` that stand; None when they say nothing."""
    meta = tree.meta(path)
    if meta is None or not meta.shape:
        return None
    # An array that stands longer than it is has the entries of later frames, or fill, behind its own.
    most = min(meta.shape[0], nstep) if not tree.is_exact(path) else meta.shape[0]
    stored = tree.array(path, "u64", (), most)
    if stored is None:
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

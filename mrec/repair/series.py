# SPDX-License-Identifier: BSD-3-Clause
"""The updates of a block or of the cell, as far as they are known when a part of what says so is lost."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mrec.trajectory.schema import BlockSchema
from mrec.verify.tree import ROOT, Tree
from mrec.zarr.codecs import is_int

Ints = np.ndarray
Flags = np.ndarray
#: A frame or row that is not known.
UNKNOWN = -1


@dataclass(frozen=True)
class Series:
    """The updates that are known: frames i64[n], ascending; each has the rows start to stop, i64[n], or UNKNOWN ones.

    unsure: bool[nstep], true at frames of which it is not known which update holds, or which rows it has.
    """

    frames: Ints
    start: Ints
    stop: Ints
    unsure: Flags

    @property
    def counts(self) -> Ints:
        """The rows of each update; 0 where they are not known."""
        return self.stop - self.start

    @property
    def rows(self) -> int:
        """The rows of all updates that are known."""
        return int(self.stop.max(initial=0))

    def updates_at(self, frames: Ints) -> Ints:
        """The update that each frame sees; -1 before the first. Where a frame is unsure it means nothing."""
        return np.searchsorted(self.frames, frames, side="right") - 1

    def rows_at(self) -> Ints:
        """i64[nstep]: the rows that each frame sees; -1 where the block is absent or the frame is unsure."""
        update = self.updates_at(np.arange(len(self.unsure)))
        there = (update >= 0) & ~self.unsure
        return np.where(there, self.counts[np.maximum(update, 0)], -1) if len(self.frames) else update

    def present(self) -> Flags:
        """bool[nstep]: where there is a block, as far as is known, or may be one."""
        return self.unsure | (np.arange(len(self.unsure)) >= self.frames.min(initial=len(self.unsure)))

    def ends(self) -> Ints:
        """The frame before which each update ends."""
        return np.append(self.frames[1:], len(self.unsure))

    def frames_of(self, rows: Iterable[tuple[int, int]]) -> Flags:
        """bool[nstep]: the frames that see any of the rows [start, stop)."""
        found = np.zeros(len(self.unsure), np.bool_)
        known = np.flatnonzero(self.counts > 0)
        start, stop, ends = self.start[known], self.stop[known], self.ends()[known]
        for first, last in rows:
            touched = slice(np.searchsorted(stop, first, side="right"), np.searchsorted(start, last))
            for a, b in zip(self.frames[known[touched]], ends[touched], strict=True):
                found[a:b] = True
        return found


def absent(nstep: int) -> Series:
    """A block that no frame has."""
    return _empty(np.zeros(nstep, np.bool_))


def lost(nstep: int) -> Series:
    """A block of which nothing is known."""
    return _empty(np.ones(nstep, np.bool_))


def _empty(unsure: Flags) -> Series:
    none = np.empty(0, np.int64)
    return Series(none, none, none, unsure)


# ---- blocks ------------------------------------------------------------------------------------------------------


def series_of(tree: Tree, block: BlockSchema, nstep: int) -> Series:
    """The updates of a block."""
    group = tree.group(block.name)
    attributes = {} if group is None else group.attributes
    if "uniform_rows" in attributes or "dense_updates" in attributes:
        found = _regular(tree, block, attributes, nstep)
    elif tree.meta(f"{block.name}/step_index") is not None:
        found = _indexed(tree, block.name, nstep)
    elif block.name in tree.broken:
        found = lost(nstep)
    else:
        found = _without_index(tree, block, nstep)
    return found if block.structural_shape is None else _of_shape(tree, block, found)


def _without_index(tree: Tree, block: BlockSchema, nstep: int) -> Series:
    """A block that says nothing of its updates: it never had one, or what said so is gone."""
    gone = tree.is_gone(f"{block.name}/step_index")
    for column in block.columns:
        path = f"{block.name}/{column}"
        meta = tree.meta(path)
        gone |= meta is not None and meta.shape[:1] != (0,) and tree.is_ours(path)
    if gone:
        tree.log.add("missing-array", f"{ROOT}/{block.name}", "its columns have rows, and nothing says of which frames")
    return lost(nstep) if gone else absent(nstep)


def _regular(tree: Tree, block: BlockSchema, attributes: dict[str, object], nstep: int) -> Series:
    uniform, dense = attributes.get("uniform_rows"), attributes.get("dense_updates")
    columns = {name: tree.meta(f"{block.name}/{name}") for name in block.columns}
    lengths = {name: meta.shape[0] for name, meta in columns.items() if meta is not None and meta.shape}
    if not is_int(uniform, 1, 2**62) or dense is not True:
        message = f"uniform_rows is {uniform!r} and dense_updates {dense!r}; both or none"
        tree.log.add("regular", f"{ROOT}/{block.name}", message)
        return lost(nstep)
    if not lengths:
        return lost(nstep)
    # Where lengths are exact, a column that is shorter than another has lost rows; else these are not yet committed.
    exact = all(tree.is_exact(f"{block.name}/{name}") for name in lengths)
    n = min((max if exact else min)(lengths.values()) // uniform, nstep)
    first = np.arange(n) * uniform
    return Series(np.arange(n), first, first + uniform, np.zeros(nstep, np.bool_))


def _indexed(tree: Tree, name: str, nstep: int) -> Series:
    index = read_index(tree, f"{name}/step_index", nstep)
    if index is None:
        return lost(nstep)
    frames, unsure = index
    offset = _offsets(tree, name, len(frames))
    if offset is None:
        return lost(nstep)
    start, stop = offset[:-1], offset[1:]
    unknown = (start == UNKNOWN) | (stop == UNKNOWN)
    found = _known(frames, np.where(unknown, UNKNOWN, start), np.where(unknown, UNKNOWN, stop), unsure)
    for a, b in zip(found.frames[found.start == UNKNOWN], found.ends()[found.start == UNKNOWN], strict=True):
        unsure[a:b] = True
    return found


def _known(frames: Ints, start: Ints, stop: Ints, unsure: Flags) -> Series:
    at = np.flatnonzero(frames != UNKNOWN)
    return Series(frames[at], start[at], stop[at], unsure)


def _offsets(tree: Tree, name: str, n: int) -> Ints | None:
    """Where the rows of n updates begin and end, UNKNOWN where it is lost; None when it contradicts itself."""
    offset = np.full(n + 1, UNKNOWN, np.int64)
    stored = tree.array(f"{name}/offset", "u64", (), n + 1) if n else None
    if stored is not None:
        found = stored.read(0, stored.rows)
        known = _kept(stored.lost(), stored.rows)
        if (found[known] > 2**62).any():
            known[:] = False
        offset[: stored.rows] = np.where(known, found.astype(np.int64), UNKNOWN)
    there = offset[offset != UNKNOWN]
    if offset[0] not in (0, UNKNOWN) or (np.diff(there) < 0).any():
        tree.log.add("offset", f"{ROOT}/{name}/offset", "the offsets do not start at 0 and ascend")
        return None
    offset[0] = 0
    return offset


def _of_shape(tree: Tree, block: BlockSchema, found: Series) -> Series:
    """The same without the updates that do not have the rows of structural_shape."""
    assert block.structural_shape is not None
    rows = math.prod(block.structural_shape)
    wrong = (found.start != UNKNOWN) & (found.counts != rows)
    for a, b in zip(found.frames[wrong], found.ends()[wrong], strict=True):
        message = f"an update has not the {rows} rows of structural_shape {block.structural_shape}"
        tree.log.add("structural-shape", f"{ROOT}/{block.name}", message, frame=int(a))
        found.unsure[a:b] = True
    return found


# ---- the frames of updates ---------------------------------------------------------------------------------------


def read_index(tree: Tree, path: str, nstep: int) -> tuple[Ints, Flags] | None:
    """The frames of all updates, UNKNOWN where they are lost, and bool[nstep]: where such an update may begin.

    None when what is there contradicts itself, or nothing is.
    """
    meta = tree.meta(path)
    if meta is None or not meta.shape:
        return None
    n = min(meta.shape[0], nstep)  # no frame has two updates
    exact = tree.is_exact(path) and n == meta.shape[0]
    stored = tree.array(path, "u64", (), n)
    if stored is None:
        return None
    found = stored.read(0, n)
    known = _kept(stored.lost(), n)
    beyond = np.flatnonzero(known & (found >= nstep))
    if len(beyond):  # of frames that are not published, or of no frames at all
        n, exact = int(beyond[0]), False
    frames = np.where(known[:n], found[:n].astype(np.int64), UNKNOWN)
    if (np.diff(frames[known[:n]]) <= 0).any():
        tree.log.add("update-index", f"{ROOT}/{path}", "the frames of the updates do not ascend")
        return None
    unsure = np.zeros(nstep, np.bool_)
    return (frames, unsure) if all(_close(frames, unsure, gap, exact) for gap in _gaps(frames)) else None


def _close(frames: Ints, unsure: Flags, gap: tuple[int, int], exact: bool) -> bool:
    """Fill in updates [start, stop) that are lost where only one way is left, else note where they may be.

    False when there is no way. exact: the last of all updates is among `frames`.
    """
    start, stop = gap
    low = int(frames[start - 1]) if start else -1
    high = int(frames[stop]) if stop < len(frames) else len(unsure)
    bounded = exact or stop < len(frames)
    if bounded and high - low - 1 < stop - start:
        return False
    if bounded and high - low - 1 == stop - start:
        frames[start:stop] = np.arange(low + 1, high)
    else:
        unsure[low + 1 : high] = True
    return True


def _gaps(frames: Ints) -> list[tuple[int, int]]:
    """The stretches [start, stop) that are lost."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], frames == UNKNOWN, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]


def _kept(lost_rows: Iterable[tuple[int, int]], n: int) -> Flags:
    kept = np.ones(n, np.bool_)
    for start, stop in lost_rows:
        kept[start:stop] = False
    return kept

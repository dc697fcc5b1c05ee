# SPDX-License-Identifier: BSD-3-Clause
"""One state of a trajectory as it was opened, and the frames it holds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from mrec.box import Box
from mrec.errors import CorruptData, UnknownName
from mrec.frame import Block, Frame
from mrec.trajectory import forms
from mrec.trajectory.forms import Arrays, BlockForm, BoxForm
from mrec.trajectory.select import check_rows, masked
from mrec.trajectory.standing import Standing
from mrec.zarr.codecs import is_int
from mrec.zarr.json import parse
from mrec.zarr.metadata import parse_group
from mrec.zarr.store import Store

#: Bytes that iteration reads ahead at most (or one frame), and frames. More is slower: memory that was just given back,
#: and is still in the caches of the processor, serves again.
READ_AHEAD = 1 << 20
MOST_FRAMES = 1024


class State:
    """A standing state, checked and ready to be read; it never changes. Thread-safe."""

    def __init__(self, standing: Standing, store: Store, limit: int | None = None) -> None:
        self.standing = standing
        self.arrays = Arrays(standing, store)
        self.schema = standing.schema
        nstep = forms.count_frames(self.arrays)
        self.nstep = nstep if limit is None else min(nstep, limit)
        self.blocks = {name: BlockForm(self.arrays, block, self.nstep) for name, block in self.schema.blocks.items()}
        forms.check_aligned(self.schema, self.blocks)
        self.box = BoxForm(self.arrays, self.nstep)
        forms.check_steps(self.arrays, self.nstep)

    @cached_property
    def steps(self) -> np.ndarray:
        """i64[nstep], read-only."""
        computed = self._computed_steps(0, self.nstep)
        steps = forms.read_steps(self.arrays, self.nstep) if computed is None else computed
        steps.flags.writeable = False
        return steps

    @cached_property
    def times(self) -> np.ndarray | None:
        """f64[nstep], read-only, or None."""
        computed = self._computed_times(0, self.nstep)
        times = forms.read_times(self.arrays, self.nstep) if computed is None else computed
        if times is not None:
            times.flags.writeable = False
        return times

    def block(self, name: str) -> BlockForm:
        """A block's series; UnknownName when it is not declared."""
        try:
            return self.blocks[name]
        except (KeyError, TypeError):
            there = ", ".join(map(repr, self.blocks)) or "none"
            raise UnknownName(f"there is no block {name!r}; there are: {there}") from None

    def values(self, name: str, start: int, stop: int) -> np.ndarray:
        """The per-step values of the frames [start, stop); JSON documents as an array of objects."""
        try:
            tag = self.schema.values[name].tag
        except (KeyError, TypeError):
            there = ", ".join(map(repr, self.schema.values)) or "none"
            raise UnknownName(f"there is no per-step value {name!r}; there are: {there}") from None
        if start == stop:
            trailing = () if tag.width == 1 else (tag.width,)
            return np.empty((0, *trailing), object if tag.json else tag.dtype.numpy)
        found = self.arrays.source(f"meta/{name}").read(start, stop)
        if not tag.json:
            return found
        documents = np.empty(len(found), object)
        for i, text in enumerate(found.tolist()):
            documents[i] = parse(text, f"trajectory/meta/{name}, frame {start + i}")
        return documents

    # ---- frames --------------------------------------------------------------------------------------------------

    def batch(self, frame: int) -> int:
        """The end of the run of frames that is worth reading together with `frame`."""
        size = self._batch
        return min(self.nstep, (frame // size + 1) * size)

    @cached_property
    def _batch(self) -> int:
        """Frames read ahead: within the budget, and whole chunks of a regular block."""
        row_bytes = {name: _row_bytes(form) for name, form in self.blocks.items()}
        updates = max(self.nstep, 1)
        frame_bytes = sum(int(form.first_row(form.n)) * row_bytes[name] / updates for name, form in self.blocks.items())
        size = int(max(1, min(MOST_FRAMES, READ_AHEAD / max(frame_bytes, 1))))
        for name, form in self.blocks.items():
            if form.uniform and form.schema.columns:
                meta = self.standing.array(f"{name}/{next(iter(form.schema.columns))}")
                shard = meta.chain.shard if meta else None
                per_chunk = (shard.chunk_shape[0] if shard else 1) // form.uniform
                return size // per_chunk * per_chunk if 1 <= per_chunk <= size else size
        return size

    def frame(self, i: int) -> Frame:
        """One frame."""
        blocks = {name: found for name, form in self.blocks.items() if (found := _block(form, i)) is not None}
        if self._has_targets:
            self._check_targets({name: [blocks.get(name)] for name in self.blocks}, i)
        values = {name: self._python_values(name, i, i + 1)[0] for name in self.schema.values}
        return Frame._made(blocks, self._step(i), self._time(i), self._cell(i), values, i)

    def frames(self, start: int, stop: int) -> Iterator[Frame]:
        """The frames [start, stop), all of them read before the first is given."""
        n = stop - start
        steps, times = self._steps(start, stop).tolist(), self._times(start, stop)
        cells = self._cells(start, stop)
        blocks = [(name, _updates(form, start, stop)) for name, form in self.blocks.items()]
        values = [(name, self._python_values(name, start, stop)) for name in self.schema.values]
        if self._has_targets:
            self._check_targets(dict(blocks), start)

        def make(i: int) -> Frame:
            present = {name: found for name, series in blocks if (found := series[i]) is not None}
            given = {name: series[i] for name, series in values}
            return Frame._made(present, steps[i], times[i], cells[i], given, start + i)

        return map(make, range(n))

    @cached_property
    def _has_targets(self) -> bool:
        return any(form.schema.targets for form in self.blocks.values())

    def moment(self, i: int) -> tuple[int, float | None]:
        """The step and time of one frame, without those of the others."""
        if self._step_progression is None and "steps" not in self.__dict__:
            step = int(self.arrays.source("step").read(i, i + 1)[0])
        else:
            step = self._step(i)
        if self._time_progression is not None or "times" in self.__dict__:
            return step, self._time(i)
        stored = self.arrays.standing.array("time") is not None
        return step, float(self.arrays.source("time").read(i, i + 1)[0]) if stored else None

    def _step(self, i: int) -> int:
        found = self._step_progression
        return int(self.steps[i]) if found is None else int(found[0] + i * found[1])

    def _time(self, i: int) -> float | None:
        found = self._time_progression
        if found is not None:
            return float(found[0] + i * found[1] if i else found[0])
        return None if self.times is None else float(self.times[i])

    def _cell(self, i: int) -> Box | None:
        return self.box.fixed if self.box.n == 0 else self._cells(i, i + 1)[0]

    @cached_property
    def _step_progression(self) -> Any:
        attributes = self.standing.attributes
        found = forms.progression(attributes, "step_progression", self.nstep) if self.nstep else (0, 0)
        if found is not None:
            forms.check_ascending(found, self.nstep)
        return found

    @cached_property
    def _time_progression(self) -> Any:
        attributes = self.standing.attributes
        return forms.progression(attributes, "time_progression", self.nstep) if self.nstep else None

    def _computed_steps(self, start: int, stop: int) -> np.ndarray | None:
        """The steps of some frames, without those of all the others; None where they are stored."""
        found = self._step_progression
        return None if found is None else forms.progressing_steps(found, self.nstep, start, stop)

    def _computed_times(self, start: int, stop: int) -> np.ndarray | None:
        found = self._time_progression
        return None if found is None else forms.progressing_times(found, start, stop)

    def _steps(self, start: int, stop: int) -> np.ndarray:
        computed = self._computed_steps(start, stop)
        return self.steps[start:stop] if computed is None else computed

    def _times(self, start: int, stop: int) -> list[Any]:
        times = self._computed_times(start, stop)
        if times is None and self.times is not None:
            times = self.times[start:stop]
        return [None] * (stop - start) if times is None else times.tolist()

    def _check_targets(self, blocks: dict[str, list[Block | None]], start: int) -> None:
        """Refuse a row reference that names no row of its target in the same frame."""
        for name, form in self.blocks.items():
            for column, target in (form.schema.targets or {}).items():
                fixed = self._section_rows(target) if target.startswith("/") else None
                for i, block in enumerate(blocks[name]):
                    if block is None:
                        continue
                    other = blocks[target][i] if target in blocks else None
                    rows = fixed if fixed is not None else other.nrows if other is not None else 0
                    where = f"trajectory/{name}/{column}, frame {start + i}"
                    if column not in block:
                        raise CorruptData(f"{where}: it refers to rows of {target!r}, and is no column")
                    check_rows(block[column], rows, where, target, CorruptData)

    def _section_rows(self, target: str) -> int:
        """The rows of "/<section>/<block>"; 0 when there is no such block."""
        raw = None if target.startswith("/trajectory/") else self.arrays.store.get(f"{target[1:]}/zarr.json")
        count = parse_group(raw, target).attributes.get("count") if raw is not None else 0
        return count if is_int(count, 0, 2**63 - 1) else 0

    def _python_values(self, name: str, start: int, stop: int) -> list[Any]:
        found = self.values(name, start, stop)
        return found.tolist() if found.ndim == 1 else list(found)

    def _cells(self, start: int, stop: int) -> list[Box | None]:
        if self.box.fixed is not None or self.box.n == 0:
            return [self.box.fixed] * (stop - start)
        updates = np.searchsorted(self.box.step_index, np.arange(start, stop), side="right") - 1
        if updates[-1] < 0:
            return [None] * (stop - start)
        first = max(int(updates[0]), 0)
        cells = self.box.cells(first, int(updates[-1]) + 1)
        return [cells[u - first] if u >= 0 else None for u in updates.tolist()]


def _row_bytes(form: BlockForm) -> int:
    columns = form.schema.columns.values()
    return sum((column.dtype.itemsize or 64) * int(np.prod(column.trailing, dtype=object)) for column in columns)


def _read(form: BlockForm, row: int, end: int) -> list[tuple[str, np.ndarray, np.ndarray | None]]:
    """The rows [row, end) of each column, with their flags."""
    if end == row:
        columns = form.schema.columns.values()
        return [(c.name, np.empty((0, *c.trailing), c.dtype.numpy), None) for c in columns]
    return [
        (name, source.read(row, end), None if mask is None else mask.read(row, end))
        for name, source, mask in form.readers
    ]


def _block(form: BlockForm, frame: int) -> Block | None:
    """The block as a frame sees it."""
    update = form.update_at(frame)
    if update < 0:
        return None
    row, end = form.bounds(update, update)
    columns = {name: v if m is None else masked(v, m) for name, v, m in _read(form, row, end)}
    return Block._made(columns, end - row, form.schema.structural_shape, form.precision)


def _updates(form: BlockForm, start: int, stop: int) -> list[Block | None]:
    """The block as each of the frames [start, stop) sees it; no two share memory."""
    updates = form.updates_between(start, stop)
    if updates[-1] < 0:
        return [None] * (stop - start)
    first = max(updates[0], 0)
    bounds = form.bounds(first, updates[-1])
    row = bounds[0]
    columns = _read(form, row, bounds[-1])
    found: list[Block | None] = []
    previous = -1
    for update in updates:
        if update < 0:
            found.append(None)
            continue
        a, b = bounds[update - first] - row, bounds[update - first + 1] - row
        if update != previous:
            views = {name: v[a:b] if m is None else masked(v[a:b], m[a:b]) for name, v, m in columns}
        else:
            views = {name: v[a:b].copy() if m is None else masked(v[a:b].copy(), m[a:b]) for name, v, m in columns}
        found.append(Block._made(views, b - a, form.schema.structural_shape, form.precision))
        previous = update
    return found


def check_beside_system(state: State, system: Any) -> None:
    """Refuse a block whose `system` namesake has other rows or a column too that is not `id`.

    system: name -> (count, columns), for the blocks of the record's system section.
    """
    for name, form in state.blocks.items():
        if name not in system:
            continue
        count, columns = system[name]
        if form.n and (form.counts() != count).any():
            raise CorruptData(f"trajectory/{name}: an update has another number of rows than system/{name} ({count})")
        shared = (form.schema.columns.keys() & columns) - {"id"}
        if shared:
            raise CorruptData(f"column {min(shared)!r} stands in system/{name} and in trajectory/{name}")

# SPDX-License-Identifier: BSD-3-Clause
"""Every way to read a trajectory, compared with the frames that it should hold."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from mrec.errors import SchemaError
from mrec.frame import Frame
from mrec.testing.model import assert_same, assert_same_frame, value_bits
from mrec.trajectory.reader import Frames
from mrec.trajectory.schema import Column


def assert_reads(trajectory: Frames, frames: list[Frame]) -> None:
    """AssertionError unless the trajectory holds exactly these frames, bit for bit, by whatever route they are read.

    Routes: iteration, `[i]`, slices, `steps`, `times`, `index`, `read` (frames, rows, several columns), `read_ragged`,
    `values`.
    """
    n = len(frames)
    assert len(trajectory) == n, f"{len(trajectory)} frames, not {n}"
    _assert_numbering(trajectory, frames)
    _assert_all(trajectory, list(trajectory), frames, "iteration")
    for i in {0, n // 2, n - 1} & set(range(n)):
        for index in (i, i - n):
            assert_same_frame(trajectory.schema, trajectory[index], frames[i], f"[{index}]")
    for part in (slice(1, None, 2), slice(None, None, -1), slice(n // 3, -1)):
        view = trajectory[part]
        _assert_all(trajectory, list(view), frames[part], f"[{part}]")
        _assert_values(view, frames[part], f"[{part}]")
        _assert_blocks(view, frames[part], f"[{part}]")
    _assert_values(trajectory, frames, "all")
    _assert_blocks(trajectory, frames, "all")


def _assert_all(trajectory: Frames, got: list[Frame], want: list[Frame], where: str) -> None:
    assert len(got) == len(want), f"{where}: {len(got)} frames, not {len(want)}"
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        assert_same_frame(trajectory.schema, g, w, f"{where}, frame {i}")


def _assert_numbering(trajectory: Frames, frames: list[Frame]) -> None:
    steps = np.array([frame.step for frame in frames], np.int64)
    assert_same(trajectory.steps, steps, "steps")
    if frames and frames[0].time is not None:
        assert_same(trajectory.times, np.array([frame.time for frame in frames], np.float64), "times")
    elif frames:
        assert trajectory.times is None
    for i in range(0, len(frames), 3):
        assert trajectory.index(step=int(steps[i])) == i


def _assert_values(trajectory: Frames, frames: list[Frame], where: str) -> None:
    schema = trajectory.schema
    for name in schema.values:
        found = trajectory.values(name)
        assert len(found) == len(frames), f"{where}, values({name!r}): {len(found)} of them, not {len(frames)}"
        for i, (got, frame) in enumerate(zip(found.tolist(), frames, strict=True)):
            same = value_bits(schema, name, got) == value_bits(schema, name, frame.values[name])
            assert same, f"{where}, values({name!r}), frame {i}: {got!r}, not {frame.values[name]!r}"


# ---- blocks ------------------------------------------------------------------------------------------------------


def _assert_blocks(trajectory: Frames, frames: list[Frame], where: str) -> None:
    if not frames:
        return
    for name, block in trajectory.schema.blocks.items():
        for columns in _selections(list(block.columns.values())):
            at = f"{where}, {name}/{[column.name for column in columns]}"
            _assert_read(trajectory, frames, name, columns, at)
            _assert_ragged(trajectory, frames, name, columns, at)


def _selections(columns: list[Column]) -> list[list[Column]]:
    """Each column by itself, and two that fit into one array."""
    pairs = [[a, b] for a, b in combinations(columns, 2) if (a.dtype, a.trailing) == (b.dtype, b.trailing)]
    return [[column] for column in columns] + pairs[:1]


def _assert_read(trajectory: Frames, frames: list[Frame], name: str, columns: list[Column], where: str) -> None:
    rows = {frame[name].nrows if name in frame else None for frame in frames}
    names = [column.name for column in columns]
    if len(rows) > 1 or None in rows:
        try:
            trajectory.read(name, names)
        except SchemaError:
            return
        raise AssertionError(f"{where}: read as one array, of frames with {rows} rows")
    (count,) = rows
    want = np.ma.stack([_stacked(frame, name, columns) for frame in frames])
    assert_same(trajectory.read(name, names), want, f"{where}, read")
    assert_same(trajectory.read(name, names[0]), want[:, :, 0], f"{where}, read of one")
    assert_same(trajectory.read(name, names, frames=len(frames) - 1), want[-1], f"{where}, read of the last frame")
    some, odd = np.arange(0, len(frames), 2), np.arange(count or 0)[::-1][::2]
    if len(odd):
        assert_same(trajectory.read(name, names, frames=some, rows=odd), want[some][:, odd], f"{where}, read of rows")


def _assert_ragged(trajectory: Frames, frames: list[Frame], name: str, columns: list[Column], where: str) -> None:
    got, offsets = trajectory.read_ragged(name, [column.name for column in columns])
    parts = [_stacked(frame, name, columns) for frame in frames if name in frame]
    counts = [frame[name].nrows if name in frame else 0 for frame in frames]
    assert_same(offsets, np.cumsum([0, *counts], dtype=np.int64), f"{where}, offsets")
    want = np.ma.concatenate([_empty(columns), *parts])
    assert_same(got, want, f"{where}, read_ragged")


def _stacked(frame: Frame, name: str, columns: list[Column]) -> Any:
    return np.ma.stack([frame[name][column.name] for column in columns], axis=1)


def _empty(columns: list[Column]) -> Any:
    dtype = np.dtype(object) if columns[0].dtype.name == "string" else columns[0].dtype.numpy
    return np.empty((0, len(columns), *columns[0].trailing), dtype)

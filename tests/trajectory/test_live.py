# SPDX-License-Identifier: BSD-3-Clause
"""Readers of a record that is being written."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import mrec

ROWS = 8


def values(i: int) -> np.ndarray:
    return np.arange(ROWS) + 100.0 * i


def append(writer: mrec.TrajectoryWriter, start: int, stop: int, every: bool = True) -> None:
    for i in range(start, stop):
        writer.append(i, atoms={"x": values(i)})
        if every:
            writer.flush(durable=False)


def test_open_chunk_is_not_taken_for_the_next_one(tmp_path: Path) -> None:
    """The slot of an open chunk is used again for the next chunk: what a reader knew of the index is then wrong."""
    schema = mrec.Schema().block("atoms", rows=ROWS).column("x", "f64")
    for seen in range(5, 8):  # frames in the second chunk, so that each slot is met
        with mrec.TrajectoryWriter(tmp_path / f"{seen}.mrec", schema, frames_per_chunk=4, durable_every=None) as writer:
            append(writer, 0, seen)
            trajectory = mrec.open(writer.path).trajectory
            assert trajectory[0]["atoms"]["x"].tolist() == values(0).tolist()  # the index is known from here on
            for more in range(seen, 14):
                append(writer, more, more + 1)
                again = mrec.open(writer.path).trajectory
                for i in range(4):
                    assert again[i]["atoms"]["x"].tolist() == values(i).tolist()
            for i in range(seen):
                assert trajectory[i]["atoms"]["x"].tolist() == values(i).tolist(), (seen, i)

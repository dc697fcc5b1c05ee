# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are a chunk go out without a copy, and of an update that can be read back only the beginning is kept;
still, what did not change is no update."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import arrays

#: What the next frame is to the one before.
STEPS = ["the same", "the same", "its end differs", "its end differs", "all differs", "all differs", "other rows"]


def schema(rows: int, kind: str) -> mrec.Schema:
    made = mrec.Schema().block("atoms", rows=rows).column("x", "f64", precision=0.5 if kind == "rounded" else None)
    made.column("n", "i64", nullable=kind == "nullable").column("v", "c64", trailing=(2,))
    return made.column("name", "string") if kind == "named" else made


def block(rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    n = rng.integers(0, 1 << 40, rows)
    return {
        "x": np.round(rng.normal(size=rows) * 8) / 2,
        "n": n,
        "v": rng.normal(size=(rows, 4)).astype("f4").view("c8"),
    }


def following(step: str, before: dict[str, np.ndarray], rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    if step == "the same" and before:
        return {name: array.copy() for name, array in before.items()}
    if step == "its end differs" and before and len(before["x"]) > 10:
        after = {name: array.copy() for name, array in before.items()}
        one = after[rng.choice(list(after))]
        one[-1 - int(rng.integers(5))] += 1
        return after
    return block(int(rng.integers(rows)) if step == "other rows" else rows, rng)


KINDS = ["plain", "rounded", "nullable", "named"]


@pytest.mark.parametrize("rows", [1500, 50_000])
@pytest.mark.parametrize("seed", range(16))
def test_any_turn(rows: int, seed: int, tmp_path: Path) -> None:
    rng, choose, kind = np.random.default_rng(seed), random.Random(seed), KINDS[seed // 2 % 4]
    threads = 1 if seed < 8 else 3
    path, frames, updates, last = tmp_path / "a.mrec", [], 0, {}
    options = {"frames_per_chunk": 1, "chunks_per_shard": choose.choice([2, 5, 100])}
    w = mrec.TrajectoryWriter(path, schema(rows, kind), flush_every=7, threads=threads, **options)
    steps = STEPS if seed % 2 else STEPS[:-1]
    for _ in range(30 if rows < 10_000 else 12):
        now = following(choose.choice(steps), last, rows, rng)
        updates += not last or any(now[name].tobytes() != last[name].tobytes() for name in now)
        given = {name: array.copy() for name, array in now.items()}
        if kind == "named":
            given["name"] = np.full(len(given["x"]), "one")
        w.append(None, atoms=given)
        for array in given.values():  # taken is taken
            array[:] = 0 if array.dtype.kind != "U" else ""
        last = now
        frames.append(now)
        if choose.random() < 0.1:
            w.flush(durable=choose.random() < 0.5)
        if choose.random() < 0.1:
            w.close()
            w = mrec.TrajectoryWriter.open(path, flush_every=7, threads=threads)
    w.close()
    there = mrec.open(path).trajectory
    assert len(there) == len(frames)
    for i, frame in enumerate(frames):
        for name, array in frame.items():
            assert there[i]["atoms"][name].tobytes() == array.tobytes(), (i, name)
    stored = arrays(path)
    if seed % 2 == 0:  # all frames of the same rows
        assert stored["atoms/x"].shape[0] == updates * rows
    assert mrec.verify(path).ok


def test_strides_and_types_that_are_copied(tmp_path: Path) -> None:
    """Rows that are no run, or have to be converted, beside those that are taken as they stand."""
    rows, xyz = 2048, np.random.default_rng(0).normal(size=(20, 2048, 3))
    schema = mrec.Schema().block("atoms", rows=rows)
    for name in "xyz":
        schema.column(name, "f64")
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", schema) as w:
        for i, frame in enumerate(xyz):
            x, y, z = frame.T
            if i % 2:
                x, y, z = x.copy(), y.astype("f4"), z.astype(">f8")
            w.append(None, atoms={"x": x, "y": y, "z": z})
    there = mrec.open(tmp_path / "a.mrec").trajectory.read("atoms", ["x", "y", "z"])
    xyz[1::2, :, 1] = xyz[1::2, :, 1].astype("f4")
    assert (there == xyz).all()

# SPDX-License-Identifier: BSD-3-Clause
"""Any frames, in any turn of calls, leave the arrays that the rules ask for (tests/interop/model.py works them out)."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mrec
from tests.interop.compare import assert_frames, assert_same
from tests.interop.model import NUMPY, Cell, Column, Frame, Record, Value
from tests.interop.records import random_column
from tests.trajectory.ondisk import arrays

BLOCKS = {
    "atoms": {
        "x": Column("f64", precision=0.25),
        "n": Column("i16", nullable=True),
        "s": Column("string", nullable=True),
        "v": Column("c64", (2,)),
    },
    "bonds": {"i": Column("u64")},
}
VALUES = {"pe": Value("f64"), "f": Value("i32x3", (1, -2, 3)), "j": Value("json", None), "t": Value("string", "é")}
CELLS = [
    Cell(np.diag([3.0, 4.0, 5.0])),
    Cell(np.array([[3.0, 1.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 5.0]])),
    Cell(np.diag([3.0, 4.0, 5.0]), (0.0, 1.0, 0.0)),
    Cell(np.diag([3.0, 4.0, 5.0]), periodic=(True, False, True)),
]
BETWEEN = ["go on", "flush", "flush, not synced", "close and reopen", "crash and reopen", "cut back"]


def columns(block: str, seed: int, rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {}
    for name, column in BLOCKS[block].items():
        data = random_column(rng, column, rows)
        if column.nullable:
            data = np.ma.array(data, mask=rng.random(rows) < 0.3 * (seed % 3))
            data.data[np.ma.getmaskarray(data)] = "" if column.dtype == "string" else 0
        found[name] = data
    return found


@st.composite
def frames(draw, steady: bool) -> list[Frame]:
    """steady: the kind of frames that keep the short forms long, which the other kind loses at once."""
    n = draw(st.integers(1, 8))
    rows = draw(st.integers(1, 7))
    found, step = [], draw(st.integers(-5, 5))
    timed = draw(st.booleans())
    for i in range(n):
        odd = i == n - 1 or not steady
        blocks = {}
        for name in BLOCKS:
            if not odd or draw(st.integers(0, 3)):
                count = draw(st.sampled_from([0, 1, rows, rows, 9])) if odd else rows
                seed = draw(st.integers(0, 3)) if odd else i
                blocks[name] = columns(name, seed, count)
        cell = draw(st.sampled_from([None, *CELLS])) if odd else CELLS[0]
        values = {"pe": draw(st.sampled_from([0.0, -0.0, 1.5]))}
        if draw(st.booleans()):
            values |= {"f": (i, 0, -i), "j": {"i": i}, "t": "x" * i}
        time = None if not timed else 0.1 * i if not odd else draw(st.sampled_from([0.1 * i, np.nan, -0.0, 7.0]))
        found.append(Frame(step, time, blocks, cell, values))
        step += draw(st.sampled_from([1, 2, 2**40])) if odd else 5
    return found


def schema() -> mrec.Schema:
    declared = mrec.Schema()
    for block, declared_columns in BLOCKS.items():
        declared.block(block, rows=4)
        for name, c in declared_columns.items():
            declared.column(name, c.dtype, trailing=c.trailing, precision=c.precision, nullable=c.nullable)
    for name, value in VALUES.items():
        declared.value(name, value.tag, **({} if value.fill is ... else {"fill": value.fill}))
    return declared


class Run:
    """A writer, and those that go on in its place."""

    def __init__(self, path: Path, **options) -> None:
        self.path = path
        self.writer = mrec.TrajectoryWriter(path, schema(), durable=False, **options)

    def append(self, frame: Frame) -> None:
        c = frame.cell
        box = c and mrec.Box.from_columns(c.vectors, origin=c.origin, periodic=c.periodic)
        self.writer.append(frame.step, time=frame.time, box=box, blocks=frame.blocks, values=frame.values)

    def turn(self, what: str, next_frame: Frame) -> None:
        if what == "flush":
            self.writer.flush()
        elif what == "flush, not synced":
            self.writer.flush(durable=False)
        elif what == "close and reopen":
            self.writer.close()
            self.writer = mrec.TrajectoryWriter.open(self.path, durable=False)
        elif what == "crash and reopen":
            self.writer.flush(durable=False)
            self.crash()
            self.writer = mrec.TrajectoryWriter.open(self.path, durable=False)
        elif what == "cut back":
            position = self.writer.position
            self.append(next_frame)
            self.writer.flush()
            self.crash()
            self.writer = mrec.TrajectoryWriter.open(self.path, at=position, durable=False)

    def crash(self) -> None:
        with pytest.warns(ResourceWarning):
            self.writer = None
            gc.collect()


def read(path: Path) -> list[Frame]:
    with mrec.open(path) as opened:
        return [
            Frame(
                f.step,
                f.time,
                {name: dict(f[name]) for name in f},
                f.box and Cell(f.box.vectors, tuple(f.box.origin), tuple(f.box.periodic)),
                dict(f.values),
            )
            for f in opened.trajectory
        ]


def check(path: Path, record: Record, same_forms: bool) -> None:
    assert_frames(read(path), record.resolved(), "mrec")
    if not same_forms:  # a form that was left for a frame that is cut does not come back
        return
    want = record.arrays()
    got = {name: data for name, data in arrays(path).items() if len(data) or name in want}
    assert got.keys() == want.keys()
    for name, data in want.items():
        assert_same(got[name], data, name)


@pytest.mark.parametrize("steady", [True, False], ids=["steady", "any"])
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_frames_in_any_turn(tmp_path_factory, steady, data):
    given = data.draw(frames(steady))
    path = tmp_path_factory.mktemp("any") / "a.mrec"
    options = {"chunks_per_shard": data.draw(st.sampled_from([1, 2, 100])), "frames_per_chunk": 1}
    options["compression"] = data.draw(st.sampled_from([None, "gzip", "shuffle+zstd"]))
    run = Run(path, **options)
    try:
        turns = []
        for i, frame in enumerate(given):
            turns.append(data.draw(st.sampled_from(BETWEEN)))
            run.turn(turns[-1], frame)
            assert run.writer.nframes == i
            run.append(frame)
    finally:
        if run.writer is not None:
            run.writer.close()
    check(path, Record("any", BLOCKS, given, VALUES), "cut back" not in turns)


def test_the_model_tells_null_rows_and_types_apart():
    """The comparison itself can fail."""
    one, other = columns("atoms", 1, 50), columns("atoms", 2, 50)
    assert np.ma.getmaskarray(one["n"]).any()
    with pytest.raises(AssertionError):
        assert_frames(
            [Frame(0, None, {"atoms": one}, None, {"pe": 0.0})],
            [Frame(0, None, {"atoms": other}, None, {"pe": 0.0})],
            "",
        )
    with pytest.raises(AssertionError):
        assert_same(one["v"].astype("c16"), one["v"], "")
    assert one["s"].dtype == NUMPY["string"]

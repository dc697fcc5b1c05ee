# SPDX-License-Identifier: BSD-3-Clause
"""append_many leaves the same bytes as append frame by frame, and is refused whole or taken whole."""

from __future__ import annotations

import numpy as np
import pytest

import mrec
from mrec.errors import InvalidValue, MrecError, SchemaError, UnknownName
from tests.trajectory.ondisk import arrays, attributes, frames, tree, write

F, N = 9, 5
rng = np.random.default_rng(3)


def schema():
    declared = mrec.Schema().block("atoms", rows=N)
    for name, dtype, trailing, precision in COLUMNS:
        declared.column(name, dtype, trailing=trailing, precision=precision, nullable=name.startswith("null"))
    declared.block("bonds").column("i", "u64")
    declared.block("none")
    declared.value("pe", "f64").value("vir", "f64x9", fill=[0] * 9).value("tag", "string", fill="")
    return (
        declared.value("doc", "json", fill=None).value("img", "i64x3", fill=[1, 2, 3]).value("ok", "bool", fill=False)
    )


COLUMNS = [
    ("x", "f64", (), 1e-3),
    ("y", "f64", (), None),
    ("n", "i16", (), None),
    ("c", "c64", (2,), None),
    ("flag", "bool", (), None),
    ("s", "string", (), None),
    ("t", "string", (2,), None),
    ("null", "i32", (), None),
    ("null_s", "string", (), None),
    ("null_v", "f64", (3,), None),
]


def atoms():
    strings = np.array(["", "a", "é水", "x" * 40], object)
    null = rng.random((F, N)) < 0.4
    return {
        "x": rng.normal(size=(F, N)),
        "y": rng.normal(size=(F, N)).astype("f4"),
        "n": rng.integers(-9, 9, (F, N)).astype(">i2"),
        "c": (rng.normal(size=(F, N, 2)) + 1j).astype("c8"),
        "flag": rng.random((F, N)) < 0.5,
        "s": strings[rng.integers(0, 4, (F, N))],
        "t": strings[rng.integers(0, 4, (F, N, 2))],
        "null": np.ma.array(rng.integers(0, 9, (F, N)), mask=null, dtype="i4"),
        "null_s": np.ma.array(strings[rng.integers(0, 4, (F, N))], mask=null),
        "null_v": np.ma.array(rng.normal(size=(F, N, 3)), mask=np.repeat(null[..., None], 3, -1)),
    }


def strided(data):
    """The same values behind other strides: frames last, or every other element, or backwards."""
    kinds = [
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        lambda a: a[::-1].copy()[::-1],
        lambda a: np.moveaxis(np.moveaxis(a, 0, 1).copy(), 1, 0),
        lambda a: a[:, ::-1].copy()[:, ::-1],
    ]
    return {
        name: a if isinstance(a, np.ma.MaskedArray) else kinds[i % len(kinds)](a)
        for i, (name, a) in enumerate(data.items())
    }


VALUES = {
    "pe": np.arange(F) / 3,
    "vir": rng.normal(size=(F, 3, 3)),
    "tag": ["", "é", "x" * 50] * 3,
    "doc": [{"a": i} for i in range(F)],
    "img": np.arange(3 * F).reshape(F, 3)[:, ::-1],
    "ok": [True, False, True] * 3,
}
BOXES = [mrec.Box.from_lengths(1, 1, 1 + i // 3, origin=(0, 0, i // 5)) for i in range(F)]
CASES = {
    "everything": ({"atoms": atoms(), "bonds": {"i": np.arange(F * 2).reshape(F, 2)}}, VALUES, BOXES),
    "strided": ({"atoms": strided(atoms())}, {**VALUES, "vir": VALUES["vir"].transpose(0, 2, 1)}, None),
    "a block carried forward": ({"bonds": {"i": np.zeros((F, 3), "u8")}}, {"pe": VALUES["pe"]}, BOXES[0]),
    "no rows": ({"bonds": {"i": np.zeros((F, 0), "u8")}}, {"pe": VALUES["pe"][::-1]}, None),
    "nothing but values": ({}, VALUES, None),
}


@pytest.mark.parametrize("start", [0, 2], ids=["at once", "after others"])
@pytest.mark.parametrize("case", CASES)
def test_the_same_as_frame_by_frame(tmp_path, case, start):
    blocks, values, boxes = CASES[case]
    steps, times = 10 + np.arange(F) ** 2, 0.1 * np.arange(F)
    for name in ("one", "many"):
        with write(tmp_path / name, schema(), chunks_per_shard=2, frames_per_chunk=2, flush_every=4) as w:
            for i in range(start):
                w.append(i, time=float(i), atoms={n: a[i] for n, a in CASES["everything"][0]["atoms"].items()}, pe=1.0)
            if name == "many":
                w.append_many(steps, times=times, box=boxes, blocks=blocks, values=values)
                continue
            for i in range(F):
                w.append(
                    steps[i],
                    time=times[i],
                    box=boxes[i] if isinstance(boxes, list) else boxes,
                    blocks={b: {n: a[i] for n, a in data.items()} for b, data in blocks.items()},
                    values={n: v[i] for n, v in values.items()},
                )
    assert frames(tmp_path / "one") == frames(tmp_path / "many")
    assert attributes(tmp_path / "one") == attributes(tmp_path / "many")
    one, many = arrays(tmp_path / "one"), arrays(tmp_path / "many")
    assert one.keys() == many.keys()
    assert tree(tmp_path / "one") == tree(tmp_path / "many")


def test_positions_as_one_array(tmp_path):
    positions = rng.normal(size=(F, N, 3))
    declared = mrec.Schema().block("atoms").column("x", "f64").column("y", "f64").column("z", "f64")
    with write(tmp_path / "a", declared) as w:
        w.append_many(range(F), atoms={("x", "y", "z"): positions})
    found = arrays(tmp_path / "a")
    assert np.stack([found[f"atoms/{k}"] for k in "xyz"], -1).tobytes() == positions.reshape(-1, 3).tobytes()


@pytest.mark.parametrize(
    "box", [(4, 5, 6), [4, 5, 6, 90, 90, 90], np.tile([4.0, 5, 6], (2, 1)), [(4, 5, 6), mrec.Box.from_lengths(4, 5, 6)]]
)
def test_cells(tmp_path, box):
    with write(tmp_path / "a", mrec.Schema()) as w:
        w.append_many([0, 1], box=box)
    assert attributes(tmp_path / "a", "box") == {"vectors": np.diag([4.0, 5, 6]).tolist()}


def test_no_frames_at_all(tmp_path):
    with write(tmp_path / "a", schema()) as w:
        w.append_many([], times=[], blocks={"atoms": {n: a[:0] for n, a in atoms().items()}}, pe=[])
        w.append_many(np.arange(0), pe=np.empty(0), box=[])
        assert w.nframes == 0
        w.append(0, pe=1.0)
    assert attributes(tmp_path / "a")["nstep"] == 1


def test_a_block_without_columns(tmp_path):
    with write(tmp_path / "a", schema()) as w:
        w.append_many([0, 1], blocks={"none": mrec.Block(nrows=4)}, pe=[1.0, 2.0])
    assert [f["none"].nrows for f in frames(tmp_path / "a")] == [4, 4]


GOOD = {"q": np.zeros((3, 1)), "s": [["a"]] * 3}
BAD = {
    "steps that fall": (InvalidValue, {"steps": [5, 7, 6]}, "6 after 7"),
    "steps not above the last": (InvalidValue, {"steps": [3, 4, 5]}, "not above the last step, 3"),
    "steps that are no numbers": (InvalidValue, {"steps": [5.0, 6.0, 7.0]}, "whole number"),
    "a step that is masked": (InvalidValue, {"steps": np.ma.array([5, 6, 7], mask=[0, 1, 0])}, "steps.*masked"),
    "a time that is masked": (InvalidValue, {"times": np.ma.array([0.5, 0.6, 0.7], mask=[0, 1, 0])}, "times.*masked"),
    "blocks that are none": (InvalidValue, {"blocks": [GOOD]}, "blocks is a mapping by name, not list"),
    "values that are none": (InvalidValue, {"values": 3}, "values is a mapping by name, not int"),
    "a text for values": (
        SchemaError,
        {"values": {"pe": [1, 2, 3], "js": "abc"}},
        "'js' is json.*each of the 3 frames",
    ),
    "keys for values": (SchemaError, {"values": {"pe": [1, 2, 3], "js": {"a": 1, "b": 2, "c": 3}}}, "'js'.*not dict"),
    "nothing for values": (SchemaError, {"values": {"pe": [1, 2, 3], "js": None}}, "'js'.*not NoneType"),
    "one value of many": (SchemaError, {"values": {"pe": [1.0, "2", 3.0]}}, "'pe'.*'2'.*frame 1 of the call"),
    "a cell beyond f64": (SchemaError, {"box": [(1, 1, 10**400)] * 3}, "no cell"),
    "times dropped": (InvalidValue, {"times": None}, "pass times="),
    "too few times": (InvalidValue, {"times": [1.0]}, "one number a frame"),
    "times that would change": (InvalidValue, {"times": np.array([1, 2, 2**53 + 1])}, "9007199254740993"),
    "an unknown block": (UnknownName, {"blocks": {"atom": {}}}, "is it 'b'|no block 'atom'"),
    "an unknown value": (UnknownName, {"values": {"pee": [1, 2, 3]}}, "is it 'pe'"),
    "a value left out": (SchemaError, {"values": {}}, "'pe'.*without a fill"),
    "too few values": (SchemaError, {"values": {"pe": [1.0, 2.0]}}, "'pe'.*3 frames"),
    "an inexact value": (SchemaError, {"values": {"pe": [1, 2, 2**53 + 1]}}, "9007199254740993"),
    "a missing column": (SchemaError, {"blocks": {"b": {"q": np.zeros((3, 2))}}}, "'b'.*missing: 's'"),
    "rows that differ": (SchemaError, {"blocks": {"b": {"q": np.zeros((3, 2)), "s": [["a"]] * 3}}}, "'b'.*'s'"),
    "no frame axis": (SchemaError, {"blocks": {"b": {"q": np.zeros(3), "s": ["a"] * 3}}}, r"'b'.*'q'.*\(3, rows"),
    "a string that is none": (
        SchemaError,
        {"blocks": {"b": {"q": np.zeros((3, 1)), "s": [["a"], ["b"], [5]]}}},
        "'s'.*5",
    ),
    "a surrogate": (
        SchemaError,
        {"blocks": {"b": {"q": np.zeros((3, 1)), "s": [["a"], ["b"], ["\ud800"]]}}},
        "surrogate",
    ),
    "a bare cell": (SchemaError, {"box": np.tile(np.eye(3), (3, 1, 1))}, "from_rows"),
    "too few cells": (InvalidValue, {"box": [(1, 2, 3)] * 2}, "2 cells for 3 frames"),
    "cells of two kinds": (SchemaError, {"box": [(1, 1, 1), (1, 1, 1), mrec.Box.undefined()]}, "frame 3.*undefined"),
    "a cell of the other kind": (SchemaError, {"box": mrec.Box.undefined()}, "frame 1.*undefined"),
    "an infinite cell": (
        InvalidValue,
        {"box": [(1, 1, 1), mrec.Box.from_rows(np.diag([1, 1, np.inf])), (1, 1, 1)]},
        "frame 2.*not finite",
    ),
    "a name for two things": (InvalidValue, {"named": {"two": [1, 2, 3]}}, "values="),
    "a block given twice": (InvalidValue, {"blocks": {"b": GOOD}, "named": {"b": GOOD}}, "given twice"),
    "a value given twice": (InvalidValue, {"named": {"pe": [1.0, 2.0, 3.0]}}, "'pe' is given twice"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_whole(tmp_path, case):
    kind, bad, says = BAD[case]
    declared = mrec.Schema().block("b").column("q", "f64").column("s", "string").block("two").value("pe", "f64")
    declared.value("two", "i64", fill=0).value("js", "json", fill=None)
    given = {"steps": [5, 6, 7], "times": [0.5, 0.6, 0.7], "values": {"pe": [1.0, 2.0, 3.0]}} | bad
    named = given.pop("named", {})
    trees = []
    for refused in (True, False):
        path = tmp_path / str(refused)
        w = write(path, declared)
        w.append(3, time=0.0, pe=1.0, box=(1, 1, 1), b={"q": [1.0], "s": ["a"]})
        if refused:
            with pytest.raises(kind, match=says) as caught:
                w.append_many(given.pop("steps"), **given, **named)
            assert isinstance(caught.value, MrecError)
            assert w.nframes == 1
        w.append_many([5, 6, 7], times=[0.5, 0.6, 0.7], pe=[1.0, 2.0, 3.0])
        w.close()
        trees.append(tree(path))
    assert trees[0] == trees[1]


def values_only(path):
    return mrec.TrajectoryWriter(path, mrec.Schema().value("x", "f64").value("n", "i64", fill=0).value("v", "f64x3"))


@pytest.mark.parametrize("dtype", ["f2", ">f2", "f4", ">f4", ">f8"])
def test_narrow_values_are_widened(tmp_path, dtype):
    x, v = np.array([0.5, 3], dtype), np.array([[1, 2, 3], [4, 5, 6.5]], dtype)
    with values_only(tmp_path / "x.mrec") as w:
        w.append_many([0, 1], x=x, v=v)
    trajectory = mrec.open(tmp_path / "x.mrec").trajectory
    assert trajectory.values("x").tolist() == [0.5, 3.0] and trajectory.values("v").tolist() == v.tolist()


@pytest.mark.parametrize(
    "given",
    [
        {"x": [2**53 + 1, 0.5]},
        {"x": [True, 1.0]},
        {"x": [0.0, 1.0], "n": [True, 2]},
        {"x": [0.0, 1.0], "times": [2**53 + 1, 0.5]},
        {"x": [0.0, 1.0], "times": np.longdouble([1, 2]) / 3},
    ],
)
def test_a_list_is_as_exact_as_its_elements_one_by_one(tmp_path, given):
    with values_only(tmp_path / "x.mrec") as w:
        with pytest.raises(MrecError):
            w.append_many([0, 1], v=np.zeros((2, 3)), **given)
        assert w.nframes == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_masks_of_any_order_go_to_their_rows(order, tmp_path):
    mask = np.zeros((5, 3), bool, order=order)
    mask[0, 1] = mask[2, 0] = mask[4, 2] = True
    q = np.ma.MaskedArray(np.arange(15.0).reshape(5, 3).copy(order), mask=mask)
    schema = mrec.Schema().block("a", rows=3).column("q", "f64", nullable=True)
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", schema) as w:
        w.append_many(range(5), a={"q": q})
    there = mrec.open(tmp_path / "a.mrec").trajectory.read("a", "q")
    assert np.ma.getmaskarray(there).tolist() == mask.tolist()
    assert there.tolist() == q.tolist()

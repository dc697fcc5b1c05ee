# SPDX-License-Identifier: BSD-3-Clause
"""Per-step values: all sixteen tags, given and filled."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import array, assert_bits, attributes, document, frames, write

VALUES = {
    "bool": [True, False, True],
    "i32": [-(2**31), 2**31 - 1, 0],
    "i64": [-(2**63), 2**63 - 1, 0],
    "u32": [0, 2**32 - 1, 5],
    "u64": [0, 2**64 - 1, 5],
    "f64": [-0.0, 5e-324, math.nan],
    "string": ["", "naïve \x00 水\x00", "x" * 3000],
    "json": [None, {"a": [1, 2.5, "é"], "b": {}}, [[], True, "\u2028"]],
    "bool3": [[True, False, True], [False] * 3, [True] * 3],
    "i32x3": [[-(2**31), 0, 2**31 - 1], [1, 2, 3], [0, 0, 0]],
    "i64x3": [[-(2**63), 0, 2**63 - 1], [1, 2, 3], [0, 0, 0]],
    "u32x3": [[0, 1, 2**32 - 1], [1, 2, 3], [0, 0, 0]],
    "u64x3": [[0, 1, 2**64 - 1], [1, 2, 3], [0, 0, 0]],
    "f64x3": [[-0.0, math.inf, 1e-310], [1.0, 2.0, 3.0], [0.1, 0.2, 0.3]],
    "f64x6": [[i / 7 for i in range(6)], [0.0] * 6, [-1.5] * 6],
    "f64x9": [[i / 7 for i in range(9)], [0.0] * 9, [-1.5] * 9],
}
ZARR = {"bool": "bool", "i32": "int32", "i64": "int64", "u32": "uint32", "u64": "uint64", "f64": "float64"}


def zarr_type(tag):
    return "string" if tag in ("string", "json") else ZARR["bool" if tag == "bool3" else tag.split("x")[0]]


def stored(tag, values):
    """As the array has to be."""
    if tag in ("string", "json"):
        return np.array(values, object)
    return np.array(values, zarr_type(tag))


def test_there_are_sixteen():
    assert len(VALUES) == 16


@pytest.mark.parametrize("tag", VALUES)
def test_every_tag(tmp_path, tag):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().value("v", tag)) as w:
        for i, value in enumerate(VALUES[tag]):
            w.append(i, v=value)
    found = document(path, "meta/v")
    assert found["data_type"] == zarr_type(tag)
    assert found["attributes"] == {"meta_dtype": tag}
    assert attributes(path)["sequence_schema"]["meta"] == {"v": {"dtype": tag}}
    raw = array(path, "meta/v")
    if tag == "json":
        compact = [json.dumps(v, separators=(",", ":"), ensure_ascii=False) for v in VALUES[tag]]
        assert raw.tolist() == compact
    else:
        assert_bits(raw, stored(tag, VALUES[tag]))
    for frame, value in zip(frames(path), VALUES[tag], strict=True):
        got = frame.values["v"]
        if tag == "json":
            assert got == value
        else:
            assert_bits(stored(tag, [got]), stored(tag, [value]))


FILLS = VALUES | {"f64": [math.nan, -math.inf, -0.0], "f64x3": [[math.nan, -0.0, 0.1], [0.0] * 3, [1.0] * 3]}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("tag", FILLS)
def test_a_frame_that_omits_a_value_takes_the_fill(tmp_path, tag, number):
    path = tmp_path / "a.mrec"
    fill, given = FILLS[tag][number], FILLS[tag][2]
    with write(path, mrec.Schema().value("v", tag, fill=fill)) as w:
        w.append(0)
        w.append(1, v=given)
        w.append(2, values={})
    raw = array(path, "meta/v")
    if tag == "json":
        assert [json.loads(text) for text in raw.tolist()] == [fill, given, fill]
    else:
        assert_bits(raw, stored(tag, [fill, given, fill]))
    assert "fill" in attributes(path)["sequence_schema"]["meta"]["v"]
    again = mrec.TrajectoryWriter.open(path, durable=False)
    again.append(3)
    again.close()
    assert_bits(array(path, "meta/v"), np.concatenate([raw, raw[:1]]))


def test_the_fill_stands_in_typed_json(tmp_path):
    path = tmp_path / "a.mrec"
    schema = mrec.Schema().value("nan", "f64", fill=math.nan).value("inf", "f64x3", fill=[1, -math.inf, 2.5])
    schema.value("big", "u64", fill=2**64 - 1).value("small", "i64", fill=-5).value("null", "json", fill=None)
    write(path, schema).close()
    meta = attributes(path)["sequence_schema"]["meta"]
    assert meta["nan"]["fill"] == "NaN"
    assert meta["inf"]["fill"] == [1.0, "-Infinity", 2.5]
    assert meta["big"]["fill"] == "18446744073709551615"
    assert meta["small"]["fill"] == -5
    assert "fill" in meta["null"] and meta["null"]["fill"] is None


@pytest.mark.parametrize(
    ("tag", "given", "want"),
    [
        ("f64", 3, 3.0),
        ("f64", np.float32(0.1), float(np.float32(0.1))),
        ("f64", np.array(2.5), 2.5),
        ("i32", np.int64(-7), -7),
        ("bool", np.bool_(True), True),
        ("f64x9", np.arange(9).reshape(3, 3), list(range(9))),
        ("i64x3", np.array([1, 2, 3], "u1"), [1, 2, 3]),
        ("json", np.float64(1.5), "1.5"),
    ],
)
def test_values_that_are_exact_are_taken(tmp_path, tag, given, want):
    with write(tmp_path / "a.mrec", mrec.Schema().value("v", tag)) as w:
        w.append(0, v=given)
    assert array(tmp_path / "a.mrec", "meta/v").tolist() == [want]


def test_a_block_and_a_value_of_the_same_name(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().block("n").column("q", "f64").value("n", "i64")) as w:
        w.append(0, blocks={"n": {"q": [1.0]}}, values={"n": 5})
    assert array(path, "n/q").tolist() == [1.0]
    assert array(path, "meta/n").tolist() == [5]

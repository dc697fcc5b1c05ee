# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from mrec.errors import SchemaError
from mrec.frame import Block, Frame
from mrec.trajectory.schema import NO_FILL, Schema


def small() -> Schema:
    return (
        Schema()
        .block("atoms", rows=4)
        .column("x", "f64", precision=1e-3)
        .column("dip", np.float64, trailing=3, nullable=True)
        .column("element", str)
        .block("grid", structural_shape=(2, 3))
        .column("rho", "float64")
        .value("pe", "f64", fill=float("nan"))
        .value("vir", "f64x9")
        .value("note", "json", fill=None)
        .value("big", "i64", fill=2**60)
    )


DOCUMENT = {
    "blocks": {
        "atoms": {
            "columns": {
                "x": {"dtype": "f64", "trailing": [], "precision": 0.001},
                "dip": {"dtype": "f64", "trailing": [3], "nullable": True},
                "element": {"dtype": "string", "trailing": []},
            }
        },
        "grid": {"columns": {"rho": {"dtype": "f64", "trailing": []}}, "structural_shape": [2, 3]},
    },
    "meta": {
        "pe": {"dtype": "f64", "fill": "NaN"},
        "vir": {"dtype": "f64x9"},
        "note": {"dtype": "json", "fill": None},
        "big": {"dtype": "i64", "fill": str(2**60)},
    },
}


def test_json_is_the_text_of_the_format():
    assert json.dumps(small().to_json()) == json.dumps(DOCUMENT)
    again = Schema.from_json(DOCUMENT)
    assert again == small() == small().copy() == pickle.loads(pickle.dumps(small()))
    assert small().copy().blocks["atoms"].rows == 4
    assert pickle.loads(pickle.dumps(small())).values["vir"].fill is NO_FILL
    assert Schema.from_json({"blocks": {}, "meta": {}}) == Schema()
    assert small() != Schema()


def test_what_the_writer_asks_of_it():
    schema = small()
    assert schema.blocks["grid"].rows == 6
    assert schema.blocks["atoms"].columns["dip"].trailing == (3,)
    assert [v.fill_json for v in schema.values.values()] == ['"NaN"', None, "null", '"1152921504606846976"']
    assert Schema().value("v", "u32x3", fill=[1, 2, 3]).values["v"].fill == (1, 2, 3)


def test_repr():
    text = repr(small())
    for part in ("'atoms' (4 rows)", "x f64 precision=0.001", "dip f64[3] nullable", "(6 rows as (2, 3))", "vir f64x9"):
        assert part in text
    assert repr(Schema()) == "<Schema: nothing declared>"


REFUSED = {
    "column without block": lambda s: s.column("x", "f64"),
    "reserved block": lambda s: s.block("box"),
    "illegal block": lambda s: s.block("a/b"),
    "block twice": lambda s: s.block("a").block("a"),
    "reserved column": lambda s: s.block("a").column("offset", "f64"),
    "validity column": lambda s: s.block("a").column("_validity", "bool"),
    "surrogate": lambda s: s.block("a").column("\udc00", "f64"),
    "column twice": lambda s: s.block("a").column("q", "f64").column("q", "f64"),
    "f32": lambda s: s.block("a").column("q", "f32"),
    "canonical u64": lambda s: s.block("a").column("id", "i64"),
    "canonical f64": lambda s: s.block("a").column("x", "i32"),
    "canonical value": lambda s: s.value("pe", "i64"),
    "precision of integers": lambda s: s.block("a").column("q", "i32", precision=1e-3),
    "precision nan": lambda s: s.block("a").column("q", "f64", precision=float("nan")),
    "precision inf": lambda s: s.block("a").column("q", "f64", precision=float("inf")),
    "precision zero": lambda s: s.block("a").column("q", "f64", precision=0),
    "precision negative": lambda s: s.block("a").column("q", "f64", precision=-1e-3),
    "precision tiny": lambda s: s.block("a").column("q", "f64", precision=2.0**-1001),
    "precision huge": lambda s: s.block("a").column("q", "f64", precision=2.0**1000 * 1.01),
    "precision text": lambda s: s.block("a").column("q", "f64", precision="fine"),
    "precision bool": lambda s: s.block("a").column("q", "f64", precision=True),
    "trailing zero": lambda s: s.block("a").column("q", "f64", trailing=(3, 0)),
    "trailing float": lambda s: s.block("a").column("q", "f64", trailing=(3.0,)),
    "trailing many": lambda s: s.block("a").column("q", "f64", trailing=(1,) * 7),
    "nullable": lambda s: s.block("a").column("q", "f64", nullable=1),
    "structural zero": lambda s: s.block("a", structural_shape=(2, 0)),
    "structural empty": lambda s: s.block("a", structural_shape=()),
    "structural number": lambda s: s.block("a", structural_shape=4),
    "structural rows": lambda s: s.block("a", rows=5, structural_shape=(2, 2)),
    "rows negative": lambda s: s.block("a", rows=-1),
    "rows float": lambda s: s.block("a", rows=1.5),
    "targets": lambda s: s.block("a", targets={"i": 1}),
    "targets list": lambda s: s.block("a", targets=["i"]),
    "aligned_with": lambda s: s.block("a", aligned_with=1),
    "value twice": lambda s: s.value("a", "f64").value("a", "f64"),
    "value name": lambda s: s.value("a/b", "f64"),
    "value type": lambda s: s.value("a", "i8"),
    "fill real": lambda s: s.value("a", "i64", fill=1.5),
    "fill null": lambda s: s.value("a", "f64", fill=None),
    "fill width": lambda s: s.value("a", "f64x3", fill=0.0),
    "fill bool": lambda s: s.value("a", "i64", fill=True),
}


@pytest.mark.parametrize("case", REFUSED)
def test_declarations_that_are_refused(case):
    schema = Schema().block("b").column("q", "f64")
    before = schema.to_json()
    if case == "column without block":
        schema, before = Schema(), Schema().to_json()
    with pytest.raises(SchemaError) as caught:
        REFUSED[case](schema)
    assert len(str(caught.value)) > 20
    left = schema.to_json()
    left["blocks"].pop("a", None)
    left["meta"].pop("a", None)
    assert left == before


def test_extreme_precisions_are_taken():
    schema = Schema().block("a")
    for i, p in enumerate((2.0**-1000, 2.0**1000, 1, np.float32(0.5))):
        schema.column(f"q{i}", "f64", precision=p)
    assert schema.blocks["a"].columns["q3"].precision == 0.5


def test_lookalikes_warn():
    with pytest.warns(UserWarning, match="differ only"):
        Schema().block("a").column("q", "f64").column("Q", "f64")
    with pytest.warns(UserWarning, match="'meta' and 'Meta'"):
        Schema().block("Meta")


@pytest.mark.parametrize(
    "document",
    [
        None, [], {}, {"blocks": []}, {"blocks": {}, "meta": {}, "more": 1}, {"blocks": {"step": {"columns": {}}}},
        {"blocks": {"a": {}}}, {"blocks": {"a": {"columns": {"q": {}}}}}, {"blocks": {"a": {"columns": {"q": "f64"}}}},
        {"blocks": {"a": {"columns": {"q": {"dtype": "float64", "trailing": []}}}}},
        {"blocks": {"a": {"columns": {"q": {"dtype": ["f64"], "trailing": []}}}}},
        {"blocks": {"a": {"columns": {"q": {"dtype": "f64", "trailing": [0]}}}}},
        {"blocks": {"a": {"columns": {"q": {"dtype": "f64", "trailing": "33"}}}}},
        {"blocks": {"a": {"columns": {"q": {"dtype": "i8", "trailing": [], "precision": 1}}}}},
        {"blocks": {"a": {"columns": {"id": {"dtype": "u32", "trailing": []}}}}},
        {"blocks": {"a": {"columns": {}, "structural_shape": [True]}}},
        {"blocks": {"a": {"columns": {}, "targets": {"q": 1}}}}, {"blocks": {"a": {"columns": {}, "aligned_with": 1}}},
        {"blocks": {}, "meta": {"a": {"dtype": "i8"}}}, {"blocks": {}, "meta": {"a": {"dtype": "i64", "fill": "5"}}},
        {"blocks": {}, "meta": {"a": {"dtype": "f64", "fill": None}}}, {"blocks": {"\ud800": {"columns": {}}}},
    ],
)  # fmt: skip
def test_documents_that_are_refused(document):
    with pytest.raises(SchemaError):
        Schema.from_json(document)


def test_what_cannot_hold_is_kept_and_not_appended_to():
    document = {
        "blocks": {
            "a": {"columns": {"i": {"dtype": "u64", "trailing": []}}, "targets": {"i": "b"}},
            "b": {"columns": {"x": {"dtype": "i32", "trailing": []}}, "aligned_with": "a"},
            "c": {"columns": {}, "aligned_with": "b"},
        },
        "meta": {},
    }
    schema = Schema.from_json(document)
    assert schema.to_json() == document
    with pytest.raises(SchemaError, match="'c' is aligned with 'b', which is aligned itself"):
        schema.check_writable()
    small().check_writable()


# ---- from a frame ------------------------------------------------------------------------------------------------


def test_from_frame():
    frame = Frame(
        {
            "atoms": Block({
                "x": np.zeros(3, np.float32), "id": np.arange(3, dtype=np.int32), "element": ["O", "H", "H"],
                "ix": np.zeros(3, int), "q8": np.zeros(3, np.int8), "dip": np.zeros((3, 3)), "free": [True] * 3,
                "b": np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "label": np.array(["a", "b", "c"], object),
            }),
            "bonds": Block({"atomi": [0, 0]}),
            "grid": Block({"rho": np.zeros(8)}, structural_shape=(2, 2, 2)),
        },
        step=1,
        values={
            "pe": 3, "n": 4, "ok": True, "t": 1.5, "s": "a", "doc": {"a": 1}, "list": [1, "a"], "v3": [1, 2, 3],
            "v6": np.zeros(6), "v9": np.zeros((3, 3)), "m": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "u": np.uint32(3),
            "b3": [True, False, True], "f": np.float32(0.5), "i3": np.zeros(3, np.int32), "none": None, "h": 2**63,
        },
    )  # fmt: skip
    schema = Schema.from_frame(frame, precision=1e-3, nullable=["label"])
    columns = {name: str(c.dtype) for name, c in schema.blocks["atoms"].columns.items()}
    assert columns == {
        "x": "f64", "id": "u64", "element": "string", "ix": "i32", "q8": "i8", "dip": "f64", "free": "bool", "b": "f64",
        "label": "string",
    }  # fmt: skip
    atoms = schema.blocks["atoms"]
    assert (atoms.rows, atoms.columns["x"].precision, atoms.columns["dip"].trailing) == (3, 1e-3, (3,))
    assert [name for name, c in atoms.columns.items() if c.nullable] == ["b", "label"]
    assert schema.blocks["grid"].structural_shape == (2, 2, 2)
    assert {name: str(v.tag) for name, v in schema.values.items()} == {
        "pe": "f64", "n": "i64", "ok": "bool", "t": "f64", "s": "string", "doc": "json", "list": "json", "v3": "i64x3",
        "v6": "f64x6", "v9": "f64x9", "m": "f64x9", "u": "u32", "b3": "bool3", "f": "f64", "i3": "i32x3",
        "none": "json", "h": "u64",
    }  # fmt: skip


def test_from_a_mapping():
    schema = Schema.from_frame({"atoms": {"x": [1.0], "q": [0.5]}}, precision={"q": 0.1}, values={"temp": 300})
    assert schema == Schema().block("atoms").column("x", "f64").column("q", "f64", precision=0.1).value("temp", "f64")


@pytest.mark.parametrize(
    ("blocks", "options", "says"),
    [
        ({"a": {"q": np.zeros(2, np.float32)}}, {}, "block 'a': column 'q': float32.*precision.*float64"),
        ({"a": {"id": [0.5]}}, {}, "'id'.*u64.*floats|'id'.*takes integers"),
        ({"a": {"id": [-1]}}, {}, r"'id'.*cannot hold -1 \(row 0\)"),
        ({"a": {"free": [1]}}, {}, "takes bool"),
        ({"a": {"q": np.array([1, "a"], object)}}, {}, "objects"),
        ({"a": {"q": np.array([b"a"])}}, {}, "no column type"),
        ({"a": {"x": [1.0]}}, {"precision": {"X": 1e-3}}, "'X'"),
        ({"a": {"x": [1.0]}}, {"nullable": "y"}, "'y'"),
        ({"a": {"x": [1.0]}}, {"values": {"v": np.zeros(4)}}, "'v'.*shape"),
        ({"a": {"x": [1.0]}}, {"values": {"v": 1j}}, "'v'"),
        ([1], {}, "mapping"),
    ],
)
def test_frames_that_are_refused(blocks, options, says):
    with pytest.raises(SchemaError, match=says):
        Schema.from_frame(blocks, **options)


def test_float32_with_a_precision_is_f64():
    schema = Schema.from_frame({"a": {"q": np.zeros(2, np.float32)}}, precision={"q": 1e-3})
    assert schema.blocks["a"].columns["q"].dtype.name == "f64"

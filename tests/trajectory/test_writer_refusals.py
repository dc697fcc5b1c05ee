# SPDX-License-Identifier: BSD-3-Clause
"""What does not fit is refused with the right class and a helpful message, and leaves no trace."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mrec
from mrec.errors import InvalidValue, MrecError, SchemaError, UnknownName
from tests.trajectory.ondisk import tree, write

X = {"x": [1.0, 2.0, 3.0], "name": ["a", "b", "c"]}


def schema():
    declared = mrec.Schema().block("atoms", rows=3).column("x", "f64").column("name", "string")
    declared.block("grid", structural_shape=(2, 2)).column("rho", "f64").block("all")
    for name, (dtype, trailing) in {"n": ("i16", ()), "v": ("f64", (3,)), "c": ("c64", ()), "u": ("u64", ())}.items():
        declared.column(name, dtype, trailing=trailing)
    declared.column("flag", "bool").block("two")
    return (
        declared.value("pe", "f64")
        .value("i", "i32", fill=0)
        .value("vir", "f64x9", fill=[0] * 9)
        .value("two", "i64", fill=0)
    )


ALL = {
    "n": np.zeros(2, "i2"),
    "v": np.zeros((2, 3)),
    "c": np.zeros(2, "c8"),
    "u": np.zeros(2, "u8"),
    "flag": np.zeros(2, bool),
}


def every(**columns):
    return {"all": ALL | columns}


def atoms(**columns):
    return {"blocks": {"atoms": X | columns}}


def one(name, value):
    """One column of block all, where the others are good."""
    return {"blocks": every(**{name: value})}


def given(name, value):
    return {"values": {"pe": 0.0} | {name: value}}


# name: class, what the message says, the frame (beside step 20, time 1.0, pe 0.0)
BAD = {
    "step not increasing": (InvalidValue, "frame 2.*step 10.*last step, 10", {"step": 10}),
    "step far below": (InvalidValue, "frame 2.*step -9223372036854775808", {"step": -(2**63)}),
    "step beyond 64 bits": (InvalidValue, "9223372036854775808", {"step": 2**63}),
    "step not whole": (InvalidValue, "whole number, not 20.0", {"step": 20.0}),
    "step a bool": (InvalidValue, "whole number", {"step": True}),
    "step a string": (InvalidValue, "whole number, not '20'", {"step": "20"}),
    "time dropped": (InvalidValue, "frame 2.*pass time=", {"time": None}),
    "time not exact": (InvalidValue, "9007199254740993 is not exactly a double", {"time": 2**53 + 1}),
    "time a string": (InvalidValue, "a time is a number", {"time": "1.0"}),
    "time a bool": (InvalidValue, "a time is a number", {"time": True}),
    "unknown block": (UnknownName, "frame 2.*no block 'atom' is declared; is it 'atoms'", {"blocks": {"atom": X}}),
    "unknown block by name": (UnknownName, "frame 2.*'atom' is declared; is it 'atoms'", {"named": {"atom": X}}),
    "unknown value": (UnknownName, "no per-step value 'pee' is declared; is it 'pe'", {"values": {"pee": 0.0}}),
    "unknown and nothing like it": (UnknownName, "declared: 'atoms', 'grid'", {"blocks": {"zzz": X}}),
    "step by name": (UnknownName, r"frame 2.*'step'.*append\(step, ", {"named": {"step": 20}}),
    "a name for two things": (InvalidValue, "'two' is a block and a per-step value.*values=", {"named": {"two": 1}}),
    "a block given twice": (InvalidValue, "'atoms' is given twice", {"blocks": {"atoms": X}, "named": {"atoms": X}}),
    "a value given twice": (InvalidValue, "'i' is given twice", {"values": {"i": 1}, "named": {"i": 1}}),
    "no mapping": (SchemaError, "'atoms' takes a mapping.*ndarray", {"blocks": {"atoms": np.zeros((3, 3))}}),
    "missing column": (SchemaError, "frame 2.*'atoms'.*missing: 'name'", {"blocks": {"atoms": {"x": [1.0]}}}),
    "unknown column": (SchemaError, "'atoms'.*not declared: 'y'", atoms(y=[1.0, 2.0, 3.0])),
    "unknown columns together": (
        SchemaError, "'atoms'.*declared: 'y'", {"blocks": {"atoms": {("x", "y"): np.zeros((3, 2)), "name": X["name"]}}}
    ),
    "columns together of another width": (
        SchemaError, r"'all'.*takes \(rows, 2\), not \(3, 3\)", {"blocks": {"all": {("n", "u"): np.zeros((3, 3), int)}}}
    ),
    "rows that differ": (SchemaError, "'atoms'.*x 3, name 1", atoms(name=["a"])),
    "no rows axis": (SchemaError, r"'atoms'.*'x'.*\(rows\), not \(\)", atoms(x=1.0)),
    "ragged": (SchemaError, "'all'.*'v'", one("v", [[1.0], [1.0, 2.0]])),
    "trailing axes": (SchemaError, r"'all'.*'v'.*\(rows, 3\), not \(2, 2\)", one("v", np.zeros((2, 2)))),
    "a float for an integer": (SchemaError, "'all'.*'n'.*takes integers, not float64", one("n", [1.0, 2.0])),
    "a bool for an integer": (SchemaError, "'all'.*'n'.*not bool", one("n", [True, False])),
    "an integer for a bool": (SchemaError, "'all'.*'flag'.*takes bool", one("flag", [0, 1])),
    "out of range": (SchemaError, r"'all'.*'n'.*cannot hold 32768 \(row 1\)", one("n", [0, 32768])),
    "negative": (SchemaError, r"'all'.*'u'.*cannot hold -1 \(row 0\)", one("u", [-1, 0])),
    "an integer beyond 2^53": (SchemaError, "'all'.*'v'.*9007199254740993", one("v", [[0, 0, 0], [0, 2**53 + 1, 0]])),
    "a narrower complex": (SchemaError, "'all'.*'c'.*exactly", one("c", [0.1 + 0j, 0])),
    "float32 for another column": (SchemaError, "'v'.*float32.*cast it to float64", one("v", np.zeros((2, 3), "f4"))),
    "a number for a string": (SchemaError, r"'atoms'.*'name'.*takes strings, not 5.*row 1", atoms(name=["a", 5, "c"])),
    "None for a string": (SchemaError, "'name'.*not None.*row 0", atoms(name=[None, "b", "c"])),
    "bytes for a string": (SchemaError, "'name'.*decode", atoms(name=[b"a", b"b", b"c"])),
    "a surrogate": (SchemaError, "'name'.*row 2.*surrogate", atoms(name=["a", "b", "c\udcff"])),
    "null rows": (SchemaError, "'x'.*not declared nullable", atoms(x=np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]))),
    "another structural shape": (SchemaError, r"3 rows.*\(2, 2\) asks for 4", {"blocks": {"grid": {"rho": [1.0] * 3}}}),
    "no rows in a structural shape": (SchemaError, "'grid' has 0 rows", {"blocks": {"grid": {"rho": []}}}),
    "a value left out": (SchemaError, "frame 2.*'pe'.*without a fill", {"values": {}}),
    "a bool for a float": (SchemaError, "frame 2.*'pe' is f64.*bool", {"values": {"pe": True}}),
    "a value not exact": (SchemaError, "'pe'.*9007199254740993", {"values": {"pe": 2**53 + 1}}),
    "None for a value": (SchemaError, "'pe' is f64.*None", {"values": {"pe": None}}),
    "a float for an integer value": (SchemaError, "'i' is i32.*1.0", given("i", 1.0)),
    "an integer value out of range": (SchemaError, "'i' is i32.*2147483648.*outside", given("i", 2**31)),
    "a vector of another width": (SchemaError, "'vir' is f64x9.*takes 9 elements", given("vir", np.zeros(6))),
    "a bare cell": (SchemaError, "frame 2.*from_rows.*from_columns", {"box": np.eye(3)}),
    "a cell of another shape": (SchemaError, r"no cell has the shape \(4,\)", {"box": [1, 2, 3, 4]}),
    "a cell without a length": (SchemaError, "finite and above 0", {"box": (1, 0, 1)}),
    "a cell beyond f64": (SchemaError, "frame 2.*pass a Box", {"box": (1, 1, 10**400)}),
    "a cell of texts": (SchemaError, "frame 2.*pass a Box", {"box": ["1", "2", "3"]}),
    "a cell with a masked length": (SchemaError, "pass a Box", {"box": np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 1])}),
    "blocks that are none": (InvalidValue, "blocks is a mapping by name, not int", {"blocks": 5}),
    "values that are none": (InvalidValue, "values is a mapping by name, not list", {"values": [1.0]}),
    "a cell that is none": (SchemaError, "frame 2.*pass a Box", {"box": "cubic"}),
    "an infinite cell": (InvalidValue, "frame 2.*not finite", {"box": mrec.Box.from_rows(np.diag([1, 1, np.nan]))}),
    "a cell of the other kind": (SchemaError, "frame 2.*undefined.*was defined", {"box": mrec.Box.undefined()}),
    "a refusal after good blocks": (
        SchemaError, "'pe'.*without a fill", {"blocks": {"atoms": X} | every(), "box": (4, 4, 4), "values": {}}
    ),
}  # fmt: skip


def good(w, step, shift=0.0):
    atoms = {"x": np.arange(3.0) + shift, "name": ["a", "b", str(shift)]}
    w.append(step, time=step / 10, atoms=atoms, **every(), box=(1, 2, 3 + shift), pe=shift)


def bad(w, frame):
    frame = {"step": 20, "time": 1.0, "values": {"pe": 0.0}} | frame
    named = frame.pop("named", {})
    w.append(frame.pop("step"), **frame, **named)


@pytest.mark.parametrize("case", BAD)
def test_refused_without_a_trace(tmp_path, case):
    kind, says, frame = BAD[case]
    trees = []
    for refusals in (2, 0):
        w = write(tmp_path / str(refusals), schema())
        good(w, 0)
        w.flush()
        good(w, 10, 1.0)
        for _ in range(refusals):
            with pytest.raises(kind, match=says) as caught:
                bad(w, frame)
            assert isinstance(caught.value, MrecError)
            assert (w.nframes, w.published, w.last_step) == (2, 1, 10)
        good(w, 20, 2.0)
        w.close()
        trees.append(tree(tmp_path / str(refusals)))
    assert trees[0] == trees[1]


def test_a_block_where_a_frame_goes(tmp_path):
    with write(tmp_path / "a", schema()) as w:
        with pytest.raises(InvalidValue, match=r"a Frame, not dict; give blocks by name, as atoms="):
            w.append(0, {"atoms": X}, pe=0.0)
        assert w.nframes == 0


def test_time_gained(tmp_path):
    with write(tmp_path / "a", mrec.Schema()) as w:
        w.append(0)
        with pytest.raises(InvalidValue, match=r"frame 1.*the first frame had none"):
            w.append(1, time=0.5)
        w.append(1)
        assert w.nframes == 2


def test_the_first_frame_refused_decides_nothing(tmp_path):
    path = tmp_path / "a"
    with write(path, schema()) as w:
        with pytest.raises(SchemaError, match="frame 0"):
            bad(w, {"step": 77, "values": {}, "blocks": {"atoms": X}, "box": mrec.Box.undefined()})
        assert w.last_step is None
        w.append(5, pe=1.0, box=(1, 1, 1))  # neither a time nor the other kind of cell was settled
    with mrec.open(path) as rec:
        assert len(rec.trajectory) == 1
        assert rec.trajectory.times is None
        assert "atoms" not in rec.trajectory[0]


# ---- the declaration ---------------------------------------------------------------------------------------------

NAMES = ["", "a/b", ".", "..", "zarr.json", "__x", "a\0b", "\ud800", 5, None]


@pytest.mark.parametrize("name", [*NAMES, "step", "time", "meta", "box"], ids=repr)
def test_names_of_blocks(name):
    with pytest.raises(SchemaError, match="name"):
        mrec.Schema().block(name)


@pytest.mark.parametrize("name", [*NAMES, "offset", "step_index", "_validity"], ids=repr)
def test_names_of_columns(name):
    with pytest.raises(SchemaError, match="name"):
        mrec.Schema().block("b").column(name, "f64")


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_of_values(name):
    with pytest.raises(SchemaError, match="name"):
        mrec.Schema().value(name, "f64")


@pytest.mark.parametrize("precision", [0, -1e-3, np.inf, np.nan, "x", True, 2.0**-1001])
def test_bad_precision(precision):
    with pytest.raises(SchemaError, match="precision of column 'q' of block 'b'"):
        mrec.Schema().block("b").column("q", "f64", precision=precision)


def test_precision_is_for_f64():
    with pytest.raises(SchemaError, match="'q' of block 'b' is i32; only f64"):
        mrec.Schema().block("b").column("q", "i32", precision=1)


def test_rows_beyond_memory(tmp_path):
    schema = mrec.Schema().block("atoms", rows=10**15).column("x", "f64")
    with pytest.raises(MemoryError, match="trajectory/atoms/x: .* a chunk of 8000000000000000 bytes; the rows"):
        mrec.TrajectoryWriter(tmp_path / "a", schema)
    assert not (tmp_path / "a").exists()


def test_no_schema(tmp_path):
    with pytest.raises(SchemaError, match=r"schema is a mrec.Schema, not dict"):
        mrec.TrajectoryWriter(tmp_path / "a", {"atoms": {}})
    assert not (tmp_path / "a").exists()


def test_a_schema_changed_later_does_not_matter(tmp_path):
    declared = mrec.Schema().block("b").column("q", "f64")
    with write(tmp_path / "a", declared) as w:
        declared.column("r", "f64")
        w.append(0, b={"q": [1.0]})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"units": {"length": 1}}, "units is a mapping"),
        ({"units": {"length": "nm"}, "meta": {"units": {}}}, "twice"),
        ({"meta": {"a": np.nan}}, "meta: no JSON"),
        ({"meta": "title"}, "meta is a mapping"),
        ({"meta": [("title", "x")]}, "meta is a mapping"),
        ({"meta": {1: 2}}, "key 1"),
        ({"meta": {"a": "\ud800"}}, "surrogate"),
    ],
)
def test_units_and_meta(tmp_path, options, says):
    with pytest.raises(InvalidValue, match=says):
        mrec.TrajectoryWriter(tmp_path / "a", mrec.Schema(), **options)
    assert not (tmp_path / "a").exists()


def test_lookalikes_are_warned_of():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mrec.Schema().block("Atoms").column("q", "f64").block("atoms").column("q", "f64")
    assert [w.category for w in caught] == [UserWarning]


@pytest.mark.parametrize("name", [".durable", ".zarr.json.tmp", ".x.tmp"])
def test_names_of_the_writers_own_files(tmp_path, name):
    for schema in (
        mrec.Schema().block(name).column("x", "f64"),
        mrec.Schema().block("atoms").column(name, "f64"),
        mrec.Schema().value(name, "f64"),
    ):
        with pytest.raises(SchemaError, match=f"'{name}'"):
            mrec.TrajectoryWriter(tmp_path / "x.mrec", schema)
    assert not list(tmp_path.iterdir())

# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import struct
from itertools import pairwise

import numpy as np
import pytest

from mrec.errors import SchemaError
from mrec.frame import Block
from mrec.trajectory.coerce import Text, coerce_block, coerce_column, coerce_value, coerce_values, fill_bytes
from mrec.trajectory.schema import Column, Schema


def column(name="q", dtype="f64", **options) -> Column:
    return Schema().block("a").column(name, dtype, **options).blocks["a"].columns[name]


X = column("x")


def test_the_right_array_is_passed_on():
    for array in (np.zeros(5), np.zeros(5, np.float32), np.zeros((5, 3))[:, 1], np.zeros(5)[::-1], np.zeros(0)):
        data, valid = coerce_column(X, array)
        assert data is array
        assert valid is None
    array = np.zeros((4, 6, 3))[:, ::2]
    data, _ = coerce_column(column(trailing=3), array, lead=2)
    assert np.shares_memory(data, array)
    array = np.zeros((4, 5))
    array.flags.writeable = False
    assert coerce_column(X, array[:, 2])[0].base is array


@pytest.mark.parametrize(
    "array",
    [
        np.broadcast_to(1.5, 5), np.arange(5, dtype=">f8"), np.frombuffer(b"\0" + np.arange(5.0).tobytes(), offset=1),
        [0.5, 1, 2], (1, 2), range(4), np.arange(3, dtype=np.int64), np.arange(3, dtype=np.longdouble), [],
        np.array([1, 2.5], object), np.arange(4, dtype=np.float16),
    ],
)  # fmt: skip
def test_other_arrays_are_converted_exactly(array):
    data, _ = coerce_column(X, array)
    assert data.dtype in (np.float64, np.float32)
    assert data.dtype.isnative
    assert data.flags.aligned
    assert np.array_equal(data, np.asarray(array, float))
    assert 0 not in data.strides or data.size < 2


def test_rows_are_made_contiguous():
    q = column(trailing=(2, 3))
    given = np.arange(24.0).reshape(4, 3, 2).transpose(0, 2, 1)
    data, _ = coerce_column(q, given)
    assert np.array_equal(data, given)
    assert data.strides[1:] == (24, 8)
    wide = np.zeros((8, 2, 3))[::2]
    assert coerce_column(q, wide)[0] is wide or np.shares_memory(coerce_column(q, wide)[0], wide)
    with pytest.raises(SchemaError, match=r"takes the shape \(rows, 2, 3\), not \(4, 3, 2\)"):
        coerce_column(q, np.zeros((4, 3, 2)))


@pytest.mark.parametrize(
    ("target", "given"),
    [
        (column(dtype="i8"), np.array([-128, 127], np.int64)), (column("id", "u64"), np.arange(3, dtype=np.int64)),
        (column("id", "u64"), np.arange(3, dtype=np.uint8)), (column("id", "u64"), [2**64 - 1]),
        (column(dtype="c128"), np.array([1 + 2j], np.complex64)), (column(dtype="c128"), [1.5]),
        (column(dtype="c64"), np.array([1.5 - 2j, np.nan])), (column(dtype="i64"), np.array([2**63 - 1], np.uint64)),
        (column(dtype="f64"), np.array([2**53, -(2**60)])), (column(dtype="bool"), [True, False]),
        (column(dtype="i16"), np.array([1, 2], ">i2")),
    ],
)  # fmt: skip
def test_exact_casts(target, given):
    data, _ = coerce_column(target, given)
    assert data.dtype == target.dtype.numpy
    assert np.array_equal(data, np.asarray(given), equal_nan=True)


@pytest.mark.parametrize(
    ("target", "given", "says"),
    [
        (column(dtype="i64"), [1.0], "takes integers, not float64"), (column(dtype="i64"), [True], "not bool"),
        (column(dtype="f64"), np.array([True]), "not bool"), (column(dtype="bool"), [1], "takes bool"),
        (column(dtype="i8"), [0, 128], r"cannot hold 128 \(row 1\)"), (column(dtype="u8"), [-1], r"cannot hold -1"),
        (column(dtype="f64"), [2**53 + 1], "cannot hold 9007199254740993"), (column(dtype="f64"), [1j], "complex"),
        (column(dtype="c64"), [0.1 + 0j], "cannot hold"), (column(dtype="c64"), np.array([2**24 + 1]), "cannot hold"),
        (column(dtype="f64"), np.zeros(2, np.float32), "cast it to float64, or declare a precision"),
        (column(dtype="f64"), np.zeros(2, np.float16), "cast it to float64"), (column(dtype="f64"), ["1"], "floats"),
        (column(dtype="u64"), np.array([2**63, -5], object), "cannot hold|takes integers"),
        (column(dtype="i64"), np.array([0.1], np.longdouble), "integers"), (column(dtype="f64"), 1.0, "shape"),
        (column(dtype="f64"), np.zeros((2, 3)), r"\(rows\), not \(2, 3\)"), (column(dtype="f64"), [[1], [1, 2]], "."),
        (column(dtype="f64"), np.array([1], np.longdouble) / 3, "cannot hold"),
        (column(dtype="f64"), np.array(["2020"], "M8[Y]"), "datetime"), (column(dtype="f64"), [None], "object"),
    ],
)  # fmt: skip
def test_lossy_casts_are_refused(target, given, says):
    with pytest.raises(SchemaError, match=says) as caught:
        coerce_column(target, given, "block 'a'")
    assert str(caught.value).startswith("block 'a': column 'q': ")


def test_masks():
    q = column(nullable=True)
    data, valid = coerce_column(q, np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]))
    assert data.tolist() == [1.0, 0.0, 3.0]
    assert valid.dtype == np.uint8
    assert valid.tolist() == [1, 0, 1]
    assert coerce_column(q, np.ma.array([1.0, 2.0]))[1] is None
    assert coerce_column(q, [1.0])[1] is None
    vectors = np.ma.array(np.ones((2, 3)), mask=[[0, 0, 0], [1, 1, 1]])
    assert coerce_column(column(nullable=True, trailing=3), vectors)[1].tolist() == [1, 0]
    vectors.mask[0, 0] = True
    with pytest.raises(SchemaError, match="part of a row"):
        coerce_column(column(nullable=True, trailing=3), vectors)
    with pytest.raises(SchemaError, match="not declared nullable"):
        coerce_column(column(), np.ma.array([1.0], mask=[1]))
    assert coerce_column(column(), np.ma.array([1.0], mask=[0]))[0].tolist() == [1.0]
    names = np.ma.array(["a", "bc"], mask=[True, False])
    text, valid = coerce_column(column("name", "string", nullable=True), names)
    assert (text.data, text.offsets.tolist(), valid.tolist()) == (b"bc", [0, 0, 2], [0, 1])
    frames = np.ma.array(np.ones((2, 3)), mask=[[0, 1, 0], [0, 0, 0]])
    assert coerce_column(q, frames, lead=2)[1].tolist() == [[1, 0, 1], [1, 1, 1]]


@pytest.mark.parametrize("make", [list, lambda s: np.array(s, object), lambda s: np.array(s, np.dtypes.StringDType())])
@pytest.mark.parametrize("strings", [["", "a", "é\0", "😀b"], ["ab", "c"], []])
def test_strings(make, strings):
    text, _ = coerce_column(column("name", "string"), make(strings))
    assert isinstance(text, Text)
    assert text.offsets.dtype == np.uint64
    ends = text.offsets.tolist()
    assert [text.data[a:b].decode() for a, b in pairwise(ends)] == strings


def test_unicode_arrays():
    text, _ = coerce_column(column("name", "string"), np.array(["ab", "cde"])[::-1])
    assert (text.data, text.offsets.tolist()) == (b"cdeab", [0, 3, 5])


@pytest.mark.parametrize(
    ("strings", "says"),
    [
        (["a", "\ud800"], "row 1: a lone surrogate"), ([b"a"], "decode"), (np.array(["a", None], object), "row 1"),
        ([1], r"takes strings, not 1 \(int, row 0\)"), (np.array(["a", 2], object), "row 1"),
    ],
)  # fmt: skip
def test_strings_that_are_refused(strings, says):
    with pytest.raises(SchemaError, match=says):
        coerce_column(column("name", "string"), strings)


# ---- blocks ------------------------------------------------------------------------------------------------------


def atoms(**options):
    return Schema().block("atoms", **options).column("x", "f64").column("name", "string").blocks["atoms"]


def test_block():
    rows, data = coerce_block(atoms(), {"name": ["a", "b"], "x": [1.0, 2.0]})
    assert rows == 2
    assert data[0][0].tolist() == [1.0, 2.0]
    assert data[1][0].data == b"ab"
    empty = Schema().block("none").blocks["none"]
    assert coerce_block(empty, Block(nrows=5)) == (5, [])
    assert coerce_block(empty, {}) == (0, [])


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"x": [1.0]}, "missing: 'name'"), ({"x": [1.0], "name": ["a"], "y": [1.0]}, "not declared: 'y'"),
        ({"x": [1.0], "nam": ["a"]}, "missing: 'name'; not declared: 'nam'"),
        ({"x": [1.0], "name": ["a", "b"]}, "x 1, name 2"),
    ],
)  # fmt: skip
def test_blocks_that_are_refused(columns, says):
    with pytest.raises(SchemaError, match=f"block 'atoms'.*{says}"):
        coerce_block(atoms(), columns)


def test_structural_shape():
    with pytest.raises(SchemaError, match="asks for 4"):
        coerce_block(atoms(structural_shape=(2, 2)), {"x": [1.0], "name": ["a"]})


# ---- per-step values ---------------------------------------------------------------------------------------------


def value(tag, **options):
    return Schema().value("v", tag, **options).values["v"]


@pytest.mark.parametrize(
    ("tag", "given", "stored"),
    [
        ("f64", 1.5, struct.pack("=d", 1.5)), ("f64", 3, struct.pack("=d", 3)), ("f64", np.float32(0.1),
        struct.pack("=d", float(np.float32(0.1)))), ("f64", np.array(2.5), struct.pack("=d", 2.5)),
        ("i32", np.int64(-5), struct.pack("=i", -5)), ("u64", 2**64 - 1, b"\xff" * 8), ("bool", np.True_, b"\x01"),
        ("bool3", [True, False, True], b"\1\0\1"), ("f64x9", np.arange(9.0).reshape(3, 3), np.arange(9.0).tobytes()),
        ("f64x6", range(6), np.arange(6.0).tobytes()), ("string", "é", "é".encode()), ("json", None, b"null"),
        ("json", {"a": [1, 2.5], "é": "x"}, '{"a":[1,2.5],"é":"x"}'.encode()), ("json", np.float64(1.5), b"1.5"),
        ("u32x3", (1, 2, 3), np.array([1, 2, 3], np.uint32).tobytes()),
    ],
)  # fmt: skip
def test_values(tag, given, stored):
    assert coerce_value(value(tag), given) == stored


@pytest.mark.parametrize(
    ("tag", "given"),
    [
        ("f64", True), ("f64", "1"), ("i64", 1.0), ("i32", 2**31), ("bool", 1), ("f64x3", [1, 2]), ("json", np.nan),
        ("string", "\ud800"), ("f64", [1.0]), ("u64", -1), ("f64", None), ("string", b""),
    ],
)  # fmt: skip
def test_values_that_are_refused(tag, given):
    with pytest.raises(SchemaError, match=f"per-step value 'v' is {tag}: "):
        coerce_value(value(tag), given)


def test_values_of_many_frames():
    assert coerce_values(value("f64"), [1, 2.5], 2).tolist() == [1.0, 2.5]
    assert coerce_values(value("f64"), np.float32([0.1]), 1).dtype == np.float64
    assert coerce_values(value("f64x9"), np.zeros((4, 3, 3)), 4).shape == (4, 9)
    assert coerce_values(value("i64x3"), np.ones((2, 3), int)[:, ::-1], 2).flags.c_contiguous
    text = coerce_values(value("json"), [{"a": 1}, None], 2)
    assert (text.data, text.offsets.tolist()) == (b'{"a":1}null', [0, 7, 11])
    assert coerce_values(value("json"), [[1, 2], [3, 4]], 2).data == b"[1,2][3,4]"
    assert coerce_values(value("string"), ["a", "bc"], 2).data == b"abc"
    for tag, given in (("f64", [1.0]), ("f64", 1.0), ("f64x3", np.zeros((2, 2))), ("i64", [0.5, 1]), ("json", 3)):
        with pytest.raises(SchemaError, match="per-step value 'v'"):
            coerce_values(value(tag), given, 2)


def test_fills():
    assert fill_bytes(value("f64x3", fill=[1, 2, 3])) == np.array([1.0, 2, 3]).tobytes()
    assert fill_bytes(value("json", fill=None)) == b"null"

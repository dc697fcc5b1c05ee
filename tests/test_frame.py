# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pickle
from collections.abc import MutableMapping

import numpy as np
import pytest

from mrec.box import Box
from mrec.errors import SchemaError, UnknownName
from mrec.frame import Block, Frame


def atoms() -> Block:
    return Block({"x": [0.0, 1.0, 2.0], "id": np.arange(3, dtype=np.uint64), "element": ["O", "H", "H"]})


def test_block_is_a_mapping_of_arrays():
    block = atoms()
    assert isinstance(block, MutableMapping)
    assert (block.nrows, len(block), block.columns) == (3, 3, ("x", "id", "element"))
    assert list(block) == ["x", "id", "element"]
    assert "x" in block
    assert "q" not in block
    assert block.get("q") is None
    assert dict(block)["x"] is block["x"]
    block["x"] = [3.0, 2.0, 1.0]
    del block["id"]
    assert block.columns == ("x", "element")
    assert Block().nrows == 0
    assert Block(nrows=7).nrows == 7


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ([2**64 - 1, 0], "u8"),  # which numpy takes for floats, as the next
        ([[2**63, 1], [2, 3]], "u8"),
        ([np.uint64(2**64 - 1), np.int64(1)], "u8"),
        ([np.array([2**64 - 1], "u8"), np.array([1])], "u8"),
        ([np.array([0.5]), np.array([1.5])], "f8"),
        ([2**63, -1], "f8"),
        ([2**64 - 1, -1], object),
        ([2**53 + 1, 1], "i8"),
        ([True, 1.5], "f8"),
        ([np.ma.array([1.0, 2.0], mask=False), [3.0, 4.0]], "f8"),
        ([], "f8"),
    ],
)
def test_the_type_of_a_list(given, dtype):
    array = Block({"q": given})["q"]
    assert array.dtype == dtype
    assert list(map(int, array.flat)) == list(map(int, np.asarray(given, object).flat))


def test_lists_that_numpy_would_guess_at():
    for given in ([1, "a"], ["a", np.float64(1.5)], [b"a", "b"], [["a", "b"], ["c", 0]]):
        with pytest.raises(SchemaError, match="column 'q': .* is no string, as others beside it are"):
            Block({"q": given})
    row = np.ma.array([1.0, 2.0], mask=[True, False])
    for given in ([np.ma.masked, 1.0], [row, row], [[1.0, np.ma.masked]], [[1.0, 2.0], row]):
        with pytest.raises(SchemaError, match="column 'q': masked values in a list; pass a masked array"):
            Block({"q": given})
    assert Block({"q": ["a\0", np.str_("b")]})["q"].tolist() == ["a\0", "b"]


def test_unknown_names_list_the_known():
    with pytest.raises(UnknownName, match="'x', 'id', 'element'"):
        atoms()["q"]
    with pytest.raises(KeyError, match="'atoms'"):
        Frame({"atoms": atoms()})["bonds"]


def test_columns_asked_for_together():
    with pytest.raises(UnknownName, match=r"come one by one, not as \['x', 'id'\]; Trajectory.read"):
        atoms()[["x", "id"]]


def test_rows_must_agree():
    block = atoms()
    with pytest.raises(SchemaError, match="'y' has 2 rows, the block has 3"):
        block["y"] = [1.0, 2.0]
    with pytest.raises(SchemaError, match="one value a row"):
        block["y"] = 1.0
    with pytest.raises(SchemaError, match="2 rows"):
        Block({"x": [1.0, 2.0]}, nrows=5)
    alone = Block({"x": [1.0]})
    alone["x"] = [1.0, 2.0]
    assert alone.nrows == 2


def test_blocks_are_equal_bit_for_bit():
    assert atoms() == atoms()
    for x in ([0.0, 1.0, 2.5], [-0.0, 1.0, 2.0], np.array([0, 1, 2], np.float32)):
        other = atoms()
        other["x"] = x
        assert other != atoms()
    nan = Block({"x": [np.nan]})
    assert nan == Block({"x": [np.nan]})
    assert Block({"s": np.array(["a", "bc"])}) == Block({"s": np.array(["a", "bc"], np.dtypes.StringDType())})
    assert Block({"s": ["a", "b\0"]})["s"].tolist() == ["a", "b\0"]
    assert Block({"x": np.array([1.0], ">f8")}) == Block({"x": [1.0]})
    assert Block(nrows=1) != Block(nrows=2)


def test_null_rows_are_alike_whatever_lies_under_them():
    a = Block({"x": np.ma.array([1.0, 2.0], mask=[False, True])})
    b = Block({"x": np.ma.array([1.0, 7.0], mask=[False, True])})
    assert a == b
    assert a != Block({"x": [1.0, 2.0]})
    assert Block({"x": np.ma.array([1.0, 2.0])}) == Block({"x": [1.0, 2.0]})
    assert "1 null" in repr(a)


def test_frame():
    frame = Frame({"atoms": {"x": [1.0]}}, step=3, time=0.5, box=[1, 2, 3], values={"pe": -1.5, "vir": np.zeros(9)})
    assert frame["atoms"].nrows == 1
    assert "atoms" in frame
    assert (len(frame), list(frame), list(frame.keys())) == (1, ["atoms"], ["atoms"])
    assert frame.box == Box.from_lengths(1, 2, 3)
    assert frame == Frame(frame.blocks, step=3, time=0.5, box=frame.box, values=frame.values, index=9)
    for change in ({"step": 4}, {"time": None}, {"box": None}, {"values": {"pe": -1.5}}, {"meta": {"a": 1}}):
        same = {"step": 3, "time": 0.5, "box": frame.box, "values": frame.values}
        assert frame != Frame(frame.blocks, **{**same, **change})
    assert frame != Frame(step=3, time=0.5, box=frame.box, values=frame.values)
    text = repr(frame)
    assert "step=3" in text
    assert "pe=-1.5" in text
    assert "'atoms': <Block 1 row: x float64>" in text


def test_frame_blocks_can_be_set():
    frame = Frame()
    frame["atoms"] = {"x": [1.0]}
    assert isinstance(frame["atoms"], Block)
    del frame["atoms"]
    assert len(frame) == 0
    assert repr(frame) == "<Frame>"
    with pytest.raises(SchemaError, match="block 'atoms'"):
        frame["atoms"] = [1.0]
    assert Frame(time=float("nan")) == Frame(time=float("nan"))
    assert Frame(values={"a": 1}) != Frame(values={"a": 1.0})


@pytest.mark.parametrize(
    "how",
    [{"nrows": -1}, {"nrows": 2.5}, {"nrows": True}, {"nrows": 2**63}, {"structural_shape": (-1, -2)},
     {"structural_shape": (2.0,)}, {"structural_shape": 4}, {"columns": {"a": ["\ud800"]}},
     {"columns": {"a": [[1], [1, 2]]}}],
    ids=str,
)  # fmt: skip
def test_blocks_that_are_none(how):
    with pytest.raises(SchemaError):
        Block(how.get("columns"), nrows=how.get("nrows"), structural_shape=how.get("structural_shape"))
    assert Block(nrows=np.int64(3)).nrows == 3 and Block(structural_shape=np.array([0, 2])).structural_shape == (0, 2)


def test_a_cell_that_is_assigned_is_a_box() -> None:
    frame = Frame({"atoms": {"x": [0.0]}})
    frame.box = [1.0, 2.0, 3.0]
    assert frame.box == Box.from_lengths(1, 2, 3)
    assert pickle.loads(pickle.dumps(frame)) == frame == frame.copy()
    with pytest.raises(SchemaError, match="no cell has the shape"):
        frame.box = 3.0
    frame.box = None
    assert frame.box is None

# SPDX-License-Identifier: BSD-3-Clause
"""What is put into arrays, attributes and names: taken as it is, or refused before anything is stored."""

from __future__ import annotations

import os

import numpy as np
import pytest

import mrec.zarr
from mrec.errors import InvalidValue, UnknownName
from mrec.zarr import FilesystemStore, MemoryStore


@pytest.fixture
def root():
    return mrec.zarr.create(MemoryStore())


TAKEN = [
    ("int8", [1, -128], [1, -128]),
    ("int8", np.array([1, 127], ">u8"), [1, 127]),
    ("uint64", [2**64 - 1, 0], [2**64 - 1, 0]),
    ("uint64", [2**63, 1], [2**63, 1]),  # which numpy alone takes for floats
    ("int64", True, [1, 1]),
    ("float16", [65504, np.inf], [65504, np.inf]),
    ("float32", np.array([0.1, -np.inf]), [np.float32(0.1), -np.inf]),
    ("float64", np.ma.array([1, 2], mask=False), [1, 2]),
    ("complex64", 1.5, [1.5, 1.5]),
    ("bool", [True, False], [True, False]),
    ("string", ["a\0", "\0\0"], ["a\0", "\0\0"]),
    ("string", np.array(["é", "b"]), ["é", "b"]),
    ("string", np.array(["é", "b"], object), ["é", "b"]),
    ("string", "a\0", ["a\0", "a\0"]),
]

REFUSED = [
    ("int8", 128, "128 is outside the range of int8"),
    ("int8", np.array([0, -129]), "-129 is outside"),
    ("uint8", [-1, 0], "-1 is outside"),
    ("uint64", [2**64, 0], "would be changed"),
    ("int64", [1, 2.5], "float64 would be changed to be stored as int64"),
    ("int64", "1", "would be changed"),
    ("int64", [None, 1], "would be changed"),
    ("float16", 70000, "beyond the range of float16"),
    ("float32", [1e39, 0], "beyond the range of float32"),
    ("complex64", 1e39 + 1j, "beyond the range of complex64"),
    ("float64", 1j, "complex128 would be changed"),
    ("float64", np.ma.array([1.0, 2.0], mask=[0, 1]), "masked values"),
    ("float64", [[1], [1, 2]], "inhomogeneous"),
    ("float64", [1, 2, 3], r"values of shape \[3\] do not fit into \[2\]"),
    ("bool", [0, 1], "int64 would be changed"),
    ("string", [1, "a"], "1 is no string"),
    ("string", ["a", None], "None is no string"),
    ("string", [b"a", "b"], "b'a' is no string"),
    ("string", ["a", "\ud800"], "lone surrogate"),
    ("string", np.array(["a", None], np.dtypes.StringDType(na_object=None)), "None is no string"),
]


@pytest.mark.parametrize(("dtype", "given", "stored"), TAKEN)
def test_taken(root, dtype, given, stored):
    array = root.create_array("a", 2, dtype, chunks=1)
    array[...] = given
    assert array[...].tolist() == np.array(stored, array.dtype).tolist()
    whole = root.create_array("b", 2, dtype, data=given)
    assert whole[...].tolist() == array[...].tolist()


@pytest.mark.parametrize(("dtype", "given", "message"), REFUSED)
def test_refused(root, dtype, given, message):
    array = root.create_array("a", 2, dtype, chunks=1)
    before = dict(root.store.values)
    with pytest.raises(InvalidValue, match=f"a: .*{message}|a: {message}"):
        array[...] = given
    with pytest.raises(InvalidValue, match=message):
        root.create_array("b/c", 2, dtype, data=given)
    assert root.store.values == before, "nothing was stored"


@pytest.mark.parametrize(
    ("dtype", "fill", "value"),
    [
        ("float16", "0x7e01", np.array([0x7E01], "u2").view("f2")[0]),
        ("float32", "-Infinity", np.float32(-np.inf)),
        ("uint64", 2**64 - 1, np.uint64(2**64 - 1)),
        ("complex64", 1 + 2j, np.complex64(1 + 2j)),
        ("string", "a\0", "a\0"),
    ],
)
def test_fills(root, dtype, fill, value):
    array = root.create_array("a", 3, dtype, fill=fill)
    again = mrec.zarr.open(root.store, "a")[1]
    assert again == value or np.asarray(again).tobytes() == np.asarray(value).tobytes()
    assert array.meta.document() == mrec.zarr.open(root.store, "a").meta.document()


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [("float32", 1e39), ("float32", "0x7f_80000"), ("float32", "nan"), ("uint8", -1), ("int8", 1.0), ("bool", 1),
     ("string", 5), ("int8", [1]), ("int8", "0x7f")],
)  # fmt: skip
def test_fills_that_are_none(root, dtype, fill):
    with pytest.raises(InvalidValue, match="fill"):
        root.create_array("a", 3, dtype, fill=fill)
    assert list(root) == []


# ---- selections --------------------------------------------------------------------------------------------------

VALUES = np.arange(24).reshape(4, 6)
AS_NUMPY = [
    np.array(2), np.int8(-1), np.uint64(3), range(3), (slice(None), (1, 2)), ([0, 1], None, [1, 2]), (0, [1, 2]),
    [], [[0, 1], [2, 3]], (Ellipsis, None, 0), np.array([0, -1], np.int8), ([True, False, True, True], 0),
    np.ones((4, 6), bool), slice(None, None, -2), slice(9, 0), (), None, (np.array([[0], [1]]), np.array([[0, 1]])),
]  # fmt: skip


@pytest.mark.parametrize("key", AS_NUMPY, ids=repr)
def test_selected_as_numpy_does(root, key):
    array = root.create_array("a", data=VALUES, chunks=(2, 4))
    found, wanted = array[key], VALUES[key]
    assert np.shape(found) == np.shape(wanted) and np.array_equal(found, wanted)
    for order in "CF":
        out = np.zeros(np.shape(wanted), VALUES.dtype, order)
        assert array.read(key, out=out) is out and np.array_equal(out, wanted)


@pytest.mark.parametrize(
    "key",
    [4, -5, 1.0, "x", True, np.True_, np.array(True), np.array(["a"]), np.empty(0), (0, 0, 0), (Ellipsis, Ellipsis),
     np.ones(5, bool), np.array([2**63], np.uint64), 2**70, ([0, 1], [0, 1, 2]), [[1], [1, 2]], ([0, 3], [0, 3, 5])],
    ids=repr,
)  # fmt: skip
def test_what_selects_nothing(root, key):
    array = root.create_array("a", data=VALUES, chunks=(2, 4))
    with pytest.raises(IndexError):
        array[key]


@pytest.mark.parametrize(
    "key", [([], [], slice(2, None, -2)), (slice(None), [], [[0], [2]]), ([[]], 1, np.empty((2, 0), int))]
)
def test_no_points_beside_other_axes(root, key):
    values = np.arange(24).reshape(2, 3, 4)
    array = root.create_array("a", data=values, chunks=(1, 1, 1))
    assert array[key].shape == values[key].shape and array[key].dtype == values.dtype


@pytest.mark.parametrize("value", ["", "word"])
@pytest.mark.parametrize("last", [[], [{"name": "crc32c"}]], ids=["nested", "around"])
def test_a_single_string_in_shards(root, last, value):
    def shard(*codecs):
        index = [{"name": "bytes", "configuration": {"endian": "little"}}]
        form = {"chunk_shape": [], "codecs": list(codecs), "index_codecs": index, "index_location": "end"}
        return {"name": "sharding_indexed", "configuration": form}

    inner = shard({"name": "vlen-utf8"})
    array = root.create_array("a", (), "string", codecs=[inner, *last] if last else [shard(inner)])
    array[...] = value
    assert mrec.zarr.open(root.store, "a")[()] == value


def test_where_values_go(root):
    array, values = root.create_array("a", data=VALUES, chunks=(2, 4)), VALUES.copy()
    for key, given in [
        ((slice(None, None, -3), slice(None, None, -4)), [[1, 2], [3, 4]]),
        (np.array(1), 7),
        ((0, 0), [9]),
        (Ellipsis, np.zeros((1, 4, 6), int)),
        (np.int64(-1), range(6)),
    ]:
        array[key] = given
        values[key] = np.asarray(given)[0] if np.ndim(given) == 1 and np.ndim(values[key]) == 0 else given
        assert np.array_equal(array[...], values)
    for key in ([0, 1], np.arange(2), None, np.ones((4, 6), bool)):
        with pytest.raises(InvalidValue, match="integers, slices and an ellipsis"):
            array[key] = 1
    with pytest.raises(IndexError):
        array["x"] = 1


def test_what_is_no_place_to_read_into(root):
    array = root.create_array("a", data=VALUES)
    fixed = np.zeros((4, 6), int)
    fixed.flags.writeable = False
    for out in ([1], fixed, np.zeros((4, 6)), np.zeros((3, 6), int), np.zeros((4, 6), ">i8"), np.zeros(24, int)):
        with pytest.raises(InvalidValue, match="out "):
            array.read(out=out)
    assert array.read(slice(1, 3), out=np.zeros((4, 6), int)[::2]).tolist() == VALUES[1:3].tolist()


# ---- names, attributes and shapes --------------------------------------------------------------------------------


@pytest.mark.parametrize("node", ["group", "array"])
def test_attributes_are_stored_as_they_are_assigned(root, node):
    made = root.create_group("n", {"a": 1}) if node == "group" else root.create_array("n", 3, "f4", attributes={"a": 1})
    made.attrs["b"] = {"c": [np.int64(2), None]}
    made.attrs.update(d=0.5, a=2)
    del made.attrs["d"]
    again = root["n"].attrs
    assert again == {"a": 2, "b": {"c": [2, None]}} and repr(again) == repr(made.attrs)
    deep: list = []
    for _ in range(100):
        deep = [deep]
    for bad in (float("nan"), {1, 2}, "\ud800", {1: 2}, 10**5000, deep):
        with pytest.raises(InvalidValue, match="attributes of n"):
            made.attrs["b"] = bad
    with pytest.raises(KeyError):
        del made.attrs["x"]
    with pytest.raises(InvalidValue, match="a document is a dict"):
        made.set_attrs(None)
    assert root["n"].attrs == {"a": 2, "b": {"c": [2, None]}}


@pytest.mark.parametrize("name", ["", "a//b", "/a", "../a", "zarr.json", "a/zarr.json", "__a", "a\0", "\ud800", 5])
def test_names_that_are_none(root, name):
    for create in (root.create_group, lambda n: root.create_array(n, 3, "i4")):
        with pytest.raises(InvalidValue, match="is no name of a group or an array"):
            create(name)
    with pytest.raises(UnknownName):
        root[name]
    assert name not in root and list(root) == []


def test_paths_stay_inside(tmp_path):
    mrec.zarr.create(tmp_path / "other", {"of": "others"})
    mrec.zarr.create(tmp_path / "x").create_group("a", {"of": "us"})
    assert mrec.zarr.open(tmp_path / "x", "/a/").attrs == {"of": "us"}
    for path in ("../other", str(tmp_path / "other"), "a/../../other"):
        with pytest.raises(UnknownName):
            mrec.zarr.open(tmp_path / "x", path)


@pytest.mark.parametrize("shape", [5, (2, 3, 4), (-1, 2), (2**62, 2**62), (2.5, 1), "ab", None, (True, 4)])
def test_shapes_that_are_none(root, shape):
    array = root.create_array("a", data=VALUES)
    with pytest.raises(InvalidValue):
        array.resize(shape)
    assert array.shape == (4, 6) and array[3, 5] == 23
    array.resize(np.array([2, 3]))
    assert array[...].tolist() == VALUES[:2, :3].tolist()


def test_a_deep_tree_is_bounded():
    group = b'{"zarr_format":3,"node_type":"group"}'
    deep = mrec.zarr.open(MemoryStore({"a/" * i + "zarr.json": group for i in range(300)}))
    assert len(deep.tree().splitlines()) == 101


# ---- stores ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "files", "durable"])
def test_values_changed_in_place(tmp_path, kind):
    store = MemoryStore() if kind == "memory" else FilesystemStore(tmp_path / "s", durable=kind == "durable")
    store.set("a/b", b"0123456789")
    store.set_range("a/b", 3, b"xyz")
    store.set_range("a/b", 12, b"!")
    assert store.get("a/b") == b"012xyz6789\0\0!" and store.again().size("a/b") == 13
    for call in (lambda: store.set_range("q", 0, b"1"), lambda: store.size("q")):
        with pytest.raises(FileNotFoundError):
            call()


def test_two_processes_set_one_value(tmp_path):
    """Each puts its own value there, again and again; whoever reads finds one of them, whole."""
    store, wanted = FilesystemStore(tmp_path), {bytes([i]) * 100_000 for i in range(2)}
    children = []
    for value in wanted:
        if (pid := os.fork()) == 0:
            try:
                for _ in range(200):
                    store.set("v", value)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    seen = {store.get("v") for _ in range(200)} - {None}
    assert all(os.waitpid(pid, 0)[1] == 0 for pid in children)
    assert seen | {store.get("v")} <= wanted and os.listdir(tmp_path) == ["v"]

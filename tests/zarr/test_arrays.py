"""Groups and arrays written here: life, refusals, and what stays out of reach of hostile metadata."""

from __future__ import annotations

import json
import struct
import zipfile

import numpy as np
import pytest

import mrec.zarr
from mrec.errors import CorruptData, InvalidValue, ReadOnly, UnknownName, UnsupportedCodec, UnsupportedVersion
from mrec.zarr import FilesystemStore, MemoryStore
from mrec.zarr.write import BYTES, sharding


@pytest.fixture(params=["memory", "files"])
def root(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else FilesystemStore(tmp_path / "a.zarr")
    return mrec.zarr.create(store, {"of": "a test"})


def test_groups(root):
    root.create_group("a/b/c", {"deep": True})
    root.create_array("a/x", 3, "f32", attributes={"unit": "A"})
    assert list(root) == ["a"] and list(root["a"]) == ["b", "x"] and root["a/b/c"].attrs == {"deep": True}
    assert root.tree() == "/\n└── a\n    ├── b\n    │   └── c\n    └── x [3] float32"
    assert root.tree(depth=1) == "/\n└── a"
    root["a"].set_attrs({"new": [1]})
    assert mrec.zarr.open(root.store, "a").attrs == {"new": [1]} and root["a/x"].attrs == {"unit": "A"}
    root.delete("a/b")
    assert list(root["a"]) == ["x"] and not list(root.store.walk("a/b"))
    for name, message in [("a/x", "there is a 'a/x'"), ("a/x/y", "is an array"), ("../x", "is no name")]:
        with pytest.raises(InvalidValue, match=message):
            root.create_group(name)
    with pytest.raises(UnknownName, match="there is no 'q'"):
        root.delete("q")
    with pytest.raises(InvalidValue, match="already"):
        mrec.zarr.create(root.store)
    with pytest.raises(UnknownName, match="no group and no array"):
        mrec.zarr.open(root.store, "nothing")


def test_a_store(root):
    store = root.store
    store.set("x/y", b"0123456789")
    assert store.get("x/y") == b"0123456789" and store.size("x/y") == 10 and store.exists("x")
    ranges = [(2, 5), (8, 99), (-3,), (-99, 2), (5, 5), (5, 2), (20, 30), (-3, -1), (1, -1)]
    assert [store.get_range("x/y", *r) for r in ranges] == [
        b"234", b"89", b"789", b"01", b"", b"", b"", b"78", b"12345678",
    ]  # fmt: skip
    with pytest.raises(FileNotFoundError, match="x'"):
        store.size("x")
    assert store.get_ranges("x/y", [(0, 1), (9, 10)]) == [b"0", b"9"] and store.get_range("x/z", 0, 1) is None
    assert store.get_ranges("q", [(0, 1)]) is None
    assert sorted(store.walk()) == ["x/y", "zarr.json"] and store.names() == ["x"]
    store.delete("x/y")
    store.delete("x/y")
    assert store.get("x/y") is None
    for key in ("", "../x", "a//b", "/a"):
        for change in (lambda key: store.set(key, b""), store.delete, store.delete_below):
            with pytest.raises(InvalidValue, match="is no key of a store"):
                change(key)
    assert list(store.walk()) == ["zarr.json"]


def test_metadata_stands_before_any_value(root):
    class Watched(MemoryStore):
        order: list[str] = []

        def set(self, key, value):
            self.order.append(key)
            super().set(key, value)

    made = mrec.zarr.create(Watched())
    made.create_array("x", data=np.arange(10), chunks=5)
    assert Watched.order == ["zarr.json", "x/zarr.json", "x/c/0", "x/c/1"]


def test_handles_of_one_store_see_each_other(root):
    root.create_array("x", data=np.arange(10), chunks=4, shards=8)
    one, other = root["x"], root["x"]
    assert other[3] == 3
    one[3] = 30
    assert other[3] == 30 and one[3] == 30
    one[...] = 0
    assert not other[...].any() and list(root.store.walk("x")) == ["x/zarr.json"]  # all fill: no file


def test_only_what_is_needed_is_read(root):
    array = root.create_array("x", data=np.arange(400).reshape(20, 20), chunks=(5, 5), codecs=None)
    for i in range(4):
        for j in range(4):
            if (i, j) not in [(1, 2), (3, 0)]:
                root.store.set(f"x/c/{i}/{j}", b"damaged")
    array = mrec.zarr.open(root.store.again(), "x")
    assert array[5:10, 11].tolist() == [111, 131, 151, 171, 191]
    assert array[[6, 16], [12, 3]].tolist() == [132, 323]
    mask = np.zeros((20, 20), bool)
    mask[[9, 15], [14, 4]] = True
    assert array[mask].tolist() == [194, 304]
    with pytest.raises(CorruptData, match="chunk c/0/0"):
        array[0]


def test_values_that_do_not_fit(root):
    array = root.create_array("x", (4, 3), "i16")
    with pytest.raises(InvalidValue, match="float64 would be changed to be stored as int16; convert it before"):
        array[0] = np.array([0.5, 1, 2])
    with pytest.raises(InvalidValue, match=r"values of shape \[2\] do not fit into \[3\]"):
        array[0] = [1, 2]
    with pytest.raises(InvalidValue, match="integers, slices and an ellipsis"):
        array[[0, 1]] = 1
    with pytest.raises(IndexError, match="index 4 in an axis of 4"):
        array[4] = 1
    with pytest.raises(IndexError, match="3 indices for 2 axes"):
        array[0, 0, 0]
    with pytest.raises(IndexError, match="not by 1.5"):
        array[1.5]
    with pytest.raises(InvalidValue, match=r"out is float64\[3\], not int16\[3\]"):
        array.read((0,), out=np.zeros(3))
    with pytest.raises(InvalidValue, match="is no shape of 2 axes"):
        array.resize((3,))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"dtype": "f7"}, "'f7' is no type of an array"),
        ({"dtype": object}, "is no type of an array"),
        ({"shape": (-1,)}, "a length is at least 0"),
        ({"shape": (2**62, 2**62)}, "is too large"),
        ({"chunks": 0}, "a length is at least 1"),
        ({"chunks": (2, 2)}, "are none of the shape"),
        ({"chunks": 3, "shards": 7}, "do not divide the shard"),
        ({"compression": "lzma"}, "choose zstd:n, gzip:n, none"),
        ({"compression": "gzip:11"}, "level is 11"),
        ({"compression": "zstd:" + "9" * 5000}, "choose zstd:n, gzip:n, none"),
        ({"fill": 2.5}, "would be changed to be stored as int32"),
        ({"fill": "x"}, "x"),
        ({"dimension_names": ("a", "b")}, "dimension_names is no list of 1 names"),
        ({"codecs": [{"name": "crc32c"}]}, "stands at a place where it means nothing"),
        ({"attributes": {"a": float("nan")}}, "JSON"),
    ],
)
def test_arrays_that_can_not_be(root, how, message):
    with pytest.raises(InvalidValue, match=message):
        root.create_array("x", **{"shape": 10, "dtype": "int32", **how})
    assert list(root) == []
    with pytest.raises(UnsupportedCodec, match="'blosc'.*zarr-python"):
        root.create_array("x", 10, "int32", codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, "blosc"])


def test_chunks_too_large_to_be_written(root):
    array = root.create_array("x", 10, "f64", chunks=2**40)
    with pytest.raises(InvalidValue, match="are too many to be written"):
        array[0] = 1
    array = root.create_array("y", 10, "u8", chunks=1, shards=2**40)
    with pytest.raises(InvalidValue, match="are too many to be written"):
        array[0] = 1


def test_a_zip_file_is_read_only(tmp_path):
    made = mrec.zarr.create(MemoryStore())
    made.create_array("x", data=np.arange(5))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
        for key in made.store.walk():
            file.writestr(key, made.store.get(key))
    root = mrec.zarr.open(tmp_path / "a.zip")
    assert root["x"][1:3].tolist() == [1, 2]
    for write in (lambda: root["x"].resize((3,)), lambda: root.create_group("g"), lambda: root.delete("x")):
        with pytest.raises(ReadOnly, match="is read-only"):
            write()


# ---- hostile metadata: refused by name, before anything large is allocated ----------------------------------------

GOOD = {
    "zarr_format": 3, "node_type": "array", "shape": [10], "data_type": "int32",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "fill_value": 0,
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
}  # fmt: skip
SHARD = {
    "name": "sharding_indexed",
    "configuration": {"chunk_shape": [1], "codecs": GOOD["codecs"], "index_codecs": GOOD["codecs"]},
}


def grid(n):
    return {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": n}}}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shape": [2**62, 2**62], **grid([1, 1])}, CorruptData, r"the shape \[.*\] is too large"),
        ({**grid([2**62])}, CorruptData, r"the chunk shape \[.*\] is too large"),
        ({"shape": [2**60], **grid([2**60]), "codecs": [SHARD]}, CorruptData, "too many chunks in a shard"),
        ({"shape": [10.0]}, CorruptData, "the shape is no list of lengths"),
        ({"shape": {"0": 1}}, CorruptData, "the shape is no list of lengths"),
        ({"data_type": "float128"}, UnsupportedCodec, "the data type 'float128' is not known"),
        ({"data_type": []}, CorruptData, "data_type is no name"),
        ({"fill_value": 2**31}, CorruptData, "the fill value 2147483648 is no int32"),
        ({"codecs": "bytes"}, CorruptData, "codecs is no list"),
        ({"codecs": [{"name": "bytes", "configuration": [1]}]}, CorruptData, "is no name with a configuration"),
        ({"extra": {"must_understand": True}}, UnsupportedVersion, "the key 'extra' is not known"),
        ({"extra": 1}, UnsupportedVersion, "the key 'extra' is not known"),
        ({"storage_transformers": [{"name": "x"}]}, UnsupportedCodec, "storage transformers are not known"),
        ({"chunk_grid": {"name": "rectilinear"}}, UnsupportedCodec, "the chunk grid 'rectilinear' is not known"),
        ({"zarr_format": 2}, UnsupportedVersion, "zarr_format is 2"),
        ({"zarr_format": True}, UnsupportedVersion, "zarr_format is True"),
        ({"attributes": 5}, CorruptData, "attributes is no object"),
        ({"shape": [1] * 65, **grid([1] * 65)}, UnsupportedCodec, "an array of 65 axes; numpy has 64 at most"),
        ({"dimension_names": [5]}, CorruptData, "dimension_names is no list"),
    ],
)
def test_hostile_documents(change, error, message):
    store = MemoryStore({"zarr.json": json.dumps({**GOOD, **change}).encode()})
    with pytest.raises(error, match=message):
        mrec.zarr.open(store)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps(GOOD).replace("0}", "NaN}").replace('"fill_value": 0', '"fill_value": NaN'), "NaN is no JSON"),
        (json.dumps(GOOD)[:-1] + ', "shape": [5]}', "the key 'shape' stands twice"),
        ("[" * 5000 + "]" * 5000, "not strict JSON"),
        ('{"attributes": ' + "[" * 200 + "]" * 200 + "}", "nested more than 100 deep"),
    ],
)
def test_documents_that_are_no_strict_json(text, message):
    with pytest.raises(CorruptData, match=message):
        mrec.zarr.open(MemoryStore({"zarr.json": text.encode()}))


def test_nested_shards_are_bounded():
    codec = GOOD["codecs"]
    for _ in range(6):
        codec = [{"name": "sharding_indexed", "configuration": {**SHARD["configuration"], "codecs": codec}}]
    with pytest.raises(UnsupportedCodec, match="shards 4 deep in shards"):
        mrec.zarr.open(MemoryStore({"zarr.json": json.dumps({**GOOD, "codecs": codec}).encode()}))


def test_chunks_that_claim_more_than_they_hold():
    """A few bytes for terabytes: refused before memory is taken."""
    document = {**GOOD, "shape": [2**40], **grid([2**40])}
    document["codecs"] = [*GOOD["codecs"], {"name": "zstd", "configuration": {"level": 3, "checksum": False}}]
    store = MemoryStore({"zarr.json": json.dumps(document).encode(), "c/0": b"x" * 100})
    with pytest.raises(CorruptData, match="100 bytes can not hold a chunk of 4398046511104"):
        mrec.zarr.open(store)[0:10]
    document = {**GOOD, "shape": [2**40], **grid([2**40]), "codecs": [SHARD]}
    store = MemoryStore({"zarr.json": json.dumps(document).encode(), "c/0": b"x" * 100})
    with pytest.raises(CorruptData, match="the file has 100 bytes, less than its index"):
        mrec.zarr.open(store)[0:10]
    with pytest.raises(MemoryError):
        mrec.zarr.open(MemoryStore({"zarr.json": json.dumps({**GOOD, "shape": [2**60]}).encode()}))[...]


def test_entries_of_an_inner_index_are_not_trusted():
    """Of a shard in a shard; that of an outer one is read in C, and tried in test_damage.py."""
    inner = {"name": "sharding_indexed", "configuration": {**SHARD["configuration"], "chunk_shape": [5]}}
    outer = {**SHARD["configuration"], "chunk_shape": [5], "codecs": [inner], "index_location": "start"}
    document = {**GOOD, "codecs": [{"name": "sharding_indexed", "configuration": outer}]}
    for entry, message in [((0, 20), None), ((4, 20), "or into the index"), ((2**64 - 8, 20), "outside the shard")]:
        shard = np.arange(5, dtype="<i4").tobytes() + struct.pack("<QQ", *entry)
        values = {"zarr.json": json.dumps(document).encode(), "c/0": struct.pack("<QQ", 16, len(shard)) + shard}
        if message is None:
            assert mrec.zarr.open(MemoryStore(values))[:5].tolist() == [0, 1, 2, 3, 4]
            continue
        with pytest.raises(CorruptData, match=f"memory: chunk c/0: an entry of the index points .*{message}"):
            mrec.zarr.open(MemoryStore(values))[:5]


def test_a_zip_file_of_deep_directories(tmp_path):
    for depth in (256, 20000):
        with zipfile.ZipFile(tmp_path / "a.zip", "w") as file:
            file.writestr("a/" * depth + "zarr.json", "{}")
        with pytest.raises(CorruptData, match="directories deep"):
            mrec.zarr.open(tmp_path / "a.zip")


def test_what_is_read_into_has_the_type_and_shape(root):
    data = np.arange(24).reshape(6, 4)
    inner = sharding((1, 2), [BYTES])
    for name, how in (("plain", {}), ("in shards", {"codecs": [inner], "chunks": (2, 2), "shards": (4, 4)})):
        array = root.create_array(name, data=data, **how)
        for out in (
            *(np.zeros((6, 4), t) for t in ("f8", ">i8", "i4", object, "U9")),
            np.zeros((6, 5), "i8"),
            *(np.zeros(shape, "i8") for shape in ((), 6, (1, 6, 4), (0, 4))),
        ):
            before = out.copy()
            for selection in (..., slice(None), (slice(None), slice(None)), range(6)):
                with pytest.raises(InvalidValue, match=rf"{name}: out is .*, not int64\[6, 4\]"):
                    array.read(selection, out=out)
            assert np.array_equal(out, before)
        for out in (np.zeros((6, 4), "i8", "F"), np.zeros((12, 8), "i8")[::-2, ::2]):
            for selection in (..., range(6)):
                out[...] = 0
                assert array.read(selection, out=out) is out and np.array_equal(out, data)


def test_strings_in_an_array_of_objects(root):
    array = root.create_array("s", data=np.array([["a", "b\0"], ["", "é"]], object))
    assert array.dtype.kind == "T" and array[...].tolist() == [["a", "b\0"], ["", "é"]]
    for given in (np.array(["a", None], object), np.array([], object), [None]):
        with pytest.raises(InvalidValue, match="is no type of an array"):
            root.create_array("t", data=given)


def test_what_an_array_left_is_no_value_of_another(root):
    root.create_array("a/x", data=np.arange(4), chunks=2)
    root.store.delete("a/x/zarr.json")  # all that a kill let `delete` do
    root.store.set("a/x/notes.txt", b"...")
    with pytest.raises(InvalidValue, match=r"a/x/c/[01] was left by another .* store.delete_below\('a/x'\)"):
        root.create_array("a/x", 4, "i8", chunks=2)
    root.create_array("a/x", 4, "i8", chunks=2, separator=".")  # whose chunks have other keys
    root.delete("a/x")
    assert root.create_array("a/x", 4, "i8", chunks=2)[...].tolist() == [0] * 4


def test_keys_of_other_programs_stay_in_a_document():
    theirs = {"theirs": {"must_understand": False, "x": [1]}}
    store = MemoryStore({"zarr.json": json.dumps({**GOOD, **theirs}).encode()})
    array = mrec.zarr.open(store)
    array.attrs["k"] = 1
    array.resize(5)
    assert theirs.items() <= json.loads(store.get("zarr.json")).items()
    whole = {"zarr_format": 3, "node_type": "group", **theirs, "consolidated_metadata": {"metadata": {}}}
    store = MemoryStore({"zarr.json": json.dumps(whole).encode()})
    mrec.zarr.open(store).attrs["k"] = 1
    assert json.loads(store.get("zarr.json")) == {**whole, "attributes": {"k": 1}}


def test_unknown_content_that_need_not_be_understood():
    document = {**GOOD, "extra": {"must_understand": False}, "attributes": {"k": [None, 1]}}
    store = MemoryStore({"zarr.json": json.dumps(document).encode(), "notes.txt": b"..."})
    assert mrec.zarr.open(store)[...].tolist() == [0] * 10

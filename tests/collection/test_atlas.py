# SPDX-License-Identifier: BSD-3-Clause
"""Containers that we write, as atlas-python sees them; and the two faults of its writer, which ours has not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.collection import Collection, compact, merge

atlas: Any = pytest.importorskip("atlas._atlas")

NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
TYPES = [*NUMBERS, "timestamp_nanoseconds", "string", "binary"]


def sample(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    """Values of a type, odd ones among them."""
    rng = np.random.default_rng(seed)
    n = math.prod(shape)
    if dtype == "string":
        texts = [["", "a", "éé", "x" * 40, "0123456789abcdef"][i] for i in rng.integers(0, 5, n)]
        return np.array(texts, object).reshape(shape)
    if dtype == "binary":
        made = np.empty(n, object)
        made[:] = [bytes(rng.integers(0, 256, rng.integers(0, 20), np.uint8)) for _ in range(n)]
        return made.reshape(shape)
    if dtype.startswith("float"):
        values = rng.normal(size=n).astype(dtype)
        values[rng.random(n) < 0.3] = rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5])
        return values.reshape(shape)
    kind = "int64" if dtype == "timestamp_nanoseconds" else dtype
    info = np.iinfo(kind)
    values = rng.integers(info.min, info.max, n, kind, endpoint=True)
    return values.reshape(shape).view("M8[ns]") if kind != dtype else values.reshape(shape)


FILLS = {"string": ["", "a", "x" * 40], "binary": [None], "float32": [math.nan, 1.5, -0.0], "float64": [math.nan, 0.0]}
SHAPES = [((7,), None), ((7,), (3,)), ((5, 4, 3), (2, 9, 2)), ((0, 4), None), ((), None), ((6,), (20,))]


def write_all_types(path: Path, codec: str, threads: int, block_size: int) -> dict[str, dict[str, Any]]:
    """A collection with every type, chunking and fill; what was put in, by data set and array."""
    put: dict[str, dict[str, Any]] = {}
    with mrec.CollectionWriter(path, codec=codec, threads=threads, block_size=block_size) as writer:
        for n, (shape, chunk) in enumerate(SHAPES):
            name = f"set {n}"
            put[name] = {}
            with writer.add_dataset(name) as dataset:
                for dtype in TYPES:
                    for f, fill in enumerate([None, *FILLS.get(dtype, [7])]):
                        if f and fill is None:
                            continue
                        array = f"{dtype}.{f}"
                        dims = [f"a dimension with a long name {i}" if i == 1 else f"d{i}" for i in range(len(shape))]
                        dataset.define_array(array, dtype, dims, shape, chunk, fill)
                        values = sample(dtype, shape, n * 100 + f)
                        if math.prod(shape):
                            dataset.write_array(array, (0,) * len(shape), values)
                        put[name][array] = values
                dataset.define_array("never", "float32", ("x",), (5,), (2,), 2.5)
                attributes(dataset, n)
    return put


def attributes(dataset: Any, n: int) -> None:
    """Attributes of every kind."""
    given: dict[str, Any] = {"i": n, "f": n / 2, "s": "text" * n, "b": n % 2 == 0, "empty": [], "big": 2**63 + n}
    given |= {"ints": [1, -2], "floats": [0.5, n], "texts": ["a", "", "b" * 30], "bools": [True, False]}
    for key, value in given.items():
        dataset.set_attribute(key, value)
    for i, dtype in enumerate(("int8", "int16", "int32", "uint8", "uint16", "uint32", "float32")):
        dataset.set_attribute(f"as {dtype}", 5 + i, dtype=dtype)
    dataset.set_array_attribute("never", "units", "celsius")
    dataset.set_array_attribute("never", "a key longer than sixteen", [1, 2, 3])


def same(a: Any, b: Any) -> bool:
    return a == b or (a != a and b != b)


def check_as_atlas_sees_it(path: Path) -> None:
    """Names, order, types, shapes, chunks, dims, fills, attributes, statistics."""
    ours, theirs = mrec.open_collection(path), atlas.Atlas.open(str(path))
    assert theirs.list_datasets() == ours.names
    assert theirs.list_arrays() == sorted(v for v in ours.variables if ours.variable(v).names)
    for name, dataset in ours.items():
        view = theirs.dataset(name)
        assert view.ordinal == dataset.ordinal and view.list_arrays() == list(dataset)
        assert view.attributes() == {key: as_atlas(value) for key, value in dataset.attributes.items()}
        for array, mine in dataset.items():
            meta = view.array_meta(array)
            assert meta["shape"] == list(mine.shape) and meta["chunk_shape"] == list(mine.chunk_shape)
            assert meta["dimension_names"] == list(mine.dims) and same(meta["fill_value"], mine.fill_value)
            assert meta["dtype"] == mine.type
            assert view.array_attributes(array) == mine.attributes
            check_statistics(view.array_stats(array), mine.stats)
    for variable in ours.variables:
        kinds = {dataset[variable].type for dataset in ours.values() if variable in dataset}
        if len(kinds) == 1:  # of several they take one
            check_statistics(theirs.array_stats(variable), ours.stats(variable))


def as_atlas(value: Any) -> Any:
    """A time is a number there."""
    return int(value.view("i8")) if isinstance(value, np.datetime64) else value


def check_statistics(theirs: Any, mine: Any) -> None:
    assert (theirs["null_count"], theirs["row_count"]) == (mine.null_count, mine.row_count)
    for kind in ("min", "max"):
        value = getattr(mine, kind)
        value = int(value.view("i8")) if isinstance(value, np.datetime64) else value
        found = theirs[kind]
        if isinstance(value, float) and isinstance(found, float):
            assert np.float64(found).tobytes() == np.float64(value).tobytes() or (found != found and value != value)
        else:
            assert found == value


def check_values(found: Collection, put: dict[str, dict[str, Any]]) -> None:
    for name, arrays in put.items():
        for array, values in arrays.items():
            read = found[name][array][...]
            same_values = (
                read.tolist() == values.tolist() if read.dtype.kind in "OT" else read.tobytes() == values.tobytes()
            )
            assert read.shape == values.shape and same_values, (name, array)


@pytest.mark.parametrize("codec", ["zstd", "lz4", "none"])
@pytest.mark.parametrize(("threads", "block_size"), [(1, 8 << 20), (3, 64)])
def test_all_types(codec: str, threads: int, block_size: int, tmp_path: Path) -> None:
    path = tmp_path / "set"
    put = write_all_types(path, codec, threads, block_size)
    check_values(mrec.open_collection(path), put)
    check_as_atlas_sees_it(path)


def test_statistics_are_those_that_atlas_computes(tmp_path: Path) -> None:
    """The same values through both writers."""
    put = write_all_types(tmp_path / "mine", "none", 1, 8 << 20)
    theirs = atlas.AtlasWriter.create(str(tmp_path / "theirs"), "none")
    for n, (shape, chunk) in enumerate(SHAPES):
        dataset = theirs.add_dataset(f"set {n}")
        for array, values in put[f"set {n}"].items():
            dtype, f = array.split(".")
            if dtype == "binary" or (dtype == "string" and not shape):
                continue
            fill = [None, *FILLS.get(dtype, [7])][int(f)]
            dims = [f"d{i}" for i in range(len(shape))]
            dataset.define_array(array, dtype, dims, list(shape), list(chunk) if chunk else None, fill)
            if math.prod(shape):
                data = values.view("i8") if dtype == "timestamp_nanoseconds" else values
                data = data.astype(str) if dtype == "string" else data
                try:
                    dataset.write_array(array, [0] * len(shape), data)
                except (TypeError, ValueError):
                    dataset.write_array(array, [0] * len(shape), values)
        dataset.finish()
    theirs.finish()
    one, other = mrec.open_collection(tmp_path / "mine"), mrec.open_collection(tmp_path / "theirs")
    for name, dataset in other.items():
        for array, found in dataset.items():
            assert str(found.stats) == str(one[name][array].stats), (name, array)


def test_delete_is_seen_by_both(tmp_path: Path) -> None:
    write_all_types(tmp_path / "set", "zstd", 1, 8 << 20)
    mrec.open_collection(tmp_path / "set").delete(["set 1", "set 3"])
    check_as_atlas_sees_it(tmp_path / "set")
    atlas.Atlas.open(str(tmp_path / "set")).delete_dataset("set 0")
    assert mrec.open_collection(tmp_path / "set").names == ["set 2", "set 4", "set 5"]


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_merged_and_compacted(codec: str, tmp_path: Path) -> None:
    put = write_all_types(tmp_path / "a", codec, 1, 64)
    with mrec.CollectionWriter(tmp_path / "b", codec="none") as writer, writer.add_dataset("other") as dataset:
        dataset.define_array("float32.0", "int16", ("t",), (3,))
        dataset.write_array("float32.0", (0,), [1, 2, 3])
        dataset.set_attribute("when", np.datetime64("2020-01-01"))
    merge(tmp_path / "both", [tmp_path / "b", tmp_path / "a"])
    both = mrec.open_collection(tmp_path / "both")
    assert both.names == ["other", *put]
    assert both["other"].attributes == {"when": np.datetime64("2020-01-01", "ns")}
    check_values(both, put)
    check_as_atlas_sees_it(tmp_path / "both")
    both.delete(["other", "set 2"])
    before = both.nbytes
    compact(tmp_path / "both")
    small = mrec.open_collection(tmp_path / "both")
    assert small.names == [name for name in put if name != "set 2"] and small.nbytes < before and not small.deleted
    check_values(small, {name: arrays for name, arrays in put.items() if name != "set 2"})
    check_as_atlas_sees_it(tmp_path / "both")


# ---- the two faults ----------------------------------------------------------------------------------------------


def one_aborted(writer: Any, only: bool) -> None:
    """A data set that is finished, unless `only`, and one that is aborted after it wrote 1000."""
    if not only:
        kept = writer.add_dataset("kept")
        kept.define_array("x", "float32", ["t"], [2])
        kept.write_array("x", [0], np.array([1, 2], np.float32))
        kept.finish()
    gone = writer.add_dataset("gone")
    gone.define_array("x", "float32", ["t"], [2])
    gone.write_array("x", [0], np.array([1000, 1000], np.float32))
    gone.abort()


def test_aborted_values_are_in_no_statistics(tmp_path: Path) -> None:
    mine = mrec.CollectionWriter(tmp_path / "mine")
    one_aborted(mine, False)
    mine.finish()
    found = mrec.open_collection(tmp_path / "mine")
    assert found.stats("x").max == 2 and found.segment("x").footer.names() == ["kept"]
    assert atlas.Atlas.open(str(tmp_path / "mine")).array_stats("x")["max"] == 2


def test_the_other_writer_keeps_an_aborted_array(tmp_path: Path) -> None:
    theirs = atlas.AtlasWriter.create(str(tmp_path / "theirs"), "none")
    one_aborted(theirs, False)
    theirs.finish()
    found = mrec.open_collection(tmp_path / "theirs")
    assert "gone" in found.segment("x").footer.names()  # the fault
    assert found.names == ["kept"] and found.stats("x").max == 2  # which our reader does not fall for
    assert found.variable("x").names == ["kept"]


def test_abort_of_the_only_definer(tmp_path: Path) -> None:
    mine = mrec.CollectionWriter(tmp_path / "mine")
    one_aborted(mine, True)
    mine.finish()
    assert mrec.open_collection(tmp_path / "mine").variables == []
    assert atlas.Atlas.open(str(tmp_path / "mine")).list_datasets() == []
    theirs = atlas.AtlasWriter.create(str(tmp_path / "theirs"), "none")
    one_aborted(theirs, True)
    with pytest.raises(Exception, match=r".+"):
        theirs.finish()  # the fault: all is lost


def test_written_in_pieces_through_both(tmp_path: Path) -> None:
    """Values and statistics agree, whatever was written where, and again. Strings with a fill are left out: what lies
    in a chunk beside what is written is the fill with us, and empty with them."""
    rng = np.random.default_rng(5)
    values: dict[str, list[Any]] = {
        "float32": [0.0, -0.0, math.nan, 1.5, -3.0, math.inf],
        "float64": [0.0, -0.0, math.nan, 1.5],
        "int16": [0, 7, -3],
        "uint64": [0, 7, 2**64 - 1],
        "string": ["", "a", "b" * 20],
    }
    arrays = [(dtype, fill) for dtype in values for fill in (None, *FILLS.get(dtype, [7, 0]))]
    arrays = [(dtype, fill) for dtype, fill in arrays if dtype != "string" or not fill]
    mine = mrec.CollectionWriter(tmp_path / "mine", codec="none", block_size=64)
    theirs = atlas.AtlasWriter.create(str(tmp_path / "theirs"), "none")
    for n in range(12):
        pair = mine.add_dataset(f"set{n}"), theirs.add_dataset(f"set{n}")
        for k, (dtype, fill) in enumerate(arrays):
            shape = rng.integers(1, 7, 2).tolist()
            chunk = [None, [2, 3], [4, 1], [9, 9]][rng.integers(4)]
            for writer in pair:
                writer.define_array(f"x{k}", dtype, ["y", "x"], shape, chunk, fill)
            for _ in range(rng.integers(4)):
                start = [int(rng.integers(length)) for length in shape]
                size = [int(rng.integers(1, length - at + 1)) for length, at in zip(shape, start, strict=True)]
                piece = np.array(values[dtype], "U20" if dtype == "string" else dtype)
                piece = piece[rng.integers(0, len(piece), size)]
                for writer in pair:
                    writer.write_array(f"x{k}", start, piece)
        for writer in pair:
            writer.finish()
    mine.finish()
    theirs.finish()
    one, other = mrec.open_collection(tmp_path / "mine"), mrec.open_collection(tmp_path / "theirs")
    for name, dataset in other.items():
        for array, found in dataset.items():
            assert repr(one[name][array][...].tolist()) == repr(found[...].tolist()), (name, array)
            assert str(one[name][array].stats) == str(found.stats), (name, array)
    check_as_atlas_sees_it(tmp_path / "mine")

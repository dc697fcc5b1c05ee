# SPDX-License-Identifier: BSD-3-Clause
"""Values, times and places as users give them: stored as they are, or refused; never stored as something else."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.errors import InvalidValue, SchemaError

UTC_PLUS_2 = datetime.timezone(datetime.timedelta(hours=2))


def through(path: Path, dtype: str, values: Any, shape: Any = None, **options: Any) -> Any:
    """What is read of an array that these were written to."""
    shape = np.shape(values) if shape is None else shape
    with mrec.CollectionWriter(path) as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", dtype, [f"d{i}" for i in range(len(shape))], shape, **options)
        dataset.write_array("x", (0,) * len(shape), values)
    return mrec.open_collection(path)["a"]["x"][...]


@pytest.mark.parametrize(
    ("dtype", "values", "read"),
    [
        ("float32", np.arange(3, dtype=">f8"), [0, 1, 2]),
        ("float32", np.asfortranarray(np.arange(6.0).reshape(2, 3)), [[0, 1, 2], [3, 4, 5]]),
        ("float32", np.arange(6, dtype="f4")[::-2], [5, 3, 1]),
        ("float32", [np.inf, -np.inf, 0.1], np.float32([np.inf, -np.inf, 0.1]).tolist()),
        ("float32", [1 << 24, -3], [1 << 24, -3]),
        ("float64", [(1 << 63), 0], [2.0**63, 0.0]),
        ("float64", [], []),
        ("uint64", [(1 << 64) - 1], [(1 << 64) - 1]),
        ("float32", np.ma.array([1.0, 2.0], mask=[False, False]), [1, 2]),
        ("string", ["a\0b", "\0", "", "é" * 9], ["a\0b", "\0", "", "é" * 9]),
        ("string", "one", "one"),
        ("string", np.array(["a", "bc"]), ["a", "bc"]),
        ("binary", [b"a\0", b""], [b"a\0", b""]),
        ("binary", np.array([b"ab", b"c"]), [b"ab", b"c"]),
        ("M8[ns]", np.array(["2020-01-01", "NaT"], "M8[D]"), [1577836800 * 10**9, None]),
        ("M8[ns]", np.array(["NaT"], "M8[s]"), [None]),
        ("M8[ns]", np.array([5, -1]), [5, -1]),
    ],
    ids=repr,
)
def test_stored_as_they_are(dtype: str, values: Any, read: Any, tmp_path: Path) -> None:
    assert through(tmp_path / "set", dtype, values).tolist() == read


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("float32", [1e300]),
        ("float32", [-1e300, np.nan]),
        ("float32", [(1 << 24) + 1]),
        ("float64", [(1 << 53) + 1]),
        ("float64", [(1 << 64) - 1]),
        ("float64", [1j]),
        ("float64", np.ma.array([1.0, 2.0], mask=[False, True])),
        ("int8", [128]),
        ("int8", [1.0]),
        ("uint64", [-1]),
        ("int64", [1 << 63]),
        ("uint8", [True]),
        ("int8", [[1, 2], [3]]),
        ("int8", [None]),
        ("string", [b"a"]),
        ("string", [["a", "b"], ["c"]]),
        ("string", np.array(["a", None], np.dtypes.StringDType(na_object=None))),
        ("binary", [5]),
        ("binary", ["a"]),
        ("binary", [None]),
        ("M8[ns]", np.array(["3000-01-01"], "M8[D]")),
        ("M8[ns]", np.array(["1600-01-01"], "M8[s]")),
        ("M8[ns]", np.array([1500], "M8[ps]")),
        ("M8[ns]", [1.5]),
        ("M8[ns]", np.array([5], "m8[ns]")),
    ],
    ids=repr,
)
def test_values_that_would_become_others(dtype: str, values: Any, tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="'x'"):
        through(tmp_path / "set", dtype, values, (len(values),))
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("fill", [None, 0, 1])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_an_array_written_at_once_or_in_pieces(dtype: str, fill: Any, tmp_path: Path) -> None:
    """The core takes arrays that are stored as they are; chunks, copies and statistics are no other than elsewhere."""
    size = np.dtype(dtype).itemsize
    bits = np.random.default_rng(0).integers(0, 256, 60 * size, np.uint8).view(dtype)
    bits[:3] = (0, 1, -0.0 if dtype[0] == "f" else 1)
    if dtype[0] == "f":
        bits[3] = np.nan
    for name, values in (("line", bits), ("table", bits.reshape(4, 15)), ("point", bits[1].reshape(()))):
        path = tmp_path / name
        zeros = [0] * values.ndim
        with mrec.CollectionWriter(path, codec="none", block_size=100) as writer:
            for how in ("plain", "other zeros", "strided", "rows"):
                with writer.add_dataset(how) as dataset:
                    dataset.define_array("x", values.dtype, [f"d{i}" for i in zeros], values.shape, None, fill)
                    if how == "rows" and values.ndim:
                        for i in range(len(values)):
                            dataset.write_array("x", [i, *zeros[1:]], values[i : i + 1])
                    else:
                        start = [np.int64(0)] * values.ndim if how == "other zeros" else zeros
                        dataset.write_array("x", start, values.T.copy().T if how == "strided" else values)
        found = mrec.open_collection(path)
        null = 0 if fill is None else int((values == fill).sum())
        for how in found:
            array = found[how]["x"]
            assert array[...].tobytes() == values.tobytes() and array.shape == values.shape
            assert repr(array.stats) == repr(found["other zeros"]["x"].stats)
            assert array.stats.null_count == null and array.stats.row_count == values.size


@pytest.mark.parametrize("start", [(0.5,), None, "a", (None,), ([0],)])
def test_places_that_are_none(start: Any, tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "int8", ("t",), (3,))
        with pytest.raises(InvalidValue):
            dataset.write_array("x", start, [1])
        dataset.write_array("x", 1, [5])  # one axis needs no tuple
        dataset.write_array("x", (np.int64(2),), [6])
        dataset.write_array("x", [0], [])
    assert mrec.open_collection(tmp_path / "set")["a"]["x"][...].tolist() == [0, 5, 6]


@pytest.mark.parametrize(
    ("dtype", "dims", "shape"),
    [
        (None, ("t",), (3,)),
        (5, ("t",), (3,)),
        ({"list": ["int8"]}, ("t",), (3,)),
        ([("a", "i4")], ("t",), (3,)),
        ("m8[ns]", ("t",), (3,)),
        ("float16", ("t",), (3,)),
        ("int8", None, (3,)),
        ("int8", 5, (3,)),
        ("int8", (5,), (3,)),
        ("int8", ("\ud800",), (3,)),
        ("int8", ("t",), None),
        ("int8", ("t",), "3"),
        ("int8", ("t",), (True,)),
        ("int8", "abc", ((1 << 32) - 1,) * 3),  # more elements than can be counted
        ("int8", ["t"] * 65, (1,) * 65),
    ],
    ids=repr,
)
def test_declarations_that_are_none(dtype: Any, dims: Any, shape: Any, tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        with pytest.raises(SchemaError):
            dataset.define_array("x", dtype, dims, shape)
        dataset.set_attribute("still", "here")
    assert mrec.open_collection(tmp_path / "set")["a"].attributes == {"still": "here"}


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("float32", (1 << 24) + 1),
        ("float64", (1 << 53) + 1),
        ("float64", 10**400),
        ("float32", np.float64(1e300)),
        ("float32", np.ma.masked),
        ("int32", np.ma.masked),
        ("float64", np.timedelta64(5, "s")),
        ("float64", np.datetime64("2020")),
        ("int32", np.bool_(True)),
        ("float32", np.array([5.0])),
        ("float64", "nan"),
        ("uint8", -1),
    ],
    ids=repr,
)
def test_fills_that_are_none(dtype: str, fill: Any, tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        with pytest.raises(SchemaError, match=f"'x': the fill .* is no {dtype}"):
            dataset.define_array("x", dtype, ("t",), (1,), fill_value=fill)
    assert list(mrec.open_collection(tmp_path / "set")["a"]) == []


def test_fills_are_not_taken_for_one_another(tmp_path: Path) -> None:
    fills = [np.array(0.123456789012), np.array(0.123456789345), 0.0, -0.0, np.float32(0), np.float32(-0.0), np.nan]
    with mrec.CollectionWriter(tmp_path / "set") as writer:
        for i, fill in enumerate(fills):
            with writer.add_dataset(f"{i}") as dataset:
                dataset.define_array("x", "float64", ("t",), (1,), fill_value=fill)
    found = mrec.open_collection(tmp_path / "set")
    assert [str(dataset["x"].fill_value) for dataset in found.values()] == [str(float(fill)) for fill in fills]


def test_axes_that_can_be_looked_at_once(tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "int8", (dim for dim in "ab"), map(int, "23"), iter((1, 2)))
    array = mrec.open_collection(tmp_path / "set")["a"]["x"]
    assert array.dims == ("a", "b") and array.shape == (2, 3) and array.chunk_shape == (1, 2)


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    """Also the chunks before the one that cannot be stored."""
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "string", ("t",), (4,), (2,))
        dataset.write_array("x", (0,), ["a", "b", "c", "d"])
        with pytest.raises(InvalidValue, match="'x': .*surrogate"):
            dataset.write_array("x", (0,), ["e", "f", "\ud800", "h"])
    array = mrec.open_collection(tmp_path / "set")["a"]["x"]
    assert array[...].tolist() == ["a", "b", "c", "d"] and array.stats.max == b"d"


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        (np.datetime64("2020-01-01"), 1577836800 * 10**9),
        (np.datetime64("NaT", "s"), None),
        (datetime.date(2020, 1, 1), 1577836800 * 10**9),
        (datetime.datetime(2020, 1, 1, 0, 0, 0, 1), 1577836800 * 10**9 + 1000),
        (datetime.datetime(2020, 1, 1, 2, tzinfo=UTC_PLUS_2), 1577836800 * 10**9),
    ],
    ids=repr,
)
def test_times(value: Any, nanoseconds: Any, tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "M8[ns]", ("t",), (2,), fill_value=value)
        dataset.set_attribute("k", value)
    found = mrec.open_collection(tmp_path / "set")["a"]
    assert found.attributes["k"].dtype == "M8[ns]" and found.attributes["k"].tolist() == nanoseconds
    assert found["x"][...].tolist() == [nanoseconds] * 2


@pytest.mark.parametrize("value", [np.datetime64("3000-01-01"), datetime.date(9999, 1, 1), np.datetime64(1500, "ps")])
def test_times_that_do_not_fit(value: Any, tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        with pytest.raises(SchemaError):
            dataset.define_array("x", "M8[ns]", ("t",), (2,), fill_value=value)
        with pytest.raises(SchemaError):
            dataset.set_attribute("k", value)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.longdouble(1), None),
        (np.timedelta64(1, "ns"), None),
        (datetime.timedelta(1), None),
        ([datetime.date(2020, 1, 1)], None),
        ([1, 2], "timestamp_nanoseconds"),
        (np.ma.masked, None),
        (np.zeros((2, 2)), None),
        ({1}, None),
        (range(3), None),
        ([[]], None),
        ([(1 << 63), -1], None),
        (-(1 << 63) - 1, None),
        ("\ud800", None),
        (["\ud800"], None),
        ("yesterday", "timestamp_nanoseconds"),
        (5, "binary"),
        ("a", "binary"),
        ([5], "binary"),
        (b"a", "string"),
        (1e300, "float32"),
        ("a", "float64"),
        (300, "uint8"),
        (5, "bool"),
        ((1 << 53) + 1, "float64"),
        ((1 << 24) + 1, "float32"),
        ([(1 << 53) + 1, 0.5], None),
        (True, "float64"),
        (np.timedelta64(5, "s"), "int64"),
        (5, "f4"),
        (5, 5),
        (5, np.int8),
    ],
    ids=repr,
)
def test_attributes_that_are_none(value: Any, dtype: Any, tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        with pytest.raises(SchemaError, match="'k'"):
            dataset.set_attribute("k", value, dtype)
        dataset.define_array("x", "int8", ("t",), (1,))
        with pytest.raises(SchemaError, match="'k'"):
            dataset.set_array_attribute("x", "k", value, dtype)
    assert mrec.open_collection(tmp_path / "set")["a"].attributes == {}


@pytest.mark.parametrize(
    "name", ["a\0b", " ", "x" * 100_000, "é" * 8, "é" * 9, "x" * 63, "x" * 64, "x" * 65, "\n", "😀"]
)
def test_odd_names(name: str, tmp_path: Path) -> None:
    """Short ones stand in the tables of a segment, long ones elsewhere."""
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset(name) as dataset:
        dataset.define_array(name, "string", (name,), (1,), fill_value=name)
        dataset.set_attribute(name, name)
        dataset.set_array_attribute(name, name, [name])
    found = mrec.open_collection(tmp_path / "set")
    assert found.names == [name] and found.variables == [name] and found[name].attributes == {name: name}
    array = found[name][name]
    assert array.dims == (name,) and array.fill_value == name and array[...].tolist() == [name]
    assert array.attributes == {name: [name]}
    atlas = pytest.importorskip("atlas._atlas").Atlas.open(str(tmp_path / "set"))
    assert atlas.list_datasets() == atlas.list_arrays() == [name]
    assert atlas.dataset(name).array_meta(name)["fill_value"] == name
    assert atlas.dataset(name).attributes() == {name: name}

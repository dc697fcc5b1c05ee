# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong, and what is left of it then."""

from __future__ import annotations

import gc
import json
import struct
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.errors import (
    ClosedError,
    CorruptData,
    DatasetExists,
    InvalidValue,
    RecordExists,
    RecordLocked,
    RecordNotFound,
    SchemaError,
    UnknownName,
    UnsupportedVersion,
)


def put(writer: Any, name: str, values: Any = (1.0, 2.0)) -> None:
    """A data set with the array x."""
    with writer.add_dataset(name) as dataset:
        dataset.define_array("x", "float64", ("t",), (len(values),))
        dataset.write_array("x", (0,), values)


def make(path: Path, *names: str) -> Path:
    with mrec.CollectionWriter(path) as writer:
        for name in names or ("a", "b", "c"):
            put(writer, name)
    return path


def test_nothing_opens_before_the_end(tmp_path: Path) -> None:
    writer = mrec.CollectionWriter(tmp_path / "set")
    put(writer, "a")
    with pytest.raises(RecordNotFound):
        mrec.open_collection(tmp_path / "set")
    writer.finish()
    assert mrec.open_collection(tmp_path / "set").names == ["a"]
    with pytest.raises(ClosedError):
        writer.add_dataset("b")
    writer.abort()  # nothing to abort
    assert (tmp_path / "set" / "data.atlas").exists()


def test_an_exception_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), mrec.CollectionWriter(tmp_path / "set") as writer:
        put(writer, "a")
        _ = 1 / 0
    assert not (tmp_path / "set").exists()


def test_a_writer_that_is_lost_says_so(tmp_path: Path) -> None:
    writer = mrec.CollectionWriter(tmp_path / "set")
    put(writer, "a")
    with pytest.warns(ResourceWarning, match="never finished"):
        del writer
        gc.collect()
    assert not (tmp_path / "set").exists()


def test_a_data_set_that_is_lost_leaves_nothing_but_its_name(tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer:
        dataset = writer.add_dataset("a")
        dataset.define_array("only", "float64", ("t",), (2,))
        dataset.write_array("only", (0,), [9, 9])
        del dataset
        gc.collect()
        with pytest.raises(ValueError, match="cannot"), writer.add_dataset("b") as failing:
            failing.define_array("x", "float64", ("t",), (2,))
            raise ValueError("cannot")
        for name in ("a", "b"):
            with pytest.raises(DatasetExists):
                writer.add_dataset(name)
        put(writer, "c")
        assert len(writer) == 1
    found = mrec.open_collection(tmp_path / "set")
    assert found.names == ["c"] and found.variables == ["x"] and "only" not in found.footer.strings


def test_an_open_data_set_is_refused_at_the_end(tmp_path: Path) -> None:
    writer = mrec.CollectionWriter(tmp_path / "set")
    dataset = writer.add_dataset("a")
    with pytest.raises(InvalidValue, match="'a' is open"):
        writer.finish()
    dataset.finish()
    with pytest.raises(ClosedError):
        dataset.set_attribute("late", 1)
    writer.finish()
    assert mrec.open_collection(tmp_path / "set")["a"].attributes == {}


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", "_a", "\ud800", 5])
def test_names_that_are_refused(name: Any, tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer:
        with pytest.raises(InvalidValue):
            writer.add_dataset(name)
        with writer.add_dataset("fine") as dataset, pytest.raises(InvalidValue):
            dataset.define_array(name, "float64", ("t",), (2,))


def test_what_an_array_may_not_be(tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        for dtype in ("bool", np.bool_, "complex128", "list", object, "f16"):
            with pytest.raises(SchemaError):
                dataset.define_array("x", dtype, ("t",), (2,))
        with pytest.raises(SchemaError, match="no fill"):
            dataset.define_array("x", "binary", ("t",), (2,), fill_value=b"")
        for dtype, fill in (
            ("int8", 200),
            ("int8", 1.5),
            ("uint8", -1),
            ("float32", "a"),
            ("string", 1),
            ("int8", True),
        ):
            with pytest.raises(SchemaError):
                dataset.define_array("x", dtype, ("t",), (2,), fill_value=fill)
        for shape, chunk in (
            ((2,), (0,)),
            ((-1,), None),
            ((2, 2), None),
            ((2,), (2, 2)),
            ((1 << 32,), None),
            ((1.5,), None),
        ):
            with pytest.raises(SchemaError):
                dataset.define_array("x", "int8", ("t",), shape, chunk)
        dataset.define_array("x", "int8", ("t",), (2,))
        with pytest.raises(SchemaError, match="already"):
            dataset.define_array("x", "int8", ("t",), (2,))
        for values in ([300, 1], [0.5, 1], ["a", "b"]):
            with pytest.raises(SchemaError):
                dataset.write_array("x", (0,), values)
        for start, values in (((1,), [1, 2]), ((-1,), [1]), ((0, 0), [1]), ((0,), [[1]])):
            with pytest.raises(InvalidValue):
                dataset.write_array("x", start, values)
        with pytest.raises(UnknownName):
            dataset.write_array("y", (0,), [1])
        for value in (None, {}, [1, "a"], [[1]], 1 << 64, 1j):
            with pytest.raises(SchemaError):
                dataset.set_attribute("k", value)


def test_a_chunk_too_large_to_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of the format, made small."""
    monkeypatch.setattr("mrec.collection.packing.MOST", 100)
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "float64", ("t",), (20,))
        with pytest.raises(InvalidValue, match="chunk"):
            dataset.write_array("x", (0,), np.zeros(20))


def test_what_is_there_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "set")
    with pytest.raises(RecordExists):
        mrec.CollectionWriter(tmp_path / "set")
    writer = mrec.CollectionWriter(tmp_path / "set", overwrite=True)
    with pytest.raises(RecordLocked):
        mrec.CollectionWriter(tmp_path / "set", overwrite=True)
    writer.abort()
    assert mrec.open_collection(tmp_path / "set").names == ["a", "b", "c"]


def test_a_stale_mask_hides_nothing(tmp_path: Path) -> None:
    make(tmp_path / "set")
    old = mrec.open_collection(tmp_path / "set")
    old.delete(["a", "b"])
    assert old["c"]["x"].shape == (2,)
    with mrec.CollectionWriter(tmp_path / "set", overwrite=True) as writer:
        put(writer, "d", [5.0])
    assert mrec.open_collection(tmp_path / "set").names == ["d"]
    assert old.names == ["c"] and old["c"]["x"][...].tolist() == [1, 2]  # it stays what it was
    with pytest.raises(mrec.MrecError, match="another container"):
        old.delete("c")


def test_ordinals_are_those_of_adding(tmp_path: Path) -> None:
    """Whatever finishes first, in whatever thread; the bytes too, the time aside."""
    for path in ("one", "two"):
        with mrec.CollectionWriter(tmp_path / path, threads=2, block_size=64) as writer:
            datasets = [writer.add_dataset(f"set{i}") for i in range(8)]

            def work(dataset: Any) -> None:
                dataset.define_array("x", "float64", ("t",), (20,), (3,))
                dataset.write_array("x", (0,), np.arange(20.0) + dataset.ordinal)
                dataset.finish()

            threads = [threading.Thread(target=work, args=(d,)) for d in reversed(datasets)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        found = mrec.open_collection(tmp_path / path)
        assert found.names == [f"set{i}" for i in range(8)]
        assert all((found[f"set{i}"]["x"][...] == np.arange(20.0) + i).all() for i in range(8))


def test_the_same_input_makes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_000_000_000)
    one, two = (make(tmp_path / name) / "data.atlas" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


def test_partial_writes_read_back_what_was_spilled(tmp_path: Path) -> None:
    values = np.zeros((6, 6))
    with mrec.CollectionWriter(tmp_path / "set", block_size=64) as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "float64", ("y", "x"), (6, 6), (4, 4))
        for i in range(6):
            for k in range(0, 6, 2):
                dataset.write_array("x", (i, k), [[i * 10 + k, 5]])
                values[i, k : k + 2] = i * 10 + k, 5
    found = mrec.open_collection(tmp_path / "set")["a"]["x"]
    assert np.array_equal(found[...], values) and found.stats.max == values.max() and found.stats.row_count == 36


# ---- reading ------------------------------------------------------------------------------------------------------


def header(version: int, count: int, *ordinals: int) -> bytes:
    return b"ATLM" + struct.pack(f"<II{len(ordinals)}I", version, count, *ordinals)


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (b"", ["a", "b", "c"]),
        (header(1, 0), ["a", "b", "c"]),
        (header(1, 3, 2, 0, 2), ["b"]),
        (header(1, 5, 1) + b"\0\0", ["a", "c"]),
        (header(1, 2, 1, 7), ["a", "c"]),
    ],
)
def test_masks(mask: bytes, names: list[str], tmp_path: Path) -> None:
    (make(tmp_path / "set") / "deleted.mask").write_bytes(mask)
    if mask[-4:] == struct.pack("<I", 7):
        with pytest.warns(UserWarning, match="names data set 7"):
            assert mrec.open_collection(tmp_path / "set").names == names
    else:
        assert mrec.open_collection(tmp_path / "set").names == names


@pytest.mark.parametrize("mask", [b"ATLM", b"ATLX" + header(1, 0)[4:], header(2, 0), header(1, 0)[:11]])
def test_masks_that_are_none(mask: bytes, tmp_path: Path) -> None:
    (make(tmp_path / "set") / "deleted.mask").write_bytes(mask)
    with pytest.raises((CorruptData, UnsupportedVersion)):
        mrec.open_collection(tmp_path / "set")


def damaged(tmp_path: Path, change: Callable[[bytearray], object]) -> Path:
    path = make(tmp_path / "set") / "data.atlas"
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return path.parent


def test_damage_is_found_with_checksums(tmp_path: Path) -> None:
    """Every bit of every segment."""
    path = make(tmp_path / "set") / "data.atlas"
    whole = path.read_bytes()
    end = mrec.open_collection(path.parent).checksums.footer[0]
    for at in range(8, end, 7):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 4,)) + whole[at + 1 :])
        with pytest.raises(CorruptData):
            for dataset in mrec.open_collection(path.parent).values():
                dataset["x"][...]


def test_a_damaged_name_hides_no_data_set(tmp_path: Path) -> None:
    """Without checksums; the name in a variable's table is changed, the catalogue is whole."""
    path = tmp_path / "set"
    with mrec.CollectionWriter(path, codec="none") as writer:
        for name in ("first", "other"):
            put(writer, name)
    (path / "data.atlas.crc").unlink()
    data = (path / "data.atlas").read_bytes()
    (path / "data.atlas").write_bytes(data.replace(b"other" + b"\xff" * 11, b"ather" + b"\xff" * 11))
    found = mrec.open_collection(path)
    assert found.names == ["first", "other"] and found["first"]["x"][...].tolist() == [1, 2]
    for ask in (found.variable, found.stats, found.stats_by_dataset):
        with pytest.raises(CorruptData, match="variable 'x': it lacks what the data set 'other' has"):
            ask("x")


def test_a_damaged_key_hides_no_attribute(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with mrec.CollectionWriter(path) as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "int8", (), ())
        dataset.set_attribute("month", 1)
        dataset.set_array_attribute("x", "units", "K")
    (path / "data.atlas.crc").unlink()
    data = (path / "data.atlas").read_bytes()
    (path / "data.atlas").write_bytes(data.replace(b"month\xff", b"nonth\xff").replace(b"units\xff", b"inits\xff"))
    found = mrec.open_collection(path)
    for args in (("month",), ("units", "x")):
        with pytest.raises(CorruptData, match="it lacks what the data set 'a' has"):
            found.attribute(*args)
    assert found.attribute("other") == {} and mrec.open_collection(path).attribute("month", "x") == {}
    with pytest.raises(UnknownName):
        found.attribute("month", "_datasets")


def test_damaged_ends(tmp_path: Path) -> None:
    whole = (make(tmp_path / "set") / "data.atlas").read_bytes()
    for data in (b"", b"ATLS", whole[:-1], whole[:-16] + b"\xff" * 8 + whole[-8:]):
        (tmp_path / "set" / "data.atlas").write_bytes(data)
        with pytest.raises(CorruptData):
            mrec.open_collection(tmp_path / "set")
    (tmp_path / "set" / "data.atlas").write_bytes(whole[:-8] + struct.pack("<I", 9) + whole[-4:])
    with pytest.raises(UnsupportedVersion):
        mrec.open_collection(tmp_path / "set")


def test_checksums_of_another_container_are_not_used(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one"), make(tmp_path / "other", "long name")
    (one / "data.atlas.crc").write_bytes((other / "data.atlas.crc").read_bytes())
    with pytest.warns(UserWarning, match="another container"):
        assert mrec.open_collection(one)["a"]["x"][...].tolist() == [1, 2]
    (one / "data.atlas.crc").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mrec.open_collection(one)["a"]["x"][...].tolist() == [1, 2]


def test_the_checksum_file_is_as_documented(tmp_path: Path) -> None:
    path = make(tmp_path / "set")
    found = json.loads((path / "data.atlas.crc").read_text())
    data = (path / "data.atlas").read_bytes()
    assert found["version"] == 1 and found["size"] == len(data)
    google = pytest.importorskip("google_crc32c")
    for entry in [found["footer"], *found["segments"]]:
        assert entry["crc32c"] == google.value(data[entry["offset"] : entry["offset"] + entry["size"]])
    assert [entry["name"] for entry in found["segments"]] == ["x"]

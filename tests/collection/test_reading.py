# SPDX-License-Identifier: BSD-3-Clause
"""Collections as they are read: indices, what is there in part, conditions, after the end."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.errors import ClosedError, InvalidValue
from tests.collection.test_failures import make


def test_indices_that_are_none(tmp_path: Path) -> None:
    array = mrec.open_collection(make(tmp_path / "set"))["a"]["x"]
    for index in (
        np.array([0, 1]),
        [0, 1],
        True,
        np.True_,
        np.array([True, False]),
        None,
        1.0,
        "x",
        (slice(None), 1.0),
    ):
        with pytest.raises((InvalidValue, IndexError)):
            array[index]
    for index in ((0, 0), (..., ...), 2, -3):
        with pytest.raises(IndexError):
            array[index]
    assert array[np.int64(1)] == array[np.array(1)] == array[-1] == array[..., 1] == 2


@pytest.mark.parametrize("index", [..., (slice(9, 990_002, 100_000),), (slice(None, None, -1),), 500_000, 3])
def test_few_chunks_of_very_many(index: Any, tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "int8", ("t",), (1_000_000,), (1,), fill_value=7)
        for i in (9, 500_000, 999_999):
            dataset.write_array("x", (i,), [i % 100])
    array = mrec.open_collection(tmp_path / "set")["a"]["x"]
    wanted = np.full(1_000_000, 7, np.int8)
    wanted[[9, 500_000, 999_999]] = 9, 0, 99
    tracemalloc.start()
    found = array[index]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(found, wanted[index]) and most < 4_000_000


def test_parts_of_many_chunks(tmp_path: Path) -> None:
    values = np.arange(7 * 9 * 5).reshape(7, 9, 5)
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "int64", list("abc"), values.shape, (2, 4, 5), fill_value=-1)
        dataset.write_array("x", (0, 3, 0), values[:5, 3:])
    wanted = values.copy()
    wanted[5:], wanted[:, :3] = -1, -1
    array = mrec.open_collection(tmp_path / "set")["a"]["x"]
    for index in ((), 6, (slice(1, 6, 2), 8), (..., slice(4, 0, -3)), (3, 3, 3), (slice(2, 2),), (slice(None), 0)):
        assert np.array_equal(array[index], wanted[index]), index


def test_nothing_is_read_after_the_end(tmp_path: Path) -> None:
    found = mrec.open_collection(make(tmp_path / "set"))
    array, variable = found["a"]["x"], found.variable("x")
    with found:
        assert array[...].tolist() == [1, 2]
    reads: list[Callable[[], Any]] = [
        lambda: mrec.collection.Collection(found.place),
        lambda: found.delete("a"),
        lambda: found.checksums and found.place.get("deleted.mask"),
    ]
    make(tmp_path / "set2")  # another takes the descriptor
    for read in (*reads, lambda: array[...], variable.read):
        with pytest.raises(ClosedError):
            read()
    found.close()
    assert mrec.open_collection(tmp_path / "set").names == ["a", "b", "c"]


def test_conditions(tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer:
        for name, values in (("low", [1.0, 2.0]), ("high", [5.0, np.nan]), ("null", [np.nan, np.nan])):
            with writer.add_dataset(name) as dataset:
                dataset.define_array("x", "float64", ("t",), (2,), fill_value=np.nan)
                dataset.write_array("x", (0,), values)
                if name == "high":
                    dataset.define_array("y", "string", ("t",), (1,))
                    dataset.write_array("y", (0,), ["text"])
        writer.add_dataset("empty").finish()
    select = mrec.open_collection(tmp_path / "set").select
    assert select(lambda s: s["x"].max > 3) == ["high"]
    assert select(lambda s: s["x"].max < 9) == ["low", "high"]
    assert select(lambda s: s["x"].null_count > 0) == ["high", "null"]
    assert select(lambda s: s["x"].null_count == s["x"].row_count) == ["null"]
    assert select(lambda s: s["y"].min <= b"u") == ["high"]
    assert select(lambda s: "y" not in s) == ["low", "null", "empty"]
    assert select(lambda s: s.get("x") is None) == ["empty"]
    assert select(lambda s: len(s) == 2 and list(s) == ["x", "y"]) == ["high"]
    assert select(lambda s: s["neither"].max > 3) == []
    with pytest.raises(KeyError, match="own"):
        select(lambda s: {}["own"])

# SPDX-License-Identifier: BSD-3-Clause
"""Attributes: of every type, over all data sets and of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import mrec

NARROW = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]

#: (value, type to store it as), one for each tag and some of the same value.
EVERY: list[tuple[Any, str | None]] = [
    *((np.iinfo(dtype).min, dtype) for dtype in NARROW),
    *((np.iinfo(dtype).max, dtype) for dtype in NARROW),
    *(([1, 0, np.iinfo(dtype).max], dtype) for dtype in NARROW),
    *((value, dtype) for value in (0.1, float("inf"), -0.0) for dtype in ("float32", "float64")),
    *(([0.1, -0.0], dtype) for dtype in ("float32", "float64")),
    *((value, None) for value in (True, False, [True, False], "", "text", "é" * 20, ["a", "", "b" * 30], [])),
    *(
        (value, None)
        for value in (b"", b"\0\xff" * 9, [b"", b"\0" * 20], np.datetime64("2020-01-01T00:00:00.000000001"))
    ),
]


def stored(value: Any, dtype: str | None) -> Any:
    """What a reader has."""
    if dtype != "float32":
        return value
    return np.float32(value).tolist()


def bits(value: Any) -> Any:
    return value.hex() if isinstance(value, float) else [bits(v) for v in value] if isinstance(value, list) else value


def write(path: Path, array: bool) -> mrec.collection.Collection:
    """A data set for each, which has it as `k`; of itself, or of its array."""
    with mrec.CollectionWriter(path) as writer:
        for i, (value, dtype) in enumerate(EVERY):
            with writer.add_dataset(f"set{i}") as dataset:
                dataset.define_array("x", "int8", ("t",), (1,))
                dataset.set_attribute("other", i)
                if array:
                    dataset.set_array_attribute("x", "k", value, dtype)
                else:
                    dataset.set_attribute("k", value, dtype)
    return mrec.open_collection(path)


def check(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert list(found) == list(wanted)
    for name, value in found.items():
        assert type(value) is type(wanted[name]) and bits(value) == bits(wanted[name]), name


def test_one_attribute_over_all_data_sets(tmp_path: Path) -> None:
    found = write(tmp_path / "set", False)
    wanted = {f"set{i}": stored(value, dtype) for i, (value, dtype) in enumerate(EVERY)}
    check(found.attribute("k"), wanted)
    check({name: dataset.attributes["k"] for name, dataset in found.items()}, wanted)
    assert found.attribute("other") == {f"set{i}": i for i in range(len(EVERY))}
    assert found.attribute("none has it") == {}


def test_one_attribute_of_a_variable(tmp_path: Path) -> None:
    found = write(tmp_path / "set", True)
    wanted = {f"set{i}": stored(value, dtype) for i, (value, dtype) in enumerate(EVERY)}
    check(found.attribute("k", "x"), wanted)
    check({name: dataset["x"].attributes["k"] for name, dataset in found.items()}, wanted)
    assert found.attribute("other", "x") == {}
    found.delete(["set0", "set7"])
    assert list(found.attribute("k", "x")) == found.names


def test_lists_are_the_callers_own(tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer:
        for name in ("a", "b"):
            with writer.add_dataset(name) as dataset:
                dataset.set_attribute("k", [1, 2])
    found = mrec.open_collection(tmp_path / "set")
    found.attribute("k")["a"].append(3)
    assert found.attribute("k") == {"a": [1, 2], "b": [1, 2]}

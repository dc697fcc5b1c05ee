# SPDX-License-Identifier: BSD-3-Clause
"""What is on disk, seen without mrec (through zarr-python, as JSON, as plain bytes), and beside it what mrec reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import mrec


def write(path: Path, schema: mrec.Schema, **options: Any) -> mrec.TrajectoryWriter:
    """A new record. It does not sync, which is most of the time of a small test."""
    return mrec.TrajectoryWriter(path, schema, **{"durable": False, **options})


def arrays(path: Path) -> dict[str, np.ndarray]:
    """Every array below trajectory/, by its path there, as zarr-python decodes it."""
    group = zarr.open_group(path / "trajectory", mode="r")
    return {name: np.asarray(a[...]) for name, a in group.members(max_depth=None) if isinstance(a, zarr.Array)}


def array(path: Path, name: str) -> np.ndarray:
    return np.asarray(zarr.open_array(path / "trajectory" / name, mode="r")[...])


def document(path: Path, node: str = "") -> dict[str, Any]:
    return json.loads((path / "trajectory" / node / "zarr.json").read_text())


def attributes(path: Path, node: str = "") -> dict[str, Any]:
    return document(path, node).get("attributes", {})


def names(path: Path, node: str = "") -> set[str]:
    """The arrays and groups directly below a node."""
    return {child.parent.name for child in (path / "trajectory" / node).glob("*/zarr.json")}


def extents(path: Path, node: str) -> tuple[int, int]:
    """Rows of a shard, and of a chunk."""
    found = document(path, node)
    inner = found["codecs"][0]["configuration"]["chunk_shape"]
    return found["chunk_grid"]["configuration"]["chunk_shape"][0], inner[0]


def codecs(path: Path, node: str) -> list[str]:
    """The codecs of a chunk, with their level or element size."""
    found = []
    for codec in document(path, node)["codecs"][0]["configuration"]["codecs"]:
        extra = codec.get("configuration", {})
        number = extra.get("level", extra.get("elementsize"))
        found.append(codec["name"] if number is None else f"{codec['name']}:{number}")
    return found


def tree(path: Path) -> dict[str, bytes]:
    """Every file, with its bytes."""
    return {str(f.relative_to(path)): f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()}


def size(path: Path) -> int:
    return sum(len(data) for data in tree(path).values())


def frames(path: Path) -> list[mrec.Frame]:
    with mrec.open(path) as record:
        return list(record.trajectory)


def assert_bits(got: Any, want: Any, where: str = "") -> None:
    """The same type, shape and bits; strings are compared as such."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{where}: shape {got.shape}, not {want.shape}"
    if want.dtype.kind in "OTU":
        assert got.tolist() == want.tolist(), where
    else:
        assert got.dtype == want.dtype, f"{where}: {got.dtype}, not {want.dtype}"
        assert got.tobytes() == want.tobytes(), f"{where}: {got!r} is not {want!r}"


def assert_same_frames(got: Iterable[mrec.Frame], want: Iterable[mrec.Frame]) -> None:
    got, want = list(got), list(want)
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g == w

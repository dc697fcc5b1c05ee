"""The golden stores under data/golden, and the values that went into them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mrec.dtypes import DTYPES, TAGS

ROOT = Path(__file__).parent / "data" / "golden"
TRAJECTORIES = ["fixed_raw", "fixed_p3", "fixed_p3_zip", "large_frames", "ragged"]


def path(name: str) -> Path:
    """A store: a directory, or a zip file."""
    directory = ROOT / f"{name}.mrec"
    return directory if directory.exists() else ROOT / f"{name}.mrec.zip"


def load(name: str) -> Any:
    """The values of a store."""
    return json.loads((ROOT / f"{name}.json").read_text())


def scalar(dtype: str, value: Any) -> Any:
    """One value: floats are hexadecimal, integers decimal strings, complex numbers pairs."""
    if dtype == "f64":
        return float.fromhex(value)
    if dtype in ("c64", "c128"):
        return complex(float.fromhex(value[0]), float.fromhex(value[1]))
    return value if dtype in ("string", "bool") else int(value)


def column(entry: Any) -> tuple[np.ndarray, np.ndarray]:
    """The values of a column, and which rows are valid."""
    if "rule" in entry:
        assert entry["rule"] == "arange(330000) % 1000 / 8"
        values = np.arange(330000) % 1000 / 8
    else:
        dtype = entry["dtype"]
        values = np.array([scalar(dtype, v) for v in entry["values"]], DTYPES[dtype].numpy).reshape(entry["shape"])
    return values, np.array(entry.get("mask", [True] * len(values)), np.bool_)


def value(tag: str, given: Any) -> Any:
    """A per-step or document value."""
    if tag == "json":
        return given
    base = TAGS[tag].dtype.name
    return scalar(base, given) if TAGS[tag].width == 1 else np.array([scalar(base, v) for v in given])


def check_column(found: np.ndarray, entry: Any) -> None:
    """The same type, shape, null rows and, outside these, bits."""
    values, valid = column(entry)
    assert found.shape == values.shape and found.dtype == values.dtype
    null = np.ma.getmaskarray(found).reshape(len(found), int(np.prod(found.shape[1:])))
    assert np.array_equal(~null.any(axis=1), valid)
    found, values = np.asarray(found)[valid], values[valid]
    if entry["dtype"] == "string":
        assert found.tolist() == values.tolist()
    else:
        assert found.tobytes() == values.tobytes()


def check_box(found: Any, entry: Any) -> None:
    """The same cell."""
    if entry is None:
        assert found is None
        return
    assert found.vectors.ravel().tolist() == [scalar("f64", v) for v in entry["vectors"]]
    assert found.origin.tolist() == [scalar("f64", v) for v in entry["origin"]]
    assert found.periodic.tolist() == entry["boundary"]

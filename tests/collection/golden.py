# SPDX-License-Identifier: BSD-3-Clause
"""Collections that another program wrote, and what it put into them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "data" / "golden" / "collection"
NAMES = ["all_types_zstd", "all_types_lz4", "all_types_none"]


def expected(name: str) -> Any:
    """The document beside a collection."""
    return json.loads((FOLDER / f"{name}.json").read_text())


def number(value: Any) -> Any:
    """A number as it stands in the document."""
    if isinstance(value, str):
        return float.fromhex(value) if "x" in value or value in ("nan", "inf", "-inf") else int(value)
    return value


def values(array: Any) -> np.ndarray[Any, Any]:
    """The values of an array."""
    dtype = array["dtype"]
    if dtype == "string":
        return np.array(array["values"], np.dtypes.StringDType()).reshape(array["shape"])
    stamp = dtype == "timestamp_nanoseconds"
    made = np.array([number(value) for value in array["values"]], "i8" if stamp else dtype).reshape(array["shape"])
    return made.view("M8[ns]") if stamp else made


def attribute(value: Any) -> Any:
    """An attribute: floats stand as hexadecimal texts."""
    if isinstance(value, list):
        return [attribute(item) for item in value]
    return float.fromhex(value) if isinstance(value, str) and value.lstrip("-").startswith("0x") else value


def bound(dtype: str, value: Any) -> Any:
    """A minimum or maximum."""
    if value is None:
        return None
    if dtype == "string":
        return value.encode("latin-1")
    return np.datetime64(value, "ns") if dtype == "timestamp_nanoseconds" else number(value)


def equal(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """The same bits; the documents do not say which NaN."""
    if a.dtype.kind != "f":
        return a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()
    nan = np.isnan(b)
    return a.dtype == b.dtype and np.array_equal(np.isnan(a), nan) and a[~nan].tobytes() == b[~nan].tobytes()

# SPDX-License-Identifier: BSD-3-Clause
"""Bit-for-bit comparison of what a reader returned with what the model says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tests.interop.model import Json, null_rows


def assert_same(got: Any, want: np.ndarray, where: str) -> None:
    """The same shape, type and bits; rows that are null in `want` are not looked at."""
    got = np.asarray(np.ma.getdata(got))
    valid = ~np.ma.getmaskarray(want)
    want = np.ma.getdata(want)
    assert got.shape == want.shape, f"{where}: shape {got.shape}, not {want.shape}"
    if want.dtype == object:
        texts = [str(text) for text in got[valid].ravel()]
        wanted = want[valid].ravel().tolist()
        if wanted and isinstance(wanted[0], Json):
            texts, wanted = [json.loads(text) for text in texts], [item.value for item in wanted]
        assert texts == wanted, where
        return
    assert got.dtype == want.dtype, f"{where}: {got.dtype}, not {want.dtype}"
    if got[valid].tobytes() != want[valid].tobytes():
        differ = np.argwhere(_bytes(got) != _bytes(want))
        raise AssertionError(f"{where}: {len(differ)} bytes differ, the first of element {differ[0][:-1]}")


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array)[..., None].view(np.uint8)


def assert_frames(got: Any, want: Any, where: str) -> None:
    """Every frame, every value: got and want are iterables of model.Frame."""
    got, want = list(got), list(want)
    assert len(got) == len(want), f"{where}: {len(got)} frames, not {len(want)}"
    for g, w in zip(got, want, strict=True):
        at = f"{where}, step {w.step}"
        assert g.step == w.step, at
        assert _float_bits(g.time) == _float_bits(w.time), f"{at}: time {g.time!r}, not {w.time!r}"
        assert (g.cell and g.cell.bits()) == (w.cell and w.cell.bits()), f"{at}: {g.cell}, not {w.cell}"
        assert g.blocks.keys() == w.blocks.keys(), at
        for block, columns in w.blocks.items():
            assert g.blocks[block].keys() == columns.keys(), f"{at}, {block}"
            for name, column in columns.items():
                assert_same(g.blocks[block][name], column, f"{at}, {block}/{name}")
                assert (null_rows(g.blocks[block][name]) == null_rows(column)).all(), f"{at}, {block}/{name}: nulls"
        assert g.values.keys() == w.values.keys(), at
        for name, value in w.values.items():
            assert _same_value(g.values[name], value), f"{at}, {name}: {g.values[name]!r}, not {value!r}"


def _float_bits(value: float | None) -> bytes | None:
    return None if value is None else np.float64(value).tobytes()


def _same_value(got: Any, want: Any) -> bool:
    """Equal, and for floats bit for bit; sequences element by element, whatever holds them."""
    if isinstance(want, float):
        return isinstance(got, float) and _float_bits(got) == _float_bits(want)
    if isinstance(want, list | tuple):
        return len(got) == len(want) and all(map(_same_value, got, want))
    if isinstance(want, dict):
        return got.keys() == want.keys() and all(_same_value(got[key], item) for key, item in want.items())
    return bool(got == want) and isinstance(got, bool | np.bool_) == isinstance(want, bool)

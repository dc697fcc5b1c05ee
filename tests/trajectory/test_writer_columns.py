# SPDX-License-Identifier: BSD-3-Clause
"""Columns: what goes in stands on disk, bit for bit, as zarr-python and as mrec read it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import array, arrays, assert_bits, attributes, document, frames, write

EXTREMES = {
    "bool": np.array([True, False, True]),
    **{f"int{n}": np.array([-(2 ** (n - 1)), 2 ** (n - 1) - 1, 1], f"i{n // 8}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": np.array([0, 2**n - 1, 1], f"u{n // 8}") for n in (8, 16, 32, 64)},
    "float64": np.array([-0.0, 5e-324, np.nan]),
    "complex64": np.array([-0.0 + 1j, np.inf - 1j, complex(np.nan, 1e-45)], "complex64"),
    "complex128": np.array([-0.0 + 5e-324j, np.inf - 1j, complex(np.nan, 1e308)]),
    "string": np.array(["", "naïve\x00 水 😀 \x00", "x" * 5000], object),
}
PATTERNS = np.array([0x7FF8000000000001, 0xFFF8DEADBEEF0001, 0x7FF0000000000001, 0x8000000000000000], "u8").view("f8")


@pytest.mark.parametrize("trailing", [(), (3,), (2, 1, 2)], ids=str)
@pytest.mark.parametrize("dtype", EXTREMES)
def test_every_type(tmp_path, dtype, trailing):
    path = tmp_path / "a.mrec"
    schema = mrec.Schema().block("b", rows=3).column("q", dtype, trailing=trailing)
    base = EXTREMES[dtype]
    given = [np.resize(np.roll(base, shift), (3, *trailing)) for shift in range(3)]
    with write(path, schema) as w:
        for i, data in enumerate(given):
            w.append(i, b={"q": data})
    assert document(path, "b/q")["data_type"] == dtype
    assert document(path, "b/q")["shape"] == [9, *trailing]
    assert_bits(array(path, "b/q"), np.concatenate(given))
    for frame, data in zip(frames(path), given, strict=True):
        assert_bits(frame["b"]["q"], data)


def test_nan_payloads_are_kept(tmp_path):
    schema = mrec.Schema().block("b").column("q", "f64").column("r", "f64", precision=0.5)
    with write(tmp_path / "a.mrec", schema) as w:
        w.append(0, b={"q": PATTERNS, "r": PATTERNS})
    assert_bits(array(tmp_path / "a.mrec", "b/q"), PATTERNS)
    assert_bits(array(tmp_path / "a.mrec", "b/r"), PATTERNS)


# ---- precision ---------------------------------------------------------------------------------------------------


def rounded(value: float, precision: float) -> float:
    """To the nearest multiple of the largest power of two up to `precision`, ties to even; exact, in whole numbers."""
    grid = 2.0 ** math.floor(math.log2(precision))
    if not math.isfinite(value) or abs(value) >= 2.0**52 * grid:
        return value
    (a, b), (c, d) = value.as_integer_ratio(), grid.as_integer_ratio()
    n, rest = divmod(a * d, b * c)
    n += 2 * rest > b * c or (2 * rest == b * c and n % 2)
    return math.copysign(n * grid, value)


@pytest.mark.parametrize("precision", [1e-3, 0.25, 1.0, 3.0, 1e-10, 2.0**-40])
def test_precision_rounds_to_the_grid(tmp_path, precision):
    grid = 2.0 ** math.floor(math.log2(precision))
    rng = np.random.default_rng(0)
    given = np.concatenate(
        [
            rng.normal(0, 100 * grid, 400),
            rng.normal(0, 100, 400),
            (np.arange(-20, 20) + 0.5) * grid,  # ties
            np.nextafter((np.arange(-20, 20) + 0.5) * grid, np.inf),
            [0.0, -0.0, 5e-324, -5e-324, np.inf, -np.inf, 1e300],
            [-(grid / 4), 2.0**52 * grid, 2.0**52 * grid - grid / 2],
        ]
    )
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().block("b").column("q", "f64", precision=precision)) as w:
        w.append(0, b={"q": given})
    want = np.array([rounded(value, precision) for value in given.tolist()])
    assert_bits(array(path, "b/q"), want)
    finite = np.isfinite(given)
    assert (abs(want[finite] - given[finite]) <= precision / 2).all()
    assert attributes(path)["sequence_schema"]["blocks"]["b"]["columns"]["q"]["precision"] == precision
    assert "precision" not in attributes(path, "b/q")


def test_rounding_twice_changes_nothing(tmp_path):
    schema = mrec.Schema().block("b").column("q", "f64", precision=1e-3)
    given = np.random.default_rng(1).normal(0, 30, 1000)
    with write(tmp_path / "a.mrec", schema) as w:
        w.append(0, b={"q": given})
    once = array(tmp_path / "a.mrec", "b/q")
    with write(tmp_path / "b.mrec", schema) as w:
        w.append(0, b={"q": given})
        w.append(1, b={"q": once})  # equal after rounding, so no update
    assert_bits(array(tmp_path / "b.mrec", "b/q"), once)


# ---- null rows ---------------------------------------------------------------------------------------------------

NULLABLE = {
    "i": ("i32", (), np.array([7, 8, 9], "i4")),
    "f": ("f64", (), np.array([1.5, np.nan, -0.0])),
    "p": ("f64", (), np.array([0.3, 0.4, 0.5])),
    "s": ("string", (), np.array(["a", "水", "c"], object)),
    "v": ("c64", (2,), np.arange(6).reshape(3, 2).astype("c8")),
    "t": ("string", (2,), np.array([["a", "b"], ["c", "d"], ["e", "f"]], object)),
}


def nullable_schema():
    schema = mrec.Schema().block("b", rows=3)
    for name, (dtype, trailing, _) in NULLABLE.items():
        schema.column(name, dtype, trailing=trailing, nullable=True, precision=0.125 if name == "p" else None)
    return schema.column("id", "u64")


def masked(null):
    null = np.asarray(null, bool)
    data = {}
    for name, (_, _, values) in NULLABLE.items():
        data[name] = np.ma.array(values, mask=np.broadcast_to(null.reshape(3, *[1] * (values.ndim - 1)), values.shape))
    return data | {"id": np.arange(3, dtype="u8")}


def test_null_rows_are_stored_as_fill(tmp_path):
    path = tmp_path / "a.mrec"
    nulls = [[0, 1, 0], [0, 0, 0], [1, 1, 1]]
    with write(path, nullable_schema()) as w:
        for i, null in enumerate(nulls):
            w.append(i, b=masked(null))
    stored = arrays(path)
    valid = ~np.array(nulls, bool).ravel()
    for name, (dtype, _, values) in NULLABLE.items():
        want = np.concatenate([values] * 3)
        if name == "p":
            want = np.concatenate([[0.25, 0.375, 0.5]] * 3)  # 0.3 and 0.4 on the grid of eighths
        want[~valid] = "" if dtype == "string" else 0
        assert_bits(stored[f"b/{name}"], want, name)
        assert_bits(stored[f"b/_validity/{name}"], valid, name)
    assert "b/_validity/id" not in stored
    for frame, null in zip(frames(path), nulls, strict=True):
        for name in NULLABLE:
            column = frame["b"][name]
            assert np.ma.getmaskarray(column).reshape(3, -1).all(axis=1).tolist() == [bool(n) for n in null]


def test_a_mask_alone_is_a_change_and_values_under_it_are_not(tmp_path):
    path = tmp_path / "a.mrec"
    other = masked([0, 1, 0])
    other["i"].data[1], other["f"].data[1], other["s"].data[1] = 99, 99.0, "zz"
    with write(path, nullable_schema()) as w:
        w.append(0, b=masked([0, 1, 0]))
        w.append(1, b=other)  # differs below the mask alone: carried forward
        w.append(2, b=masked([0, 1, 1]))
    assert array(path, "b/step_index").tolist() == [0, 2]
    assert array(path, "b/_validity/i").tolist() == [True, False, True, True, False, False]


def test_a_valid_row_that_looks_like_fill_is_not_null(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().block("b").column("i", "i32", nullable=True)) as w:
        w.append(0, b={"i": np.ma.array([0, 5], mask=[0, 1], dtype="i4")})
        w.append(1, b={"i": np.ma.array([0, 0], mask=[1, 1], dtype="i4")})
        w.append(2, b={"i": np.array([0, 0], "i4")})
    assert array(path, "b/i").tolist() == [0] * 6
    assert array(path, "b/_validity/i").tolist() == [True, False, False, False, True, True]

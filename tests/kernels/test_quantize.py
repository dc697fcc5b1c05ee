# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrec import _core
from mrec.errors import InvalidValue

same_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
exponents = st.integers(-1000, 1000)


def bits(values) -> list[int]:
    return np.asarray(values, np.float64).reshape(-1).view(np.uint64).tolist()


def by_rule(x: float, q: float) -> float:
    """The rule in exact arithmetic."""
    if not math.isfinite(x) or Fraction(abs(x)) >= 2**52 * Fraction(q):
        return x
    multiple = round(Fraction(x) / Fraction(q))  # halves to even
    try:
        return math.copysign(float(multiple * Fraction(q)), x)
    except OverflowError:
        return math.copysign(math.inf, x)


@given(st.floats(2.0**-1000, 2.0**1000))
def test_grid_is_the_power_of_two_below(precision):
    q = _core.grid(precision)
    assert math.frexp(q)[0] == 0.5
    assert q <= precision < 2 * q


@pytest.mark.parametrize("precision", [0.0, -1e-3, math.nan, math.inf, 1e-302, 1.1e301])
def test_grid_refuses(precision):
    with pytest.raises(InvalidValue, match="precision"):
        _core.grid(precision)


@same_fixture
@given(values=st.lists(st.floats(), max_size=20), exponent=exponents)
def test_any_double_on_any_grid(cpu, values, exponent):
    q = 2.0**exponent
    assert bits(_core.quantize(np.array(values, "f8"), q)) == bits([by_rule(x, q) for x in values])


@same_fixture
@given(halves=st.lists(st.integers(-(2**53), 2**53), max_size=20), exponent=exponents, ulps=st.integers(-1, 1))
def test_halfway_and_next_to_it(cpu, halves, exponent, ulps):
    q = 2.0**exponent
    values = [n * (q / 2) for n in halves]
    values = [math.nextafter(x, ulps * math.inf) if ulps else x for x in values]
    assert bits(_core.quantize(np.array(values, "f8"), q)) == bits([by_rule(x, q) for x in values])


def test_special_values(cpu):
    nans = np.array([0x7FF8000000ABCDEF, 0xFFF8000000000001, 0x7FF0000000000001], np.uint64).view(np.float64)
    assert bits(_core.quantize(nans, 1e-3)) == bits(nans)
    kept = [0.0, -0.0, np.inf, -np.inf, 1e300, -1e300, 2.0**42, 1.5]
    assert bits(_core.quantize(kept, 1e-3)) == bits(kept)
    assert bits(_core.quantize([5e-324, -5e-324, -1e-5], 1e-3)) == bits([0.0, -0.0, -0.0])


def test_ordinary_coordinates(cpu):
    values = np.random.default_rng(3).uniform(-80, 80, (1001, 3))
    rounded = _core.quantize(values, 1e-3)
    assert np.array_equal(rounded, np.rint(values * 1024) / 1024)
    assert np.array_equal(_core.quantize(rounded, 1e-3), rounded)


def test_the_result_is_a_new_array_of_the_same_shape():
    values = np.full((2, 3, 4), 0.3)
    values.flags.writeable = False
    for view in (values, values[:, ::2], values.T, values[0, 0, 0], values[:0], values.astype(">f8")):
        result = _core.quantize(view, 0.25)
        assert result.shape == view.shape and result.dtype == np.float64
        assert (result == 0.25).all()
    assert (values == 0.3).all()
    assert _core.quantize(np.float32([0.3]), 0.25)[0] == 0.25

# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrec import _core
from mrec.errors import InvalidValue


@given(st.integers(1, 40), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_against_a_transpose(size, count, seed):
    data = np.random.default_rng(seed).bytes(size * count)
    shuffled = np.frombuffer(data, "u1").reshape(count, size).T.tobytes()
    assert _core.shuffle(data, size) == shuffled
    assert _core.unshuffle(shuffled, size) == data


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_against_numcodecs(size):
    shuffle = pytest.importorskip("numcodecs").Shuffle(size)
    data = np.random.default_rng(size).bytes(size * 1237)
    assert _core.shuffle(data, size) == bytes(shuffle.encode(data))
    assert bytes(shuffle.decode(_core.shuffle(data, size))) == data


def test_an_array_is_taken_in_c_order():
    values = np.arange(30.0).reshape(5, 6)
    assert _core.unshuffle(_core.shuffle(values.T, 8), 8) == values.T.tobytes()


@pytest.mark.parametrize("size", [0, 3, 16])
def test_a_part_of_an_element_is_refused(size):
    for function in (_core.shuffle, _core.unshuffle):
        with pytest.raises(InvalidValue, match="whole number of elements"):
            function(bytes(10), size)

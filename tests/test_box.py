# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pickle

import numpy as np
import pytest

from mrec.box import Box
from mrec.errors import SchemaError

ROWS = np.array([[10.0, 0.0, 0.0], [2.0, 9.0, 0.0], [1.0, 3.0, 8.0]])


def test_rows_and_columns_are_each_other_transposed():
    box = Box.from_rows(ROWS)
    assert np.array_equal(box.vectors[:, 1], [2.0, 9.0, 0.0])  # the second lattice vector is a column
    assert np.array_equal(box.rows, ROWS)
    assert box == Box.from_columns(ROWS.T) == Box(vectors=ROWS.T)
    assert box != Box.from_columns(ROWS)
    assert box.volume == pytest.approx(720.0)


def test_lengths_and_angles_there_and_back():
    box = Box.from_lengths_angles(10, 11, 12, 70, 80, 100)
    assert np.allclose(box.lengths, [10, 11, 12], rtol=1e-14)
    assert np.allclose(box.angles, [70, 80, 100], rtol=1e-14)
    a, b, c = box.rows
    assert a[1] == a[2] == b[2] == 0.0
    assert np.isclose(b @ c, 11 * 12 * np.cos(np.radians(70)))
    assert np.isclose(a @ c, 10 * 12 * np.cos(np.radians(80)))
    assert np.isclose(a @ b, 10 * 11 * np.cos(np.radians(100)))


def test_right_angles_are_exactly_right():
    assert (
        Box.from_lengths_angles(1, 2, 3, 90, 90, 90) == Box.from_lengths(1, 2, 3) == Box.from_rows(np.diag([1, 2, 3]))
    )


@pytest.mark.parametrize("angles", [(0, 90, 90), (180, 90, 90), (30, 30, 90), (90, 90, np.nan), (-60, 90, 90)])
def test_impossible_angles(angles):
    with pytest.raises(SchemaError, match="angles"):
        Box.from_lengths_angles(1, 1, 1, *angles)


@pytest.mark.parametrize("lengths", [(0, 1, 1), (-1, 1, 1), (np.inf, 1, 1), (np.nan, 1, 1)])
def test_bad_lengths(lengths):
    with pytest.raises(SchemaError, match=r"Box\.undefined"):
        Box.from_lengths(*lengths)


def test_coerce():
    box = Box.from_rows(ROWS)
    assert Box.coerce(box) is box
    assert Box.coerce([1, 2, 3]) == Box.from_lengths(1, 2, 3)
    assert Box.coerce(np.array([1, 2, 3, 70, 80, 90], np.float32)) == Box.from_lengths_angles(1, 2, 3, 70, 80, 90)


def test_a_bare_matrix_names_both_ways_to_say_it():
    with pytest.raises(SchemaError, match=r"Box\.from_rows.*Box\.from_columns"):
        Box.coerce(ROWS)


@pytest.mark.parametrize(
    "value",
    [1.0, "10 10 10", np.zeros((2, 3)), [1, 2, 3, 4], object(), [[1, 2], [3]], ["1", "2", "3"], [1, 2, 10**400]],
)
def test_coerce_refuses(value):
    with pytest.raises(SchemaError):
        Box.coerce(value)


@pytest.mark.parametrize(
    "value", [[["1", "0", "0"]] * 3, np.ma.masked_all((3, 3)), [[1j, 0, 0]] * 3, [[10**400, 0, 0]] * 3]
)
def test_vectors_are_numbers(value):
    with pytest.raises(SchemaError, match="the cell takes numbers"):
        Box.from_columns(value)


def test_undefined():
    box = Box.undefined()
    assert not box.defined
    assert not box.periodic.any()
    assert np.array_equal(box.vectors, np.eye(3))
    assert box != Box.from_lengths(1, 1, 1, periodic=False)
    with pytest.raises(SchemaError):
        Box(vectors=np.eye(3), defined=False)


def test_equality_is_bit_for_bit():
    plus, minus = Box.from_rows(ROWS), Box.from_rows(np.where(ROWS == 0, -0.0, ROWS))
    assert plus != minus
    odd = Box.from_rows(np.full((3, 3), np.nan))
    assert odd == Box.from_rows(np.full((3, 3), np.nan))
    assert plus != Box.from_rows(ROWS, origin=[1, 0, 0])
    assert plus != Box.from_rows(ROWS, periodic=[True, True, False])
    assert len({plus, Box.from_rows(ROWS), minus}) == 2
    assert plus != "box"


def test_immutable_and_independent():
    given = ROWS.copy()
    box = Box.from_columns(given)
    given[0, 0] = 99.0
    assert box.vectors[0, 0] == 10.0
    for array in (box.vectors, box.rows, box.origin, box.periodic):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_repr_makes_the_same_box():
    boxes = [
        Box.from_rows(ROWS),
        Box.from_lengths(1, 2, 3, origin=[0, 0, 1.5], periodic=[True, False, True]),
        Box.undefined(),
    ]
    for box in boxes:
        assert eval(repr(box), {"Box": Box}) == box
        assert pickle.loads(pickle.dumps(box)) == box


@pytest.mark.parametrize("periodic", ["ppp", [1, 1, 1], [True, False], None])
def test_periodic_takes_bools(periodic):
    with pytest.raises(SchemaError, match="periodic"):
        Box.from_lengths(1, 1, 1, periodic=periodic)

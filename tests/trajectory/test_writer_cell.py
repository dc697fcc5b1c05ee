# SPDX-License-Identifier: BSD-3-Clause
"""The cell: attributes while it never changed, arrays afterwards; what it does not have is left out."""

from __future__ import annotations

import numpy as np
import pytest

import mrec
from mrec import Box
from tests.trajectory.ondisk import arrays, assert_bits, attributes, frames, names, write

ROWS = np.array([[10.0, 0.0, 0.0], [1.0, 11.0, 0.0], [2.0, 3.0, 12.0]])  # the lattice vectors are the rows
CUBE = Box.from_lengths(5, 6, 7)
SKEW = Box.from_rows(ROWS)
SHIFTED = Box.from_lengths(5, 6, 7, origin=(1.0, -0.0, 0.5))
SLAB = Box.from_lengths(5, 6, 7, periodic=(True, True, False))
ZERO = [0.0, 0.0, 0.0]


def record(path, cells, flush=False):
    with write(path, mrec.Schema()) as w:
        for i, cell in enumerate(cells):
            w.append(i, box=cell)
            if flush:
                w.flush()


@pytest.fixture(params=[False, True], ids=["at the end", "each frame"])
def flush(request):
    return request.param


def test_the_lattice_vectors_are_stored_as_columns(tmp_path):
    record(tmp_path / "a.mrec", [SKEW])
    assert attributes(tmp_path / "a.mrec", "box") == {"vectors": ROWS.T.tolist()}
    record(tmp_path / "b.mrec", [CUBE, SKEW])
    assert arrays(tmp_path / "b.mrec")["box/vectors"].tolist()[1] == ROWS.T.tolist()
    for path in (tmp_path / "a.mrec", tmp_path / "b.mrec"):
        assert frames(path)[-1].box.rows.tolist() == ROWS.tolist()


@pytest.mark.parametrize("cells", [[SKEW], [SKEW, None, SKEW, Box.from_rows(ROWS.copy())]], ids=["once", "repeated"])
def test_a_cell_that_never_changes_is_attributes(tmp_path, cells, flush):
    path = tmp_path / "a.mrec"
    record(path, cells, flush)
    assert attributes(path, "box") == {"vectors": ROWS.T.tolist()}
    assert names(path, "box") == set()
    assert [f.box for f in frames(path)] == [SKEW] * len(cells)


def test_attributes_keep_every_bit(tmp_path):
    rows = np.array([[0.1, 1e-300, -0.0], [1 / 3, 2.0**60, 5e-324], [1e22, 123456789.123456789, np.pi]])
    cell = Box.from_rows(rows, origin=(-0.0, 0.1, 0.0), periodic=(False, True, True))
    record(tmp_path / "a.mrec", [cell])
    found = attributes(tmp_path / "a.mrec", "box")
    assert_bits(np.array(found["vectors"]), rows.T)
    assert_bits(np.array(found["origin"]), np.array([-0.0, 0.1, 0.0]))
    assert found["boundary"] == [False, True, True]
    assert frames(tmp_path / "a.mrec")[0].box == cell


CHANGES = {
    "vectors": ([CUBE, CUBE, SKEW, None, CUBE], [0, 2, 4], [CUBE, SKEW, CUBE], set()),
    "origin late": ([CUBE, None, SHIFTED], [0, 2], [CUBE, SHIFTED], {"origin"}),
    "origin later": ([CUBE, SKEW, SHIFTED, CUBE], [0, 1, 2, 3], [CUBE, SKEW, SHIFTED, CUBE], {"origin"}),
    "boundary late": ([CUBE, SLAB], [0, 1], [CUBE, SLAB], {"boundary"}),
    "both from the start": ([SHIFTED, SLAB], [0, 1], [SHIFTED, SLAB], {"origin", "boundary"}),
    "a cell that comes late": ([None, None, CUBE, CUBE], [2], [CUBE], set()),
    "late with an origin": ([None, SHIFTED, CUBE], [1, 2], [SHIFTED, CUBE], {"origin"}),
    "minus zero is a change": (
        [CUBE, Box.from_lengths(5, 6, 7, origin=(-0.0, 0, 0))],
        [0, 1],
        [CUBE, Box.from_lengths(5, 6, 7, origin=(-0.0, 0, 0))],
        {"origin"},
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_cell_that_changes_is_arrays(tmp_path, case, flush):
    path = tmp_path / "a.mrec"
    cells, index, updates, extra = CHANGES[case]
    record(path, cells, flush)
    found = arrays(path)
    assert attributes(path, "box") == {}
    assert names(path, "box") == {"step_index", "vectors"} | extra
    assert_bits(found["box/step_index"], np.array(index, "u8"))
    assert_bits(found["box/vectors"], np.array([u.vectors for u in updates]))
    if "origin" in extra:
        assert_bits(found["box/origin"], np.array([u.origin for u in updates]))
    if "boundary" in extra:
        assert_bits(found["box/boundary"], np.array([u.periodic for u in updates]))
    seen = None
    for frame, cell in zip(frames(path), cells, strict=True):
        seen = cell or seen
        assert frame.box == seen


@pytest.mark.parametrize("cells", [[Box.undefined()], [Box.undefined(), None, Box.undefined()]], ids=["once", "again"])
def test_no_cell_is_said(tmp_path, cells):
    path = tmp_path / "a.mrec"
    record(path, cells)
    assert attributes(path, "box") == {
        "vectors": np.eye(3).tolist(),
        "boundary": [False] * 3,
        "cell_defined": False,
    }
    assert all(not f.box.defined for f in frames(path))


def test_no_cell_said_late(tmp_path, flush):
    path = tmp_path / "a.mrec"
    record(path, [None, Box.undefined(), None], flush)
    assert attributes(path, "box") == {"cell_defined": False}
    assert arrays(path)["box/boundary"].tolist() == [[False] * 3]
    assert [f.box and f.box.defined for f in frames(path)] == [None, False, False]


def test_nothing_said_of_a_cell(tmp_path):
    record(tmp_path / "a.mrec", [None, None])
    assert attributes(tmp_path / "a.mrec", "box") == {}
    assert [f.box for f in frames(tmp_path / "a.mrec")] == [None, None]


def test_what_stands_for_a_cell(tmp_path):
    path = tmp_path / "a.mrec"
    given = [(3, 4, 5), [3.0, 4.0, 5.0, 90.0, 90.0, 60.0], np.float32([3, 4, 5]), Box.from_columns(ROWS.T)]
    record(path, given)
    stored = arrays(path)["box/vectors"]
    assert stored[0].tolist() == np.diag([3.0, 4.0, 5.0]).tolist()
    assert np.allclose(stored[1], [[3, 2, 0], [0, 4 * np.sin(np.pi / 3), 0], [0, 0, 5]], rtol=0, atol=1e-15)
    assert stored[2].tolist() == stored[0].tolist()
    assert stored[3].tolist() == ROWS.T.tolist()

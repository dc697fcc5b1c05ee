# SPDX-License-Identifier: BSD-3-Clause
"""The cells of many frames as arrays are those of the frames one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec

SKEW = mrec.Box.from_rows([[4.0, 0, 0], [1, 5, 0], [0.5, 0.25, 6]])
SHIFTED = mrec.Box.from_lengths(3, 4, 5, origin=[1.0, 2, 3], periodic=[True, False, True])


def write(path: Path, cells: list[Any]) -> Any:
    schema = mrec.Schema().block("atoms", rows=1).column("x", "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for i, cell in enumerate(cells):
            writer.append(i, box=cell, atoms={"x": [float(i)]})
    return mrec.open(path).trajectory


@pytest.mark.parametrize(
    "cells",
    [
        [SKEW] * 4,
        [SKEW, None, SHIFTED, None, None, SKEW],
        [None, None, SHIFTED, SKEW],
        [[3.0 + i, 4, 5] for i in range(7)],
        [mrec.Box.undefined()] * 3,
        [None, mrec.Box.undefined()],
    ],
)
def test_as_the_frames_have_them(tmp_path: Path, cells: list[Any]) -> None:
    trajectory = write(tmp_path / "a.mrec", cells)
    for view in (trajectory, trajectory[1:3], trajectory[::-1], trajectory[-1:], trajectory[::2]):
        one_by_one = [frame.box for frame in view]
        boxes = view.boxes
        assert list(boxes) == one_by_one
        assert len(boxes) == len(view)
        for i, box in enumerate(one_by_one):
            assert boxes.present[i] == (box is not None)
            if box is None:
                assert np.isnan(boxes.vectors[i]).all() and np.isnan(boxes.origin[i]).all()
                continue
            assert boxes.defined == box.defined
            assert boxes.vectors[i].tolist() == box.vectors.tolist()
            assert boxes.rows[i].tolist() == box.rows.tolist()
            assert boxes.origin[i].tolist() == box.origin.tolist()
            assert boxes.periodic[i].tolist() == box.periodic.tolist()
            assert boxes.lengths[i].tolist() == box.lengths.tolist()
            assert boxes.volumes[i] == pytest.approx(box.volume)


def test_none_and_nothing(tmp_path: Path) -> None:
    assert write(tmp_path / "a.mrec", [None, None]).boxes is None
    trajectory = write(tmp_path / "b.mrec", [SKEW, SHIFTED])
    assert trajectory[5:].boxes.vectors.shape == (0, 3, 3)
    assert repr(trajectory.boxes) == "<Boxes of 2 frames>"

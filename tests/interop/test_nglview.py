# SPDX-License-Identifier: BSD-3-Clause
"""Trajectories in nglview widgets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three frames of two molecules of water, in nm."""
    made = tmp_path / "water.mrec"
    schema = mrec.Schema().block("atoms", rows=6)
    for name in "xyz":
        schema.column(name, "f64")
    with mrec.TrajectoryWriter(made, schema, units={"length": "nm"}, durable=False) as writer:
        for i in range(3):
            writer.append(i, atoms={"xyz": np.arange(18.0).reshape(6, 3) / 100 + i}, box=[3.0, 3.0, 3.0])
    mrec.open(made).system = {
        "atoms": {"name": ["OW", "HW1", "HW2"] * 2, "element": ["O", "H", "H"] * 2, "res_name": ["SOL"] * 6},
        "bonds": {"atomi": np.array([0, 0], np.uint64), "atomj": np.array([1, 2], np.uint64)},
    }
    return made


def test_a_widget_shows_the_frames(path: Path) -> None:
    nglview = pytest.importorskip("nglview")
    widget = mrec.open(path).trajectory[:2].view(gui=False)
    assert isinstance(widget, nglview.NGLWidget)
    assert widget.max_frame == 1
    sent = widget._trajlist[0]
    assert sent.get_coordinates(1) == pytest.approx(np.arange(18.0).reshape(6, 3) / 10 + 10)
    assert sent.get_coordinates(1).dtype == np.float32


def test_mdanalysis_reads_the_structure_that_is_sent(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nglview")
    mda: Any = pytest.importorskip("MDAnalysis")
    sent = mrec.open(path).trajectory.view()._trajlist[0]
    (tmp_path / "sent.pdb").write_text(sent.get_structure_string())
    universe = mda.Universe(tmp_path / "sent.pdb")
    assert universe.atoms.names.tolist() == ["OW", "HW1", "HW2"] * 2
    assert universe.atoms.elements.tolist() == ["O", "H", "H"] * 2
    assert universe.atoms.resnames.tolist() == ["SOL"] * 6
    assert universe.bonds.indices.tolist() == [[0, 1], [0, 2]]
    assert universe.atoms.positions == pytest.approx(np.arange(18.0).reshape(6, 3) / 10, abs=1e-3)


def test_one_number_of_atoms(tmp_path: Path) -> None:
    pytest.importorskip("nglview")
    schema = mrec.Schema().block("atoms", rows=2).column("x", "f64").column("y", "f64").column("z", "f64")
    with mrec.TrajectoryWriter(tmp_path / "g.mrec", schema) as writer:
        for i in range(2):
            writer.append(i, atoms={"xyz": np.zeros((2 + i, 3))})
    sent = mrec.open(tmp_path / "g.mrec").trajectory.view()._trajlist[0]
    assert sent.get_coordinates(0).shape == (2, 3)
    with pytest.raises(mrec.MrecError, match="frame 1 has 3 atoms, the first 2"):
        sent.get_coordinates(1)


def test_no_frames_and_no_positions(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nglview")
    with pytest.raises(mrec.MrecError, match="no frame"):
        mrec.open(path).trajectory[:0].view()
    with mrec.TrajectoryWriter(tmp_path / "e.mrec", mrec.Schema().value("pe", "f64")) as writer:
        writer.append(0, pe=1.0)
    with pytest.raises(mrec.MrecError, match="no block has columns x, y and z"):
        mrec.open(tmp_path / "e.mrec").trajectory.view()


def test_without_nglview_one_line_names_the_extra(path: Path) -> None:
    code = (
        "import sys; sys.modules['nglview'] = None; import mrec\n"
        f"try: mrec.open({str(path)!r}).trajectory.view()\n"
        "except mrec.MrecError as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert done.stdout.endswith("pip install 'mrec[view]'\n")

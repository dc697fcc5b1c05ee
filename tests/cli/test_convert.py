# SPDX-License-Identifier: BSD-3-Clause
"""Every conversion is read back through zarr-python: a cell turned there and back would not show otherwise."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.command import ROOT, ZarrRecord, mrec

pytestmark = pytest.mark.filterwarnings("ignore")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import MDAnalysis
    from MDAnalysisTests import datafiles

LENGTH, TIME, VELOCITY = {"length": "angstrom"}, {"time": "ps"}, {"velocity": "angstrom/ps"}
ALL = LENGTH | TIME | VELOCITY | {"force": "kJ/mol/angstrom"}
RHODOPSIN = ROOT / "tests/data/rhodopsin"

# trajectory, topology, units, what there is beside positions, steps of the first and the last frame
CASES: dict[str, tuple[str, str | None, dict[str, str], set[str], tuple[int, int]]] = {
    "XTC, triclinic": ("XTC", "GRO", LENGTH | TIME, {"cell", "times"}, (0, 450000)),
    "TRR, velocities": ("TRR", "GRO", ALL, {"cell", "times", "velocities"}, (0, 450000)),
    "DCD, no cell": ("DCD", "PSF", LENGTH | TIME, {"times"}, (1000, 98000)),
    "DCD, changing triclinic": ("DCD_TRICLINIC", "PSF_TRICLINIC", LENGTH | TIME, {"cell", "times"}, (1000, 10000)),
    "NetCDF, truncated octahedron": ("NCDFtruncoct", "PRM7", ALL, {"cell", "times"}, (0, 9)),
    "NetCDF": ("NCDF", "PRMncdf", ALL, {"cell", "times"}, (0, 29)),
    "mdcrd, no times": ("TRJ", "PRM", LENGTH | TIME, set(), (0, 10)),
    "TNG": ("TNG_traj_vels_forces", "TNG_traj_gro", ALL, {"cell", "times", "velocities", "forces"}, (0, 500)),
    "H5MD": ("H5MD_xvf", "TPR_xvf", ALL, {"cell", "times", "velocities", "forces"}, (0, 50000)),
    "DL_POLY": ("DLP_HISTORY", None, LENGTH | TIME | VELOCITY, {"cell", "velocities", "forces"}, (0, 2)),
    "LAMMPS dump, no units": ("LAMMPSDUMP_allcoords", None, {}, {"cell"}, (0, 1000)),
    "PDB models": ("PDB_multiframe", None, LENGTH, set(), (0, 23)),
    "TRZ": ("TRZ", "TRZ_psf", LENGTH | TIME | VELOCITY, {"cell", "times", "velocities"}, (0, 5)),
}

KINDS = {"positions": ("x", "y", "z"), "velocities": ("vx", "vy", "vz"), "forces": ("fx", "fy", "fz")}


def universe(trajectory: str, topology: str | None = None) -> Any:
    path = str(getattr(datafiles, trajectory))
    if topology is None:
        kind = {"LAMMPSDUMP_allcoords": "LAMMPSDUMP", "DLP_HISTORY": "HISTORY"}.get(trajectory)
        return MDAnalysis.Universe(path, format=kind, topology_format=kind)
    return MDAnalysis.Universe(str(getattr(datafiles, topology)), path)


@pytest.mark.parametrize("case", CASES)
def test_a_real_trajectory(case: str, tmp_path: Path) -> None:
    name, topology, units, parts, steps = CASES[case]
    words = ["convert", getattr(datafiles, name), tmp_path / "out.mrec"]
    done = mrec(*words, *(["-t", getattr(datafiles, topology)] if topology else []))
    assert os.listdir(tmp_path) == ["out.mrec"]
    theirs, ours = universe(name, topology), ZarrRecord(tmp_path / "out.mrec")
    reader = theirs.trajectory
    assert done.stdout.startswith(f"{tmp_path / 'out.mrec'}: {len(reader)} frames of {len(theirs.atoms)} atoms, ")
    assert ours.nstep == len(reader)
    assert ours.meta()["units"] == units
    assert (int(ours.steps[0]), int(ours.steps[-1])) == steps
    assert (ours.times is not None) == ("times" in parts)
    for frame in (0, len(reader) - 1):
        ts = reader[frame]
        compare_columns(ours, ts, parts, frame)
        if ours.times is not None:
            assert ours.times[frame] == ts.time
        cell = ours.cell(frame)
        assert (cell is not None) == ("cell" in parts)
        if cell is not None:
            assert np.array_equal(cell, ts.triclinic_dimensions.T.astype(np.float64))
            # and without MDAnalysis's matrix: the columns have the lengths, the first lies along x
            assert np.allclose(np.linalg.norm(cell, axis=0), ts.dimensions[:3], rtol=1e-5)
            assert cell[1, 0] == cell[2, 0] == cell[2, 1] == 0
    numbered = steps[1] == len(reader) - 1
    assert ("numbered instead" in done.stderr) == ("steps" in ours.meta().get("notes", {})) == numbered


def compare_columns(ours: ZarrRecord, ts: Any, parts: set[str], frame: int) -> None:
    for kind, columns in KINDS.items():
        there = kind == "positions" or kind in parts
        assert bool(getattr(ts, f"has_{kind}")) == there
        assert ours.has(f"trajectory/atoms/{columns[0]}") == there
        if there:
            stored = ours.columns(columns, frame)
            assert stored.dtype == np.float64
            assert np.array_equal(stored, getattr(ts, kind).astype(np.float64)), f"{kind} of frame {frame}"


def test_the_cells_are_what_the_cases_say() -> None:
    cells = [ts.dimensions.copy() for ts in universe("DCD_TRICLINIC", "PSF_TRICLINIC").trajectory]
    assert not np.array_equal(cells[0], cells[-1])
    assert not np.allclose(cells[0][3:], 90)


def test_topology(tmp_path: Path) -> None:
    mrec("convert", datafiles.DCD, "-t", datafiles.PSF, tmp_path / "out.mrec", "--stop", 2)
    theirs, ours = universe("DCD", "PSF"), ZarrRecord(tmp_path / "out.mrec")
    atoms = theirs.atoms
    columns = {
        "id": atoms.ids, "name": atoms.names, "type": atoms.types, "mass": atoms.masses, "charge": atoms.charges,
        "res_id": atoms.resids, "res_name": atoms.resnames, "segment": atoms.segids,
    }  # fmt: skip
    for name, values in columns.items():
        assert ours.array(f"system/atoms/{name}").tolist() == values.tolist(), name
    assert ours.root["system/atoms"].attrs["count"] == len(atoms)
    bonds = np.stack([ours.array(f"system/bonds/{name}") for name in ("atomi", "atomj")], axis=1)
    assert bonds.dtype == np.uint64
    assert sorted(bonds.tolist()) == sorted(theirs.bonds.indices.tolist())
    assert ours.root["system/dihedrals"].attrs["count"] == len(theirs.dihedrals)
    assert not ours.has("system/atoms/element")  # a PSF has none, and none are guessed


def test_selection_and_slice(tmp_path: Path) -> None:
    words = ["--select", "resname GLY and not name H*", "--start", -20, "--stop", -2, "--stride", 5]
    mrec("convert", datafiles.DCD, "-t", datafiles.PSF, tmp_path / "out.mrec", *words)
    theirs, ours = universe("DCD", "PSF"), ZarrRecord(tmp_path / "out.mrec")
    chosen = theirs.select_atoms("resname GLY and not name H*")
    frames = range(98)[-20:-2:5]
    assert ours.nstep == len(frames)
    assert ours.steps.tolist() == [1000 * (frame + 1) for frame in frames]
    for i, frame in enumerate(frames):
        theirs.trajectory[frame]
        assert np.array_equal(ours.columns(KINDS["positions"], i), chosen.positions)
    assert ours.array("system/atoms/id").tolist() == chosen.ids.tolist()
    inside = {tuple(pair) for pair in theirs.bonds.indices.tolist() if set(pair) <= set(chosen.indices.tolist())}
    pairs = zip(ours.array("system/bonds/atomi").tolist(), ours.array("system/bonds/atomj").tolist(), strict=True)
    assert {(chosen.indices[i], chosen.indices[j]) for i, j in pairs} == inside


def test_precision(tmp_path: Path) -> None:
    words = ["convert", RHODOPSIN / "md_1u19.xtc", "-t", RHODOPSIN / "md_1u19.gro"]
    mrec(*words, tmp_path / "out.mrec", "--precision", 0.01)
    mrec(*words, tmp_path / "exact.mrec")
    rounded, exact = ZarrRecord(tmp_path / "out.mrec"), ZarrRecord(tmp_path / "exact.mrec")
    atoms = rounded.attributes["sequence_schema"]["blocks"]["atoms"]["columns"]
    assert atoms["x"] == {"dtype": "f64", "trailing": [], "precision": 0.01}
    for frame in (0, 50):
        a, b = (record.columns(KINDS["positions"], frame) for record in (rounded, exact))
        assert np.abs(a - b).max() <= 2.0**-8
        assert np.array_equal(a, np.round(b * 2**7) / 2**7)
    assert "precision" not in exact.attributes["sequence_schema"]["blocks"]["atoms"]["columns"]["x"]
    assert "numcodecs.shuffle" in (tmp_path / "exact.mrec/trajectory/atoms/x/zarr.json").read_text()
    assert rounded.meta()["source"]["file"] == "md_1u19.xtc"


def test_nothing_is_left_beside_the_input(tmp_path: Path) -> None:
    folder = tmp_path / "input"
    folder.mkdir()
    for name in ("md_1u19.xtc", "md_1u19.gro"):
        shutil.copy(RHODOPSIN / name, folder)
    mrec("convert", folder / "md_1u19.xtc", "-t", folder / "md_1u19.gro", tmp_path / "out.mrec", "--stop", 1)
    assert sorted(os.listdir(folder)) == ["md_1u19.gro", "md_1u19.xtc"]
    folder.chmod(0o500)
    mrec("convert", "input/md_1u19.xtc", "out2.mrec", "--stop", 1, cwd=tmp_path)
    folder.chmod(0o700)
    assert sorted(os.listdir(tmp_path)) == ["input", "out.mrec", "out2.mrec"]


# ---- frames that are not alike -----------------------------------------------------------------------------------


def written(path: Path, frames: list[dict[str, Any]], n: int = 4) -> Path:
    """A trajectory file by MDAnalysis: step, positions, velocities and cell of each frame."""
    made = MDAnalysis.Universe.empty(n, trajectory=True, velocities=True)
    with MDAnalysis.Writer(str(path), n) as writer:
        for i, frame in enumerate(frames):
            ts = made.trajectory.ts
            ts.data["step"] = frame.get("step", i)
            ts.time = frame.get("time", float(i))
            ts.has_velocities = "velocities" in frame
            ts.positions = np.full((n, 3), frame.get("x", i))
            ts.dimensions = frame.get("cell", [10, 11, 12, 90, 90, 90])
            if "velocities" in frame:
                ts.velocities = np.full((n, 3), frame["velocities"])
            writer.write(made.atoms)
    return path


def test_steps_that_do_not_increase_become_ordinals(tmp_path: Path) -> None:
    source = written(tmp_path / "in.trr", [{"step": s} for s in (0, 10, 20, 20, 5)])
    done = mrec("convert", source, tmp_path / "out.mrec")
    note = "frame 3 of the source has step 20 after 20; the frames are numbered instead"
    assert done.stderr == f"mrec: note: {note}\n"
    ours = ZarrRecord(tmp_path / "out.mrec")
    assert ours.steps.tolist() == [0, 1, 2, 3, 4]
    assert ours.times is not None
    assert ours.times.tolist() == [0, 1, 2, 3, 4]
    assert ours.meta()["notes"] == {"steps": note}


def test_velocities_in_some_frames_are_null_in_the_others(tmp_path: Path) -> None:
    source = written(tmp_path / "in.trr", [{}, {"velocities": 2.0}, {}])
    done = mrec("convert", source, tmp_path / "out.mrec")
    assert "not all frames have velocities" in done.stderr
    ours = ZarrRecord(tmp_path / "out.mrec")
    assert ours.array("trajectory/atoms/_validity/vx").tolist() == [False] * 4 + [True] * 4 + [False] * 4
    assert np.allclose(ours.array("trajectory/atoms/vx")[4:8], 2.0)
    assert not ours.has("trajectory/atoms/_validity/x")


def test_a_cell_that_goes_is_refused(tmp_path: Path) -> None:
    source = written(tmp_path / "in.trr", [{}, {"cell": [0, 0, 0, 0, 0, 0]}])
    done = mrec("convert", source, tmp_path / "out.mrec", code=1)
    assert "frame 1 has no cell" in done.stderr
    assert os.listdir(tmp_path) == ["in.trr"]


# ---- what goes wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing.xtc", "out.mrec"], "nothing.xtc: No such file"),
        (["in.trr", "-t", "nothing.gro", "out.mrec"], "nothing.gro: No such file"),
        (["in.trr", "nowhere/out.mrec"], "nowhere: there is no such directory"),
        (["in.trr", "out.mrec", "--select", "name CA"], "MDAnalysis cannot read in.trr"),
        (["in.trr", "out.mrec", "--select", "index 99"], "no atom matches"),
        (["in.trr", "out.mrec", "--select", "garbage ((("], "MDAnalysis cannot read in.trr"),
        (["in.trr", "out.mrec", "--start", "9"], "none of them is chosen"),
        (["cut.trr", "out.mrec"], "cut.trr: of 3 frames only 2 can be read; pass --stop 2 to convert these"),
        (["text.xtc", "out.mrec"], "MDAnalysis cannot read text.xtc"),
        (["text.xtc", "-t", "in.trr", "out.mrec"], "MDAnalysis cannot read text.xtc"),
        (["text.dcd", "-t", "in.trr", "out.mrec"], "MDAnalysis cannot read text.dcd"),
        (["text.unknown", "out.mrec"], "MDAnalysis cannot read text.unknown"),
        (["in.trr", "there.mrec"], "there.mrec is there already; pass --overwrite"),
        (["in.trr", "folder.mrec", "--overwrite"], "folder.mrec is there and is no record"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_and_leaves_nothing(tmp_path: Path, words: list[str], says: str) -> None:
    source = written(tmp_path / "in.trr", [{}, {}, {}])
    (tmp_path / "cut.trr").write_bytes(source.read_bytes()[:-40])
    for name in ("text.xtc", "text.dcd", "text.unknown"):
        (tmp_path / name).write_text("no trajectory\n" * 10)
    for name in ("there.mrec", "folder.mrec"):
        (tmp_path / name).mkdir()
    (tmp_path / "there.mrec/zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    before = snapshot(tmp_path)
    done = mrec("convert", *words, code=1, cwd=tmp_path)
    assert says in done.stderr
    assert "/mrec-" not in done.stderr
    assert snapshot(tmp_path) == before


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_overwrite_replaces_a_record_whole(tmp_path: Path) -> None:
    mrec("convert", written(tmp_path / "a.trr", [{"velocities": 1.0}]), tmp_path / "out.mrec")
    mrec("convert", written(tmp_path / "b.trr", [{"x": 5.0}, {"x": 6.0}]), tmp_path / "out.mrec", "--overwrite")
    ours = ZarrRecord(tmp_path / "out.mrec")
    assert ours.nstep == 2
    assert not ours.has("trajectory/atoms/vx")
    assert sorted(os.listdir(tmp_path)) == ["a.trr", "b.trr", "out.mrec"]


@pytest.mark.parametrize("words", [[], ["convert"], ["convert", "a", "b.mrec", "--stride", "0"], ["frobnicate"]])
def test_a_wrong_call_is_exit_code_2(words: list[str]) -> None:
    assert "usage: mrec" in mrec(*words, code=2).stderr


def test_without_mdanalysis(tmp_path: Path) -> None:
    (tmp_path / "MDAnalysis.py").write_text("raise ModuleNotFoundError('No module named MDAnalysis', name=__name__)")
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = mrec("convert", RHODOPSIN / "md_1u19.xtc", tmp_path / "out.mrec", code=1, env=environment)
    assert "needs MDAnalysis" in done.stderr
    assert "pip install 'mrec[convert]'" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_conversion_that_is_stopped_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    call = [sys.executable, "-m", "mrec.cli", "convert", datafiles.TRR, "-t", datafiles.GRO, tmp_path / "out.mrec"]
    process = subprocess.Popen(call, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob(".mrec-*/*/trajectory")):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number, said
    assert said == ""
    assert os.listdir(tmp_path) == []


def test_a_record_that_is_being_written_is_not_replaced(tmp_path: Path) -> None:
    import mrec as library

    source = written(tmp_path / "in.trr", [{}])
    schema = library.Schema().block("atoms", rows=1).column("x", "f64")
    with library.TrajectoryWriter(tmp_path / "out.mrec", schema) as writer:
        writer.append(0, atoms={"x": [1.0]})
        done = mrec("convert", source, tmp_path / "out.mrec", "--overwrite", code=1)
        assert "being written" in done.stderr
        writer.append(1, atoms={"x": [2.0]})
    assert ZarrRecord(tmp_path / "out.mrec").nstep == 2

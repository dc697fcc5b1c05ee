# SPDX-License-Identifier: BSD-3-Clause
"""Seven formats, each as MDAnalysis reads the output, and back in a record; extended XYZ and PDB by their text."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec as library
from tests.cli.command import ROOT
from tests.cli.inside import Command, make

pytestmark = pytest.mark.filterwarnings("ignore")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import MDAnalysis

N = 8
# what is kept, the error of a position (angstrom)
FORMATS: dict[str, tuple[set[str], float]] = {
    "xtc": ({"cell", "times", "steps"}, 0.0051),
    "trr": ({"cell", "times", "steps", "velocities", "forces"}, 1e-5),
    "dcd": ({"cell", "times", "steps"}, 1e-5),
    "ncdf": ({"cell", "times", "velocities", "forces"}, 1e-5),
    "h5md": ({"cell", "times", "steps", "velocities", "forces"}, 1e-5),
    "xyz": (set(), 1e-5),
    "pdb": (set(), 0.00051),
}
CAL = 4.184


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return make(tmp_path / "a.mrec", 7, N)


def columns(frame: library.Frame, *names: str) -> np.ndarray:
    return np.stack([np.asarray(frame["atoms"][name]) for name in names], axis=1)


def turned(box: library.Box) -> tuple[np.ndarray, np.ndarray]:
    """The cell with a along x and b in the xy plane, and the turn to it, by Gram and Schmidt."""
    a, b, c = box.rows
    x = a / np.linalg.norm(a)
    y = b - (b @ x) * x
    y /= np.linalg.norm(y)
    turn = np.stack([x, y, np.cross(x, y)], axis=1)
    return box.rows @ turn, turn


@pytest.mark.parametrize("ending", FORMATS)
def test_what_mdanalysis_reads(run: Command, record: Path, tmp_path: Path, ending: str) -> None:
    keeps, error = FORMATS[ending]
    out = tmp_path / f"out.{ending}"
    run("convert", record, out)
    assert ("velocities; they are dropped" in run.err) == ("velocities" not in keeps)
    assert "events, grid" in run.err or "grid, events" in run.err
    made = MDAnalysis.Universe.empty(N, trajectory=True)
    made.load_new(str(out), format="XYZ" if ending == "xyz" else None)
    with library.open(record) as source:
        frames = list(source.trajectory)
    assert len(made.trajectory) == len(frames)
    for ts, frame in zip(made.trajectory, frames, strict=True):
        cell, turn = placed(frame, ending)
        assert np.allclose(ts.positions, columns(frame, "x", "y", "z") @ turn * 10, rtol=0, atol=error)
        if "cell" in keeps:
            assert np.allclose(ts.triclinic_dimensions, cell * 10, rtol=0, atol=0.006)
            assert not np.allclose(ts.triclinic_dimensions.T, cell * 10, rtol=0, atol=1)
        if "times" in keeps:
            assert ts.time == pytest.approx(frame.time / 1000, rel=1e-5)
        if "steps" in keeps and ending != "dcd":
            assert ts.data["step"] == frame.step
        if "velocities" in keeps:
            assert np.allclose(ts.velocities, columns(frame, "vx", "vy", "vz") @ turn * 1e4, rtol=1e-5, atol=1e-2)
        if "forces" in keeps:
            assert np.allclose(ts.forces, columns(frame, "fx", "fy", "fz") @ turn * CAL / 10, rtol=1e-5, atol=1e-5)


def placed(frame: library.Frame, ending: str) -> tuple[np.ndarray, np.ndarray]:
    """The cell and the turn in a format; where it has no cell, atoms stay where they are."""
    cell, turn = turned(frame.box)
    return cell, np.eye(3) if ending == "xyz" else turn


@pytest.mark.parametrize("ending", FORMATS)
def test_there_and_back(run: Command, record: Path, tmp_path: Path, ending: str) -> None:
    keeps, error = FORMATS[ending]
    out, back = tmp_path / f"out.{ending}", tmp_path / "back.mrec"
    run("convert", record, out)
    run("convert", out, back)
    with library.open(record) as old, library.open(back) as new:
        assert len(old.trajectory) == len(new.trajectory)
        for a, b in zip(old.trajectory, new.trajectory, strict=True):
            cell, turn = placed(a, ending)
            assert np.allclose(columns(b, "x", "y", "z"), columns(a, "x", "y", "z") @ turn * 10, rtol=0, atol=error)
            if "cell" in keeps:
                assert np.allclose(b.box.rows, cell * 10, rtol=0, atol=0.006)
            if "steps" in keeps:
                assert a.step == b.step
            if "times" in keeps:
                assert b.time == pytest.approx(a.time / 1000, rel=1e-5)
            if "velocities" in keeps:
                there = columns(a, "vx", "vy", "vz") @ turn * 1e4
                assert np.allclose(columns(b, "vx", "vy", "vz"), there, rtol=1e-5, atol=1e-2)


def test_topology_goes_along(run: Command, record: Path, tmp_path: Path) -> None:
    for command in ("convert", "export"):
        out = tmp_path / f"{command}.pdb"
        run(command, record, out, "--stop", "2", "--select", "name C1 C2 C3 C5")
        made = MDAnalysis.Universe(str(out))
        assert made.atoms.names.tolist() == ["C1", "C2", "C3", "C5"]
        assert made.atoms.resids.tolist() == [0, 0, 1, 1]
        assert sorted(made.bonds.indices.tolist()) == [[0, 1], [1, 2]]
        with library.open(record) as source:
            first = source.trajectory[0]
        cell, turn = turned(first.box)
        rows = columns(first, "x", "y", "z")[[1, 2, 3, 5]]
        assert np.allclose(made.atoms.positions, rows @ turn * 10, rtol=0, atol=0.00051)
        (line,) = (line for line in out.read_text().splitlines() if line.startswith("CRYST1"))
        sizes = [float(line[at : at + width]) for at, width in ((6, 9), (15, 9), (24, 9), (33, 7), (40, 7), (47, 7))]
        assert np.allclose(MDAnalysis.lib.mdamath.triclinic_vectors(sizes), cell * 10, rtol=0, atol=0.1)
        assert len(made.trajectory) == 2


def test_precision_of_xtc(run: Command, record: Path, tmp_path: Path) -> None:
    run("convert", record, tmp_path / "out.xtc", "--precision", "0.0001")
    ts = MDAnalysis.coordinates.XTC.XTCReader(str(tmp_path / "out.xtc")).ts
    with library.open(record) as source:
        first = source.trajectory[0]
    expected = columns(first, "x", "y", "z") @ turned(first.box)[1] * 10
    assert np.abs(ts.positions - expected).max() < 6e-5
    assert "of no use for a TRR" in run("convert", record, tmp_path / "out.trr", "--precision", "1", code=2)


@pytest.mark.parametrize(
    ("x", "words", "says"),
    [
        (np.full(10, np.nan), [], "a position that is not finite"),
        (np.full(10, 3e7), [], "positions too large"),
        (np.arange(10) % 2 * 4e7 - 2e7, [], "positions too large"),
        (np.arange(10) * 3.0, ["--precision", "1e-6"], "atoms too far apart"),
        (np.arange(10) * 2.6, ["--precision", "1e-6"], ""),
        (np.full(9, np.inf), [], ""),
    ],
)
def test_what_xtc_cannot_hold(run: Command, tmp_path: Path, x: np.ndarray, words: list[str], says: str) -> None:
    schema = library.Schema().block("atoms", rows=len(x)).column("x", "f64").column("y", "f64").column("z", "f64")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema, units={"length": "angstrom"}) as writer:
        writer.append(0, atoms={"x": x, "y": np.zeros(len(x)), "z": np.zeros(len(x))})
    said = run("convert", tmp_path / "a.mrec", tmp_path / "out.xtc", *words, code=1 if says else 0)
    assert says in said
    if not says:
        back = MDAnalysis.Universe.empty(len(x))
        back.load_new(str(tmp_path / "out.xtc"))
        assert np.allclose(back.trajectory[0].positions[:, 0], x, rtol=1e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("ending", ["xtc", "trr", "dcd", "ncdf", "h5md", "xyz", "pdb"])
def test_a_full_disk(tmp_path: Path, ending: str) -> None:
    """The file may have 2 kB: an error of one line, and nothing is left."""
    script = (
        "import resource, sys; from mrec.cli import main; resource.setrlimit(resource.RLIMIT_FSIZE, (2048, 2048)); "
        "sys.exit(main(sys.argv[1:]))"
    )
    out = tmp_path / f"out.{ending}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    call = [sys.executable, "-W", "ignore", "-c", script, "convert", str(big(tmp_path / "b.mrec")), str(out)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("mrec: error: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert "/.mrec-" not in done.stderr
    assert os.listdir(tmp_path) == ["b.mrec"]


def big(path: Path) -> Path:
    schema = library.Schema().block("atoms", rows=100)
    for name in "xyz":
        schema.column(name, "f64")
    with library.TrajectoryWriter(path, schema, durable=False) as writer:
        for i in range(10):
            writer.append(i, atoms={"xyz": np.random.default_rng(i).normal(size=(100, 3))})
    return path


@pytest.mark.parametrize("ending", FORMATS)
def test_no_atoms(run: Command, tmp_path: Path, ending: str) -> None:
    schema = library.Schema().block("atoms").column("x", "f64").column("y", "f64").column("z", "f64")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema) as writer:
        writer.append(0, atoms={"xyz": np.empty((0, 3))})
    assert "frame 0 has no atoms" in run("convert", tmp_path / "a.mrec", tmp_path / f"out.{ending}", code=1)


def test_names_that_are_no_words(run: Command, tmp_path: Path) -> None:
    """In an XYZ file every line has a name without blanks: the file is read again."""
    schema = library.Schema().block("atoms").column("x", "f64").column("y", "f64").column("z", "f64")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema.column("element", "string")) as writer:
        writer.append(0, atoms={"xyz": np.arange(9.0).reshape(3, 3), "element": ["C", "", "a b"]})
    run("convert", tmp_path / "a.mrec", tmp_path / "out.xyz")
    back = MDAnalysis.Universe(str(tmp_path / "out.xyz"))
    assert back.atoms.names.tolist() == ["C", "X", "a_b"]
    assert np.allclose(back.atoms.positions, np.arange(9.0).reshape(3, 3))


def test_extended_xyz(run: Command, record: Path, tmp_path: Path) -> None:
    run("export", record, tmp_path / "out.extxyz", "--start", "1", "--stop", "6", "--stride", "2")
    assert "no place for grid, events; dropped" in run.err
    lines = (tmp_path / "out.extxyz").read_text().splitlines()
    with library.open(record) as source:
        frames = [source.trajectory[i] for i in (1, 3, 5)]
    assert len(lines) == 3 * (N + 2)
    for i, frame in enumerate(frames):
        count, comment, *rows = lines[i * (N + 2) : (i + 1) * (N + 2)]
        assert count == str(N)
        keys = dict(word.split("=", 1) for word in shlex.split(comment))
        assert np.array_equal(np.array(keys["Lattice"].split(), float).reshape(3, 3), frame.box.rows * 10)
        assert keys["pbc"] == "T T T"
        assert (int(keys["Step"]), float(keys["Time"])) == (frame.step, pytest.approx(frame.time))
        assert float(keys["pe"]) == frame.values["pe"]
        assert np.array_equal(np.array(keys["stress"].split(), float), frame.values["stress"])
        table = parsed(keys["Properties"], rows)
        assert np.array_equal(table["pos"], columns(frame, "x", "y", "z") * 10)
        assert np.allclose(table["velo"], columns(frame, "vx", "vy", "vz") * 10, rtol=1e-14)
        assert np.allclose(table["forces"], columns(frame, "fx", "fy", "fz") * CAL / 10 / 96.48533212, rtol=1e-14)
        assert table["species"][:, 0].tolist() == [f"C{k}" for k in range(N)]
        assert table["tag"][:, 0].tolist() == frame["atoms"]["tag"].tolist()
        assert table["ix"][:, 0].tolist() == frame["atoms"]["ix"].tolist()
        assert np.isnan(table["q"][:, 0]).tolist() == np.ma.getmaskarray(frame["atoms"]["q"]).tolist()


def parsed(properties: str, rows: list[str]) -> dict[str, Any]:
    words = properties.split(":")
    cells = np.array([row.split(" ") for row in rows])
    kinds = {"S": str, "R": float, "I": int}
    found, at = {}, 0
    for name, letter, width in zip(words[::3], words[1::3], map(int, words[2::3]), strict=True):
        found[name] = cells[:, at : at + width].astype(kinds[letter])
        at += width
    assert at == cells.shape[1]
    return found


def test_columns_of_extended_xyz(run: Command, tmp_path: Path) -> None:
    """Ones that have the name of what stands there already, and frames without a row, each with the same columns."""
    schema = library.Schema().block("atoms").column("v", "f64", trailing=(2, 2)).column("pos", "f64")
    schema.column("species", "string").column("x", "f64").column("y", "f64").column("z", "f64")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema) as writer:
        for n in (0, 1):
            columns = {"v": np.ones((n, 2, 2)), "pos": np.arange(n), "species": ["A"] * n}
            writer.append(n, atoms={"xyz": np.zeros((n, 3)), **columns})
    run("export", tmp_path / "a.mrec", tmp_path / "out.extxyz")
    lines = (tmp_path / "out.extxyz").read_text().splitlines()
    columns = "species:S:1:pos:R:3:v:R:4:column_pos:R:1:column_species:S:1"
    assert [line.split()[0] for line in lines] == ["0", f"Properties={columns}", "1", f"Properties={columns}", "X"]
    assert lines[4] == "X 0.0 0.0 0.0 1.0 1.0 1.0 1.0 0.0 A"


def test_velocities_in_some_frames(run: Command, tmp_path: Path) -> None:
    schema = library.Schema().block("atoms", rows=3)
    for name in "xyz":
        schema.column(name, "f64")
    for name in ("vx", "vy", "vz"):
        schema.column(name, "f64", nullable=True)
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema, durable=False) as writer:
        for i in range(3):
            atoms = dict.fromkeys("xyz", np.arange(3.0) + i)
            v = np.ma.MaskedArray(np.ones(3), mask=i != 1)
            writer.append(i, atoms=atoms | dict.fromkeys(("vx", "vy", "vz"), v))
    run("convert", tmp_path / "a.mrec", tmp_path / "out.trr")
    assert "without a unit; they are taken for angstrom" in run.err
    assert "the record has no times; the frames are numbered" in run.err
    with MDAnalysis.lib.formats.libmdaxdr.TRRFile(str(tmp_path / "out.trr")) as reader:
        assert [frame.hasv for frame in reader] == [False, True, False]
    problem = run("convert", tmp_path / "a.mrec", tmp_path / "out.ncdf", code=1)
    assert "frame 0 has no velocities, others have; use a TRR file" in problem
    assert sorted(os.listdir(tmp_path)) == ["a.mrec", "out.trr"]


def test_a_left_handed_cell(run: Command, tmp_path: Path) -> None:
    """Lengths and angles cannot say it; a format without a cell, and one with vectors, need not know."""
    schema = library.Schema().block("atoms", rows=2).column("x", "f64").column("y", "f64").column("z", "f64")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema, units={"length": "angstrom"}) as writer:
        writer.append(0, atoms={"xyz": np.arange(6.0).reshape(2, 3)}, box=library.Box.from_rows(-5.0 * np.eye(3)))
    for command, name in (("convert", "out.xtc"), ("convert", "out.pdb"), ("export", "out.pdb")):
        problem = run(command, tmp_path / "a.mrec", tmp_path / name, code=1)
        assert "left-handed, which lengths and angles cannot say; .extxyz can" in problem
    run("convert", tmp_path / "a.mrec", tmp_path / "out.xyz")
    assert (tmp_path / "out.xyz").read_text().split()[-3:] == ["3.000000", "4.000000", "5.000000"]
    run("export", tmp_path / "a.mrec", tmp_path / "out.extxyz")
    assert 'Lattice="-5.0 ' in (tmp_path / "out.extxyz").read_text()


def test_atoms_that_come_and_go(run: Command, tmp_path: Path) -> None:
    schema = library.Schema().block("atoms", rows=3).column("x", "f64").column("y", "f64").column("z", "f64")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema, durable=False) as writer:
        for n in (3, 2):
            writer.append(None, atoms=dict.fromkeys("xyz", np.arange(float(n))))
    problem = run("convert", tmp_path / "a.mrec", tmp_path / "out.xtc", code=1)
    assert "frame 1 has 2 atoms, the frames before 3" in problem
    run("export", tmp_path / "a.mrec", tmp_path / "out.extxyz")
    assert [line for line in (tmp_path / "out.extxyz").read_text().splitlines() if line.isdigit()] == ["3", "2"]
    assert sorted(os.listdir(tmp_path)) == ["a.mrec", "out.extxyz"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["export", "a.mrec", "there.pdb"], "pass --overwrite"),
        (["export", "a.mrec", "out.pdb", "--select", "garbage ((("], "is not understood"),
        (["export", "a.mrec", "out.pdb", "--select", "altLoc A"], "the record does not say the altLocs of its atoms"),
        (["convert", "a.mrec", "out.xtc", "--start", "9"], "none of them is chosen"),
        (["export", "no.mrec", "out.pdb"], "no.mrec: there is no record"),
        (["convert", "a.mrec", "nowhere/out.pdb"], "there is no such directory"),
    ],
)
def test_what_is_refused_leaves_nothing(
    run: Command, record: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(record.parent)
    Path("there.pdb").write_text("mine")
    assert says in run(*words, code=1)
    assert sorted(os.listdir()) == ["a.mrec", "there.pdb"]
    assert Path("there.pdb").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["convert", "a.mrec", "out.gro"], "a record is converted to .xtc"),
        (["convert", "a.mrec", "out.xtc", "--keep", "atoms"], "--keep is for converting from record to record"),
        (["convert", "a.mrec", "b.mrec", "--topology", "a.gro"], "--topology is for converting into a record"),
        (["convert", "a.xtc", "out.trr"], "one of them is a record"),
        (["convert", "a.mrec", "out.trr", "--precision", "1"], "of no use for a TRR"),
        (["convert", "a.mrec", "out.xtc", "--precision", "1000"], "an XTC file takes 1e-7 to 100"),
        (["convert", "a.trr", "b.mrec", "--precision", "nan"], "it is above 0"),
        (["convert", "a.mrec", "b.mrec", "--compression", "lz4"], "compression is 'lz4'"),
        (["convert", "a.mrec", "b.mrec", "--rows", "atoms"], "write BLOCK=START:STOP"),
        (["convert", "a.mrec", "b.mrec", "--rows", "atoms=::0"], "its stride is at least 1"),
        (["export", "a.mrec", "out.xtc"], "`mrec convert` writes other formats"),
        (["plot", "a.mrec", "pe", "-o", "a.jpg"], "a picture is a .png"),
        (["watch", "a.mrec", "--interval", "0"], "it is above 0"),
    ],
)
def test_words_that_do_not_fit_are_exit_code_2(
    run: Command, record: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str
) -> None:
    monkeypatch.chdir(record.parent)
    assert says in run(*words, code=2)
    assert os.listdir() == ["a.mrec"]


def test_endings_in_upper_case(run: Command, record: Path, tmp_path: Path) -> None:
    for name in ("out.PDB", "out.ExtXYZ", "out.pdb", "out.extxyz"):
        run("export", record, tmp_path / name)
    assert (tmp_path / "out.PDB").read_text() == (tmp_path / "out.pdb").read_text()
    assert (tmp_path / "out.ExtXYZ").read_text() == (tmp_path / "out.extxyz").read_text()

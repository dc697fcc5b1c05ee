# SPDX-License-Identifier: BSD-3-Clause
"""Records in ASE give the Atoms that were written, and what ASE reads from the file that a record was made of."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.cli import main
from mrec.errors import MrecError, RecordExists, SchemaError

ase = pytest.importorskip("ase")
ase_io = pytest.importorskip("ase.io")
from ase.build import bulk, fcc111, molecule  # noqa: E402
from ase.calculators.emt import EMT  # noqa: E402
from ase.calculators.singlepoint import SinglePointCalculator  # noqa: E402
from ase.md.verlet import VelocityVerlet  # noqa: E402
from ase.optimize import BFGS  # noqa: E402

from mrec.interop.ase import MrecTrajectory  # noqa: E402

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.filterwarnings("ignore:Setting the (shape|strides):DeprecationWarning")  # ASE 3.29, numpy 2.5


def assert_same(found: Any, wanted: Any) -> None:
    """Bit for bit but for momenta, which are kept as velocities."""
    np.testing.assert_array_equal(found.numbers, wanted.numbers)
    np.testing.assert_array_equal(found.positions, wanted.positions)
    np.testing.assert_array_equal(found.cell.array, wanted.cell.array)
    np.testing.assert_array_equal(found.pbc, wanted.pbc)
    np.testing.assert_array_equal(found.get_masses(), wanted.get_masses())
    assert found.arrays.keys() - {"masses"} == wanted.arrays.keys() - {"masses"}
    for name, values in wanted.arrays.items():
        if name == "momenta":
            np.testing.assert_allclose(found.get_momenta(), values, rtol=1e-14)
        elif name != "masses":
            np.testing.assert_array_equal(found.arrays[name], values)
    assert (found.calc is None) == (wanted.calc is None)
    if wanted.calc is not None:
        assert found.calc.results.keys() == {k for k, v in wanted.calc.results.items() if v is not None}
        for name, value in found.calc.results.items():
            np.testing.assert_array_equal(value, wanted.calc.results[name])


def assert_same_info(found: Any, wanted: Any) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_equal(found[name], value)


def rich(i: int = 0) -> Any:
    """Atoms with everything that ASE's Atoms have."""
    rng = np.random.default_rng(i)
    atoms = fcc111("Cu", (2, 2, 3), vacuum=5.0)
    atoms.set_cell(atoms.cell.array @ np.linalg.qr(rng.normal(size=(3, 3)))[0], scale_atoms=True)
    atoms.pbc = (True, True, False)
    atoms.positions += rng.normal(scale=0.1, size=atoms.positions.shape)
    atoms.set_momenta(rng.normal(size=atoms.positions.shape))
    atoms.set_masses(np.full(len(atoms), 64.25))
    atoms.set_initial_charges(rng.normal(size=len(atoms)))
    atoms.set_array("label", np.array([f"a{k}" for k in range(len(atoms))]))
    atoms.set_array("matrix", rng.normal(size=(len(atoms), 3, 3)))
    atoms.set_array("x", np.arange(len(atoms)))  # a name that the format has a meaning for
    atoms.set_array("flag", np.arange(len(atoms)) % 2 == 0)
    atoms.info = {"note": "é", "n": i, "weight": 0.1 * i, "nan": np.nan, "nested": {"a": [1, 2.5, None]},
                  "array": rng.normal(size=(2, 2)), "ok": True}  # fmt: skip
    n = len(atoms)
    atoms.calc = SinglePointCalculator(
        atoms, energy=-1.25 * i, free_energy=-1.0, forces=rng.normal(size=(n, 3)), stress=rng.normal(size=6),
        dipole=rng.normal(size=3), magmom=0.5, charges=rng.normal(size=n), magmoms=rng.normal(size=n),
        energies=rng.normal(size=n), stresses=rng.normal(size=(n, 6)),
    )  # fmt: skip
    return atoms


def test_everything_comes_back(tmp_path: Path) -> None:
    path, images = tmp_path / "rich.mrec", [rich(i) for i in range(5)]
    ase_io.write(path, images)
    found = ase_io.read(path, ":", format="mrec")
    for a, b in zip(found, images, strict=True):
        assert_same(a, b)
        assert_same_info(a.info, b.info)
    assert mrec.verify(path).ok
    assert mrec.open(path).units["force"] == "eV/angstrom"
    copied = tmp_path / "copied.mrec"
    ase_io.write(copied, found)
    for a, b in zip(ase_io.read(copied, ":", format="mrec"), images, strict=True):
        assert_same(a, b)
        assert_same_info(a.info, b.info)


@pytest.mark.parametrize("kind", ["molecules", "crystals"])
def test_atoms_that_change(kind: str, tmp_path: Path) -> None:
    crystals = kind == "crystals"
    images = [bulk("Cu"), bulk("Au", cubic=True)] if crystals else [molecule("H2O"), molecule("CH4")]
    ase_io.write(tmp_path / "x.mrec", images)
    for a, b in zip(ase_io.read(tmp_path / "x.mrec", ":", format="mrec"), images, strict=True):
        assert_same(a, b)


def test_index_strings_and_packed_records(tmp_path: Path) -> None:
    path = tmp_path / "x.mrec"
    images = [molecule("H2O") for _ in range(9)]
    for i, atoms in enumerate(images):
        atoms.positions += i
    ase_io.write(path, images)
    packed = mrec.pack(path)
    for name, options in (
        (path, {"format": "mrec"}),
        (packed, {}),
    ):  # the format of a packed record is found by its name
        for index in (":", "-3:", "::2", "1::3", "::-1", slice(2, 5), 0, 4, -2, -1, None):
            wanted = images[-1 if index is None else ase.utils.string2index(index) if isinstance(index, str) else index]
            found = ase_io.read(name, index, **options)
            for a, b in zip(*[[x] if isinstance(x, ase.Atoms) else x for x in (found, wanted)], strict=True):
                np.testing.assert_array_equal(a.positions, b.positions)
        assert [a.positions[0, 0] for a in ase_io.iread(name, "2:4", **options)] == [2.0, 3.0]
    assert ase_io.read(f"{packed}@3:5")[1].positions[0, 0] == 4.0


def copper() -> Any:
    atoms = bulk("Cu", cubic=True) * (2, 2, 2)
    atoms.set_momenta(np.random.default_rng(0).normal(scale=1.3, size=(len(atoms), 3)))
    atoms.calc = EMT()
    return atoms


def test_molecular_dynamics_is_what_ase_s_own_trajectory_has(tmp_path: Path) -> None:
    atoms = copper()
    dynamics = VelocityVerlet(atoms, 2 * ase.units.fs)
    with (
        MrecTrajectory(tmp_path / "md.mrec", "w", atoms, dynamics=dynamics) as ours,
        ase_io.Trajectory(tmp_path / "md.traj", "w", atoms) as theirs,
    ):
        for trajectory in (ours, theirs):
            dynamics.attach(trajectory, interval=5)
        dynamics.run(20)
    for a, b in zip(ase_io.read(tmp_path / "md.mrec", ":", format="mrec"), theirs_of(tmp_path), strict=True):
        assert_same(a, b)
    trajectory = mrec.open(tmp_path / "md.mrec").trajectory
    assert trajectory.steps.tolist() == [0, 5, 10, 15, 20]
    np.testing.assert_allclose(trajectory.times, [0, 10, 20, 30, 40])
    assert mrec.open(tmp_path / "md.mrec").system["atoms"]["element"].tolist() == ["Cu"] * 32

    # A second process goes on from the last frame, which is not doubled.
    again = ase_io.read(tmp_path / "md.mrec", format="mrec")
    again.calc = EMT()
    dynamics = VelocityVerlet(again, 2 * ase.units.fs)
    with MrecTrajectory(tmp_path / "md.mrec", "a", again, dynamics=dynamics) as ours:
        dynamics.attach(ours, interval=5)
        dynamics.run(10)
    trajectory = mrec.open(tmp_path / "md.mrec").trajectory
    assert trajectory.steps.tolist() == [0, 5, 10, 15, 20, 25, 30]
    np.testing.assert_allclose(trajectory.times, np.arange(7) * 10.0)


def theirs_of(folder: Path) -> Any:
    with ase_io.Trajectory(folder / "md.traj") as theirs:
        return list(theirs)


def test_an_optimiser(tmp_path: Path) -> None:
    atoms = copper()
    atoms.rattle(0.1, seed=1)
    optimiser = BFGS(atoms, logfile=None)
    with MrecTrajectory(tmp_path / "opt.mrec", atoms=atoms, dynamics=optimiser) as trajectory:
        optimiser.attach(trajectory)
        optimiser.run(fmax=0.5, steps=10)
    energies = mrec.open(tmp_path / "opt.mrec").trajectory.values("pe")
    assert energies[-1] == atoms.get_potential_energy() < energies[0]


def test_appending_and_refusing(tmp_path: Path) -> None:
    path = tmp_path / "x.mrec"
    ase_io.write(path, molecule("H2O"))
    ase_io.write(path, molecule("H2O"), format="mrec", append=True)
    assert len(ase_io.read(path, ":", format="mrec")) == 2
    with pytest.raises(RecordExists):
        ase_io.write(path, molecule("H2O"), format="mrec")
    ase_io.write(path, molecule("H2O"), format="mrec", overwrite=True)
    assert len(ase_io.read(path, ":", format="mrec")) == 1
    with MrecTrajectory(path, "a") as trajectory, pytest.raises(SchemaError, match="changing=True"):
        trajectory.write(molecule("CH4"))
    with pytest.raises(MrecError, match=r"mrec\.pack"):
        ase_io.write(tmp_path / "x.mrec.zip", molecule("H2O"))


def test_names_of_arrays_that_no_column_has(tmp_path: Path) -> None:
    atoms = molecule("H2O")
    for name in ("a/b", "a%2Fb", "array_a/b", "__x", "mass", "id", "vx", "result_charges"):
        atoms.new_array(name, np.array([1.5, -2.0, 3.0]))
    ase_io.write(tmp_path / "x.mrec", atoms)
    assert_same(ase_io.read(tmp_path / "x.mrec", format="mrec"), atoms)


def test_what_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    atoms = molecule("H2O")
    atoms.arrays["o"] = np.array([{"a": 1}, None, "x"], object)
    with pytest.raises(SchemaError, match="'o' has objects"):
        ase_io.write(tmp_path / "a.mrec", atoms)
    atoms = molecule("H2O")
    atoms.info["o"] = object()
    with pytest.raises(MrecError, match="info cannot be kept: .*object"):
        ase_io.write(tmp_path / "b.mrec", atoms)
    with pytest.raises(MrecError, match="no atoms to write"):
        ase_io.write(tmp_path / "c.mrec", [], format="mrec")
    assert not (tmp_path / "c.mrec").exists()


def test_atoms_without_a_mass(tmp_path: Path) -> None:
    atoms = molecule("H2O")
    atoms.set_masses([16.0, 0.0, 1.0])
    atoms.set_momenta([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [4.0, 5.0, 6.0]])
    ase_io.write(tmp_path / "x.mrec", atoms)
    assert_same(ase_io.read(tmp_path / "x.mrec", format="mrec"), atoms)
    atoms.set_momenta(np.ones((3, 3)))
    with pytest.raises(SchemaError, match="without a mass"):
        ase_io.write(tmp_path / "y.mrec", atoms)


def test_appending_to_what_is_not_there_or_in_other_units(tmp_path: Path) -> None:
    with MrecTrajectory(tmp_path / "x.mrec", "a") as trajectory:
        trajectory.write(molecule("H2O"))
    ase_io.write(tmp_path / "x.mrec", molecule("H2O"), format="mrec", append=True)
    assert len(ase_io.read(tmp_path / "x.mrec", ":", format="mrec")) == 2
    schema = mrec.Schema().block("atoms", rows=3).column("x", "f64").column("y", "f64").column("z", "f64")
    with mrec.TrajectoryWriter(tmp_path / "nm.mrec", schema, units={"length": "nm"}) as writer:
        writer.append(0, atoms={"xyz": np.zeros((3, 3))})
    with pytest.raises(SchemaError, match="the units .*'nm'"):
        MrecTrajectory(tmp_path / "nm.mrec", "a")
    assert len(mrec.open(tmp_path / "nm.mrec").trajectory) == 1


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["PDB_full", "LAMMPSDUMP", "GRO_velocity"])
def test_a_converted_file_is_what_ase_reads(name: str, tmp_path: Path) -> None:
    """Positions and cell; elements and names of a PDB file, velocities of a GRO file, frames of a LAMMPS dump."""
    source = getattr(pytest.importorskip("MDAnalysisTests.datafiles"), name)
    assert main(["convert", source, str(tmp_path / "x.mrec")]) in (0, None)
    images = ase_io.read(source, ":", format="lammps-dump-text" if name == "LAMMPSDUMP" else None)
    for found, wanted in zip(ase_io.read(tmp_path / "x.mrec", ":", format="mrec"), images, strict=True):
        if name == "LAMMPSDUMP":  # MDAnalysis, which converted it, has the corner of the cell at 0
            wanted.positions -= np.mean(wanted.positions - found.positions, axis=0)
        np.testing.assert_allclose(found.positions, wanted.positions, atol=1e-4)
        np.testing.assert_allclose(found.cell.array, wanted.cell.array, atol=1e-4)
        assert found.pbc.tolist() == wanted.pbc.tolist()
        if name == "PDB_full":
            np.testing.assert_array_equal(found.numbers, wanted.numbers)
            assert [text.strip() for text in wanted.arrays["atomtypes"]] == list(found.arrays["name"])
        if name == "GRO_velocity":
            np.testing.assert_allclose(found.get_velocities(), wanted.get_velocities(), rtol=1e-5, atol=1e-9)


def test_units_are_converted(tmp_path: Path) -> None:
    path, units = tmp_path / "nm.mrec", {"length": "nm", "time": "ps", "force": "kJ/mol/nm", "energy": "kJ/mol"}
    schema = mrec.Schema().block("atoms", rows=1).column("element", "string").value("pe", "f64")
    columns = ("x", "y", "z"), ("vx", "vy", "vz"), ("fx", "fy", "fz")
    for name in sum(columns, ()):
        schema.column(name, "f64")
    with mrec.TrajectoryWriter(path, schema, units=units) as writer:
        given = {key: np.array([[1.0, 2.0, 3.0]]) for key in columns} | {"element": ["He"]}
        writer.append(7, time=0.5, box=[2.0, 2.0, 3.0], blocks={"atoms": given}, values={"pe": 96.0})
    atoms = ase_io.read(path, format="mrec")
    assert atoms.get_chemical_formula() == "He"
    np.testing.assert_allclose(atoms.positions, [[10, 20, 30]])
    np.testing.assert_allclose(atoms.cell.lengths(), [20, 20, 30])
    np.testing.assert_allclose(atoms.get_velocities(), np.array([[1, 2, 3]]) * 10 / (1000 * ase.units.fs))
    kj = ase.units.kJ / ase.units.mol
    np.testing.assert_allclose(atoms.get_forces(), np.array([[1, 2, 3]]) * kj / 10, rtol=1e-6)
    np.testing.assert_allclose(atoms.get_potential_energy(), 96 * kj, rtol=1e-6)
    assert (atoms.info["step"], atoms.info["time"]) == (7, 500.0)


def test_units_that_are_not_known_are_warned_of(tmp_path: Path) -> None:
    schema = mrec.Schema().block("atoms", rows=1).column("x", "f64").column("y", "f64").column("z", "f64")
    units = {"length": "angstrom", "time": "fs", "energy": "kilocalories"}
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", schema.value("pe", "f64"), units=units) as writer:
        writer.append(0, time=0.0, atoms={"xyz": np.zeros((1, 3))}, pe=1.0)
    with pytest.warns(UserWarning, match="energies are in 'kilocalories', .* taken for eV"):
        assert ase_io.read(tmp_path / "a.mrec", format="mrec").get_potential_energy() == 1.0


def test_ase_finds_the_format_of_an_installed_package(tmp_path: Path) -> None:
    """By its entry point, without an import of ours."""
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    info = tmp_path / "mrec_test-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mrec-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ase.ioformats]\n" + "".join(f"{name} = {value}\n" for name, value in points["ase.ioformats"].items())
    )
    code = (
        "import importlib.metadata as m, sys\n"
        "if not m.entry_points(group='ase.ioformats', name='mrec'): sys.path.insert(0, sys.argv[1])\n"
        "import ase.io; from ase.build import molecule\n"
        "light = 'mrec.interop.ase' not in sys.modules\n"
        "ase.io.write('x.mrec', molecule('H2O')); print(light, ase.io.read('x.mrec', format='mrec').symbols)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )  # fmt: skip
    assert done.stdout.strip() == "True OH2", done.stderr

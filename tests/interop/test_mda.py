# SPDX-License-Identifier: BSD-3-Clause
"""Records in MDAnalysis give what MDAnalysis itself reads from the file that the record was made of."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import MDAnalysis
import numpy as np
import pytest
from MDAnalysis.analysis import msd, rdf, rms
from MDAnalysisTests import datafiles

import mrec
import mrec.interop.mda
from mrec.cli import main
from mrec.errors import InvalidValue, MrecError, RecordExists, SchemaError

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:MDAnalysis"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning:MDAnalysis"),
]

#: topology, trajectory
SOURCES = {
    "adk-trr": (datafiles.GRO, datafiles.TRR),
    "adk-dcd": (datafiles.PSF, datafiles.DCD),
    "cobrotoxin": (datafiles.PDB_sub_sol, datafiles.XTC_sub_sol),
    "hexagonal": (datafiles.PSF_NAMD_TRICLINIC, datafiles.DCD_NAMD_TRICLINIC),
    "amber": (datafiles.PRM_NCBOX, datafiles.TRJ_NCBOX),
}


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The record of a source, made by the command line, every bit kept."""
    folder = tmp_path_factory.mktemp("converted")

    def made(name: str) -> str:
        path = folder / f"{name}.mrec"
        if not path.exists():
            topology, trajectory = SOURCES[name]
            assert main(["convert", trajectory, "-t", topology, str(path)]) in (0, None)
        return str(path)

    return made


@pytest.fixture(params=SOURCES)
def pair(request: pytest.FixtureRequest, converted: Any) -> tuple[Any, Any]:
    """A source and its record, each as a universe."""
    return MDAnalysis.Universe(*SOURCES[request.param]), MDAnalysis.Universe(converted(request.param))


def assert_same(found: Any, wanted: Any) -> None:
    """The same time step, bit for bit in positions; what was converted by a factor, to a float32's last bit."""
    assert found.frame == wanted.frame
    assert found.time == pytest.approx(wanted.time, rel=1e-12)
    np.testing.assert_array_equal(found.positions, wanted.positions)
    if wanted.dimensions is None:
        assert found.dimensions is None
    else:
        np.testing.assert_allclose(found.dimensions, wanted.dimensions, rtol=1e-6)
    for kind in ("velocities", "forces"):
        assert getattr(found, f"has_{kind}") == getattr(wanted, f"has_{kind}")
        if getattr(wanted, f"has_{kind}"):
            np.testing.assert_array_equal(getattr(found, kind), getattr(wanted, kind))


def test_every_frame_is_the_source_s(pair: tuple[Any, Any]) -> None:
    source, record = pair
    assert len(record.trajectory) == len(source.trajectory)
    if len(source.trajectory) > 1:
        assert record.trajectory.dt == pytest.approx(source.trajectory.dt)
    for wanted, found in zip(source.trajectory, record.trajectory, strict=True):
        assert_same(found, wanted)


def test_names_are_the_source_s(pair: tuple[Any, Any]) -> None:
    source, record = pair
    for attribute in ("names", "resnames", "resids", "masses", "charges", "elements", "segids", "ids"):
        given = hasattr(source.atoms, attribute) and attribute not in {
            guessed.attrname for guessed in source._topology.guessed_attributes
        }
        if given:
            np.testing.assert_array_equal(getattr(record.atoms, attribute), getattr(source.atoms, attribute))
    for links in ("bonds", "angles", "dihedrals", "impropers"):
        if hasattr(source._topology, links) and getattr(source._topology, links).values:
            wanted = {tuple(sorted(link)) for link in getattr(source._topology, links).values}
            assert {tuple(sorted(link)) for link in getattr(record._topology, links).values} == wanted
    assert [len(r.atoms) for r in record.residues] == [len(r.atoms) for r in source.residues]


def test_frames_by_index_and_slice(converted: Any) -> None:
    source, record = MDAnalysis.Universe(*SOURCES["adk-dcd"]), MDAnalysis.Universe(converted("adk-dcd"))
    for i in (50, 3, -1, 4, 5, 97, 0):
        assert_same(record.trajectory[i], source.trajectory[i])
    for chosen in (slice(10, 40, 7), slice(None, None, -9), [5, 5, 2], slice(90, None)):
        for wanted, found in zip(source.trajectory[chosen], record.trajectory[chosen], strict=True):
            assert_same(found, wanted)


@pytest.mark.parametrize("chosen", [{}, {"start": 5, "stop": 60, "step": 4}, {"step": -3}])
def test_timeseries(converted: Any, chosen: dict[str, int]) -> None:
    source, record = MDAnalysis.Universe(*SOURCES["adk-dcd"]), MDAnalysis.Universe(converted("adk-dcd"))
    for selection in ("all", "name CA", "index 7"):
        for order in ("fac", "afc", "caf"):
            wanted, found = (
                u.trajectory.timeseries(atomgroup=u.select_atoms(selection), order=order, **chosen)
                for u in (source, record)
            )
            np.testing.assert_array_equal(found, wanted)


def test_a_topology_of_its_own_and_a_packed_record(converted: Any) -> None:
    topology, trajectory = SOURCES["cobrotoxin"]
    packed = mrec.pack(converted("cobrotoxin"))
    source = MDAnalysis.Universe(topology, trajectory)
    for universe in (
        MDAnalysis.Universe(topology, converted("cobrotoxin")),
        MDAnalysis.Universe(topology, packed),
        MDAnalysis.Universe(packed),
    ):
        assert_same(universe.trajectory[2], source.trajectory[2])
        assert list(universe.select_atoms("name CA").resids) == list(source.select_atoms("name CA").resids)
    chained = MDAnalysis.Universe(topology, [converted("cobrotoxin"), str(packed)])
    assert_same_positions(chained.trajectory[3 + 2], source.trajectory[2])


def assert_same_positions(found: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(found.positions, wanted.positions)


def test_units_of_the_record_are_converted(tmp_path: Path) -> None:
    path, units = tmp_path / "nm.mrec", {"length": "nm", "time": "fs", "force": "kcal/mol/angstrom"}
    columns = ("x", "y", "z"), ("vx", "vy", "vz"), ("fx", "fy", "fz")
    schema = mrec.Schema().block("atoms", rows=2)
    for name in sum(columns, ()):
        schema.column(name, "f64")
    rows = np.arange(6.0).reshape(2, 3)
    with mrec.TrajectoryWriter(path, schema, units=units) as writer:
        for i in range(3):
            given = dict(zip(columns, (rows, rows + 1, rows + 2), strict=True))
            writer.append(10 * i, time=500.0 * i, box=[2.0, 3.0, 4.0], blocks={"atoms": given})
    ts = MDAnalysis.Universe(path).trajectory[1]
    assert (ts.time, ts.dt, ts.data["step"]) == (0.5, 0.5, 10)
    np.testing.assert_allclose(ts.dimensions, [20, 30, 40, 90, 90, 90])
    np.testing.assert_allclose(ts.positions, rows * 10)
    np.testing.assert_allclose(ts.velocities, (rows + 1) * 1e4)  # nm/fs, for want of a unit of its own
    np.testing.assert_allclose(ts.forces, (rows + 2) * 4.184, rtol=1e-6)
    native = MDAnalysis.Universe(path, convert_units=False).trajectory[1]
    assert native.time == 500.0
    np.testing.assert_array_equal(native.positions, rows)


@pytest.mark.parametrize("length, factor", [("nanometers", 10.0), ("nanometre", 10.0), ("Angstroms", 1.0)])
def test_units_are_known_under_long_names(tmp_path: Path, length: str, factor: float) -> None:
    path = write_point(tmp_path / "long.mrec", {"length": length, "time": "picoseconds"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert MDAnalysis.Universe(path, to_guess=()).atoms.positions[0, 0] == factor


def test_a_unit_that_is_not_known_is_warned_of(tmp_path: Path) -> None:
    path = write_point(tmp_path / "far.mrec", {"length": "parsec", "time": "ps"})
    with pytest.warns(UserWarning, match="lengths are in 'parsec', .* taken for angstrom"):
        assert MDAnalysis.Universe(path, to_guess=()).atoms.positions[0, 0] == 1


def write_point(path: Path, units: dict[str, str]) -> Path:
    """A record of one atom at x = 1."""
    schema = mrec.Schema().block("atoms", rows=1).column("x", "f64").column("y", "f64").column("z", "f64")
    with mrec.TrajectoryWriter(path, schema, units=units) as writer:
        writer.append(0, time=0.0, atoms={"xyz": [[1.0, 0.0, 0.0]]})
    return path


def test_per_step_values_are_in_the_data_of_a_time_step(tmp_path: Path) -> None:
    path = tmp_path / "values.mrec"
    schema = mrec.Schema().block("atoms", rows=1).column("x", "f64").column("y", "f64").column("z", "f64")
    schema.value("pe", "f64").value("dt", "f64").value("note", "json").value("dipole", "f64x3")
    with mrec.TrajectoryWriter(path, schema) as writer:
        for i in range(4):
            values = {"pe": -1.5 * i, "dt": 0.25, "note": {"i": i}, "dipole": [i, 0.0, 1.0]}
            writer.append(i, time=2.0 * i, blocks={"atoms": {"xyz": np.full((1, 3), i)}}, values=values)
    universe = MDAnalysis.Universe(path)
    data = universe.trajectory[2].data
    assert (data["pe"], data["value_dt"], data["note"], data["dt"]) == (-3.0, 0.25, {"i": 2}, 2.0)
    assert data["dipole"].tolist() == [2.0, 0.0, 1.0]
    copy = tmp_path / "copy.mrec"
    with MDAnalysis.Writer(str(copy), 1) as out:
        for _ in universe.trajectory:
            out.write(universe.atoms)
    written = mrec.open(copy).trajectory
    assert written.values("pe").tolist() == [0.0, -1.5, -3.0, -4.5]
    assert written.values("dipole")[3].tolist() == [3.0, 0.0, 1.0]


def test_cells_and_values_of_many_frames(tmp_path: Path) -> None:
    path, n = tmp_path / "long.mrec", 700
    schema = mrec.Schema().block("atoms", rows=1).column("x", "f64").column("y", "f64").column("z", "f64")
    schema.value("pe", "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for i in range(n):
            step = i * i  # no progression
            writer.append(
                step, time=0.5 * step, box=[9.0 + i, 9.0, 9.0], atoms={"xyz": np.full((1, 3), i)}, pe=-1.0 * i
            )
    reader = mrec.interop.mda.MrecReader(path)
    for i in [*np.random.default_rng(0).permutation(n).tolist(), *range(n)]:
        ts = reader[i]
        assert (ts.frame, ts.data["step"], ts.time, ts.data["pe"]) == (i, i * i, 0.5 * i * i, -1.0 * i)
        assert (ts.positions[0, 0], ts.dimensions[0]) == (i, 9.0 + i)


def water(path: Path, counts: list[int], **columns: Any) -> Path:
    schema = mrec.Schema().block("atoms", rows=max(counts)).column("x", "f64").column("y", "f64").column("z", "f64")
    for name in columns:
        schema.column(name, "string")
    with mrec.TrajectoryWriter(path, schema) as writer:
        for i, n in enumerate(counts):
            extra = {name: [f"{values[i]}{k}" for k in range(n)] for name, values in columns.items()}
            writer.append(i, blocks={"atoms": {"xyz": np.full((n, 3), i), **extra}})
    return path


def test_changing_atom_counts_are_refused(tmp_path: Path) -> None:
    path = water(tmp_path / "ragged.mrec", [3, 3, 4])
    with pytest.raises(MrecError, match=r"ragged.mrec: frame 2 has 4 atoms, the frames before 3"):
        mrec.interop.mda.MrecReader(path)


def test_only_constant_columns_make_a_topology(tmp_path: Path) -> None:
    universe = MDAnalysis.Universe(water(tmp_path / "x.mrec", [2, 2], name=["A", "A"], res_name=["B", "C"]))
    assert list(universe.atoms.names) == ["A0", "A1"]
    assert not hasattr(universe.atoms, "resnames")


def test_a_turned_cell_turns_the_atoms(tmp_path: Path) -> None:
    path, rows = tmp_path / "turned.mrec", np.array([[0.0, 5.0, 0.0], [0.0, 1.0, 6.0], [7.0, 0.0, 2.0]])
    points = np.random.default_rng(0).uniform(0, 5, (6, 3))
    schema = mrec.Schema().block("atoms", rows=6).column("x", "f64").column("y", "f64").column("z", "f64")
    with mrec.TrajectoryWriter(path, schema) as writer:
        for i in range(3):
            writer.append(i, box=mrec.Box.from_rows(rows), atoms={"xyz": points + 0.1 * i})
    universe = MDAnalysis.Universe(path)
    upright = mrec.Box.from_lengths_angles(*universe.dimensions.astype(float).tolist()).rows
    for i, ts in enumerate(universe.trajectory):
        fractional = np.linalg.solve(rows.T, (points + 0.1 * i).T).T
        np.testing.assert_allclose(np.linalg.solve(upright.T, ts.positions.T).T, fractional, atol=1e-6)
    np.testing.assert_array_equal(universe.trajectory.timeseries()[2], universe.trajectory[2].positions)


# ---- writing -----------------------------------------------------------------------------------------------------


def test_a_written_record_is_the_universe(tmp_path: Path) -> None:
    path, source = tmp_path / "out.mrec", MDAnalysis.Universe(*SOURCES["adk-dcd"])
    atoms = source.select_atoms("resid 1-20")
    atoms.write(str(path), frames=source.trajectory[:10:3])
    record = MDAnalysis.Universe(path)
    for wanted, found in zip(source.trajectory[:10:3], record.trajectory, strict=True):
        np.testing.assert_array_equal(found.positions, atoms.positions)
        assert found.time == pytest.approx(wanted.time)
    assert list(record.atoms.names) == list(atoms.names)
    assert len(record.bonds) == len(atoms.bonds.atomgroup_intersection(atoms, strict=True))
    assert mrec.open(path).units["length"] == "angstrom"
    assert mrec.verify(path).ok


def test_guessed_attributes_are_not_written(tmp_path: Path) -> None:
    source = MDAnalysis.Universe(datafiles.GRO)
    source.atoms.write(str(tmp_path / "x.mrec"))
    assert "name" in mrec.open(tmp_path / "x.mrec").system["atoms"]
    assert "mass" not in mrec.open(tmp_path / "x.mrec").system["atoms"]


@pytest.mark.parametrize("name", ["PDB_icodes", "PQR", "CONECT", "PDB_chainidrepeat"])
def test_a_topology_comes_back_whole(name: str, tmp_path: Path) -> None:
    """Insertion codes, radii, record types ..., and as many residues and segments."""
    source = MDAnalysis.Universe(getattr(datafiles, name))
    source.atoms.write(str(tmp_path / "x.mrec"))
    record = MDAnalysis.Universe(tmp_path / "x.mrec")
    guessed = {attribute.attrname for attribute in source._topology.guessed_attributes}
    given = [a.attrname for a in source._topology.attrs if hasattr(source.atoms, a.attrname)]
    for attribute in set(given) - guessed - {"bonds", "angles", "dihedrals", "impropers"}:
        np.testing.assert_array_equal(getattr(record.atoms, attribute), getattr(source.atoms, attribute))
    assert [[r.ix for r in s.residues] for s in record.segments] == [
        [r.ix for r in s.residues] for s in source.segments
    ]


def test_molecules_come_back(tmp_path: Path) -> None:
    source = MDAnalysis.Universe.empty(4, n_residues=2, atom_resindex=[0, 0, 1, 1], trajectory=True)
    source.add_TopologyAttr("resids", [7, 8])
    source.add_TopologyAttr("molnums", [2, 5])
    source.add_TopologyAttr("moltypes", ["SOL", "ION"])
    source.atoms.write(str(tmp_path / "x.mrec"))
    record = MDAnalysis.Universe(tmp_path / "x.mrec")
    assert (record.residues.molnums.tolist(), record.residues.moltypes.tolist()) == ([2, 5], ["SOL", "ION"])
    assert record.select_atoms("moltype ION and resnum 8").ix.tolist() == [2, 3]


def test_precision_bounds_the_error(tmp_path: Path) -> None:
    source = MDAnalysis.Universe(*SOURCES["cobrotoxin"])
    source.atoms.write(str(tmp_path / "p.mrec"), frames="all", precision=0.01)
    record = MDAnalysis.Universe(tmp_path / "p.mrec")
    for wanted, found in zip(source.trajectory, record.trajectory, strict=True):
        assert np.abs(found.positions - wanted.positions).max() <= 0.005 + 1e-5


def test_what_the_writer_refuses(tmp_path: Path) -> None:
    universe = MDAnalysis.Universe(*SOURCES["adk-dcd"])
    with MDAnalysis.Writer(str(tmp_path / "a.mrec"), 7) as writer, pytest.raises(SchemaError, match="made for 7 atoms"):
        writer.write(universe.atoms)
    with MDAnalysis.Writer(str(tmp_path / "b.mrec"), 3341) as writer:
        writer.write(universe.atoms)
        with pytest.raises(InvalidValue, match="number=True"):
            writer.write(universe.atoms)
    with MDAnalysis.Writer(str(tmp_path / "b.mrec"), 3341) as writer, pytest.raises(RecordExists):
        writer.write(universe.atoms)
    with MDAnalysis.Writer(str(tmp_path / "b.mrec"), 3341, overwrite=True, number=True) as writer:
        for _ in range(3):
            writer.write(universe.atoms)
    assert mrec.open(tmp_path / "b.mrec").trajectory.steps.tolist() == [0, 1, 2]


def test_a_cell_that_goes_is_refused(tmp_path: Path) -> None:
    """A record would give the frame the cell of the one before."""
    universe = MDAnalysis.Universe.empty(2, trajectory=True)
    cells = [None, [4, 5, 0, 90, 90, 90], [4, 5, 6, 90, 90, 90], None]  # the second has no volume: it is none
    with MDAnalysis.Writer(str(tmp_path / "x.mrec"), 2, number=True) as writer:
        for cell in cells[:3]:
            universe.dimensions = cell
            writer.write(universe)
        universe.dimensions = cells[3]
        with pytest.raises(SchemaError, match="has no cell"):
            writer.write(universe)
    found = [ts.dimensions for ts in MDAnalysis.Universe(tmp_path / "x.mrec").trajectory]
    assert found[0] is None and found[1] is None and len(found) == 3


def test_a_packed_record_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"mrec\.pack"):
        MDAnalysis.Writer(str(tmp_path / "x.mrec.zip"), 2, format="MREC")


# ---- analysis ----------------------------------------------------------------------------------------------------


def both(converted: Any, tmp_path: Path, name: str) -> dict[str, Any]:
    """The source, the record bit for bit, and one at the precision of an XTC file."""
    coarse = tmp_path / "coarse.mrec"
    assert main(["convert", converted(name), str(coarse), "--precision", "0.01"]) in (0, None)
    paths = {"exact": converted(name), "coarse": str(coarse)}
    return {"source": MDAnalysis.Universe(*SOURCES[name]), **{k: MDAnalysis.Universe(p) for k, p in paths.items()}}


@pytest.mark.parametrize("name", ["adk-trr", "cobrotoxin"])
def test_analyses_give_the_same(converted: Any, tmp_path: Path, name: str) -> None:
    found = both(converted, tmp_path, name)
    selection = "name CA" if name == "adk-trr" else "name CA or name OW"
    rmsd = {k: rms.RMSD(u, u.copy(), select="name CA").run().results.rmsd for k, u in found.items()}
    oxygens = {k: u.select_atoms("name OW or name O")[:400] for k, u in found.items()}
    shells = {
        k: rdf.InterRDF(group, group, nbins=40, range=(0.5, 12.0)).run(stop=5).results.rdf
        for k, group in oxygens.items()
    }
    moved = {k: msd.EinsteinMSD(u, select=selection, fft=False).run().results.timeseries for k, u in found.items()}
    for results in (rmsd, shells, moved):
        np.testing.assert_array_equal(results["exact"], results["source"])
    np.testing.assert_allclose(rmsd["coarse"], rmsd["source"], atol=0.01)
    np.testing.assert_allclose(moved["coarse"], moved["source"], atol=0.01 * (1 + 2 * np.sqrt(moved["source"].max())))
    np.testing.assert_allclose(shells["coarse"], shells["source"], atol=0.1 * (1 + shells["source"].max()))


def test_analysis_on_processes(converted: Any) -> None:
    universe = MDAnalysis.Universe(converted("adk-dcd"))
    serial = rms.RMSD(universe, select="name CA").run().results.rmsd
    spread = rms.RMSD(universe, select="name CA").run(backend="multiprocessing", n_workers=2).results.rmsd
    np.testing.assert_array_equal(spread, serial)
    again = pickle.loads(pickle.dumps(universe))
    np.testing.assert_array_equal(again.trajectory[9].positions, universe.trajectory[9].positions)

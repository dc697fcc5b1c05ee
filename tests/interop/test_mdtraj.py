# SPDX-License-Identifier: BSD-3-Clause
"""Records in mdtraj give what mdtraj itself reads from the file that the record was made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mdtraj
import numpy as np
import pytest
from MDAnalysisTests import datafiles

import mrec
import mrec.interop.mdtraj
from mrec.cli import main
from mrec.errors import MrecError, RecordExists

pytestmark = pytest.mark.filterwarnings("ignore")

#: topology for mdtraj, that for the conversion, trajectory
SOURCES = {
    "cobrotoxin-xtc": (datafiles.PDB_sub_sol, datafiles.PDB_sub_sol, datafiles.XTC_sub_sol),
    "adk-dcd": (datafiles.PSF, datafiles.PSF, datafiles.DCD),
    "triclinic-dcd": (datafiles.PSF_NAMD_TRICLINIC, datafiles.PSF_NAMD_TRICLINIC, datafiles.DCD_NAMD_TRICLINIC),
    "ten-trr": (None, None, datafiles.TRR_multi_frame),
}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """name -> the source as mdtraj reads it, and the record."""
    folder, kept = tmp_path_factory.mktemp("mdtraj"), {}

    def pair(name: str) -> tuple[Any, str]:
        if name not in kept:
            top, topology, trajectory = SOURCES[name]
            path = str(folder / f"{name}.mrec")
            assert main(["convert", trajectory, *(["-t", topology] if topology else []), path]) in (0, None)
            if top is None:
                top = mdtraj.load_topology(path)
            kept[name] = mdtraj.load(trajectory, top=top), path
        return kept[name]

    return pair


def assert_same(found: Any, wanted: Any, times: bool = True) -> None:
    """In nm: what went through angstrom in float32 is off by its last bit."""
    assert found.xyz.shape == wanted.xyz.shape and found.xyz.dtype == wanted.xyz.dtype
    np.testing.assert_allclose(found.xyz, wanted.xyz, rtol=3e-7, atol=1e-8)
    if times:
        np.testing.assert_allclose(found.time, wanted.time, rtol=1e-6)
    assert (found.unitcell_lengths is None) == (wanted.unitcell_lengths is None)
    if wanted.unitcell_lengths is not None:
        np.testing.assert_allclose(found.unitcell_lengths, wanted.unitcell_lengths, rtol=1e-5)
        np.testing.assert_allclose(found.unitcell_angles, wanted.unitcell_angles, rtol=1e-5)


@pytest.mark.parametrize("name", SOURCES)
def test_load_is_the_source(made: Any, name: str) -> None:
    wanted, path = made(name)
    # mdtraj numbers the frames of a DCD file
    assert_same(mdtraj.load(path), wanted, times="dcd" not in name)
    assert_same(mdtraj.load(mrec.pack(path), top=wanted.top), wanted, times="dcd" not in name)


def test_names_are_the_source_s(made: Any) -> None:
    wanted = mdtraj.load_topology(datafiles.PDB_sub_sol, standard_names=False)
    found = mdtraj.load_topology(made("cobrotoxin-xtc")[1])
    for a, b in zip(found.atoms, wanted.atoms, strict=True):
        assert (a.name, a.residue.name, a.residue.resSeq) == (b.name, b.residue.name, b.residue.resSeq)
    assert found.n_residues == wanted.n_residues
    wanted, path = made("adk-dcd")
    found = mdtraj.load_topology(path)
    pairs = [{tuple(sorted((a.index, b.index))) for a, b in top.bonds} for top in (found, wanted.top)]
    assert pairs[0] == pairs[1]
    np.testing.assert_array_equal(
        found.select("name CA and resid 3 to 9"), wanted.top.select("name CA and resid 3 to 9")
    )


def test_parts(made: Any) -> None:
    wanted, path = made("adk-dcd")
    carbons = wanted.top.select("name CA")
    assert_same(mdtraj.load(path, stride=7), wanted[::7], times=False)
    found = mdtraj.load(path, atom_indices=carbons, stride=3)
    assert_same(found, wanted[::3].atom_slice(carbons), times=False)
    assert [atom.name for atom in found.top.atoms] == ["CA"] * len(carbons)
    assert_same(mdtraj.load_frame(path, 42), wanted[42], times=False)
    assert_same(mdtraj.load([path, path], top=wanted.top), mdtraj.join([wanted, wanted]), times=False)


@pytest.mark.parametrize(
    "options", [{}, {"stride": 4}, {"skip": 10, "stride": 3}, {"top": True, "atom_indices": [5, 7]}]
)
@pytest.mark.parametrize("chunk", [0, 13, 500])
def test_iterload(made: Any, chunk: int, options: dict[str, Any]) -> None:
    wanted, path = made("adk-dcd")
    chosen = {k: wanted.top if k == "top" else v for k, v in options.items()}
    if chunk:
        theirs = list(mdtraj.iterload(datafiles.DCD, chunk=chunk, **{**chosen, "top": wanted.top}))
    else:  # here mdtraj forgets stride and atoms of other formats
        theirs = [wanted[options.get("skip", 0) :: options.get("stride", 1)]]
        theirs = [theirs[0].atom_slice(options["atom_indices"])] if "atom_indices" in options else theirs
    ours = list(mdtraj.iterload(path, chunk=chunk, **chosen))
    for a, b in zip(ours, theirs, strict=True):
        assert_same(a, b, times=False)


def test_a_topology_by_name_or_of_a_trajectory(made: Any) -> None:
    wanted, path = made("adk-dcd")
    top = datafiles.PSF
    for found in (
        mdtraj.load(path, top=top, frame=3),
        mdtraj.load(path, top=wanted[:1], frame=3),
        mdtraj.load_frame(path, 3, top=top),
        mdtraj.load_frame(path, 3, top=path),
        next(mdtraj.iterload(path, chunk=1, skip=3, top=top)),
        mdtraj.load_frame(datafiles.DCD, 3, top=path),
    ):
        assert_same(found, wanted[3], times=False)
        assert [r.resSeq for r in found.top.residues] == [r.resSeq for r in wanted.top.residues]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stride": 0}, "stride is 0; it is 1 or more"),
        ({"stride": -2}, "stride is -2"),
        ({"atom_indices": [3, -1]}, "atom_indices has -1; there are 3341 atoms"),
        ({"atom_indices": [3341]}, "atom_indices has 3341"),
        ({"chunk": -1}, "n_frames is -1; it is 0 or more"),
    ],
)
def test_what_is_no_part(made: Any, options: dict[str, Any], message: str) -> None:
    _, path = made("adk-dcd")
    with pytest.raises(ValueError, match=message):
        list(mdtraj.iterload(path, **options))
    if "chunk" not in options:
        with pytest.raises(ValueError, match=message):
            mdtraj.load(path, **options)


def test_a_file_object(made: Any) -> None:
    wanted, path = made("cobrotoxin-xtc")
    with mdtraj.open(path) as file:
        assert len(file) == 3
        file.seek(1)
        xyz, times, lengths, _ = file.read(1)
        np.testing.assert_allclose(xyz[0], wanted.xyz[1], rtol=3e-7, atol=1e-8)
        assert (file.tell(), times[0]) == (2, pytest.approx(wanted.time[1]))
        assert lengths is not None
    with pytest.raises(ValueError, match="does not write"):
        mdtraj.open(path, "w")


def test_analyses_give_the_same(made: Any) -> None:
    wanted, path = made("adk-dcd")
    found = mdtraj.load(path)
    carbons = wanted.top.select("name CA")
    np.testing.assert_allclose(
        mdtraj.rmsd(found, found, 0, carbons), mdtraj.rmsd(wanted, wanted, 0, carbons), atol=1e-5
    )
    wanted, path = made("cobrotoxin-xtc")
    pairs = wanted.top.select_pairs("name CA", "name CA")
    results = [mdtraj.compute_rdf(t, pairs, r_range=(0.3, 2.0), bin_width=0.05)[1] for t in (mdtraj.load(path), wanted)]
    np.testing.assert_allclose(*results, atol=0.05 * results[1].max())


@pytest.mark.parametrize("name", ["cobrotoxin-xtc", "triclinic-dcd", "ten-trr"])
def test_what_is_saved_comes_back(made: Any, tmp_path: Path, name: str) -> None:
    wanted, _ = made(name)
    path = tmp_path / "saved.mrec"
    wanted.save(path)
    found = mdtraj.load(path)
    np.testing.assert_array_equal(found.xyz, wanted.xyz)
    np.testing.assert_array_equal(found.time, wanted.time)
    if wanted.unitcell_lengths is not None:
        np.testing.assert_array_equal(found.unitcell_lengths, wanted.unitcell_lengths)
        np.testing.assert_allclose(found.unitcell_angles, wanted.unitcell_angles, rtol=1e-6)
    assert found.top == wanted.top
    assert [(c.n_atoms, c.n_residues) for c in found.top.chains] == [
        (c.n_atoms, c.n_residues) for c in wanted.top.chains
    ]
    for a, b in zip(found.top.atoms, wanted.top.atoms, strict=True):
        assert (a.residue.resSeq, a.residue.segment_id, a.serial) == (b.residue.resSeq, b.residue.segment_id, b.serial)
    assert mrec.verify(path).ok
    assert mrec.open(path).units == {"length": "nm", "time": "ps"}


def test_saving_replaces_unless_told_not_to(made: Any, tmp_path: Path) -> None:
    wanted, _ = made("cobrotoxin-xtc")
    path = tmp_path / "saved.mrec"
    few = wanted[0].atom_slice(range(30))
    wanted[:2].atom_slice(range(30)).save(path)
    few.save(path, precision=1e-3)
    found = mdtraj.load(path)
    assert np.abs(found.xyz - few.xyz).max() <= 5e-4
    assert len(found) == 1
    with pytest.raises(RecordExists):
        few.save(path, force_overwrite=False)
    few.top.atom(3).formal_charge = -1
    few.top.add_chain("Z")  # without an atom
    few.save(path)
    assert [atom.formal_charge for atom in mdtraj.load_topology(path).atoms][2:5] == [None, -1, None]


def test_what_is_refused(tmp_path: Path) -> None:
    schema = mrec.Schema().block("atoms", rows=2).column("x", "f64").column("y", "f64").column("z", "f64")
    with mrec.TrajectoryWriter(tmp_path / "x.mrec", schema) as writer:
        for n in (2, 3):
            writer.append(n, blocks={"atoms": {"xyz": np.zeros((n, 3))}})
    with pytest.raises(MrecError, match="frame 1 has 3 atoms"):
        mdtraj.load(tmp_path / "x.mrec")
    (tmp_path / "other.zip").write_bytes(b"PK")
    with pytest.raises(OSError, match="no record"):
        mdtraj.load(tmp_path / "other.zip", top=mdtraj.Topology())
    with pytest.raises(OSError, match="there is no record"):
        mdtraj.load(str(tmp_path / "none.mrec"))


def test_a_record_that_changes_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.mrec"
    schema = mrec.Schema().block("atoms", rows=1).column("x", "f64").column("y", "f64").column("z", "f64")
    for scale in (1, 2):
        with mrec.TrajectoryWriter(path, schema, overwrite=True) as writer:
            for i in range(3):
                writer.append(i, atoms={"xyz": np.full((1, 3), 10.0 * i * scale)})
                writer.flush()
                found = mdtraj.load(path).xyz[:, 0, 0]
                np.testing.assert_allclose(found, np.arange(i + 1) * scale)
    with mrec.TrajectoryWriter.open(path, truncate_after_step=0) as writer:
        writer.append(1, atoms={"xyz": np.full((1, 3), -10.0)})
    np.testing.assert_allclose(mdtraj.load(path).xyz[:, 0, 0], [0, -1])

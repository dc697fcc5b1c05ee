# SPDX-License-Identifier: BSD-3-Clause
"""Into collections and out of them again: xarray, NetCDF, Zarr, records, ASE, pandas; and the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.cli import main
from mrec.collection import collect
from mrec.collection.convert import to_atoms, to_frame, to_record
from mrec.collection.verify import verify_collection
from mrec.errors import InvalidValue, RecordExists, SchemaError
from tests.collection import golden

xarray: Any = pytest.importorskip("xarray")


def example(seed: int) -> Any:
    time = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[ns]")
    values = np.random.default_rng(seed).normal(size=(3, 2))
    values[1, 1] = np.nan
    return xarray.Dataset(
        {
            "t": (("time", "x"), values.astype("f4"), {"units": "K"}),
            "label": (("x",), np.array(["a", "longer"], object)),
            "flag": (("x",), np.array([True, False])),
            "n": ((), np.int16(seed)),
        },
        coords={"time": time, "x": [10, 20], "lon": ("x", [0.5, 1.5])},
        attrs={"title": f"set {seed}", "levels": [1, 2, 3]},
    )


def test_there_and_back_by_xarray(tmp_path: Path) -> None:
    collect(tmp_path / "set", [(f"s{i}", example(i)) for i in range(3)])
    found = mrec.open_collection(tmp_path / "set")
    for i in range(3):
        back = found.to_xarray(f"s{i}")
        xarray.testing.assert_identical(back.drop_attrs(), example(i).drop_attrs())
        assert back.attrs == example(i).attrs and back.t.attrs == {"units": "K"}
        assert back.flag.dtype == bool
    assert found.stats("t").null_count == 3


@pytest.mark.parametrize("kind", ["netcdf", "zarr"])
def test_a_folder_of_files(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("netCDF4" if kind == "netcdf" else "zarr")
    (tmp_path / "in").mkdir()
    for i in range(2):
        data = example(i).drop_vars(["label", "flag"])
        if kind == "netcdf":
            data.to_netcdf(tmp_path / "in" / f"s{i}.nc", engine="netcdf4")
        else:
            data.to_zarr(tmp_path / "in" / f"s{i}.zarr", consolidated=False)
    collect(tmp_path / "set", [tmp_path / "in"])
    found = mrec.open_collection(tmp_path / "set")
    assert found.names == ["s0", "s1"]
    back = found.to_xarray("s1")
    wanted = example(1).drop_vars(["label", "flag"])
    assert np.array_equal(back.t, wanted.t, equal_nan=True) and (back.time == wanted.time).all()


def make_record(path: Path) -> list[mrec.Frame]:
    frames = []
    for i in range(4):
        atoms = {"x": np.arange(3.0) + i, "element": ["O", "H", "H"], "free": [True, False, True]}
        box = mrec.Box.from_lengths(10, 11, 12 + i)
        frames.append(mrec.Frame({"atoms": atoms}, step=10 * i, time=0.5 * i, box=box, values={"pe": -1.0 * i}))
    with mrec.TrajectoryWriter(path, mrec.Schema.from_frame(frames[0])) as writer:
        for frame in frames:
            writer.append(None, frame)
    return frames


def test_frames_of_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = make_record(tmp_path / "run.mrec")
    assert main(["collect", str(tmp_path / "run.mrec"), "-o", str(tmp_path / "set")]) == 0
    assert "4 data sets" in capsys.readouterr().out
    found = mrec.open_collection(tmp_path / "set")
    assert found.names == [f"run.{i}" for i in range(4)]
    assert found.select(lambda s: s["atoms.x"].max > 4) == ["run.3"]
    for i, frame in enumerate(frames):
        back = to_frame(found[f"run.{i}"])
        assert back.blocks == frame.blocks and back.box == frame.box
        assert (back.step, back.time, back.values) == (frame.step, frame.time, frame.values)
    to_record(found, tmp_path / "back.mrec")
    with mrec.open(tmp_path / "back.mrec") as record:
        assert record.trajectory.steps.tolist() == [0, 10, 20, 30]
        assert record.trajectory[2].blocks == frames[2].blocks


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # in ASE
def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    ase = pytest.importorskip("ase")
    atoms = ase.Atoms("H", info={"kept": 5, "note": None, "nested": {"a": 1}})
    with pytest.warns(UserWarning, match="left out") as caught:
        collect(tmp_path / "set", [("h", atoms)])
    assert [str(one.message).split("'")[3] for one in caught] == ["note", "nested"]
    assert to_atoms(mrec.open_collection(tmp_path / "set")["h"]).info == {"kept": 5}
    frame = mrec.Frame({"atoms": {"x": np.arange(3.0)}}, step=0, values={"virial": np.zeros((3, 3)), "pe": 1.0})
    with pytest.warns(UserWarning, match="'virial' is left out"):
        collect(tmp_path / "frames", [("f", frame)])
    assert mrec.open_collection(tmp_path / "frames")["f"].attributes == {"step": 0, "pe": 1.0}


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # in ASE
def test_structures_with_energies_and_forces(tmp_path: Path) -> None:
    build = pytest.importorskip("ase.build")
    emt = pytest.importorskip("ase.calculators.emt")
    given = []
    for i in range(3):
        atoms = build.bulk("Cu", cubic=True)
        atoms.rattle(0.01, seed=i)
        atoms.calc = emt.EMT()
        atoms.get_forces()
        atoms.get_stress()
        atoms.info["source"] = f"rattle {i}"
        given.append(atoms)
    collect(tmp_path / "set", [(f"c{i}", atoms) for i, atoms in enumerate(given)])
    found = mrec.open_collection(tmp_path / "set")
    assert list(found.attribute("energy").values()) == [atoms.get_potential_energy() for atoms in given]
    for i, atoms in enumerate(given):
        back = to_atoms(found[f"c{i}"])
        assert np.array_equal(back.positions, atoms.positions) and np.array_equal(back.cell, atoms.cell)
        assert np.array_equal(back.get_forces(), atoms.get_forces()) and back.info["source"] == f"rattle {i}"
        assert back.get_potential_energy() == atoms.get_potential_energy()
        assert np.array_equal(back.get_stress(), atoms.get_stress()) and np.array_equal(back.pbc, atoms.pbc)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # in ASE
def test_structures_keep_what_they_have(tmp_path: Path) -> None:
    ase = pytest.importorskip("ase")
    from ase.calculators.singlepoint import SinglePointCalculator
    from ase.constraints import FixAtoms

    atoms = ase.Atoms(
        "H2", np.arange(6.0).reshape(2, 3), celldisp=[1, 2, 3], info={"energy": 7.0, "cell": "mine", "a": 1}
    )
    atoms.set_array("label", np.array(["a", "bc"]))
    atoms.set_array("fixed", np.array([True, False]))
    atoms.set_constraint(FixAtoms([0]))
    atoms.calc = SinglePointCalculator(atoms, energy=-1.5, forces=np.ones((2, 3)))
    moved = atoms.copy()
    moved.calc = SinglePointCalculator(moved, energy=-1.5)
    moved.positions += 1  # the energy is not of these
    with pytest.warns(UserWarning, match="left out") as caught:
        collect(tmp_path / "set", [("h", atoms), ("moved", moved)])
    said = [str(one.message).split("'")[1::2][:2] for one in caught]
    once = [["h", "energy"], ["h", "cell"], ["h", "constraints"]]
    assert said == [*once, ["moved", "energy"], ["moved", "cell"], ["moved", "constraints"]]
    found = mrec.open_collection(tmp_path / "set")
    back = to_atoms(found["h"])
    assert back.get_array("label").tolist() == ["a", "bc"] and back.get_array("fixed").tolist() == [True, False]
    assert back.get_array("fixed").dtype == bool and back.get_celldisp().ravel().tolist() == [1, 2, 3]
    assert back.get_potential_energy() == -1.5 and back.info == {"a": 1}
    assert found["moved"].attributes["energy"] == 7  # that of info


def test_frames_keep_what_they_have(tmp_path: Path) -> None:
    rows = {"a": {"x": [1.0]}}
    odd = mrec.Frame(rows, step=4, values={"step": 9, "time": 8.0, "cell": [1.0, 2.0], "pe": 0.5})
    with pytest.warns(UserWarning, match="left out") as caught:
        collect(tmp_path / "set", [("f", odd)])
    assert [str(one.message).split("'")[3] for one in caught] == ["step", "time", "cell"]
    back = to_frame(mrec.open_collection(tmp_path / "set")["f"])
    assert back.step == 4 and back.time is None and back.box is None and dict(back.values) == {"pe": 0.5}
    with pytest.raises(SchemaError, match=r"the block 'a\.b'"):
        collect(tmp_path / "dots", [("f", mrec.Frame({"a.b": {"x": [1.0]}}))])


def test_a_record_that_fails_leaves_nothing(tmp_path: Path) -> None:
    frames = [mrec.Frame({"a": {"x": [1.0]}}), mrec.Frame({"a": {"x": [1.0], "other": [2.0]}})]
    collect(tmp_path / "set", [(f"{i}", frame) for i, frame in enumerate(frames)])
    found = mrec.open_collection(tmp_path / "set")
    with pytest.raises(SchemaError, match="other"):
        to_record(found, tmp_path / "run.mrec")
    assert not (tmp_path / "run.mrec").exists()
    to_record(found, tmp_path / "run.mrec", "0")  # one needs no list
    with pytest.raises(RecordExists):
        to_record(found, tmp_path / "run.mrec")
    assert len(mrec.open(tmp_path / "run.mrec").trajectory) == 1


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")  # in ASE
@pytest.mark.parametrize("cell", ["cubic", [1.0, 2.0], ["a"] * 9])
def test_a_cell_that_is_none(cell: Any, tmp_path: Path) -> None:
    pytest.importorskip("ase")
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        for name in ("positions", "numbers"):
            dataset.define_array(name, "float64", ("atom",), (0,))
        dataset.set_attribute("cell", cell)
        with writer.add_dataset("b") as other:
            other.set_attribute("cell", cell)
    found = mrec.open_collection(tmp_path / "set")
    for convert, name in ((to_atoms, "a"), (to_frame, "b")):
        with pytest.raises(InvalidValue, match=f"'{name}' has the attribute 'cell'"):
            convert(found[name])


def test_arrays_that_no_dataset_holds(tmp_path: Path) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "int8", ("t",), (3,))
        dataset.define_array("t", "int8", ("t",), (4,))
    with pytest.raises(InvalidValue, match="'a' is no Dataset of xarray .*'t'"):
        mrec.open_collection(tmp_path / "set").to_xarray("a")


def variable(values: Any, **attributes: Any) -> Any:
    return xarray.Dataset({"v": ("x", values, attributes)})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "'d': int is none of a Dataset"),
        (xarray.DataArray([1]), "'d': DataArray is none of a Dataset"),
        (variable(np.array(["a", None], object)), "'v' holds .*, which is no string"),
        (variable(np.array([10**13], "m8[s]")), "'v' has durations"),
        (variable(np.array([True]), dtype="mine"), "'v' has an attribute 'dtype'"),
        (variable([1]).assign_attrs(_coordinates=["v"]), "attribute '_coordinates'"),
        (variable([1j]), "'v': .*complex"),
        (variable([1]).assign_attrs(note=None), "'note': None"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_what_cannot_be_collected_is_named(source: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises((InvalidValue, SchemaError), match=message) as caught:
        collect(tmp_path / "set", [("d", source)])
    assert "holds 'a'" not in str(caught.value) and not (tmp_path / "set").exists()


def test_fills_as_files_have_them(tmp_path: Path) -> None:
    source = xarray.Dataset({"v": ("x", np.array([1, 2], "i2")), "s": ("x", np.array([b"a", b"b"]))})
    source.v.encoding["_FillValue"] = np.array([-9], "i2")
    source.s.encoding["_FillValue"] = b"\0"
    collect(tmp_path / "set", [("d", source)])
    found = mrec.open_collection(tmp_path / "set")["d"]
    assert found["v"].fill_value == -9 and found["s"][...].tolist() == [b"a", b"b"]


def test_a_row_for_each_data_set() -> None:
    pytest.importorskip("pandas")
    frame = mrec.open_collection(golden.FOLDER / "one_deleted").to_pandas()
    assert frame.index.tolist() == ["first", "dritte-ü"]
    assert frame.loc["first", "i"] == -5 and frame.loc["dritte-ü", "only"] == "here"
    assert frame.loc["dritte-ü", "temperature.row_count"] == 600 and frame.loc["first", "scalar.max"] == 5


def test_a_table_keeps_integers(tmp_path: Path) -> None:
    """Where a data set lacks one, pandas alone would make floats of them."""
    pytest.importorskip("pandas")
    large = (1 << 60) + 1
    with mrec.CollectionWriter(tmp_path / "set") as writer:
        for name in ("a", "b", "c"):
            with writer.add_dataset(name) as dataset:
                dataset.set_attribute("mixed", large if name == "a" else 0.5)
                dataset.set_attribute("half", 1 if name == "a" else 0.5)
                dataset.set_attribute("wide", (1 << 64) - 1 if name == "a" else -1)
                if name != "b":
                    dataset.set_attribute("id", large)
                    dataset.set_attribute("unsigned", (1 << 64) - 1)
                    dataset.set_attribute("both", (1 << 64) - 1 if name == "a" else -1)
                    dataset.set_attribute("when", np.datetime64(5, "ns"))
                dataset.define_array("x", "int64", ("t",), (1,), fill_value=0)
                dataset.write_array("x", (0,), [0 if name == "b" else large])
    found = mrec.open_collection(tmp_path / "set")
    frame = found.to_pandas()
    assert frame["mixed"].tolist() == [large, 0.5, 0.5] and frame["half"].dtype == np.float64
    for column, value in (("id", large), ("unsigned", (1 << 64) - 1), ("x.min", large), ("x.max", large)):
        assert frame[column].dropna().tolist() == [value, value], column
        assert frame[column].isna().tolist() == [False, True, False]
    assert frame["wide"].tolist() == [(1 << 64) - 1, -1, -1]
    assert frame["both"].dropna().tolist() == [(1 << 64) - 1, -1] and frame["when"].isna().tolist() == [
        False,
        True,
        False,
    ]
    with mrec.CollectionWriter(tmp_path / "clash") as writer, writer.add_dataset("a") as dataset:
        dataset.define_array("x", "int8", (), ())
        dataset.set_attribute("x.min", "mine")
    with pytest.raises(InvalidValue, match=r"'x\.min' is an attribute and a statistic"):
        mrec.open_collection(tmp_path / "clash").to_pandas()


def test_the_commands_know_collections(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(golden.FOLDER / "one_deleted")
    assert main(["info", path]) == 0
    assert "2 data sets, 1 deleted" in capsys.readouterr().out
    assert main(["info", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["variables"]["temperature"]["elements"] == 800
    assert main(["ls", path, "--json"]) == 0
    assert [row["dataset"] for row in json.loads(capsys.readouterr().out)] == ["first", "dritte-ü"]
    assert main(["verify", path]) == 0
    assert "warning there is no data.atlas.crc" in capsys.readouterr().out


def test_verify_finds_damage(tmp_path: Path) -> None:
    collect(tmp_path / "set", [("a", example(1))], codec="none")
    assert verify_collection(tmp_path / "set") == []
    data = bytearray((tmp_path / "set" / "data.atlas").read_bytes())
    data[9] ^= 1
    (tmp_path / "set" / "data.atlas").write_bytes(data)
    assert any("checksum" in line for line in verify_collection(tmp_path / "set"))


def test_verify_finds_damage_of_the_first_bytes(tmp_path: Path) -> None:
    collect(tmp_path / "set", [("a", example(1))])
    whole = (tmp_path / "set" / "data.atlas").read_bytes()
    for at in range(8):
        data = bytearray(whole)
        data[at] ^= 4
        (tmp_path / "set" / "data.atlas").write_bytes(data)
        (line,) = verify_collection(tmp_path / "set")
        assert line.startswith("error ") and line.endswith("the first 8 bytes are no head of a container")


def test_collecting_refuses_a_collection_and_says_what_merges(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    collect(tmp_path / "set", [("a", example(1))])
    with pytest.raises(InvalidValue, match=r"set is a collection already; mrec\.collection\.merge"):
        collect(tmp_path / "other", [tmp_path / "set"])
    record = tmp_path / "run.mrec"
    with mrec.TrajectoryWriter(record, mrec.Schema().value("pe", "f64")) as writer:
        writer.append(0, pe=1.0)
    assert main(["collect", str(record), "-o", str(tmp_path / "set")]) == 1
    assert "pass --overwrite" in capsys.readouterr().err


@pytest.mark.parametrize("name", golden.NAMES)
def test_verify_finds_nothing_wrong_with_what_another_wrote(name: str) -> None:
    assert verify_collection(golden.FOLDER / name) == [
        "warning there is no data.atlas.crc: damage of values may pass unseen"
    ]

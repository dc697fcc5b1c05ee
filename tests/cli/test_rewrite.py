# SPDX-License-Identifier: BSD-3-Clause
"""`mrec convert a.mrec b.mrec` and `mrec cat`: frame by frame, and everything beside the frames byte for byte."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import mrec as library
from tests.cli.inside import Command, bytes_of, make
from tests.golden import TRAJECTORIES
from tests.golden import path as golden_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def frames(path: Path) -> list[library.Frame]:
    with library.open(path) as record:
        return list(record.trajectory)


def test_all_frames_and_everything_beside_them(run: Command, tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mrec"), tmp_path / "b.mrec"
    (a / "plan.txt").write_text("unknown file")
    (a / "lab/deep").mkdir(parents=True)
    (a / "lab/deep/blob").write_bytes(b"\0\1")
    (a / "trajectory/extra").mkdir()
    (a / "trajectory/extra/blob").write_bytes(b"kept")
    (a / "trajectory/atoms/note.txt").write_text("kept")
    (a / ".system.tmp").mkdir()
    (a / ".system.tmp/zarr.json").write_text("half")
    document = json.loads((a / "trajectory/atoms/x/zarr.json").read_text())
    document["attributes"] = {**document.get("attributes", {}), "axis": "east"}
    (a / "trajectory/atoms/x/zarr.json").write_text(json.dumps(document))
    run("convert", a, b)
    assert frames(a) == frames(b)
    assert len(frames(b)) == 6
    skip = ("trajectory", ".system.tmp")
    assert bytes_of(a, skip) == bytes_of(b, skip)
    assert not (b / ".system.tmp").exists()
    assert (b / "trajectory/extra/blob").read_bytes() == b"kept"
    assert (b / "trajectory/atoms/note.txt").read_text() == "kept"
    assert json.loads((b / "trajectory/atoms/x/zarr.json").read_text())["attributes"]["axis"] == "east"
    for key in ("sequence_schema", "nstep", "step_progression", "time_progression"):
        one, two = (json.loads((p / "trajectory/zarr.json").read_text())["attributes"] for p in (a, b))
        assert one[key] == two[key]
    assert sorted(os.listdir(tmp_path)) == ["a.mrec", "b.mrec"]


def test_thinned(run: Command, tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mrec", 9), tmp_path / "b.mrec"
    run("convert", a, b, "--start", "1", "--stop", "-1", "--stride", "3")
    assert frames(b) == frames(a)[1:-1:3]
    run("convert", a, b, "--start", "-2", "--overwrite")
    assert frames(b) == frames(a)[-2:]


def test_dead_bytes_go(run: Command, tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mrec", 40, flush_every=1), tmp_path / "b.mrec"
    run("convert", a, b)
    assert frames(a) == frames(b)
    sizes = [sum(map(len, bytes_of(p).values())) for p in (a, b)]
    assert sizes[1] < sizes[0]


def test_columns(run: Command, tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mrec"), tmp_path / "b.mrec"
    run("convert", a, b, "--keep", "atoms/x,atoms/q,pe", "--keep", "events", "--drop", "events/kind")
    with library.open(b) as record:
        schema = record.trajectory.schema
    assert {name: list(block.columns) for name, block in schema.blocks.items()} == {
        "atoms": ["x", "q"], "events": ["moment"],
    }  # fmt: skip
    assert list(schema.values) == ["pe"]
    for old, new in zip(frames(a), frames(b), strict=True):
        assert new["atoms"] == library.Block({name: old["atoms"][name] for name in ("x", "q")})
        assert new.values == {"pe": old.values["pe"]}
        assert new.box == old.box
        assert ("events" in new) == ("events" in old)
    run("convert", a, b, "--drop", "grid,stress", "--overwrite")
    assert all("grid" not in frame and "stress" not in frame.values for frame in frames(b))
    assert not (b / "trajectory/grid").exists()


@pytest.mark.parametrize("words", [["--rows", "atoms=2:7:2"], ["--select", "index 2 4 6"]])
def test_rows_with_their_system(run: Command, tmp_path: Path, words: list[str]) -> None:
    a, b = make(tmp_path / "a.mrec"), tmp_path / "b.mrec"
    run("convert", a, b, *words)
    for old, new in zip(frames(a), frames(b), strict=True):
        assert new["atoms"] == library.Block({name: values[2:7:2] for name, values in old["atoms"].items()})
        assert new["grid"] == old["grid"] if "grid" in old else "grid" not in new
    with library.open(a) as one, library.open(b) as two:
        assert two.system["atoms"] == library.Block({n: v[2:7:2] for n, v in one.system["atoms"].items()})
        assert two.system["bonds"].nrows == 0  # 2-3, 3-4 ...: none within
        assert two.frame == one.frame


def test_bonds_are_counted_anew(run: Command, tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mrec"), tmp_path / "b.mrec"
    run("convert", a, b, "--rows", "atoms=3:6")
    with library.open(b) as record:
        bonds = record.system["bonds"]
    assert bonds["atomi"].tolist() == [0, 1]
    assert bonds["atomj"].tolist() == [1, 2]
    assert bonds["order"].tolist() == [3.0, 4.0]


@pytest.mark.parametrize("words", [["--rows", "atoms=1:4"], ["--select", "index 1 2 3"]])
@pytest.mark.parametrize("beside", [False, True])
def test_bonds_of_frames_are_counted_anew(run: Command, tmp_path: Path, words: list[str], beside: bool) -> None:
    """Also those of a system (beside) that has bonds, and no atoms of its own."""
    a, b = tmp_path / "a.mrec", tmp_path / "b.mrec"
    schema = library.Schema().block("atoms", rows=5)
    for name in "xyz":
        schema.column(name, "f64")
    bonds = {"atomi": np.arange(4, dtype=np.uint64), "atomj": np.arange(1, 5, dtype=np.uint64)}
    if not beside:
        schema.block("bonds").column("atomi", "u64").column("atomj", "u64", nullable=True).column("k", "f64")
    with library.TrajectoryWriter(a, schema) as writer:
        writer.append(0, atoms={"xyz": np.arange(15.0).reshape(5, 3)})
        for i in range(2) if not beside else ():
            partner = np.ma.MaskedArray(bonds["atomj"], mask=[False, False, i == 1, False])
            writer.append(i + 1, bonds=bonds | {"atomj": partner, "k": np.arange(4.0) + i})
    if beside:
        with library.open(a) as record:
            record.system = library.Frame({"bonds": bonds})
    run("convert", a, b, *words)
    run("verify", b)
    with library.open(b) as record:
        assert record.trajectory[0]["atoms"]["x"].tolist() == [3.0, 6.0, 9.0]
        found = record.system["bonds"] if beside else record.trajectory[1]["bonds"]
        assert (found["atomi"].tolist(), found["atomj"].tolist()) == ([0, 1], [1, 2])
        if not beside:
            last = record.trajectory[2]["bonds"]
            assert (last["atomi"].tolist(), last["atomj"].tolist()) == ([0, 1], [1, None])
            assert found["k"].tolist() == [1.0, 2.0]
    if not beside:
        problem = run("convert", a, tmp_path / "c.mrec", *words, "--rows", "bonds=0:2", code=1)
        assert "step 1: a chosen row of 'bonds' refers to one of 'atoms' that is not" in problem


def test_storage_stays_or_changes(run: Command, tmp_path: Path) -> None:
    schema = library.Schema().block("atoms", rows=100).column("vx", "f64").column("x", "f64", precision=1e-3)
    a, b = tmp_path / "a.mrec", tmp_path / "b.mrec"
    with library.TrajectoryWriter(a, schema, compression="shuffle+zstd:7", frames_per_chunk=33, durable=False) as w:
        for i in range(70):
            w.append(i, atoms={"vx": np.arange(100.0), "x": np.arange(100.0) + i})

    def stored(path: Path, column: str) -> tuple[int, list[str], object]:
        document = json.loads((path / f"trajectory/atoms/{column}/zarr.json").read_text())
        shard = document["codecs"][0]["configuration"]
        codecs = {codec["name"]: codec.get("configuration") for codec in shard["codecs"]}
        return shard["chunk_shape"][0], list(codecs), codecs.get("zstd")

    run("convert", a, b)
    assert stored(a, "vx") == stored(b, "vx")
    assert stored(a, "x") == stored(b, "x")
    assert stored(b, "vx")[2] == {"level": 7, "checksum": False}
    run("convert", a, b, "--overwrite", "--compression", "none", "--frames-per-chunk", "5")
    assert stored(b, "vx") == (500, ["bytes", "crc32c"], None)
    assert frames(a) == frames(b)
    run("convert", a, b, "--overwrite", "--chunk", "4KiB")
    assert stored(b, "vx")[0] == 600  # the least whole frames of 100 rows that take 4 KiB
    assert frames(a) == frames(b)
    assert "give one of them" in run("convert", a, b, "--chunk", "4KiB", "--frames-per-chunk", "5", code=2)
    assert "--chunk is for converting into a record" in run("convert", a, "b.xyz", "--chunk", "4KiB", code=2)
    run("convert", a, b, "--overwrite", "--precision", "0.5")
    for old, new in zip(frames(a), frames(b), strict=True):
        assert np.array_equal(new["atoms"]["x"], np.round(old["atoms"]["x"] * 2) / 2)
    assert "--precision is that or more" in run("convert", b, tmp_path / "c.mrec", "--precision", "0.1", code=1)
    assert sorted(os.listdir(tmp_path)) == ["a.mrec", "b.mrec"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--keep", "atoms/w"], "there is no block, column or per-step value 'atoms/w'; there are: atoms, atoms/fx"),
        (["--rows", "molecules=1:2"], "there is no block 'molecules'"),
        (["--rows", "grid=1:2"], "is a grid"),
        (["--select", "name C1", "--rows", "atoms=1:2"], "give one of them"),
        (["--select", "name NONE"], "no atom matches"),
        (["--start", "99"], "none of them is chosen"),
    ],
)
def test_what_is_refused_leaves_nothing(run: Command, tmp_path: Path, words: list[str], says: str) -> None:
    a = make(tmp_path / "a.mrec")
    assert says in run("convert", a, tmp_path / "b.mrec", *words, code=1)
    assert os.listdir(tmp_path) == ["a.mrec"]


# ---- cat ---------------------------------------------------------------------------------------------------------


def test_a_record_does_not_go_into_one(run: Command, tmp_path: Path) -> None:
    a = make(tmp_path / "a.mrec")
    assert "would lie within a record" in run("convert", a, a / "b.mrec", code=1)
    assert not (a / "b.mrec").exists()


def test_cat(run: Command, tmp_path: Path) -> None:
    parts = [make(tmp_path / "a.mrec", 4), make(tmp_path / "b.mrec", steps=[900, 905]), make(tmp_path / "c.mrec", 0)]
    parts.append(make(tmp_path / "d.mrec", steps=[1000, 2000, 2001]))
    for path in parts[1:]:  # what has been there stays: no frame before events, or without the cell
        assert frames(path) == [] or path != parts[2]
    problem = run("cat", parts[0], parts[1], tmp_path / "out.mrec", code=1)
    assert "step 900 has no 'events' and step 300 before it has" in problem
    for i, path in enumerate(parts[1:]):
        run("convert", path, tmp_path / f"{i}.mrec", "--drop", "events,grid") if i != 1 else None
    run("convert", parts[0], tmp_path / "first.mrec", "--drop", "events,grid")
    inputs = [tmp_path / "first.mrec", tmp_path / "0.mrec", tmp_path / "2.mrec"]
    run("cat", *inputs, tmp_path / "out.mrec")
    assert frames(tmp_path / "out.mrec") == [frame for path in inputs for frame in frames(path)]
    assert bytes_of(inputs[0], ("trajectory",)) == bytes_of(tmp_path / "out.mrec", ("trajectory",))


def simple(path: Path, steps: list[int], value: float, **units: str) -> Path:
    schema = library.Schema().block("atoms", rows=2).column("x", "f64")
    with library.TrajectoryWriter(path, schema, units=units or None, durable=False) as writer:
        for step in steps:
            writer.append(step, time=float(step), atoms={"x": [value, step]})
    return path


def test_overlaps(run: Command, tmp_path: Path) -> None:
    a, b = simple(tmp_path / "a.mrec", [0, 10, 20, 30], 1.0), simple(tmp_path / "b.mrec", [20, 25, 30, 40], 2.0)
    out = tmp_path / "out.mrec"
    assert "b.mrec begins at step 20, and a record before it ends at 30: pass --overlap" in run(
        "cat", a, b, out, code=1
    )
    assert not out.exists()
    run("cat", a, b, out, "--overlap", "last")
    assert "a.mrec: 2 overlapping frames left out" in run.err
    found = [(frame.step, frame["atoms"]["x"][0]) for frame in frames(out)]
    assert found == [(0, 1.0), (10, 1.0), (20, 2.0), (25, 2.0), (30, 2.0), (40, 2.0)]
    run("cat", a, b, out, "--overlap", "first", "--overwrite")
    assert [(f.step, f["atoms"]["x"][0]) for f in frames(out)] == [(0, 1), (10, 1), (20, 1), (30, 1), (40, 2)]


def test_what_does_not_overlap_is_kept(run: Command, tmp_path: Path) -> None:
    """Frames before, between and behind the steps that two records both span."""
    a, b = simple(tmp_path / "a.mrec", [0, 10, 20, 90, 100], 1.0), simple(tmp_path / "b.mrec", [15, 20, 30], 2.0)
    c, out = simple(tmp_path / "c.mrec", [-5, -1], 3.0), tmp_path / "out.mrec"
    run("cat", a, b, c, out, "--overlap", "last")
    assert "a.mrec: 1 overlapping frame left out" in run.err
    assert "b.mrec" not in run.err
    found = [(frame.step, frame["atoms"]["x"][0]) for frame in frames(out)]
    assert found == [(-5, 3), (-1, 3), (0, 1), (10, 1), (15, 2), (20, 2), (30, 2), (90, 1), (100, 1)]
    run("cat", b, a, c, out, "--overlap", "first", "--overwrite")
    assert [(frame.step, frame["atoms"]["x"][0]) for frame in frames(out)] == found
    run("cat", a, b, c, out, "--overlap", "first", "--overwrite")
    assert "b.mrec: 3 overlapping frames left out" in run.err
    assert [frame.step for frame in frames(out)] == [-5, -1, 0, 10, 20, 90, 100]


def test_cat_refuses_what_is_unlike(run: Command, tmp_path: Path) -> None:
    a = simple(tmp_path / "a.mrec", [0], 1.0, length="nm")
    other = simple(tmp_path / "b.mrec", [1], 1.0, length="angstrom")
    assert "nothing is converted" in run("cat", a, other, tmp_path / "out.mrec", code=1)
    assert "declares other columns" in run("cat", a, make(tmp_path / "c.mrec"), tmp_path / "out.mrec", code=1)
    same = simple(tmp_path / "d.mrec", [1], 1.0, length="nm")
    with library.open(same) as record:
        record.system = library.Frame({"atoms": {"mass": [1.0, 2.0]}})
    assert "another system" in run("cat", a, same, tmp_path / "out.mrec", code=1)
    assert sorted(os.listdir(tmp_path)) == ["a.mrec", "b.mrec", "c.mrec", "d.mrec"]


# ---- records of other writers, and of writers that are not done --------------------------------------------------


@pytest.mark.parametrize("name", TRAJECTORIES)
def test_goldens(run: Command, tmp_path: Path, name: str) -> None:
    golden = golden_path(name)
    with library.open(golden) as record:
        schema = record.trajectory.schema
    if any(block.targets or block.aligned_with for block in schema.blocks.values()):
        assert "not supported yet" in run("convert", golden, tmp_path / "out.mrec", code=1)
        return
    run("convert", golden, tmp_path / "out.mrec")
    assert frames(tmp_path / "out.mrec") == frames(golden)
    if golden.is_dir():
        assert bytes_of(tmp_path / "out.mrec", ("trajectory",)) == bytes_of(golden, ("trajectory",))


def test_a_packed_record(run: Command, tmp_path: Path) -> None:
    a = make(tmp_path / "a.mrec")
    library.pack(a)
    packed = tmp_path / "a.mrec.zip"
    run("convert", packed, tmp_path / "b.mrec")
    run("cat", packed, tmp_path / "c.mrec")
    for made in (tmp_path / "b.mrec", tmp_path / "c.mrec"):
        assert frames(made) == frames(a)
        assert bytes_of(made, ("trajectory",)) == bytes_of(a, ("trajectory",))
    run("export", packed, tmp_path / "out.pdb")
    run("plot", packed, "pe", "-o", tmp_path / "out.png")
    assert run("watch", packed).endswith("closed with 6 frames\n")
    assert run("head", packed) == run("head", a)


def test_a_record_that_is_being_written(run: Command, tmp_path: Path) -> None:
    schema = library.Schema().block("atoms", rows=2).column("x", "f64")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema) as writer:
        for i in range(5):
            writer.append(i, atoms={"x": [0.0, i]})
        writer.flush()
        run("convert", tmp_path / "a.mrec", tmp_path / "b.mrec")
        writer.append(5, atoms={"x": [0.0, 5.0]})
    assert frames(tmp_path / "b.mrec") == frames(tmp_path / "a.mrec")[:5]
    assert not (tmp_path / "b.mrec/trajectory/.durable").exists()


def test_one_that_is_damaged(run: Command, tmp_path: Path) -> None:
    a = make(tmp_path / "a.mrec")
    chunk = a / "trajectory/atoms/x/c/0"
    content = bytearray(chunk.read_bytes())
    content[-20] ^= 1
    chunk.write_bytes(content)
    for out in ("b.mrec", "out.xtc", "out.dcd"):
        assert "trajectory/atoms/x" in run("convert", a, tmp_path / out, code=1)
    run("export", a, tmp_path / "out.pdb", code=1)
    run("cat", a, tmp_path / "b.mrec", code=1)
    assert os.listdir(tmp_path) == ["a.mrec"]


def test_declared_references_follow_the_rows_that_are_taken(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema = library.Schema().block("sites", rows=4).column("q", "f64").block("links", targets={"a": "sites"})
    schema.column("a", "u64").block("extra", aligned_with="sites").column("w", "f64")
    with library.TrajectoryWriter("linked.mrec", schema) as writer:
        links = {"a": np.array([3, 0, 1], "u8")}
        writer.append(0, sites={"q": np.arange(4.0)}, links=links, extra={"w": np.arange(4.0)})
    run("convert", "linked.mrec", "fewer.mrec", "--rows", "sites=1:4", "--rows", "extra=1:4")
    with library.open("fewer.mrec") as record:
        assert record.trajectory.schema.blocks["links"].targets == {"a": "sites"}
        assert record.trajectory[0]["links"]["a"].tolist() == [2, 0]  # that to row 0 is gone
    run("convert", "linked.mrec", "alone.mrec", "--drop", "sites")
    with library.open("alone.mrec") as record:
        assert record.trajectory.schema.blocks["links"].targets is None
        assert record.trajectory.schema.blocks["extra"].aligned_with is None
    assert "aligned with 'sites'" in run("convert", "linked.mrec", "odd.mrec", "--rows", "sites=1:4", code=1)

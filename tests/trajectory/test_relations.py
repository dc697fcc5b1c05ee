"""References, aligned blocks, and blocks beside the system: held while frames are appended, and after reopening."""

from __future__ import annotations

import numpy as np
import pytest

import mrec
from mrec.errors import CorruptData, SchemaError

U8 = np.uint64


def bonded() -> mrec.Schema:
    return (
        mrec.Schema()
        .block("atoms", rows=4)
        .column("x", "f64")
        .block("bonds", targets={"left": "atoms", "right": "atoms"})
        .column("left", "u64")
        .column("right", "u64", nullable=True)
        .block("forces", aligned_with="atoms")
        .column("fx", "f64")
    )


def atoms(n: int) -> dict:
    return {"x": np.arange(float(n))}


def bonds(*pairs: tuple[int, int]) -> dict:
    left, right = zip(*pairs, strict=True) if pairs else ((), ())
    return {"left": np.array(left, U8), "right": np.array(right, U8)}


def forces(n: int) -> dict:
    return {"fx": np.arange(float(n))}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "r.mrec"
    with mrec.TrajectoryWriter(path, bonded()) as writer:
        writer.append(0, atoms=atoms(4))
        writer.append(1, bonds=bonds((0, 1), (2, 3)), forces=forces(4))
    return path


def test_what_holds_is_appended_and_read(path):
    with mrec.TrajectoryWriter.open(path) as writer:
        writer.append(2, atoms=atoms(6), forces=forces(6), bonds=bonds((5, 4)))
        null = np.ma.array(np.array([99, 5], U8), mask=[True, False])
        writer.append(3, bonds={"left": np.array([0, 1], U8), "right": null})
        writer.append_many([4, 5], bonds={"left": np.array([[5], [0]], U8), "right": np.array([[5], [1]], U8)})
        writer.append(6, atoms=atoms(2), forces=forces(2))
    with mrec.open(path) as record:
        trajectory = record.trajectory
        assert trajectory.schema == bonded()
        assert [f["bonds"].nrows if "bonds" in f else None for f in trajectory] == [None, 2, 1, 2, 1, 1, 1]
        assert [f["forces"].nrows if "forces" in f else None for f in trajectory] == [None, 4, 6, 6, 6, 6, 2]
    assert mrec.verify(path).ok


@pytest.mark.parametrize(
    ("blocks", "match"),
    [
        ({"bonds": bonds((0, 4))}, "frame 2: block 'bonds': column 'right' refers to row 4 of 'atoms', which has 4"),
        ({"atoms": atoms(3), "forces": forces(3)}, "column 'right' refers to row 3 of 'atoms', which has 3"),
        ({"atoms": atoms(5)}, "'forces' has 4 rows and is aligned with 'atoms', which is 5 rows; give both"),
        ({"forces": forces(5)}, "'forces' has 5 rows and is aligned with 'atoms', which is 4 rows"),
    ],
    ids=["reference", "fewer rows", "target of an alignment", "aligned"],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_what_does_not_is_refused(path, blocks, match, threads):
    with mrec.TrajectoryWriter.open(path, threads=threads) as writer:
        with pytest.raises(SchemaError, match=match):
            writer.append(2, blocks=blocks)
        many = {name: {c: np.stack([v, v]) for c, v in columns.items()} for name, columns in blocks.items()}
        with pytest.raises(SchemaError, match=match.removeprefix("frame 2: ")):
            writer.append_many([2, 3], blocks=many)
        writer.append(2, bonds=bonds((3, 3)))  # and goes on
    assert len(mrec.open(path).trajectory) == 3
    assert mrec.verify(path).ok


def test_before_anything_is_there(tmp_path):
    with mrec.TrajectoryWriter(tmp_path / "r.mrec", bonded()) as writer:
        with pytest.raises(SchemaError, match="aligned with 'atoms', which is not given yet"):
            writer.append(0, forces=forces(4))
        with pytest.raises(SchemaError, match="refers to row 0 of 'atoms', which has 0"):
            writer.append(0, bonds=bonds((0, 0)))
        writer.append(0, bonds=bonds())
        with pytest.raises(SchemaError, match="refers to row 1 of 'atoms', which has 1"):
            writer.append(1, bonds=bonds((0, 1)), atoms=atoms(1))


def test_truncating_takes_relations_back(path):
    with mrec.TrajectoryWriter.open(path, truncate_after_step=0) as writer:
        writer.append(1, atoms=atoms(1))  # the bonds and forces of four are cut
    assert mrec.verify(path).ok


DECLARED = {
    "no block": ({"i": "b"}, None, "'i' refers to 'b', which is no declared block"),
    "no column": ({"q": "a"}, None, "'q' refers to 'a', and there is no such column"),
    "not u64": ({"x": "a"}, None, "'x' refers to 'a', and it is f64; a reference is u64"),
    "trajectory": ({"i": "/trajectory/a"}, None, 'a target is a block of the trajectory, or "/<section>/<block>"'),
    "deeper": ({"i": "/system/a/x"}, None, "a target is a block"),
    "aligned with nothing": (None, "b", "aligned with 'b', which is no other declared block"),
    "aligned with itself": (None, "a", "aligned with 'a', which is no other declared block"),
}


@pytest.mark.parametrize("case", DECLARED)
def test_declarations_that_cannot_hold(tmp_path, case):
    targets, aligned, match = DECLARED[case]
    schema = mrec.Schema().block("a", targets=targets, aligned_with=aligned).column("i", "u64").column("x", "f64")
    with pytest.raises(SchemaError, match=match):
        mrec.TrajectoryWriter(tmp_path / "r.mrec", schema)
    assert not (tmp_path / "r.mrec").exists()


def test_alignments_that_cannot_hold(tmp_path):
    for case, match in (
        (lambda s: s.block("b", aligned_with="a").column("x", "f64"), "both have a column 'x'"),
        (lambda s: s.block("b", aligned_with="a", structural_shape=(2, 2)), "no structural_shape of its own"),
        (lambda s: s.block("b", aligned_with="a").block("c", aligned_with="b"), "'b', which is aligned itself"),
    ):
        with pytest.raises(SchemaError, match=match):
            mrec.TrajectoryWriter(tmp_path / "r.mrec", case(mrec.Schema().block("a").column("x", "f64")))


def test_references_into_another_section(tmp_path):
    schema = mrec.Schema().block("sites", targets={"of": "/system/atoms"}).column("of", "u64")
    path = tmp_path / "r.mrec"
    with mrec.TrajectoryWriter(path, schema) as writer:
        with pytest.raises(SchemaError, match="refers to '/system/atoms', which is not there"):
            writer.append(0, sites={"of": np.array([0], U8)})
        record = mrec.open(path)
        record.system = {"atoms": {"mass": [1.0, 2.0]}}
        writer.append(0, sites={"of": np.array([1], U8)})
        with pytest.raises(SchemaError, match="row 2 of '/system/atoms', which has 2"):
            writer.append(1, sites={"of": np.array([2], U8)})
        with pytest.raises(
            SchemaError, match="trajectory/sites/of refers to rows of /system/atoms, 2 .*needed, .*have 1"
        ):
            record.system = {"atoms": {"mass": [1.0]}}
    with pytest.raises(SchemaError, match="it would be gone"):
        record.system = {}
    record.frame = {"a": {"x": [0.0]}}
    with pytest.raises(SchemaError, match="sites/of refers to rows of /system/atoms"):
        del record.system
    assert mrec.open(path).trajectory[0]["sites"]["of"].tolist() == [1]
    assert mrec.verify(path).ok


def test_beside_the_system(tmp_path):
    path = tmp_path / "r.mrec"
    system = {"atoms": {"mass": [1.0, 2.0], "id": np.array([7, 8], U8)}}
    schema = mrec.Schema().block("atoms").column("x", "f64").column("id", "u64")
    mrec.create(path, system=system, trajectory=schema)
    good = {"x": [0.0, 1.0], "id": np.array([7, 8], U8)}
    with mrec.TrajectoryWriter.open(path) as writer:
        writer.append(0, atoms=good)
        with pytest.raises(SchemaError, match="block 'atoms' has 1 rows, system/atoms has 2"):
            writer.append(1, atoms={"x": [0.0], "id": np.array([7], U8)})
        with pytest.raises(SchemaError, match="the ids are not those of system/atoms"):
            writer.append(1, atoms=good | {"id": np.array([8, 7], U8)})
        with pytest.raises(SchemaError, match="the ids are not those of system/atoms"):
            writer.append_many([1, 2], atoms={"x": np.zeros((2, 2)), "id": np.array([[7, 8], [8, 7]], U8)})
        record = mrec.open(path)
        for changed, match in (
            ({"id": np.array([8, 7], U8)}, "the ids of system/atoms are not those"),
            ({"mass": [1.0]}, "another number of rows"),
            ({"x": [1.0, 2.0]}, "'x' stands in system/atoms and in trajectory/atoms"),
        ):
            with pytest.raises(SchemaError, match=match):
                record.system = {"atoms": changed}
        record.system = {"others": {"mass": [1.0]}}  # says nothing of atoms any more
        writer.append(1, atoms={"x": [0.0], "id": np.array([9], U8)})
        with pytest.raises(SchemaError, match="another number of rows"):
            record.system = {"atoms": {"mass": [1.0]}}
    with mrec.open(path) as record:
        assert len(record.trajectory) == 2
    assert mrec.verify(path).ok


def test_a_system_that_comes_later_binds_the_writer(tmp_path):
    path = tmp_path / "r.mrec"
    with mrec.TrajectoryWriter(path, mrec.Schema().block("atoms").column("x", "f64")) as writer:
        writer.append(0, atoms=atoms(2))  # not published yet
        with pytest.raises(SchemaError, match="another number of rows"):
            mrec.open(path).system = {"atoms": {"mass": [1.0]}}
        mrec.open(path).system = {"atoms": {"mass": [1.0, 2.0]}}
        with pytest.raises(SchemaError, match="has 3 rows, system/atoms has 2"):
            writer.append(1, atoms=atoms(3))
        writer.append(1, atoms=atoms(2))
    assert mrec.verify(path).ok


def test_reading_refuses_what_another_program_broke(path):
    import json

    marker = path / "trajectory" / "zarr.json"
    document = json.loads(marker.read_text())
    document["attributes"]["sequence_schema"]["blocks"]["bonds"]["targets"]["left"] = "forces"
    document["attributes"]["sequence_schema"]["blocks"]["atoms"]["targets"] = {"x": "bonds"}
    marker.write_text(json.dumps(document))
    with pytest.raises(CorruptData, match="trajectory/atoms/x, frame 0: it refers to rows of 'bonds' and is float64"):
        mrec.open(path).trajectory[0]

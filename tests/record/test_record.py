"""Opening records, their document, and writing sections."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import warnings

import numpy as np
import pytest

import mrec
import mrec.zarr
from mrec import stream
from mrec.errors import (
    ClosedError,
    CorruptData,
    InvalidValue,
    NotARecord,
    RecordNotFound,
    SchemaError,
    UnsupportedVersion,
)
from tests import golden


@pytest.fixture
def path(tmp_path):
    return shutil.copytree(golden.ROOT / "snapshot.mrec", tmp_path / "copy.mrec")


def document(path, section, **attributes):
    file = path / section / "zarr.json"
    node = json.loads(file.read_text())
    node.setdefault("attributes", {}).update(attributes)
    file.write_text(json.dumps(node))


def test_what_is_no_record(tmp_path):
    with pytest.raises(RecordNotFound, match=r"nothing\.mrec"):
        mrec.open(tmp_path / "nothing.mrec")
    with pytest.raises(FileNotFoundError):
        mrec.open(tmp_path / "nothing.mrec")
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    group = tmp_path / "group"
    group.mkdir()
    (group / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    for name in ("file", "empty", "group"):
        with pytest.raises(NotARecord, match=name):
            mrec.open(tmp_path / name)
    (group / "zarr.json").write_text("{")
    with pytest.raises(CorruptData):
        mrec.open(group)


def test_what_reads_it_instead(tmp_path):
    with mrec.CollectionWriter(tmp_path / "set"):
        pass
    mrec.zarr.create(tmp_path / "plain.zarr")
    variables = {"t": stream.Variable(("time", "x"), "f32")}
    layout = {"time": 1, "x": 2}
    stream.create(tmp_path / "run.stream", stream.StreamSchema({"x": 2}, variables, layout, layout)).close()
    (tmp_path / "run.xtc").write_bytes(b"\0" * 100)
    for name, reader in (
        ("set", "mrec.open_collection"),
        ("plain.zarr", "mrec.zarr.open"),
        ("run.stream", "mrec.stream"),
        ("run.xtc", "`mrec convert`"),
    ):
        with pytest.raises(NotARecord, match=reader):
            mrec.open(tmp_path / name)


def test_a_section_of_another_name_is_not_lost_without_a_word(path):
    record = mrec.open(path)
    with pytest.raises(AttributeError, match="a record has no 'sytem' to assign; is it 'system'"):
        record.sytem = {"atoms": {"mass": [1.0]}}
    with pytest.raises(AttributeError, match="a record has no 'notes' to assign; what is written so: frame, system"):
        record.notes = {}


def test_a_record_is_made_in_a_directory(tmp_path):
    schema = mrec.Schema().value("pe", "f64")
    makers = (lambda place: mrec.TrajectoryWriter(place, schema), lambda place: mrec.create(place, trajectory=schema))
    for make in makers:
        with pytest.raises(InvalidValue, match="mrec.pack makes one file of it"):
            make(tmp_path / "a.mrec.zip")
    for make in (*makers, mrec.TrajectoryWriter.open, mrec.MetricsLog):
        with pytest.raises(InvalidValue, match="a record is written to a directory"):
            make("s3://bucket/a.mrec")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("version", [1, 2])
def test_versions(path, version):
    document(path, "meta", molrec_version=version)
    assert mrec.open(path).meta["molrec_version"] == version


@pytest.mark.parametrize("version", [0, 3, "1", None, True, 1.0], ids=repr)
def test_unknown_versions(path, version):
    document(path, "meta", molrec_version=version)
    with pytest.raises(UnsupportedVersion, match=f"molrec_version is {version!r}"):
        mrec.open(path)


def test_meta(path):
    assert mrec.open(path).units == {}
    document(path, "meta", units={"length": "nm"}, other=[1, None])
    rec = mrec.open(path)
    assert rec.units == {"length": "nm"} and rec.meta["other"] == [1, None]
    rec.meta["title"] = "not written"
    rec.meta["units"]["length"] = "angstrom"
    assert rec.units == {"length": "nm"} and "title" not in rec.meta
    shutil.rmtree(path / "meta")
    assert mrec.open(path).meta == {}


def test_life(path):
    with mrec.open(path) as rec:
        assert "frame" in rec and "trajectory" not in rec and str(path) in repr(rec)
        assert pickle.loads(pickle.dumps(rec)).meta == rec.meta
    rec.close()
    assert "closed" in repr(rec)
    for use in (lambda: rec.meta, lambda: rec.frame, lambda: rec.trajectory, lambda: rec.sections):
        with pytest.raises(ClosedError):
            use()


def every_type(n):
    rng = np.random.default_rng(0)
    columns = {f"c{t}": rng.integers(0, 100, n).astype(t) for t in "i1 i2 i4 i8 u1 u2 u4 u8 f8 c8 c16 ?".split()}
    columns["s"] = np.array([f"é{i}\0" for i in range(n)], object)
    columns["v"] = rng.normal(size=(n, 2, 3))
    columns["m"] = np.ma.MaskedArray(rng.normal(size=n), mask=rng.random(n) < 0.5)
    columns["ms"] = np.ma.MaskedArray(np.array(["x"] * n, object), mask=np.arange(n) % 2 == 0)
    return columns


@pytest.mark.parametrize("n", [0, 1, 9, 300_000], ids=str)
def test_sections_come_back(path, n):
    box = mrec.Box.from_rows([[4, 0, 0], [1, 5, 0], [0, 0, 6]], origin=[1, 2, 3], periodic=[True, False, True])
    columns = every_type(n) if n < 1000 else {"a": np.arange(n), "x": np.arange(n) / 7, "s": np.array(["ab"] * n)}
    frame = mrec.Frame({"atoms": columns, "bare": mrec.Block(nrows=5), "grid": {"g": np.arange(24)}}, box=box)
    frame["grid"].structural_shape = (2, 3, 4)
    frame.meta = {
        "t": 1.5,
        "nan": float("nan"),
        "big": 2**60,
        "flag": True,
        "text": "ü",
        "v": np.array([1.0, 2.0, 3.0]),
    }
    if "x" in columns:
        frame["atoms"].precision["x"] = 1e-3
    rec = mrec.open(path)
    for section in ("frame", "system"):
        setattr(rec, section, frame)
        found = getattr(mrec.open(path), section)
        assert found.box == box and found["bare"].nrows == 5 and found["grid"].structural_shape == (2, 3, 4)
        assert found.meta["v"].tolist() == [1, 2, 3] and np.isnan(found.meta["nan"])
        assert {k: v for k, v in found.meta.items() if k not in ("v", "nan")} == {
            k: v for k, v in frame.meta.items() if k not in ("v", "nan")
        }
        if "x" in columns:
            assert found["atoms"].precision == {"x": 1e-3}
            found["atoms"]["x"] = np.where(np.abs(found["atoms"]["x"] - columns["x"]) <= 0.5e-3, columns["x"], -1)
        assert found["atoms"] == frame["atoms"]
    assert not [name for name in os.listdir(path) if name.startswith(".")]


def test_extents(path):
    """At most four chunks are files; more share one shard."""
    rec = mrec.open(path)
    rec.frame = {"b": {"four": np.zeros(4 * 65536)}, "c": {"five": np.zeros(4 * 65536 + 1)}}
    assert sorted(os.listdir(path / "frame" / "b" / "four" / "c")) == ["0", "1", "2", "3"]
    assert os.listdir(path / "frame" / "c" / "five" / "c") == ["0"]
    codec = json.loads((path / "frame" / "c" / "five" / "zarr.json").read_text())["codecs"][0]
    assert codec["configuration"]["index_location"] == "end"


def test_sections_open_in_zarr_python(path):
    zarr = pytest.importorskip("zarr")
    rec = mrec.open(path)
    rec.frame = mrec.Frame({"a": every_type(50), "big": {"v": np.arange(300_000)}}, box=mrec.Box.undefined())
    found = rec.frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(str(path), mode="r")["frame"]
        for block in found:
            for name, values in found[block].items():
                assert np.asarray(group[block][name][...]).tolist() == np.asarray(np.ma.getdata(values)).tolist()
    assert group["box"].attrs["cell_defined"] is False and group["box/vectors"][...].tolist() == np.eye(3).tolist()
    assert found.box == mrec.Box.undefined()


def test_while_a_trajectory_is_written(tmp_path):
    path = tmp_path / "r.mrec"
    schema = mrec.Schema().block("atoms", rows=2).column("x", "f64")
    with mrec.TrajectoryWriter(path, schema, flush_every=1) as writer:
        writer.append(0, atoms={"x": [1.0, 2.0]})
        mrec.open(path).system = {"atoms": {"element": ["O", "H"], "mass": np.array([16, 1], "f4")}}
        writer.append(1, atoms={"x": [1.5, 2.5]})
        rec = mrec.open(path)
        assert rec.system["atoms"]["mass"].tolist() == [16.0, 1.0] and len(rec.trajectory) == 2
    rec = mrec.open(path)
    assert rec.system["atoms"]["element"].tolist() == ["O", "H"] and rec.trajectory[1]["atoms"]["x"][1] == 2.5


def with_shape(shape):
    block = mrec.Block({"x": np.zeros(2)})
    block.structural_shape = shape  # which only the constructor checks
    return block


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        ({"box": {"x": np.zeros(1)}}, "'box'"),
        ({"a/b": {"x": np.zeros(1)}}, "slash"),
        ({"a": {"_validity": np.zeros(1)}}, "_validity"),
        ({"a": {"f": np.zeros(1, "f4")}}, "f32|float32"),
        ({"a": {"id": np.array([-1])}}, "'id'"),
        ({"a": {"s": np.array(["\ud800"], object)}}, "surrogate"),
        ({"a": mrec.Block({"n": np.zeros(2, int)}, precision={"n": 0.1})}, "precision"),
        ({"a": mrec.Block({"n": np.zeros(2)}, precision={"m": 0.1})}, "'m'"),
        ({"a": mrec.Block({"n": np.zeros(2)}, structural_shape=(3,))}, "structural_shape"),
        ({".a.tmp": {"x": np.zeros(1)}}, "a file of its own"),
        ({"a": {".durable": np.zeros(1)}}, "a file of its own"),
        ({"a": with_shape((-1, -2))}, "each length of structural_shape is a number of rows, 0 or more, not -1"),
        ({"a": with_shape((2.0,))}, "not 2.0"),
        (
            {"a": mrec.Block({"r": np.zeros(1, "u8")}, targets={"r": 5})},
            "block 'a': targets says 5 of 'r': .* is no string",
        ),
        (mrec.Frame(meta={"_meta_types": 1}), "_meta_types"),
        (mrec.Frame(meta={"\ud800": 1}), "lone surrogate"),
        (mrec.Frame(meta={"a": 1}, meta_types={"a": ["i64"]}), "is no type"),
        (None, "`del record.frame` takes it out"),
        (5, "a mapping of block names to columns, not 5"),
        (mrec.Frame(meta={"x": object()}), "'x'"),
    ],
    ids=str,
)
def test_what_a_section_refuses(path, frame, match):
    rec = mrec.open(path)
    before = rec.frame
    with pytest.raises(SchemaError, match=match):
        rec.frame = frame
    assert rec.frame == before and not [name for name in os.listdir(path) if name.startswith(".")]


def test_claims_that_nothing_stands_for(path):
    """Refused before memory is taken; that nothing is stored of a few zeros is no claim."""
    document(path, "frame/atoms", count=2**40)
    for column in [p for p in (path / "frame/atoms").rglob("zarr.json") if "/atoms/zarr" not in str(p)]:
        node = json.loads(column.read_text())
        if node["node_type"] == "array":
            column.write_text(json.dumps({**node, "shape": [2**40, *node["shape"][1:]]}))
    with pytest.raises(CorruptData, match=r"bytes can not hold an array of \d+"):
        _ = mrec.open(path).frame
    rec = mrec.open(path)
    rec.observables["zeros"] = mrec.Observable(np.zeros(1000), "k", "d", False)
    shutil.rmtree(path / "observables/zeros/c")
    assert not rec.observables["zeros"].values.any() and len(rec.observables["zeros"]) == 1000


# ---- what reading refuses ----------------------------------------------------------------------------------------


def array(path, **changes):
    file = path / "zarr.json"
    node = json.loads(file.read_text())
    node.update(changes)
    file.write_text(json.dumps(node))


REFUSED = {
    "no count": lambda p: array(p / "frame/atoms", attributes={}),
    "count of text": lambda p: document(p, "frame/atoms", count="300"),
    "another count": lambda p: document(p, "frame/atoms", count=299),
    "another structural_shape": lambda p: document(p, "frame/atoms", structural_shape=[7, 7]),
    "a short mask": lambda p: array(p / "frame/atoms/_validity/bfac", shape=[299]),
    "a mask of numbers": lambda p: array(p / "frame/atoms/_validity/bfac", data_type="uint8", fill_value=0),
    "a mask of no column": lambda p: shutil.rmtree(p / "frame/atoms/bfac"),
    "float32": lambda p: array(p / "frame/atoms/x", data_type="float32"),
    "a narrow id": lambda p: shutil.copytree(p / "system/atoms/element", p / "system/atoms/type_id"),
    "an unknown tag": lambda p: document(p, "frame", _meta_types={"smiles": "text"}),
    "another form than its tag": lambda p: document(p, "frame", total_charge="0"),
    "types of text": lambda p: document(p, "frame", _meta_types="string"),
    "a target that is not there": lambda p: document(p, "system/atoms", targets={"mol_id": "molecules"}),
    "a target in the trajectory": lambda p: document(p, "system/atoms", targets={"mol_id": "/trajectory/atoms"}),
    "a target of too few rows": lambda p: (
        (
            shutil.copytree(p / "system/atoms", p / "system/few")
            and document(p, "system/few", count=300, targets={"mol_id": "tiny"})
        )
        or (p / "system/tiny").mkdir()
        or array_new(p / "system/tiny")
    ),
    "a target of text": lambda p: document(p, "system/atoms", targets={"element": "atoms"}),
    "a cell without vectors": lambda p: shutil.rmtree(p / "frame/box/vectors"),
    "a cell of another shape": lambda p: array(p / "frame/box/vectors", shape=[3, 2]),
}


def array_new(path):
    (path / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {"count": 3}}')


@pytest.mark.parametrize("name", REFUSED)
def test_refused(path, name):
    REFUSED[name](path)
    rec = mrec.open(path)
    with pytest.raises((CorruptData, SchemaError)):
        rec.frame, rec.system  # noqa: B018


def test_targets_that_hold(path):
    document(path, "system/atoms", targets={"mol_id": "atoms"})
    assert mrec.open(path).system["atoms"]["mol_id"].max() < 300
    document(path, "system/atoms", targets={"mol_id": "/frame/atoms"})
    assert mrec.open(path).system is not None


def test_untagged_keys_are_inferred(path):
    document(path, "frame", i=5, u=2**63, huge=2**70, f=1, b=True, s="x", j=[1], gone=None)
    meta = mrec.open(path).frame.meta
    assert (meta["i"], meta["u"], meta["huge"], meta["b"], meta["j"], meta["gone"]) == (
        5,
        2**63,
        2.0**70,
        True,
        [1],
        None,
    )


def test_untagged_keys_stay_what_they_were(path):
    document(path, "frame", cutoffs=[1, 2, 3], wide=10**400)
    report = mrec.verify(path)
    assert [(f.rule, f.array) for f in report.findings] == [("meta-types", "frame")] and "wide" in str(report)
    rec = mrec.open(path)
    with pytest.raises(CorruptData, match=r"frame: the key 'wide': .* beyond the range of f64"):
        _ = rec.frame
    document(path, "frame", wide=2**70)
    rec.frame = rec.frame  # a list that looks like a vector is still a list
    assert rec.frame.meta["cutoffs"] == [1, 2, 3] and rec.frame.meta_types["cutoffs"] == "json"
    assert rec.frame.meta["wide"] == 2.0**70


def test_keys_of_other_programs_stay_in_documents(path):
    theirs = {"must_understand": False, "by": "another"}
    for section in ("", "meta", "status", "metrics"):
        mrec.MetricsLog(path).close()
        mrec.open(path).status = {"state": "running"}
        file = path / section / "zarr.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"theirs": theirs}))
    rec = mrec.open(path)
    rec.meta = {"title": "t"}
    rec.status = {"state": "finished"}
    with mrec.MetricsLog(path) as log:
        log.log("loss", 1.0)
    for section in ("", "meta", "status", "metrics"):
        assert json.loads((path / section / "zarr.json").read_text())["theirs"] == theirs
    assert (mrec.open(path).meta, rec.status, list(rec.metrics)) == ({"title": "t"}, {"state": "finished"}, ["loss"])

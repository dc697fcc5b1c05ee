"""Making records of sections, replacing and removing them, and carrying along what is not of the format."""

from __future__ import annotations

import json
import os
import shutil
import threading
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import (
    CorruptData,
    InvalidValue,
    NotARecord,
    RecordExists,
    RecordLocked,
    SchemaError,
    UnknownName,
    UnsupportedVersion,
)
from mrec.record import publish
from tests import golden

U8 = np.uint64
MSD = mrec.Observable([0.0, 0.5, 2.0], "curve", "mean squared displacement", True, unit="nm^2")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "r.mrec"
    mrec.create(
        path,
        frame=mrec.Frame({"atoms": {"x": [0.0, 1.0]}}, box=[3, 3, 3], meta={"T": 300.0}),
        system={"beads": {"mass": [16.0, 1.0]}},
        forcefield=mrec.Frame({"pair": {"eps": [0.1]}}, meta={"style": "lj", "a": [1, {"b": None}]}),
        observables={"msd": MSD},
        status={"state": "done"},
        method={"type": "md", "description": "NVT", "engine": {"name": "none"}},
        meta={"molrec_version": 2, "who": "é"},
        units={"length": "nm"},
    )
    return path


def files(path):
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


# ---- create, replace, remove -------------------------------------------------------------------------------------


def test_created(path):
    rec = mrec.open(path)
    assert rec.sections == ("forcefield", "frame", "meta", "method", "observables", "status", "system")
    assert rec.frame.box == mrec.Box.from_lengths(3, 3, 3) and rec.frame.meta == {"T": 300.0}
    assert rec.forcefield.meta == {"style": "lj", "a": [1, {"b": None}]} and rec.forcefield.meta_types == {}
    assert rec.status == {"state": "done"} and rec.method["engine"] == {"name": "none"}
    assert rec.meta == {"molrec_version": 2, "who": "é", "units": {"length": "nm"}} and rec.units == {"length": "nm"}
    assert rec.observables["msd"] == MSD and "_meta_types" not in (path / "forcefield/zarr.json").read_text()
    assert mrec.verify(path).ok
    packed = mrec.open(mrec.pack(path))
    for name in ("frame", "system", "forcefield", "meta", "status", "method"):
        assert getattr(packed, name) == getattr(rec, name)
    assert dict(packed.observables) == {"msd": MSD}


def test_sections_are_replaced_and_removed(path):
    rec = mrec.open(path)
    rec.frame = {"atoms": {"x": [5.0]}}
    rec.status = {"state": "again", "n": 2**70}
    rec.meta = {"new": True}
    del rec.forcefield, rec.method
    for again in (rec, mrec.open(path)):
        assert again.frame["atoms"]["x"].tolist() == [5.0] and again.frame.box is None
        assert again.status == {"state": "again", "n": 2**70} and again.meta == {"new": True}
        assert again.forcefield is None and again.method is None
        assert again.sections == ("frame", "meta", "observables", "status", "system")
    assert not [name for name in os.listdir(path) if name.startswith(".")]
    del rec.frame, rec.system
    with pytest.raises(InvalidValue, match="status is all that makes .* a record"):
        del rec.status
    with pytest.raises(InvalidValue, match="meta stays in its record"):
        rec.remove("meta")
    with pytest.raises(UnknownName, match="has no 'frame'; there are: meta, observables, status"):
        del rec.frame


def test_a_document_keeps_what_is_beside_it(path):
    (path / "meta" / "theirs").mkdir()
    (path / "meta" / "theirs" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    before = files(path)
    mrec.open(path).meta = {"a": 1}
    after = files(path)
    assert {key for key in after if after[key] != before[key]} == {"meta/zarr.json"} and after.keys() == before.keys()


def test_a_trajectory_beside_them(path):
    schema = mrec.Schema().block("atoms", rows=2).column("x", "f64", precision=1e-3)
    other = path.with_name("t.mrec")
    with mrec.create(other, system={"atoms": {"mass": [1.0, 2.0]}}, trajectory=schema, compression="zstd:1") as rec:
        assert len(rec.trajectory) == 0
    with mrec.TrajectoryWriter.open(other) as writer:
        writer.append(0, atoms={"x": [0.0, 1.0]})
    with mrec.open(other) as rec:
        assert len(rec.trajectory) == 1 and rec.system["atoms"]["mass"].tolist() == [1.0, 2.0]
    assert mrec.verify(other).ok


REFUSED = {
    "nothing": (lambda p: mrec.create(p), InvalidValue, "a record holds one of frame, system, trajectory"),
    "observables only": (lambda p: mrec.create(p, observables={"m": MSD}), InvalidValue, "a record holds one of"),
    "a version": (lambda p: mrec.create(p, status={}, meta={"molrec_version": 3}), UnsupportedVersion, "is 3; mrec"),
    "units twice": (lambda p: mrec.create(p, status={}, meta={"units": {}}, units={}), InvalidValue, "given twice"),
    "units": (lambda p: mrec.create(p, status={}, units={"length": 1}), InvalidValue, "units is a mapping of names"),
    "options": (lambda p: mrec.create(p, status={}, chunk="1KiB"), InvalidValue, "only a trajectory has such options"),
    "a document": (lambda p: mrec.create(p, status=[1]), InvalidValue, "status: a document is a dict, not"),
    "NaN": (lambda p: mrec.create(p, status={"a": float("nan")}), InvalidValue, "status: no JSON document"),
    "an array": (lambda p: mrec.create(p, status={"a": np.zeros(2)}), InvalidValue, "status: no JSON document"),
    "a name": (lambda p: mrec.create(p.with_name("r.zip"), status={}), mrec.MrecError, "written as <name>.mrec"),
    "float32": (lambda p: mrec.create(p, frame={"a": {"f": np.zeros(1, "f4")}}), SchemaError, "f64.*precision"),
    "a reference": (lambda p: mrec.create(p, system={"b": bonds([2])}), SchemaError, "system/b/i: 2 is no row of 'b'"),
    "a target": (lambda p: mrec.create(p, system={"b": bonds([0], "c")}), SchemaError, "target 'c' is no block"),
    "a column": (lambda p: mrec.create(p, system={"b": bonds([0], of="q")}), SchemaError, "a column 'q', which is not"),
    "a signed one": (lambda p: mrec.create(p, system={"b": bonds(np.array([0]))}), SchemaError, "is int64, not u64"),
    "precision": (lambda p: mrec.create(p, frame={"a": mrec.Block({"x": [0.0]}, precision={"x": 0})}), SchemaError,
                  "lies between 2\\^-1000 and 2\\^1000, not 0.0"),
    "a tag": (lambda p: mrec.create(p, frame=mrec.Frame(meta={"n": 1.5}, meta_types={"n": "i64"})), SchemaError, "'n'"),
    "no tag": (lambda p: mrec.create(p, frame=mrec.Frame(meta={"n": 1}, meta_types={"n": "i7"})), SchemaError, "i7"),
    "a forcefield": (lambda p: mrec.create(p, forcefield=mrec.Frame(meta={"a": b"x"})), SchemaError, "document: no"),
    "values": (lambda p: mrec.create(p, frame=mrec.Frame(values={"pe": 1.0})), SchemaError, "no per-step values.*'pe'"),
}  # fmt: skip


def bonds(rows, target="b", of="i"):
    data = np.array(rows, U8) if isinstance(rows, list) else rows
    return mrec.Block({"i": data, "j": np.zeros(len(rows), U8)}, targets={of: target})


@pytest.mark.parametrize("case", REFUSED)
def test_create_refuses(tmp_path, case):
    call, error, match = REFUSED[case]
    with pytest.raises(error, match=match):
        call(tmp_path / "n.mrec")
    assert os.listdir(tmp_path) == []


def test_what_is_there_stays_or_goes(path):
    with pytest.raises(RecordExists, match=r"r\.mrec is there already; pass --overwrite \(overwrite=True\)"):
        mrec.create(path, status={})
    with mrec.create(path, status={"state": "new"}, overwrite=True) as rec:
        assert rec.sections == ("meta", "status")


def test_packed_records_are_not_written(path):
    rec = mrec.open(mrec.pack(path))
    for write in (
        lambda: setattr(rec, "frame", {}),
        lambda: setattr(rec, "status", {}),
        lambda: rec.observables.update(a=MSD),
        lambda: rec.remove("frame"),
    ):
        with pytest.raises(InvalidValue, match=r"r\.mrec\.zip is packed, and nothing is written to a packed record"):
            write()


def test_one_writer_of_a_section(path):
    with publish.section(str(path), "frame") as made:
        publish.write_file(f"{made}/zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
        with pytest.raises(RecordLocked, match="'frame' is being written by another program"):
            mrec.open(path).frame = {}
        mrec.open(path).system = {}  # another one
    assert mrec.open(path).frame == mrec.Frame()


def test_what_a_kill_left_goes(path):
    (path / ".frame.tmp" / "x").mkdir(parents=True)
    os.rename(path / "frame", path / ".frame.old")  # where the system cannot exchange two names
    assert mrec.open(path).frame is None
    mrec.open(path).frame = {"a": {"x": [1.0]}}
    assert not [name for name in os.listdir(path) if name.startswith(".")]


def test_without_exchange(path, monkeypatch):
    monkeypatch.setattr(publish, "_exchange", lambda a, b: False)
    rec = mrec.open(path)
    rec.frame = {"a": {"x": [1.0]}}
    rec.observables["b"] = MSD
    assert rec.frame["a"].nrows == 1 and set(rec.observables) == {"b", "msd"}
    assert not [name for name in os.listdir(path) if name.startswith(".")]


def test_readers_see_the_old_or_the_new(path):
    """A section is read while another thread replaces it without pause."""
    done = threading.Event()
    rec = mrec.open(path)

    def replace():
        other = mrec.open(path)
        for n in range(1, 60):
            other.frame = {"atoms": {"x": np.full(n, float(n)), "n": np.full(n, n)}}
            other.observables["o"] = mrec.Observable(np.full(n, n), "k", "d", False)
        done.set()

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        while not done.is_set():
            try:
                frame = rec.frame
                found = rec.observables.get("o")
            except CorruptData as e:
                assert "replaced again and again" in str(e)
                continue
            n = frame["atoms"].nrows
            assert "n" not in frame["atoms"] or (frame["atoms"]["n"] == n).all() and (frame["atoms"]["x"] == n).all()
            assert found is None or (found.values == len(found)).all()
    finally:
        thread.join()


# ---- observables -------------------------------------------------------------------------------------------------


def test_observables_of_every_type_and_shape(path):
    rec = mrec.open(path)
    given = {t: np.arange(4).astype(t) for t in "i1 i2 i4 i8 u1 u2 u4 u8 f8 c8 c16 ? >f8".split()}
    given |= {"scalar": np.float64(-0.0), "empty": np.zeros((0, 3)), "no width": np.zeros((3, 0), "i4")}
    given |= {
        "text": np.array([["a", "é\0"]], np.dtypes.StringDType()),
        "word": np.array("x"),
        "big": np.arange(400_000.0),
    }
    rec.observables.update({k: mrec.Observable(v, "k", "d", False, axes=["a", {"b": 1}]) for k, v in given.items()})
    with mrec.open(path) as again:
        assert set(again.observables) == {*given, "msd"}
        for name, values in given.items():
            found = again.observables[name]
            assert found.values.shape == values.shape and found.values.tolist() == values.tolist()
            assert found.values.dtype == values.dtype.newbyteorder("=") if values.dtype.kind not in "UT" else True
            assert found.meta == {"kind": "k", "description": "d", "time_dependent": False, "axes": ["a", {"b": 1}]}
    assert np.signbit(again.observables["scalar"].values) if not again._closed else True
    del rec.observables["text"]
    assert "text" not in rec.observables and mrec.verify(path).ok
    with pytest.raises(UnknownName, match="no observable 'text'; there are: "):
        rec.observables["text"]


OBSERVED = {
    "no observable": (np.zeros(3), "takes a mrec.Observable"),
    "kind": (mrec.Observable([1.0], 5, "d", False), "kind is 5, no str"),
    "time_dependent": (mrec.Observable([1.0], "k", "d", 1), "time_dependent is 1, no bool"),
    "float32": (mrec.Observable(np.zeros(2, "f4"), "k", "d", False), "float32 is no column type"),
    "objects": (mrec.Observable(np.array([1, "a"], object), "k", "d", False), "all are strings"),
    "surrogate": (mrec.Observable(np.array(["\ud800"], object), "k", "d", False), "surrogate"),
    "masked": (mrec.Observable(np.ma.array([1, 2], mask=[0, 1]), "k", "d", False), "masked values"),
    "a document": (mrec.Observable([1.0], "k", "d", False, unit=object()), "no JSON document"),
}


@pytest.mark.parametrize("case", OBSERVED)
def test_observables_that_are_refused(path, case):
    given, match = OBSERVED[case]
    before = files(path)
    with pytest.raises(SchemaError, match=match):
        mrec.open(path).observables.update(good=MSD, bad=given)
    assert files(path) == before


@pytest.mark.parametrize("name", ["meta", "a/b", "", "zarr.json", "__x"])
def test_names_of_observables(path, name):
    with pytest.raises(SchemaError, match="cannot name a observable"):
        mrec.open(path).observables[name] = MSD
    assert set(mrec.open(path).observables) == {"msd"}


def test_lookalikes(path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mrec.open(path).observables["MSD"] = MSD
    assert "'msd' and 'MSD' differ only in case" in str(caught[0].message)


HALF = {
    "no document": (lambda p: shutil.rmtree(p / "observables/meta/msd"), "'msd' has no document"),
    "no array": (lambda p: shutil.rmtree(p / "observables/msd"), "'msd' has a document and no array"),
    "no kind": (lambda p: edit(p / "observables/meta/msd", lambda a: a.pop("kind")), "'kind' is missing"),
    "kind of 1": (lambda p: edit(p / "observables/meta/msd", lambda a: a.update(kind=1)), "kind is 1, no str"),
}


def edit(path, change):
    document = json.loads((path / "zarr.json").read_text())
    change(document["attributes"])
    (path / "zarr.json").write_text(json.dumps(document))


@pytest.mark.parametrize("case", HALF)
def test_half_an_observable(path, case):
    damage, match = HALF[case]
    damage(path)
    with pytest.raises(CorruptData, match=match):
        mrec.open(path).observables["msd"]
    assert {f.rule for f in mrec.verify(path).findings} == {"observable"}


# ---- what is not of the format -----------------------------------------------------------------------------------


@pytest.fixture
def foreign(path):
    """A record in which other programs keep things of their own, everywhere."""
    shutil.copytree(golden.ROOT / "ragged.mrec" / "trajectory", path / "trajectory")
    group = '{"zarr_format": 3, "node_type": "group", "attributes": {"theirs": 1e400x}}'.replace("1e400x", "1.50")
    for place in (
        "theirs",
        "theirs/deep",
        "frame/theirs.d",
        "trajectory/theirs",
        "observables/meta/msd/theirs",
        "metrics",
    ):
        (path / place).mkdir(parents=True, exist_ok=True)
        (path / place / "zarr.json").write_text(group)
        (path / place / "data.bin").write_bytes(os.urandom(1000))
    shutil.rmtree(path / "frame/theirs.d")
    (path / "README").write_text("by hand")
    (path / "zarr.json").write_text('{"zarr_format":3,"node_type":"group","attributes":{"root":{"theirs":[1,2]}}}')
    edit(path / "trajectory", lambda a: a.update(theirs={"x": 1}))
    shutil.copytree(path / "system" / "beads" / "mass", path / "theirs" / "array")
    (path / "theirs" / "array" / "zarr.json").write_text(
        (path / "theirs/array/zarr.json").read_text().replace('"crc32c"', '"some.codec"')
    )
    (path / ".hidden").write_text("kept")
    return path


def test_foreign_content_survives_byte_for_byte(foreign):
    before = files(foreign)
    rec = mrec.open(foreign)
    assert "theirs" in rec.sections
    copy = rec.copy_to(foreign.with_name("copy.mrec"))
    assert files(foreign.with_name("copy.mrec")) == before == files(foreign)
    packed = rec.copy_to(foreign.with_name("copy.mrec.zip"))
    with zipfile.ZipFile(packed.path) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == before
    assert packed.copy_to(foreign.with_name("again.mrec")).frame == rec.frame
    assert files(foreign.with_name("again.mrec")) == before
    mrec.unpack(mrec.pack(foreign), foreign.with_name("third.mrec"))
    assert files(foreign.with_name("third.mrec")) == before
    assert len(copy.trajectory) == len(rec.trajectory)
    left = packed.copy_to(foreign.with_name("less.mrec"), without=("theirs", "trajectory"))
    assert files(foreign.with_name("less.mrec")) == {
        key: value for key, value in before.items() if key.split("/")[0] not in ("theirs", "trajectory")
    }
    assert "trajectory" not in left.sections
    copy.frame = {"a": {"x": [1.0]}}  # a section that is written touches no other
    del copy.system
    after = files(foreign.with_name("copy.mrec"))
    ours = ("frame/", "system/")
    assert {k: v for k, v in after.items() if not k.startswith(ours)} == {
        k: v for k, v in before.items() if not k.startswith(ours)
    }


def test_an_unclosed_record_is_copied_as_it_reads(tmp_path):
    schema = mrec.Schema().block("a", rows=1).column("x", "f64")
    with mrec.TrajectoryWriter(tmp_path / "w.mrec", schema, flush_every=1) as writer:
        writer.append(0, a={"x": [1.0]})
        with pytest.raises(RecordLocked):
            mrec.open(tmp_path / "w.mrec").copy_to(tmp_path / "c.mrec")
        shutil.copytree(tmp_path / "w.mrec", tmp_path / "killed.mrec")
    copy = mrec.open(tmp_path / "killed.mrec").copy_to(tmp_path / "c.mrec")
    assert len(copy.trajectory) == 1 and not (tmp_path / "c.mrec/trajectory/.durable").exists()


def test_sections_that_refer_to_each_other(tmp_path):
    system = {"atoms": {"mass": [1.0, 2.0, 3.0]}}
    pairs = mrec.Block({"a": np.array([0, 2], "u8")}, targets={"a": "/system/atoms"})
    frame = {"pairs": pairs, "bonds": mrec.Block({"atomi": [2, 0]}, targets={"atomi": "/system/atoms"})}
    table = {"t": mrec.Block({"p": np.array([1], "u8")}, targets={"p": "/frame/pairs"})}
    with_more = {**system, "tables": mrec.Block({"t": np.array([0], "u8")}, targets={"t": "/forcefield/t"})}
    rec = mrec.create(tmp_path / "a.mrec", frame=frame, system=with_more, forcefield=table)
    assert mrec.verify(rec.path).ok and rec.frame["bonds"]["atomi"].dtype == np.uint64  # lists, widened as stored
    pairs["a"][1] = 3
    with pytest.raises(SchemaError, match="frame/pairs/a: 3 is no row of '/system/atoms', which has 3"):
        mrec.create(tmp_path / "b.mrec", frame=frame, system=system)
    with pytest.raises(SchemaError, match="frame/pairs/a: its target '/system/atoms' is no block"):
        mrec.create(tmp_path / "b.mrec", frame=frame)
    assert not (tmp_path / "b.mrec").exists()


def test_a_copy_keeps_what_it_refers_to(tmp_path):
    schema = mrec.Schema().block("pairs", targets={"a": "/system/atoms"}).column("a", "u64")
    system = {"atoms": {"mass": [1.0, 2.0]}}
    rec = mrec.create(tmp_path / "a.mrec", system=system, status={"state": "s"}, trajectory=schema)
    with pytest.raises(InvalidValue, match=r"pairs/a refers to .*; keep 'system', or leave 'trajectory' out as well"):
        rec.copy_to(tmp_path / "b.mrec.zip", without="system")
    assert rec.copy_to(tmp_path / "b.mrec.zip", without=["system", "trajectory"]).sections == ("meta", "status")
    assert mrec.verify(tmp_path / "b.mrec.zip").ok


def test_copies_that_are_refused(path):
    rec = mrec.open(path)
    for arguments, error, match in (
        ({"path": path}, RecordExists, "is there already"),
        ({"path": path / "in.mrec"}, InvalidValue, "lies within the record"),
        ({"path": path.with_name("x"), "without": ()}, mrec.MrecError, "ends in .mrec"),
        ({"path": path.with_name("c.mrec"), "without": "nothing"}, InvalidValue, "without= names 'nothing'; there are"),
        ({"path": path.with_name("c.mrec"), "without": ["frame", "system", "forcefield", "status"]},
         InvalidValue, "would be no record"),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            rec.copy_to(**arguments)
    assert sorted(os.listdir(path.parent)) == ["r.mrec"]


def test_a_damaged_entry_is_not_copied(path):
    packed = mrec.pack(path)
    raw = bytearray(Path(packed).read_bytes())
    at = raw.index(b'"state"')
    raw[at + 1] ^= 1
    Path(packed).write_bytes(raw)
    with pytest.raises(CorruptData, match=r"status/zarr\.json: the CRC-32 of the entry does not match"):
        mrec.open(packed).copy_to(path.with_name("c.mrec"))
    assert not path.with_name("c.mrec").exists()


def test_no_record_to_write_to(tmp_path):
    from mrec.record.sections import write_frame_section

    with pytest.raises(NotARecord, match="is no record"):
        write_frame_section(tmp_path, "frame", {})
    with pytest.raises(UnknownName, match="'atoms' is no section that is written from a frame"):
        write_frame_section(tmp_path, "atoms", {})

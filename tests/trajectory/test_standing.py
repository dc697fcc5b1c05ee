"""Which state of a record stands, and what is refused."""

from __future__ import annotations

import json
import shutil
import threading

import numpy as np
import pytest

import mrec
from mrec.errors import CorruptData, MrecError, NotARecord, SchemaError, UnsupportedVersion
from tests import golden

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS = 5


def append(writer, i, rows=ROWS):
    x = np.arange(rows) + 1000.0 * i
    writer.append(i, time=i / 2, atoms={"x": x, "s": [f"{i}.{k}" for k in range(rows)]}, pe=i / 3)


def check(trajectory, n):
    assert len(trajectory) == n
    for i, frame in enumerate(trajectory):
        assert frame.step == i and frame.time == i / 2 and frame.values["pe"] == i / 3
        assert frame["atoms"]["x"].tolist() == (np.arange(ROWS) + 1000.0 * i).tolist()
        assert frame["atoms"]["s"].tolist() == [f"{i}.{k}" for k in range(ROWS)]


def schema():
    made = mrec.Schema().block("atoms", rows=ROWS).column("x", "f64").column("s", "string")
    return made.value("pe", "f64")


@pytest.fixture
def crashed(tmp_path):
    """A copy of a record of which 7 frames are durable and 4 more published, its writer still running."""
    path = tmp_path / "live.mrec"
    options = {"frames_per_chunk": 3, "chunks_per_shard": 2, "flush_every": 1, "durable_every": None}
    with mrec.TrajectoryWriter(path, schema(), **options) as writer:
        for i in range(7):
            append(writer, i)
        writer.flush()
        for i in range(7, 11):
            append(writer, i)
        shutil.copytree(path, tmp_path / "crashed.mrec")
    return tmp_path / "crashed.mrec"


def edit(file, change):
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def durable(path, **changes):
    edit(path / "trajectory" / ".durable", lambda d: d.update(changes))


def marker(path, **changes):
    edit(path / "trajectory" / "zarr.json", lambda d: d["attributes"].update(changes))


def open_(path):
    return mrec.open(path).trajectory


def test_a_killed_writer_loses_nothing_that_was_published(crashed):
    check(open_(crashed), 11)
    assert open_(crashed).recovered is None


def test_after_a_restart_the_durable_state_stands(crashed):
    durable(crashed, boot_id="another")
    trajectory = open_(crashed)
    check(trajectory, 7)
    assert (trajectory.recovered.nstep, trajectory.recovered.published, trajectory.recovered.cut) == (7, 11, 4)
    assert "4 frames after the last durable flush were cut" in str(trajectory.recovered)


def test_the_durable_state_needs_no_document_and_no_tail_entry(crashed):
    durable(crashed, boot_id="another")
    for file in (crashed / "trajectory").rglob("zarr.json"):
        file.write_bytes(b"")
    shard = crashed / "trajectory" / "atoms" / "x" / "c" / "1"
    raw = bytearray(shard.read_bytes())
    raw[:16] = b"\x07" * 16  # the entry of the tail, and so the checksum of the index
    shard.write_bytes(bytes(raw))
    trajectory = open_(crashed)
    check(trajectory, 7)
    assert trajectory.recovered.cut is None


def test_a_tail_that_was_overwritten_is_no_frame(crashed):
    durable(crashed, boot_id="another")

    def other_version(document):
        document["tails"]["trajectory/atoms/x"][4] ^= 1

    edit(crashed / "trajectory" / ".durable", other_version)
    trajectory = open_(crashed)
    assert trajectory[5]["atoms"]["x"][0] == 5000.0
    with pytest.raises(CorruptData, match="durable file"):
        trajectory[6]


def test_an_append_by_another_program_stands(crashed):
    durable(crashed, boot_id="another")
    marker(crashed, mrec_nstep=9)
    check(open_(crashed), 11)
    marker(crashed, mrec_nstep=11)
    check(open_(crashed), 7)
    marker(crashed, nstep=7, mrec_nstep=6)
    check(open_(crashed), 7)


def test_a_durable_file_ahead_of_the_marker(crashed):
    marker(crashed, nstep=4, mrec_nstep=4)
    trajectory = open_(crashed)
    check(trajectory, 7)
    assert trajectory.recovered is None


def test_without_a_durable_file_the_marker_stands(crashed):
    (crashed / "trajectory" / ".durable").unlink()
    check(open_(crashed), 11)


def test_a_damaged_marker_of_this_boot_is_damage(crashed):
    (crashed / "trajectory" / "zarr.json").write_bytes(b"")
    with pytest.raises(CorruptData, match="strict JSON"):
        open_(crashed)
    (crashed / "trajectory" / "zarr.json").unlink()
    with pytest.raises(NotARecord, match="still being created"):
        open_(crashed)
    durable(crashed, boot_id="another")
    check(open_(crashed), 7)


@pytest.mark.parametrize(
    "changes",
    [{"nstep": -1}, {"nstep": "7"}, {"boot_id": None}, {"documents": []}, {"documents": {}}, {"tails": {"a": [1, 2]}},
     {"tails": {"a": [1, 2, 3, 4, -1]}}, {"tails": {"trajectory/step": [0, 0, 0, 8, 2**32]}},
     {"documents": {"trajectory/zarr.json": 1}}],
    ids=str,
)  # fmt: skip
def test_a_damaged_durable_file(crashed, changes):
    durable(crashed, **changes)
    with pytest.raises(CorruptData, match="durable"):
        open_(crashed)


def test_an_unknown_durable_file(crashed):
    durable(crashed, format=2)
    with pytest.raises(UnsupportedVersion, match="format is 2"):
        open_(crashed)
    (crashed / "trajectory" / ".durable").write_bytes(b"{")
    with pytest.raises(CorruptData, match="durable"):
        open_(crashed)


def test_a_missing_chunk_is_loss_while_the_record_is_open(crashed):
    (crashed / "trajectory" / "atoms" / "x" / "c" / "0").unlink()
    with pytest.raises(CorruptData, match="not there"):
        open_(crashed)[0]


def test_refresh(tmp_path):
    path = tmp_path / "r.mrec"
    with mrec.TrajectoryWriter(path, schema(), flush_every=1, frames_per_chunk=3) as writer:
        trajectory = open_(path)
        assert len(trajectory) == 0
        for i in range(8):
            append(writer, i)
            before = len(trajectory)
            check(trajectory, before)
            assert trajectory.refresh() == i + 1
            check(trajectory, i + 1)
    assert trajectory.refresh() == 8
    check(trajectory, 8)


def test_readers_of_a_growing_record(tmp_path):
    """Rows and cell change, so that every transition passes under the readers."""
    path, n = tmp_path / "r.mrec", 150
    errors = []

    def rows(i):
        return ROWS if i < 40 else ROWS + i % 3

    def follow():
        try:
            trajectory = open_(path)
            while len(trajectory) < n and not errors:
                trajectory.refresh()
                for i in {0, len(trajectory) // 2, len(trajectory) - 1} if len(trajectory) else ():
                    frame = trajectory[i]
                    assert frame["atoms"]["x"].tolist() == (np.arange(rows(i)) + 1000.0 * i).tolist()
                    assert frame["atoms"]["s"].tolist() == [f"{i}.{k}" for k in range(rows(i))]
                    assert frame.box.vectors[0, 0] == 10.0 + (i > 60) * i
        except Exception as e:
            errors.append(e)

    options = {"flush_every": 1, "frames_per_chunk": 4, "chunks_per_shard": 3, "durable_every": 0.05}
    with mrec.TrajectoryWriter(path, schema(), **options) as writer:
        threads = [threading.Thread(target=follow) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(n):
            x = np.arange(rows(i)) + 1000.0 * i
            box = mrec.Box.from_lengths(10.0 + (i > 60) * i, 10, 10)
            atoms = {"x": x, "s": [f"{i}.{k}" for k in range(rows(i))]}
            writer.append(i + (i > 90), time=i * 0.1, atoms=atoms, pe=0.0, box=box)
    for thread in threads:
        thread.join()
    assert errors == []


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.fixture(params=["fixed_raw", "ragged"])
def copy(tmp_path, request):
    return shutil.copytree(golden.ROOT / f"{request.param}.mrec", tmp_path / "copy.mrec")


def shapes(path, change):
    def apply(document):
        document["shape"] = change(document["shape"])

    edit(path, apply)


def test_an_array_shorter_than_nstep_claims_is_named(copy):
    shapes(copy / "trajectory" / "meta" / "pe" / "zarr.json", lambda s: [s[0] - 1])
    with pytest.raises(CorruptData, match=r"trajectory/meta/pe.*fewer"):
        open_(copy)


def test_a_longer_array_is_read_past(copy):
    values = open_(copy).read_ragged("atoms", "x")
    for file in (copy / "trajectory" / "atoms").rglob("zarr.json"):
        if json.loads(file.read_text())["node_type"] == "array" and file.parent.name not in ("step_index", "offset"):
            shapes(file, lambda s: [s[0] + 3, *s[1:]])
    assert open_(copy).read_ragged("atoms", "x")[0].tobytes() == values[0].tobytes()


def group(path, name, **attributes):
    edit(path / "trajectory" / name / "zarr.json", lambda d: d.setdefault("attributes", {}).update(attributes))


def drop(path, key):
    edit(path / "trajectory" / "zarr.json", lambda d: d["attributes"].pop(key))


REFUSED = {
    "one attribute of a regular block": lambda p: edit(
        p / "trajectory/atoms/zarr.json", lambda d: d["attributes"].pop("dense_updates")
    ),
    "rows that are none": lambda p: group(p, "atoms", uniform_rows=0),
    "rows that are no number": lambda p: group(p, "atoms", uniform_rows=True),
    "dense_updates false": lambda p: group(p, "atoms", dense_updates=False),
    "a progression without nstep": lambda p: drop(p, "nstep"),
    "nstep that is no number": lambda p: marker(p, nstep=1.5),
    "nstep below 0": lambda p: marker(p, nstep=-1),
    "a progression without stride": lambda p: marker(p, step_progression={"start": 0}),
    "a progression that falls": lambda p: marker(p, step_progression={"start": 0, "stride": -1}),
    "a progression of floats": lambda p: marker(p, step_progression={"start": 0, "stride": 1.5}),
    "a progression past 64 bits": lambda p: marker(p, step_progression={"start": 2**63 - 5, "stride": 1}),
    "times of text": lambda p: marker(p, time_progression={"start": "NaN", "stride": 1}),
    "a missing column": lambda p: shutil.rmtree(p / "trajectory/atoms/x"),
    "a column that is a group": lambda p: (p / "trajectory/atoms/x/zarr.json").write_text(
        '{"zarr_format": 3, "node_type": "group"}'
    ),
    "a column of another type": lambda p: edit(
        p / "trajectory/atoms/x/zarr.json", lambda d: d.update(data_type="int64", fill_value=0)
    ),
    "a missing per-step value": lambda p: shutil.rmtree(p / "trajectory/meta/pe"),
    "a cell of two vectors": lambda p: group(p, "box", vectors=[[1, 0, 0], [0, 1, 0]]),
    "a cell of text": lambda p: group(p, "box", vectors=[["a", 0, 0], [0, 1, 0], [0, 0, 1]]),
    "an undefined cell that is periodic": lambda p: group(p, "box", cell_defined=False, boundary=[True, False, False]),
    "cell_defined of text": lambda p: group(p, "box", cell_defined="no"),
    "another meta_dtype": lambda p: edit(
        p / "trajectory/meta/pe/zarr.json", lambda d: d.update(attributes={"meta_dtype": "f64x3"})
    ),
    "an unknown column type": lambda p: edit(
        p / "trajectory/zarr.json",
        lambda d: d["attributes"]["sequence_schema"]["blocks"]["atoms"]["columns"]["x"].update(dtype="f32"),
    ),
    "a structural_shape of other rows": lambda p: edit(
        p / "trajectory/zarr.json",
        lambda d: d["attributes"]["sequence_schema"]["blocks"]["atoms"].update(structural_shape=[2, 2]),
    ),
    "an aligned_with that is not there": lambda p: edit(
        p / "trajectory/zarr.json",
        lambda d: d["attributes"]["sequence_schema"]["blocks"]["atoms"].update(aligned_with="bonds"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    path = shutil.copytree(golden.ROOT / "fixed_raw.mrec", tmp_path / "copy.mrec")
    open_(path)
    REFUSED[name](path)
    with pytest.raises((CorruptData, SchemaError)) as e:
        trajectory = open_(path)
        trajectory.steps, trajectory.times  # noqa: B018
    assert isinstance(e.value, MrecError) and isinstance(e.value, ValueError) and str(path) in str(e.value)


def test_forms_hold_over_what_lies_beside_them(tmp_path):
    """A crash inside a transition leaves both forms; the attributes win, for the cell the arrays."""
    path = shutil.copytree(golden.ROOT / "ragged.mrec", tmp_path / "copy.mrec")
    boxes = [frame.box for frame in open_(path)]
    group(path, "box", vectors=[[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert [frame.box for frame in open_(path)] == boxes
    shutil.rmtree(path / "trajectory" / "box" / "step_index")
    assert {frame.box for frame in open_(path)} == {mrec.Box.from_lengths(1, 1, 1)}
    marker(path, step_progression={"start": -3, "stride": 7})
    assert open_(path).steps.tolist() == [7 * i - 3 for i in range(10)]


def test_progressions_are_exact(tmp_path):
    path = shutil.copytree(golden.ROOT / "fixed_raw.mrec", tmp_path / "copy.mrec")
    start, stride = 2**53 + 1, 2**57 + 3
    marker(path, step_progression={"start": start, "stride": stride}, time_progression={"start": -0.0, "stride": 0.1})
    trajectory = open_(path)
    assert trajectory.steps.tolist() == [start + i * stride for i in range(30)]
    assert trajectory.times[1:].tolist() == [0.0 + i * 0.1 for i in range(1, 30)]
    assert np.signbit(trajectory.times[0])


def test_no_times(tmp_path):
    path = shutil.copytree(golden.ROOT / "fixed_raw.mrec", tmp_path / "copy.mrec")
    drop(path, "time_progression")
    trajectory = open_(path)
    assert trajectory.times is None and trajectory[3].time is None and [f.time for f in trajectory] == [None] * 30
    with pytest.raises(IndexError, match="no times"):
        trajectory.index(time=1.0)


def test_a_store_without_nstep(tmp_path):
    path = shutil.copytree(golden.ROOT / "ragged.mrec", tmp_path / "copy.mrec")
    for key in ("nstep", "time_progression"):
        drop(path, key)
    trajectory = open_(path)
    assert len(trajectory) == 10 and trajectory.times is None
    shutil.rmtree(path / "trajectory" / "step")
    assert len(open_(path)) == 0


def test_a_store_without_schema(tmp_path):
    path = shutil.copytree(golden.ROOT / "ragged.mrec", tmp_path / "copy.mrec")
    declared = open_(path)
    drop(path, "sequence_schema")
    derived = open_(path)
    assert set(derived.blocks) == set(declared.blocks)
    for a, b in zip(declared, derived, strict=True):
        assert a.blocks == b.blocks and a.box == b.box


def test_a_declared_block_may_be_missing(tmp_path):
    path = shutil.copytree(golden.ROOT / "ragged.mrec", tmp_path / "copy.mrec")
    shutil.rmtree(path / "trajectory" / "bonds")
    trajectory = open_(path)
    assert all("bonds" not in frame for frame in trajectory)


def test_a_fresh_record_may_hold_only_its_schema(tmp_path):
    path = shutil.copytree(golden.ROOT / "ragged.mrec", tmp_path / "copy.mrec")
    for child in (path / "trajectory").iterdir():
        if child.is_dir():
            shutil.rmtree(child)
    marker(path, nstep=0)
    trajectory = open_(path)
    assert len(trajectory) == 0 and trajectory.read_ragged("atoms", ["x"])[0].shape == (0, 1)


def test_a_nullable_column_without_a_mask_is_valid_everywhere(tmp_path):
    path = shutil.copytree(golden.ROOT / "ragged.mrec", tmp_path / "copy.mrec")
    shutil.rmtree(path / "trajectory" / "atoms" / "_validity")
    assert not any(np.ma.isMaskedArray(frame["atoms"]["bfac"]) for frame in open_(path))


def test_a_system_beside(tmp_path):
    path = shutil.copytree(golden.ROOT / "fixed_raw.mrec", tmp_path / "copy.mrec")
    rec = mrec.open(path)
    with pytest.raises(SchemaError, match="'x'"):
        rec.system = {"atoms": {"x": np.zeros(12)}}
    rec.system = {"atoms": {"element": ["O"] * 12}}
    assert open_(path)[0]["atoms"].nrows == 12 and mrec.open(path).system["atoms"]["element"][0] == "O"
    with pytest.raises(SchemaError, match="rows"):
        rec.system = {"atoms": {"element": ["O"] * 13}}
    edit(path / "system" / "atoms" / "zarr.json", lambda d: d["attributes"].update(count=13))
    with pytest.raises(CorruptData, match="system/atoms"):
        open_(path)


@pytest.mark.parametrize("target", ["atoms", "/system/atoms"])
def test_row_references_are_checked(tmp_path, target):
    path = tmp_path / "r.mrec"
    made = mrec.Schema().block("atoms", rows=5).column("x", "f64").block("bonds", rows=2).column("atomi", "u64")
    with mrec.TrajectoryWriter(path, made) as writer:
        for i, n in enumerate([5, 5, 4]):
            writer.append(i, atoms={"x": np.zeros(n)}, bonds={"atomi": np.array([0, 4], "u8")})
    declared = ["attributes", "sequence_schema", "blocks", "bonds"]

    def declare(document):
        for key in declared:
            document = document[key]
        document["targets"] = {"atomi": target}

    edit(path / "trajectory" / "zarr.json", declare)
    if target.startswith("/"):
        with pytest.raises(CorruptData, match=r"frame 0.*no row of '/system/atoms', which has 0"):
            open_(path)[0]
        return
    trajectory = open_(path)
    assert trajectory[1]["bonds"]["atomi"].tolist() == [0, 4]
    with pytest.raises(CorruptData, match=r"trajectory/bonds/atomi, frame 2: 4 is no row of 'atoms', which has 4"):
        trajectory[2]

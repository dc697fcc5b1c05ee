# SPDX-License-Identifier: BSD-3-Clause
"""`mrec.repair` as it is asked to: what is left out, what is carried over, and where the copy goes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import mrec
from mrec.errors import InvalidValue, NotARecord, RecordExists, RecordNotFound, UnknownName
from tests.interop import mrec_side
from tests.interop.compare import assert_frames
from tests.interop.records import RECORDS
from tests.repair.check import Sample, frames, losses, repair
from tests.verify import edit
from tests.verify.edit import Shard
from tests.verify.faults import FAULTS

T = "trajectory"


# ---- choices ---------------------------------------------------------------------------------------------------------


def _damage(path: Path) -> None:
    for array, chunk in (("atoms/y", 1), ("bonds/atomi", 0), ("meta/note", 0)):
        shard = Shard(path / T / array)
        shard.flip(shard.entry(chunk)[0] + 5)


def test_what_to_drop_is_said(sample: Sample) -> None:
    path, original = sample("regular")
    _damage(path)
    report, _ = repair(path, original)
    assert losses(report) == [
        "left out meta/note: frames 0-11",
        "lost atoms/y: frames 2-3",
        "lost bonds/atomi: frames 1-8",
    ]
    assert report.kept == 4
    assert "without bonds/atomi (--drop bonds/atomi) 10 frames would be kept" in report.lines()


@pytest.mark.parametrize("options", [{"keep_frames": True}, {"drop": ["atoms/y", "bonds", "meta/note"]}], ids=str)
def test_frames_are_kept(options: dict[str, object], sample: Sample) -> None:
    path, original = sample("regular")
    _damage(path)
    report, kept = repair(path, original, **options)
    assert len(kept) == 12
    assert "y" not in kept[0]["atoms"]
    assert "x" in kept[0]["atoms"]
    assert "bonds" not in kept[5]
    assert all(loss.left_out for loss in report.losses)


def test_drop_of_times_and_cell(sample: Sample) -> None:
    path, _ = sample("changing")
    mrec.repair(path, path.parent / "sound.mrec", drop=["time", "box"])
    assert [(frame.time, frame.box) for frame in frames(path.parent / "sound.mrec")] == [(None, None)] * 24
    with pytest.raises(UnknownName, match="there are: atoms, atoms/x, "):
        mrec.repair(path, path.parent / "other.mrec", drop=["atoms/none"])
    assert not (path.parent / "other.mrec").exists()


def test_declared_references_stay_declared(sample: Sample) -> None:
    path, original = sample("regular")
    declared = {"targets": {"atomi": "atoms"}}
    edit.schema(path, lambda schema: schema["blocks"]["bonds"].update(declared))
    edit.schema(path, lambda schema: schema["blocks"].update(late={"columns": {}, "aligned_with": "atoms"}))
    shard = Shard(path / T / "atoms/y")
    shard.flip(shard.entry(0)[0])
    _, kept = repair(path, original)
    out = path.parent / "sound.mrec"
    assert len(kept) == 10
    with mrec.open(out) as record:
        assert record.trajectory.schema.blocks["bonds"].targets == declared["targets"]
        assert record.trajectory.schema.blocks["late"].aligned_with == "atoms"
    shutil.rmtree(out)
    repair(path, [without_block(frame, "atoms") for frame in original], drop=["atoms"])
    with mrec.open(out) as record:
        assert record.trajectory.schema.blocks["bonds"].targets is None


def without_block(frame: mrec.Frame, name: str) -> mrec.Frame:
    return mrec.Frame(
        {key: block for key, block in frame.blocks.items() if key != name},
        step=frame.step, time=frame.time, box=frame.box, values=frame.values,
    )  # fmt: skip


# ---- what is beside --------------------------------------------------------------------------------------------------


def test_unknown_parts_are_carried_over(sample: Sample) -> None:
    path, original = sample("regular")
    (path / "lab/deep").mkdir(parents=True)
    (path / "lab/zarr.json").write_text('{"zarr_format":3,"node_type":"group","attributes":{"who":"we"}}')
    (path / "lab/deep/blob").write_bytes(b"\0\1")
    shutil.copytree(path / T / "atoms/y", path / T / "extra/y")
    edit.attributes(path / T / "atoms/x", axis="east")
    _damage(path)
    repair(path, original)
    out = path.parent / "sound.mrec"
    for key in ("lab/zarr.json", "lab/deep/blob", f"{T}/extra/y/zarr.json", f"{T}/extra/y/c/1", "system/zarr.json"):
        assert (out / key).read_bytes() == (path / key).read_bytes()
    assert json.loads((out / T / "atoms/x/zarr.json").read_text())["attributes"]["axis"] == "east"


def test_record_without_a_trajectory(sample: Sample) -> None:
    path, _ = sample("regular")
    shutil.rmtree(path / T)
    next(fault for fault in FAULTS if fault.name == "a_bit_of_a_section").seed(path)
    report, _ = repair(path, [])
    assert losses(report) == ["system/other/mass"]
    with mrec.open(path.parent / "sound.mrec") as record:
        assert set(record.system["other"]) == {"atomi", "q"}


def test_molrs_reads_the_copy(tmp_path: Path) -> None:
    pytest.importorskip("molrs", reason="molrs has wheels for Python 3.12 and later")
    from tests.interop import molrs_side

    record = RECORDS["fixed"]
    path, out = tmp_path / "a.mrec", tmp_path / "sound.mrec"
    mrec_side.write(record, path, record.frames)
    shard = Shard(path / T / "atoms/y", 1)
    shard.flip(shard.entry(1)[0] + 5)
    report = mrec.repair(path, out)
    ((first, last),) = report.lost_frames
    wanted = [*mrec_side.read(record, out)]
    assert len(wanted) == len(record.frames) - (last - first + 1) < len(record.frames)
    assert [frame.step for frame in wanted] == [f.step for f in [*record.frames[:first], *record.frames[last + 1 :]]]
    assert_frames(molrs_side.read(record, out), wanted, "molrs")


# ---- places ----------------------------------------------------------------------------------------------------------


def test_places(sample: Sample) -> None:
    path, _ = sample("regular")
    with pytest.raises(RecordExists, match="a new path"):
        mrec.repair(path, path)
    with pytest.raises(InvalidValue, match="lies in the damaged record"):
        mrec.repair(path, path / "sound.mrec")
    with pytest.raises(RecordNotFound):
        mrec.repair(path.parent / "none.mrec", path.parent / "sound.mrec")
    with pytest.raises(NotARecord):
        mrec.repair(path.parent, path.parent.parent / "sound.mrec")
    assert [entry.name for entry in path.parent.iterdir()] == ["a.mrec"]


def test_progress(sample: Sample) -> None:
    path, original = sample("regular")
    seen: list[tuple[int, int]] = []
    repair(path, original, progress=lambda done, total: seen.append((done, total)))
    assert seen
    assert all(done <= total for done, total in seen)
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))

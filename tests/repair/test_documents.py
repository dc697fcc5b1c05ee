# SPDX-License-Identifier: BSD-3-Clause
"""`mrec.repair` of records whose documents are damaged or gone, or that were not closed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import mrec
from mrec.errors import CorruptData, NotARecord, RecordLocked
from tests.crash import scenario
from tests.repair.check import Sample, frames, losses, repair
from tests.verify import edit, samples
from tests.verify.faults import FAULTS

T = "trajectory"


def test_a_claim_of_frames_that_no_memory_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    samples.regular(path)
    edit.attributes(path / T, nstep=2**40)
    with pytest.raises(CorruptData, match=f"claims {2**40} frames, and the files of the trajectory have .* mend it"):
        mrec.repair(path, tmp_path / "out.mrec")
    assert not (tmp_path / "out.mrec").exists()


# ---- documents -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["unreadable", "gone"])
@pytest.mark.parametrize(
    ("node", "name", "lost"),
    [
        ("atoms/y", "regular", ["left out atoms/y: frames 0-11"]),
        ("atoms/_validity/tag", "regular", ["left out atoms/tag: frames 0-11"]),
        ("atoms", "regular", ["left out atoms: frames 0-11"]),
        ("bonds/offset", "regular", ["left out bonds: frames 1-11"]),
        ("bonds/step_index", "regular", ["left out bonds: frames 0-11"]),
        ("box", "changing", ["left out box: frames 0-23"]),
        ("box/vectors", "changing", ["left out box: frames 0-23"]),
        ("step", "changing", ["lost step: frames 0-23"]),
        ("time", "changing", ["left out time: frames 0-23"]),
        ("meta/pe", "changing", ["left out meta/pe: frames 0-23"]),
        ("../meta", "regular", ["meta/zarr.json"]),
        ("..", "regular", ["zarr.json"]),
        ("../system", "regular", ["system/zarr.json"]),
        ("../system/other", "regular", ["system/other"]),
        ("../system/other/q", "regular", ["system/other/q"]),
    ],
)
def test_document(node: str, name: str, lost: list[str], how: str, sample: Sample) -> None:
    path, original = sample(name)
    file = (path / T / node / "zarr.json").resolve()
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes().replace(b"zarr_format", b"zarr_f\xf2rmat"))
    report, _ = repair(path, original)
    assert losses(report) == ([] if node == "../meta" and how == "gone" else lost)


def test_group_without_document_that_has_an_index(sample: Sample) -> None:
    """Its updates are known by the index."""
    path, original = sample("changing")
    (path / T / "atoms/zarr.json").unlink()
    assert losses(repair(path, original)[0]) == []


@pytest.mark.parametrize("name", ["origin", "boundary"])
def test_part_of_the_cell_that_is_gone(name: str, tmp_path: Path) -> None:
    """Without it the cell would have the default."""
    path, schema = tmp_path / "a.mrec", mrec.Schema().value("pe", "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for i in range(4):
            box = mrec.Box.from_lengths(9, 9, 9 + i, origin=[1, 2, 3], periodic=[True, False, True])
            writer.append(i, pe=0.0, box=box)
    original = frames(path)
    (path / T / "box" / name / "zarr.json").unlink()
    assert losses(repair(path, original)[0]) == ["left out box: frames 0-3"]


def test_array_that_is_gone_whole(sample: Sample) -> None:
    path, original = sample("regular")
    shutil.rmtree(path / T / "atoms/y")
    shutil.rmtree(path / T / "bonds/step_index")
    report, _ = repair(path, original)
    assert losses(report) == ["left out bonds: frames 0-11", "left out atoms/y: frames 0-11"]


def test_marker_of_a_closed_record(sample: Sample) -> None:
    """Nothing else says what the frames are; what is beside them is kept, and how to mend it is said."""
    path, _ = sample("regular")
    file = path / T / "zarr.json"
    file.write_bytes(file.read_bytes().replace(b'"nstep"', b'"nstep', 1))
    report, kept = repair(path, [])
    assert (losses(report), kept) == (["trajectory"], [])
    assert "trajectory/zarr.json: not strict JSON" in report.beside["trajectory"]
    with mrec.open(path.parent / "sound.mrec") as record, mrec.open(path) as damaged:
        assert record.system == damaged.system
    shutil.rmtree(path / "system")
    shutil.rmtree(path.parent / "sound.mrec")
    with pytest.raises(NotARecord, match="nothing of it can be kept: trajectory: all of it"):
        mrec.repair(path, path.parent / "sound.mrec")
    assert [entry.name for entry in path.parent.iterdir()] == ["a.mrec"]


# ---- records that were not closed ------------------------------------------------------------------------------------


def _other_boot(path: Path) -> None:
    file = path / T / ".durable"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"boot_id": "another"}))


def _cut(path: Path) -> None:
    file = path / T / ".durable"
    file.write_bytes(file.read_bytes()[:-40])


def test_durable_file_damaged_since_this_boot(sample: Sample) -> None:
    path, original = sample("crashed")
    _cut(path)
    report, kept = repair(path, original)
    assert (report.ok, len(kept)) == (True, 17)
    assert ".durable is damaged" in report.notes[0]


def test_durable_file_damaged_before_this_boot(sample: Sample) -> None:
    """It alone could say what a power loss left; the user may know that there was none."""
    path, original = sample("crashed")
    _other_boot(path)
    _cut(path)
    with pytest.raises(CorruptData, match="trust_marker"):
        mrec.repair(path, path.parent / "sound.mrec")
    assert [entry.name for entry in path.parent.iterdir()] == ["a.mrec"]
    report, kept = repair(path, original, trust_marker=True)
    assert (report.ok, len(kept)) == (True, 17)


def test_durable_file_damaged_while_closing(sample: Sample) -> None:
    path, original = sample("regular")
    (path / T / ".durable").write_text("{")
    report, kept = repair(path, original)
    assert (report.ok, len(kept)) == (True, 12)


@pytest.mark.parametrize("how", ["unreadable", "gone", "undeclared"])
def test_marker_beside_a_durable_file(how: str, sample: Sample) -> None:
    path, original = sample("crashed")
    file = path / T / "zarr.json"
    if how == "gone":
        file.unlink()
    elif how == "unreadable":
        file.write_text("{")
    else:
        edit.schema(path, lambda schema: schema["blocks"]["atoms"].update(colour="red"))
    report, kept = repair(path, original)
    assert losses(report) == ["trajectory/zarr.json"]
    assert (report.frames, len(kept)) == (14, 14)


def test_power_loss(sample: Sample) -> None:
    path, original = sample("crashed")
    _other_boot(path)
    report, kept = repair(path, original)
    assert (report.ok, len(kept)) == (True, 14)
    assert report.notes == ["the machine has stopped since: 14 frames were durable, 3 later ones were cut"]


def test_tail_after_a_power_loss(sample: Sample) -> None:
    path, original = sample("crashed")
    _other_boot(path)
    next(fault for fault in FAULTS if fault.name == "a_tail_that_is_not_there").seed(path)
    assert losses(repair(path, original)[0]) == ["lost atoms/y: frames 12-13"]


def test_live_record(tmp_path: Path) -> None:
    path, out = tmp_path / "a.mrec", tmp_path / "sound.mrec"
    with mrec.TrajectoryWriter(path, scenario.schema(), **scenario.OPTIONS) as writer:
        writer.append(scenario.frame(0))
        with pytest.raises(RecordLocked):
            mrec.repair(path, out)
    assert mrec.repair(path, out).kept == 1
    mrec.TrajectoryWriter.open(path).close()  # the lock is gone

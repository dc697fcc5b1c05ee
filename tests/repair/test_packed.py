# SPDX-License-Identifier: BSD-3-Clause
"""`mrec.repair` of packed records: damaged entries, headers, and directories."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import mrec
from mrec.errors import CorruptData
from tests.golden import ROOT as GOLDEN
from tests.repair.check import Sample, frames, losses, repair
from tests.verify.edit import Shard

T = "trajectory"


def _packed(path: Path) -> tuple[Path, bytearray]:
    packed = Path(mrec.pack(path, remove=True))
    return packed, bytearray(packed.read_bytes())


def test_packed(sample: Sample) -> None:
    path, original = sample("regular")
    chunk = Shard(path / T / "atoms/y", 1).chunk(2)
    packed, data = _packed(path)
    assert losses(repair(packed, original)[0]) == []
    shutil.rmtree(packed.parent / "sound.mrec")
    data[data.index(chunk) + 5] ^= 1
    packed.write_bytes(data)
    assert losses(repair(packed, original)[0]) == ["lost atoms/y: frames 10-11"]


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (b"trajectory/atoms/y/zarr.json", b'"float64"', ["left out atoms/y: frames 0-11"]),  # still JSON
        (b"system/other/mass/zarr.json", b'"float64"', ["system/other/mass"]),
        (b"trajectory/zarr.json", b'"nstep"', ["trajectory"]),
    ],
)
def test_packed_document(old: bytes, new: bytes, lost: list[str], sample: Sample) -> None:
    """The CRC-32 of an entry tells what no checksum does in a directory."""
    path, original = sample("regular")
    packed, data = _packed(path)
    at = data.index(new, data.index(old))
    data[at + 2] ^= 1
    packed.write_bytes(data)
    assert losses(repair(packed, [] if lost == ["trajectory"] else original)[0]) == lost


@pytest.mark.parametrize("central", [False, True], ids=["local", "central"])
@pytest.mark.parametrize(
    ("field", "lost"),
    [(0, []), (8, []), (14, []), (22, []), (26, []), (30 + 17, ["lost atoms/y: frames 6-11", "unknown"])],
)
def test_packed_header(field: int, lost: list[str], central: bool, sample: Sample) -> None:
    """An entry whose one header is damaged is known by the other; one with two names is not known at all."""
    path, original = sample("regular")
    packed, data = _packed(path)
    name = b"trajectory/atoms/y/c/1"
    first = data.index(name)
    at = first - 30 + field
    if central:
        shift = {0: 0, 8: 10, 14: 16, 22: 24, 26: 28}.get(field, 46 + field - 30)
        at = data.index(name, first + 1) - 46 + shift
    data[at] ^= 4
    packed.write_bytes(data)
    report, _ = repair(packed, original)
    assert [loss for loss in losses(report) if loss.startswith("lost")] == lost[:1]
    assert any("the zip file is damaged" in note for note in report.notes)


def test_packed_without_its_directory(sample: Sample) -> None:
    path, original = sample("regular")
    packed, data = _packed(path)
    at = data.index(b"PK\1\2")
    packed.write_bytes(data[: at + 100])
    assert losses(repair(packed, original)[0]) == []


def test_packed_and_cut_off(sample: Sample) -> None:
    """The marker stands near the end of the file; what stands before it is kept."""
    path, _ = sample("regular")
    with mrec.open(path) as record:
        system = record.system
    packed, data = _packed(path)
    packed.write_bytes(data[: data.index(b"trajectory/meta/pe/c/0") + 900])
    report, _ = repair(packed, [])
    assert "trajectory" in report.beside
    assert any("entries" in key for key in report.beside)
    with mrec.open(packed.parent / "sound.mrec") as record:
        assert record.system == system


def test_entry_of_a_packed_foreign_record_is_not_fill(tmp_path: Path) -> None:
    """In a record of molrs a shard that is not there is fill; one whose name is damaged is lost."""
    path = tmp_path / "place/a.mrec"
    shutil.copytree(GOLDEN / "ragged.mrec", path)
    original = frames(path)
    packed, data = _packed(path)
    name = b"trajectory/atoms/z/c/0"
    data[data.index(name) + len(name) - 1] ^= 0x40
    packed.write_bytes(data)
    report, _ = repair(packed, original)
    assert [loss.part for loss in report.losses] == ["atoms/z"]


def test_no_zip_file(tmp_path: Path) -> None:
    (tmp_path / "a.mrec.zip").write_bytes(b"no zip file")
    with pytest.raises(CorruptData):
        mrec.repair(tmp_path / "a.mrec.zip", tmp_path / "sound.mrec")

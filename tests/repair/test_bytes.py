# SPDX-License-Identifier: BSD-3-Clause
"""`mrec.repair` of damaged chunks, indexes and files."""

from __future__ import annotations

from pathlib import Path

import pytest

import mrec
from tests.repair.check import LONG, Sample, check_frames, frames, losses, repair
from tests.verify.edit import Shard

T = "trajectory"


# ---- bytes -----------------------------------------------------------------------------------------------------------


def test_three_chunks(sample: Sample) -> None:
    path, original = sample("regular")
    for column, number, chunk in (("x", 0, 0), ("y", 0, 2), ("_validity/tag", 1, 0)):
        shard = Shard(path / T / "atoms" / column, number)
        shard.flip(shard.entry(chunk)[0] + 7)
    report, kept = repair(path, original)
    assert losses(report) == ["lost atoms/x: frames 0-1", "lost atoms/y: frames 4-5", "lost atoms/tag: frames 6-7"]
    assert [frame.step for frame in kept] == [20, 30, 80, 90, 100, 110]
    assert report.lost_frames == [(0, 1), (4, 7)]


@pytest.mark.parametrize(
    ("garbage", "lost"),
    [(b"\0" * 16, "2-3"), (b"\xff" * 16, "2-3"), (b"\x5a" * 16, "2-3"), (b"\xff" * 52, "0-5"), (b"", "")],
)
def test_torn_index(garbage: bytes, lost: str, sample: Sample) -> None:
    """Entries whose chunks verify are kept, whatever became of the others and of the checksum."""
    path, original = sample("regular")
    shard = Shard(path / T / "atoms/y")
    at = 0 if len(garbage) > 16 else 16
    shard.data[at : at + len(garbage)] = garbage
    shard.data[48] ^= 1
    shard.save()
    report, _ = repair(path, original)
    assert losses(report) == ([f"lost atoms/y: frames {lost}"] if lost else [])
    assert "index-checksum" in {finding.rule for finding in report.findings}


def test_torn_index_that_names_a_chunk_twice(sample: Sample) -> None:
    path, original = sample("regular")
    shard = Shard(path / T / "atoms/y")
    shard.data[16:32] = shard.data[32:48]
    shard.save()
    assert losses(repair(path, original)[0]) == ["lost atoms/y: frames 2-5"]


def test_truncated_shard(sample: Sample) -> None:
    path, original = sample("regular")
    shard = Shard(path / T / "atoms/y")
    shard.path.write_bytes(shard.data[: sum(shard.entry(1)) - 1])
    assert losses(repair(path, original)[0]) == ["lost atoms/y: frames 2-5"]


def test_file_that_cannot_be_read(sample: Sample) -> None:
    """/proc/self/mem gives EIO, as a bad disk does."""
    path, original = sample("regular")
    if not Path("/proc/self/mem").exists():
        pytest.skip("needs /proc")
    for key in ("atoms/y/zarr.json", "../system/other/mass/c/0", "../blob"):
        (path / T / key).unlink(missing_ok=True)
        (path / T / key).symlink_to("/proc/self/mem")
    report = mrec.repair(path, path.parent / "sound.mrec")
    assert losses(report) == ["left out atoms/y: frames 0-11", "blob", "system/other/mass"]
    check_frames(report, original, frames(path.parent / "sound.mrec"))
    assert mrec.verify(path.parent / "sound.mrec").ok


# ---- what there is one of a frame ------------------------------------------------------------------------------------

_SECOND = "1024-2047"


@pytest.mark.parametrize(
    ("array", "lost"),
    [
        ("step", f"lost step: frames {_SECOND}"),
        ("time", f"lost time: frames {_SECOND}"),
        ("meta/pe", f"lost meta/pe: frames {_SECOND}"),
        ("box/vectors", "lost box: frames 2048-2599"),  # its updates 1024 to 1299
        ("box/step_index", "lost box: frames 2047-2599"),
        ("every/step_index", ""),  # each frame has one: no other way is left
        ("every/offset", "lost every: frames 1023-2047"),
        ("seldom/step_index", "lost seldom: frames 2048-2599"),
        ("seldom/offset", "lost seldom: frames 2047-2599"),
    ],
)
def test_second_chunk(array: str, lost: str, sample: Sample) -> None:
    path, original = sample("long")
    assert len(original) == LONG
    shard = Shard(path / T / array)
    shard.flip(shard.entry(1)[0] + 3)
    assert losses(repair(path, original)[0]) == ([lost] if lost else [])


def test_block_that_was_given_once(sample: Sample) -> None:
    """What is carried forward is lost at every frame that sees it, and nothing else is."""
    path, original = sample("long")
    shard = Shard(path / T / "held/c")
    shard.flip(shard.entry(0)[0] + 3)
    report, kept = repair(path, original)
    assert losses(report) == [f"left out held/c: frames 3-{LONG - 1}"]
    assert len(kept) == LONG

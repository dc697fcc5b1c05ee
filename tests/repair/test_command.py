# SPDX-License-Identifier: BSD-3-Clause
"""`mrec repair` as it is called."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

import mrec
from tests.cli.command import checked
from tests.verify.faults import FAULTS
from tests.verify.samples import regular

run = partial(checked, "repair")


@pytest.fixture
def record(tmp_path: Path) -> Path:
    regular(tmp_path / "a.mrec")
    return tmp_path / "a.mrec"


def damage(record: Path) -> None:
    for fault in FAULTS:
        if fault.name in ("a_bit_of_a_chunk", "a_bit_of_a_section"):
            fault.seed(record)


def test_nothing_lost(record: Path, tmp_path: Path) -> None:
    done = run(record, tmp_path / "b.mrec", code=0)
    assert (done.stdout, done.stderr) == (f"{tmp_path}/b.mrec: 12 of 12 frames\n", "")


def test_something_lost(record: Path, tmp_path: Path) -> None:
    damage(record)
    assert run(record, tmp_path / "b.mrec", code=1).stdout.splitlines() == [
        "lost atoms/y: frames 10-11: shard c/1 chunk 2: the checksum of its 132 bytes does not match",
        "lost system/other/mass: the checksum of its 36 bytes does not match",
        "without atoms/y (--drop atoms/y) 12 frames would be kept",
        f"{tmp_path}/b.mrec: 10 of 12 frames",
    ]
    done = run(record, tmp_path / "c.mrec", "--drop", "atoms/y,bonds", "--json", code=1)
    found = json.loads(done.stdout)
    assert (found["ok"], found["kept"], found["frames"], found["lost_frames"]) == (False, 12, 12, [])
    assert found["losses"][0] | {"why": ""} == {
        "part": "atoms/y", "frames": [[10, 11]], "why": "", "left_out": True, "would_keep": 12,
    }  # fmt: skip
    assert list(found["beside"]) == ["system/other/mass"]
    assert found["findings"][0]["rule"] == "checksum"
    assert run(record, tmp_path / "d.mrec", "--keep-frames", code=1).stdout.endswith("d.mrec: 12 of 12 frames\n")
    assert [mrec.verify(tmp_path / f"{name}.mrec").findings for name in "bcd"] == [[], [], []]


def test_nothing_made(record: Path, tmp_path: Path) -> None:
    for words in ((record, record), (tmp_path / "none.mrec", tmp_path / "b.mrec"), (record, tmp_path / "b.zarr")):
        done = run(*words, code=2)
        assert (done.stdout, done.stderr.count("\n")) == ("", 1)
        assert done.stderr.startswith("mrec: error: ")
    assert run(record, tmp_path / "b.mrec", "--drop", "none", code=2).stderr.startswith("mrec: error: there is no part")
    assert run(record, code=2).stderr.startswith("usage: mrec repair ")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.mrec"]

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec info` and `mrec verify` on streams."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import mrec
from mrec.cli import main
from tests.stream.crew import TWO_BY_TWO, Crew, schema


@pytest.fixture
def path(tmp_path: Path) -> Path:
    crew = Crew(tmp_path / "s", schema(), TWO_BY_TWO)
    crew.write(0, 1, 2, 3)
    crew.write_static("mask")
    crew.write_static("weight")
    crew.owner.write_blob(2, "k", b"blob")
    crew.commit()
    crew.write(4, 5)
    crew.flush()
    return tmp_path / "s"


def test_info(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert "4 records committed, the last at 30" in said and "4 writers, epoch 0, commit 1" in said
    assert "t2m float32 (time, lat, lon)" in said
    assert main(["info", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["dims"] == {"time": 4, "lat": 13, "lon": 9, "lev": 2}


def test_verify_finds_nothing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = mrec.verify(path)
    assert report.ok and report.frames == 4, report.findings
    assert main(["verify", str(path)]) == 0


def flip(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 3] ^= 1
    path.write_bytes(bytes(raw))


def edit(path: Path, name: str, change: Callable[[dict], object]) -> None:
    doc = json.loads((path / name).read_text())
    change(doc)
    (path / name).write_text(json.dumps(doc))


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "manifest": (lambda p: edit(p, "output_manifest.json", lambda d: d.update(n_records=9)), "manifest"),
    "a manifest that ends early": (lambda p: os.truncate(p / "output_manifest.json", 700), "manifest"),
    "a region": (lambda p: edit(p, "output_manifest.json", lambda d: d["writers"].pop()), "stream-coverage"),
    "an object is gone": (lambda p: (p / "t2m/c/0/0/0").unlink(), "stream-object"),
    "an object of the open shard is gone": (lambda p: (p / "t2m/c/1/0/0").unlink(), "stream-read"),
    "an object is damaged": (lambda p: flip(p / "ps/c/0/0/1/1"), "stream-object"),
    "a static is damaged": (lambda p: flip(p / "mask/c/0/0"), "stream-object"),
    "a blob": (lambda p: flip(p / "blobs/2/0/k"), "stream-object"),
    "a shape": (lambda p: edit(p, "ps/zarr.json", lambda d: d.update(shape=[2, 2, 13, 9])), "stream-shape"),
    "a type": (
        lambda p: edit(p, "ps/zarr.json", lambda d: d.update(data_type="int64", fill_value=0)),
        "stream-document",
    ),
    "an array is gone": (lambda p: shutil.rmtree(p / "total"), "stream-document"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_finds_what_is_wrong(path: Path, damage: str) -> None:
    change, rule = DAMAGES[damage]
    change(path)
    report = mrec.verify(path)
    assert rule in {f.rule for f in report.findings}, report.findings
    assert main(["verify", "--quiet", str(path)]) == 1

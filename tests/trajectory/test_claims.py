# SPDX-License-Identifier: BSD-3-Clause
"""Documents that claim more than any memory holds: refused where the files contradict them, read where they do not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import CorruptData
from tests.flips import stores
from tests.verify import edit, samples

MANY = 2**40


def test_updates_that_no_file_holds(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    stores.ragged(path)
    edit.attributes(path / "trajectory", nstep=MANY)
    edit.shape(path / "trajectory/atoms/step_index", MANY)
    with mrec.open(path) as record, pytest.raises(CorruptData, match="atoms/step_index: .* do not ascend"):
        len(record.trajectory)
    assert any(finding.rule == "backed" for finding in mrec.verify(path).findings)


def test_frames_that_need_no_file(tmp_path: Path) -> None:
    """One update, and progressions: each frame is computed, and so is the first and the last of very many."""
    path = tmp_path / "a.mrec"
    schema = mrec.Schema().block("atoms", rows=2).column("x", "f64").block("more", rows=2).column("y", "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        writer.append(5, time=-0.0, atoms={"x": [1.0, 2.0]}, more={"y": [3.0, 4.0]})
        for i in range(1, 3):
            writer.append(5 + 3 * i, time=0.5 * i)
    edit.attributes(path / "trajectory", nstep=MANY)
    edit.schema(path, lambda schema: schema["blocks"]["more"].update(aligned_with="atoms"))
    with mrec.open(path) as record:
        trajectory = record.trajectory
        assert len(trajectory) == MANY
        for i, time in ((0, -0.0), (1, 0.5), (MANY - 1, 0.5 * (MANY - 1))):
            frame = trajectory[i]
            assert (frame.step, frame.time, np.signbit(frame.time)) == (5 + 3 * i, time, np.signbit(time))
            assert frame["atoms"]["x"].tolist() == [1.0, 2.0] and frame["more"]["y"].tolist() == [3.0, 4.0]
    assert mrec.verify(path).frames == MANY


def test_aligned_blocks_that_part(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    schema = mrec.Schema().block("atoms", rows=2).column("x", "f64").block("more", rows=2).column("y", "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for n in (2, 2, 3):
            writer.append(writer.nframes, atoms={"x": np.arange(n) + 1.0 * n}, more={"y": np.arange(2) + 1.0 * n})
    edit.schema(path, lambda schema: schema["blocks"]["more"].update(aligned_with="atoms"))
    with mrec.open(path) as record, pytest.raises(CorruptData, match="more: frame 2 has not the rows of 'atoms'"):
        len(record.trajectory)
    assert [(f.rule, f.frame) for f in mrec.verify(path).findings if f.rule == "aligned"] == [("aligned", 2)]


@pytest.mark.parametrize("name", ["../../x/zarr.json", "/x/zarr.json", "x/zarr.json", "trajectory//zarr.json", "x"])
@pytest.mark.parametrize("where", ["documents", "tails"])
def test_a_durable_file_that_names_what_is_outside(tmp_path: Path, where: str, name: str) -> None:
    """Packing and recovery write what it names: nothing but what is below `trajectory/`."""
    path = tmp_path / "a.mrec"
    samples.crashed(path)
    file = path / "trajectory/.durable"
    durable = json.loads(file.read_text())
    durable[where][name] = "{}" if where == "documents" else [0, 0, 0, 4, 0]
    file.write_text(json.dumps(durable))
    with mrec.open(path) as record, pytest.raises(CorruptData, match="of the trajectory"):
        len(record.trajectory)
    with pytest.raises(CorruptData, match="of the trajectory"):
        mrec.pack(path)
    with pytest.raises(CorruptData, match="of the trajectory"):
        mrec.TrajectoryWriter.open(path)
    assert "durable" in {finding.rule for finding in mrec.verify(path).findings}


def test_a_durable_file_whose_marker_is_an_array(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    samples.crashed(path)
    file = path / "trajectory/.durable"
    durable = json.loads(file.read_text())
    durable["documents"]["trajectory/zarr.json"] = durable["documents"]["trajectory/step/zarr.json"]
    file.write_text(json.dumps(durable))
    assert "durable" in {finding.rule for finding in mrec.verify(path).findings}


@pytest.mark.parametrize("count", ["zstd", True, 4.0, -1, [4], None])
def test_a_durable_file_whose_marker_counts_no_frames(tmp_path: Path, count: object) -> None:
    """Found by fuzzing. A number of another type that compares equal is none either."""
    path = tmp_path / "a.mrec"
    samples.crashed(path)
    file = path / "trajectory/.durable"
    durable = json.loads(file.read_text())
    marker = json.loads(durable["documents"]["trajectory/zarr.json"])
    if isinstance(count, (float, bool)):
        durable["nstep"] = int(count)
    marker["attributes"]["nstep"] = count
    durable["documents"]["trajectory/zarr.json"] = json.dumps(marker)
    durable["boot_id"] = "another"  # so that it stands, not the marker beside it
    (path / "trajectory/zarr.json").write_text("{")
    file.write_text(json.dumps(durable))
    with mrec.open(path) as record, pytest.raises(CorruptData, match="nstep is"):
        len(record.trajectory)
    report = mrec.verify(path)
    assert {f.rule for f in report.findings if "nstep" in f.message} == {"durable"}

# SPDX-License-Identifier: BSD-3-Clause
"""Appending to a record that is there: closed, left by a killed process, or written by another program."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mrec
from tests.trajectory.growing import KINDS, OPTIONS, append, ragged, regular, schema, turning
from tests.trajectory.ondisk import (
    array,
    arrays,
    assert_same_frames,
    attributes,
    codecs,
    document,
    extents,
    frames,
    names,
    tree,
    write,
)

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parents[1] / "data" / "golden"


def straight(path, kind, n):
    with write(path, schema(), **OPTIONS) as w:
        for i in range(n):
            append(w, KINDS[kind](i))


def same_record(one, other):
    """Frames, arrays and documents; the places of chunks may differ."""
    assert_same_frames(frames(one), frames(other))
    found, want = arrays(one), arrays(other)
    assert found.keys() == want.keys()
    for name in want:
        assert found[name].tolist() == want[name].tolist(), name
    for file in (other / "trajectory").rglob("zarr.json"):
        node = str(file.parent.relative_to(other / "trajectory"))
        assert document(one, node) == document(other, node), node


# ---- closed and left --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_reopened_before_every_frame(tmp_path, kind):
    straight(tmp_path / "want", kind, 13)
    write(tmp_path / "a", schema(), **OPTIONS).close()
    for i in range(13):
        with mrec.TrajectoryWriter.open(tmp_path / "a", durable=False) as w:
            assert (w.nframes, w.published, w.durable) == (i, i, i)
            assert w.last_step == (KINDS[kind](i - 1)["step"] if i else None)
            append(w, KINDS[kind](i))
    same_record(tmp_path / "a", tmp_path / "want")


CHILD = """
import os, signal, sys
import mrec
from tests.trajectory import growing as t
path, kind, start, how, ending = sys.argv[1:]
w = mrec.TrajectoryWriter.open(path) if start != "0" else mrec.TrajectoryWriter(path, t.schema(), **t.OPTIONS)
assert w.nframes == int(start), w.nframes
for i in range(int(start), int(start) + 3):
    t.append(w, t.KINDS[kind](i))
w.flush(durable=how == "durable")
t.append(w, t.KINDS[kind](int(start) + 3))  # goes with the process
if ending == "SIGKILL":
    os.kill(os.getpid(), signal.SIGKILL)
os._exit(7)
"""


@pytest.mark.parametrize(("kind", "ending"), [("turning", "SIGKILL"), ("ragged", "os._exit")])
def test_killed_and_reopened_many_times(tmp_path, kind, ending):
    for start in range(0, 9, 3):
        how = "durable" if start % 2 else "not"
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(tmp_path / "a"), kind, str(start), how, ending], cwd=ROOT
        )
        assert done.returncode == (-signal.SIGKILL if ending == "SIGKILL" else 7)
        assert len(frames(tmp_path / "a")) == start + 3
        assert (tmp_path / "a/trajectory/.durable").exists()
    with mrec.TrajectoryWriter.open(tmp_path / "a", durable=False) as w:
        for i in range(9, 13):
            append(w, KINDS[kind](i))
    straight(tmp_path / "want", kind, 13)
    same_record(tmp_path / "a", tmp_path / "want")


def test_carried_over_the_reopening(tmp_path):
    """What the last frame held is what the next one is compared with."""
    first = regular(1)
    with write(tmp_path / "a", schema(), **OPTIONS) as w:
        append(w, first)
    with mrec.TrajectoryWriter.open(tmp_path / "a", durable=False) as w:
        append(w, first | {"step": 11, "time": 1.5})
        other = regular(1)["blocks"]["b"]
        other["q"] = np.where(np.arange(3) == 0, -other["q"], other["q"])
        append(w, first | {"step": 12, "time": 2.5, "blocks": {"b": other}})
    assert array(tmp_path / "a", "b/step_index").tolist() == [0, 2]
    assert attributes(tmp_path / "a", "box") == {"vectors": np.diag([5.0, 6.0, 7.0]).tolist()}


def test_what_was_chosen_at_creation_stays(tmp_path):
    straight(tmp_path / "a", "regular", 3)
    with mrec.TrajectoryWriter.open(tmp_path / "a") as w:
        assert w.schema == schema()
        append(w, ragged(5) | {"time": 1.5})
    assert extents(tmp_path / "a", "b/q") == (12, 6)
    assert codecs(tmp_path / "a", "b/q") == ["bytes", "numcodecs.shuffle:8", "zstd:3", "crc32c"]
    assert extents(tmp_path / "a", "b/_validity/n") == (12, 6)


def test_units_meta_and_what_is_not_ours_stay(tmp_path):
    path = tmp_path / "a"
    write(path, schema(), units={"time": "ps"}, meta={"k": [1]}).close()
    marker = document(path)
    marker["attributes"]["theirs"] = {"a": 1}
    (path / "trajectory/zarr.json").write_text(json.dumps(marker))
    group = document(path, "b")
    group["attributes"] = group.get("attributes", {}) | {"note": "é"}
    (path / "trajectory/b/zarr.json").write_text(json.dumps(group))
    (path / "trajectory/theirs").mkdir()
    (path / "trajectory/theirs/zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')
    (path / "extra.txt").write_text("kept")
    with mrec.TrajectoryWriter.open(path, durable=False) as w:
        for i in range(4):
            append(w, ragged(i))
    assert attributes(path)["theirs"] == {"a": 1}
    assert attributes(path, "b") == {"note": "é"}
    assert "theirs" in names(path)
    assert (path / "extra.txt").read_text() == "kept"
    with mrec.open(path) as rec:
        assert rec.units == {"time": "ps"}
        assert rec.meta["k"] == [1]


def test_opening_and_closing_changes_nothing(tmp_path):
    straight(tmp_path / "a", "turning", 9)
    before = tree(tmp_path / "a")
    mrec.TrajectoryWriter.open(tmp_path / "a").close()
    assert tree(tmp_path / "a").keys() == before.keys()
    straight(tmp_path / "b", "turning", 9)
    same_record(tmp_path / "a", tmp_path / "b")


# ---- written by another program ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fixed_raw", "fixed_p3", "large_frames", "ragged"])
def test_a_foreign_record_goes_on(tmp_path, name):
    """molrs wrote it. Each frame is appended again with later steps, in turns of reopening; then all are compared."""
    path = tmp_path / "a"
    shutil.copytree(GOLDEN / f"{name}.mrec", path)
    old = frames(path)
    last = old[-1].step
    for number, frame in enumerate(old):
        if number % 4 == 0:
            w = mrec.TrajectoryWriter.open(path, durable=False)
        w.append(last + 1 + frame.step - old[0].step, frame, time=old[-1].time + 1 + frame.time)
        if number % 4 == 3 or number == len(old) - 1:
            w.close()
    new = frames(path)
    assert_same_frames(new[: len(old)], old)
    for frame, again in zip(old, new[len(old) :], strict=True):
        again.step, again.time = frame.step, frame.time
        assert again == frame
    stored = arrays(path)
    assert len(stored["meta/pe"]) == 2 * len(old)
    assert not [key for key in tree(path) if key.endswith(".tmp") or ".durable" in key]


def test_a_foreign_record_without_masks_reads_as_valid_and_gets_them(tmp_path):
    path = tmp_path / "a"
    declared = mrec.Schema().block("b", rows=2).column("n", "i32", nullable=True)
    with write(path, declared, frames_per_chunk=1000) as w:
        for i in range(700):
            w.append(i, b={"n": np.array([i, i], "i4")})
    shutil.rmtree(path / "trajectory/b/_validity")
    with mrec.TrajectoryWriter.open(path, durable=False) as w:
        w.append(700, b={"n": np.array([699, 699], "i4")})  # as before: no change
        w.append(701, b={"n": np.ma.array([5, 6], mask=[0, 1], dtype="i4")})
    assert array(path, "b/_validity/n").tolist() == [True] * 1401 + [False]
    assert array(path, "b/n").tolist()[-4:] == [699, 699, 5, 0]


def test_a_fresh_record_of_another_program_may_hold_only_the_declaration(tmp_path):
    path = tmp_path / "a"
    write(path, schema(), **OPTIONS).close()
    for child in (path / "trajectory").iterdir():
        if child.is_dir():
            shutil.rmtree(child)
    with mrec.TrajectoryWriter.open(path, durable=False) as w:
        for i in range(8):
            append(w, turning(i))
    straight(tmp_path / "want", "turning", 8)
    assert_same_frames(frames(path), frames(tmp_path / "want"))

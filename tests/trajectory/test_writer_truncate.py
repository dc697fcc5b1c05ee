# SPDX-License-Identifier: BSD-3-Clause
"""Cutting a record back, by step or by a position, and going on from there."""

from __future__ import annotations

import pytest

import mrec
from mrec.errors import InvalidValue, RecordLocked
from tests.trajectory.growing import KINDS, OPTIONS, append, schema
from tests.trajectory.ondisk import arrays, assert_same_frames, attributes, document, frames, tree, write

N = 13


def record(path, kind, n, start=0, **options):
    with write(path, schema(), **OPTIONS, **options) as w:
        for i in range(start, n):
            append(w, KINDS[kind](i))


@pytest.mark.parametrize("keep", [0, 1, 2, 3, 5, 6, 7, 8, 12, 13])
@pytest.mark.parametrize("kind", KINDS)
def test_cut_and_written_again(tmp_path, kind, keep):
    """The same frames again give a record like one written straight."""
    path = tmp_path / "a"
    record(path, kind, N)
    steps = [KINDS[kind](i)["step"] for i in range(N)]
    after = steps[keep - 1] if keep else steps[0] - 1
    record(tmp_path / "kept", kind, keep)
    with mrec.TrajectoryWriter.open(path, truncate_after_step=after, durable=False) as w:
        assert w.nframes == w.published == keep
        assert_same_frames(frames(path), frames(tmp_path / "kept"))
        for i in range(keep, N):
            append(w, KINDS[kind](i))
    record(tmp_path / "want", kind, N)
    assert_same_frames(frames(path), frames(tmp_path / "want"))
    found, want = arrays(path), arrays(tmp_path / "want")
    for name in want:
        assert found[name].tolist() == want[name].tolist(), name
    assert found.keys() == want.keys()


@pytest.mark.parametrize("kind", ["turning", "ragged"])
def test_to_nothing_every_form_starts_afresh(tmp_path, kind):
    """Other frames, of another kind, with no times."""
    path = tmp_path / "a"
    record(path, kind, N)
    for target in (path, tmp_path / "want"):
        if target == path:
            w = mrec.TrajectoryWriter.open(path, truncate_after_step=-1, durable=False)
        else:
            w = write(target, schema(), **OPTIONS)
        for i in range(4):
            append(w, KINDS["regular"](i) | {"time": None})
        w.close()
    assert tree(path).keys() == tree(tmp_path / "want").keys()
    assert_same_frames(frames(path), frames(tmp_path / "want"))
    for file in (path / "trajectory").rglob("zarr.json"):
        node = str(file.parent.relative_to(path / "trajectory"))
        assert document(path, node) == document(tmp_path / "want", node), node
    assert attributes(path, "b") == {"uniform_rows": 3, "dense_updates": True}


def test_nothing_of_the_cut_frames_stays(tmp_path):
    """Later shards go, the last one is cut, and no index entry names what is gone."""
    record(tmp_path / "a", "regular", 40)
    record(tmp_path / "b", "regular", 3)
    mrec.TrajectoryWriter.open(tmp_path / "a", truncate_after_step=20).close()
    a, b = tree(tmp_path / "a"), tree(tmp_path / "b")
    assert a.keys() == b.keys()
    slots = 64 * 1024  # of the dense arrays
    assert sum(map(len, a.values())) <= sum(map(len, b.values())) + slots


def test_other_frames_after_the_cut(tmp_path):
    path = tmp_path / "a"
    record(path, "regular", 9)
    with mrec.TrajectoryWriter.open(path, truncate_after_step=35, durable=False) as w:
        assert w.last_step == 30
        for i in range(4, 9):
            append(w, KINDS["ragged"](i) | {"step": 30 + i})
    with write(tmp_path / "want", schema(), **OPTIONS) as w:
        for i in range(9):
            append(w, KINDS["regular"](i) if i < 4 else KINDS["ragged"](i) | {"step": 30 + i})
    assert_same_frames(frames(path), frames(tmp_path / "want"))


@pytest.mark.parametrize("after", [120, 10**6, 2**70])
def test_past_the_end_nothing_is_cut(tmp_path, after):
    record(tmp_path / "a", "regular", N)
    before = frames(tmp_path / "a")
    with mrec.TrajectoryWriter.open(tmp_path / "a", truncate_after_step=after) as w:
        assert w.nframes == N
    assert_same_frames(frames(tmp_path / "a"), before)


# ---- positions ---------------------------------------------------------------------------------------------------


def test_a_position_leads_back(tmp_path):
    path = tmp_path / "a"
    positions = []
    with write(path, schema(), **OPTIONS) as w:
        for i in range(N):
            positions.append(w.position)
            append(w, KINDS["turning"](i))
        positions.append(w.position)
    assert len(set(positions)) == N + 1
    assert all(isinstance(p, str) and len(p) < 64 for p in positions)
    for keep in (13, 9, 4, 1, 0):
        with mrec.TrajectoryWriter.open(path, at=positions[keep], durable=False) as w:
            assert w.nframes == keep
            assert w.position == positions[keep]
        assert len(frames(path)) == keep


def test_a_position_in_a_checkpoint_after_a_crash(tmp_path):
    """The engine goes back to its checkpoint, and appends the same steps again."""
    path = tmp_path / "a"
    w = write(path, schema(), **OPTIONS)
    for i in range(5):
        append(w, KINDS["ragged"](i))
    w.flush()
    checkpoint = w.position
    for i in range(5, 9):
        append(w, KINDS["ragged"](i))
    w.flush(durable=False)
    with pytest.raises(RecordLocked):
        mrec.TrajectoryWriter.open(path, at=checkpoint)
    with pytest.warns(ResourceWarning, match="never closed$"):
        del w
    with mrec.TrajectoryWriter.open(path, at=checkpoint, durable=False) as w:
        for i in range(5, N):
            append(w, KINDS["ragged"](i))
    record(tmp_path / "want", "ragged", N)
    assert_same_frames(frames(path), frames(tmp_path / "want"))


BAD = {
    "a position past the end": ({"at": "14@130"}, "14 frames, the record holds 13: the last 1 were not flushed"),
    "of another record": ({"at": "4@31"}, "frame 3 has the step 31, but it has 30.*another record"),
    "no position": ({"at": "4"}, "takes a TrajectoryWriter.position, not '4'"),
    "a number": ({"at": 4}, "takes a TrajectoryWriter.position, not 4"),
    "a broken one": ({"at": "x@3"}, "takes a TrajectoryWriter.position"),
    "a negative one": ({"at": "-1@3"}, "takes a TrajectoryWriter.position"),
    "nothing with a step": ({"at": "0@3"}, "takes a TrajectoryWriter.position"),
    "both": ({"at": "4@30", "truncate_after_step": 30}, "not both"),
    "no step": ({"truncate_after_step": 1.5}, "whole number, not 1.5"),
    "a bool": ({"truncate_after_step": True}, "whole number"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_position_that_does_not_fit_changes_nothing(tmp_path, case):
    how, says = BAD[case]
    record(tmp_path / "a", "regular", N)
    before = tree(tmp_path / "a")
    with pytest.raises(InvalidValue, match=says) as caught:
        mrec.TrajectoryWriter.open(tmp_path / "a", **how)
    assert tree(tmp_path / "a") == before
    mrec.TrajectoryWriter.open(tmp_path / "a").close()  # the lock is free, though the exception lives
    del caught

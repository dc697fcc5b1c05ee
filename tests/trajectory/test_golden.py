"""Trajectories that another program wrote read with exactly the values that went in."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mrec
from tests import golden


@pytest.fixture(params=golden.TRAJECTORIES)
def pair(request):
    return mrec.open(golden.path(request.param)).trajectory, golden.load(request.param)


def check_frame(found, entry, schema):
    assert found.blocks.keys() == entry["blocks"].keys()
    for block, columns in entry["blocks"].items():
        assert set(found[block].columns) == columns.keys()
        for name, values in columns.items():
            golden.check_column(found[block][name], values)
    golden.check_box(found.box, entry.get("box"))
    assert found.values.keys() == entry["meta"].keys()
    for name, given in entry["meta"].items():
        value = golden.value(schema.values[name].tag.name, given)
        assert type(found.values[name]) is type(value)
        assert (
            np.array_equal(found.values[name], value) if isinstance(value, np.ndarray) else found.values[name] == value
        )


def test_steps_and_times(pair):
    trajectory, values = pair
    assert trajectory.steps.tolist() == [int(s) for s in values["steps"]]
    assert trajectory.times.tobytes() == np.array([float.fromhex(t) for t in values["times"]]).tobytes()


def test_every_frame_by_iteration(pair):
    trajectory, values = pair
    frames = list(trajectory)
    assert len(frames) == len(trajectory) == len(values["frames"])
    for i, (found, entry) in enumerate(zip(frames, values["frames"], strict=True)):
        assert (found.index, found.step, found.time) == (i, trajectory.steps[i], trajectory.times[i])
        check_frame(found, entry, trajectory.schema)


def test_every_frame_by_index_in_any_order(pair):
    trajectory, values = pair
    for i in np.random.default_rng(1).permutation(len(trajectory)):
        check_frame(trajectory[i], values["frames"][i], trajectory.schema)
        check_frame(trajectory[i - len(trajectory)], values["frames"][i], trajectory.schema)


def test_no_two_frames_share_memory(pair):
    frames = list(pair[0])
    for a, b in itertools.pairwise(frames):
        for block in a.blocks.keys() & b.blocks.keys():
            for column in a[block]:
                assert not np.shares_memory(np.asarray(a[block][column]), np.asarray(b[block][column]))


def test_columns_over_frames(pair):
    trajectory, values = pair
    for block in trajectory.blocks:
        for name, column in trajectory.schema.blocks[block].columns.items():
            found, offsets = trajectory.read_ragged(block, name)
            entries = [frame["blocks"].get(block, {}).get(name) for frame in values["frames"]]
            for i, entry in enumerate(entries):
                rows = found[offsets[i] : offsets[i + 1]]
                if entry is None:
                    assert len(rows) == 0
                else:
                    golden.check_column(rows, entry)
            chosen = [i for i, e in enumerate(entries) if e and e["shape"][0] == entries[-1]["shape"][0]]
            many = trajectory.read(block, name, frames=chosen[::-1])
            assert many.shape == (len(chosen), entries[-1]["shape"][0], *column.trailing)
            for rows, i in zip(many, chosen[::-1], strict=True):
                golden.check_column(rows, entries[i])

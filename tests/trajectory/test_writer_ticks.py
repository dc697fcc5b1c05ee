# SPDX-License-Identifier: BSD-3-Clause
"""Steps and times: a progression while they are one exactly, an array with the whole history afterwards."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import arrays, assert_bits, attributes, frames, write

LOW, HIGH = -(2**63), 2**63 - 1


def record(path, steps, times=None, flush=False):
    with write(path, mrec.Schema()) as w:
        for i, step in enumerate(steps):
            w.append(step, time=None if times is None else times[i])
            if flush:
                w.flush(durable=bool(i % 2))


@pytest.fixture(params=[False, True], ids=["at the end", "each frame"])
def flush(request):
    return request.param


# ---- steps -------------------------------------------------------------------------------------------------------

PROGRESSIONS = {
    "one frame": [7],
    "two": [3, 5],
    "by one": [0, 1, 2, 3],
    "negative": [-30, -20, -10, 0],
    "beyond 2^53": [2**53 + 1, 2**53 + 4, 2**53 + 7],
    "large strides": [-(2**62), 0, 2**62],
    "the whole range": [LOW, LOW + 2**62, 0, 2**62],
    "the widest stride": [-1, HIGH - 1],
    "up to the end": [HIGH - 2, HIGH - 1, HIGH],
}


@pytest.mark.parametrize("case", PROGRESSIONS)
def test_step_progressions(tmp_path, case, flush):
    path, steps = tmp_path / "a.mrec", PROGRESSIONS[case]
    record(path, steps, flush=flush)
    text = (path / "trajectory/zarr.json").read_text()
    found = json.loads(text, parse_float=lambda t: pytest.fail(f"{t} is no integer"))["attributes"]["step_progression"]
    assert found == {"start": steps[0]} | ({"stride": steps[1] - steps[0]} if len(steps) > 1 else {})
    assert "step" not in arrays(path)
    with mrec.open(path) as rec:
        assert rec.trajectory.steps.tolist() == steps


ENDS = {
    "at the third": [0, 10, 11],
    "late": [*range(0, 100, 10), 91],
    "a difference beyond 2^63": [LOW, HIGH],
    "one just beyond": [-1, HIGH],
    "after a progression": [LOW, LOW + 1, HIGH],
    "back to the stride": [0, 5, 6, 11, 16],
}


@pytest.mark.parametrize("case", ENDS)
def test_the_first_step_outside_makes_the_array(tmp_path, case, flush):
    path, steps = tmp_path / "a.mrec", ENDS[case]
    record(path, steps, flush=flush)
    assert "step_progression" not in attributes(path)
    assert_bits(arrays(path)["step"], np.array(steps, "i8"))
    with mrec.open(path) as rec:
        assert rec.trajectory.steps.tolist() == steps


def test_steps_count_on_by_themselves(tmp_path):
    with write(tmp_path / "a.mrec", mrec.Schema()) as w:
        for step in (None, None, 10, None):
            w.append(step)
    assert arrays(tmp_path / "a.mrec")["step"].tolist() == [0, 1, 10, 11]


@pytest.mark.parametrize("step", [np.int32(5), np.uint64(5), np.array(5)], ids=repr)
def test_what_a_step_may_be(tmp_path, step):
    record(tmp_path / "a.mrec", [step])
    assert attributes(tmp_path / "a.mrec")["step_progression"] == {"start": 5}


# ---- times -------------------------------------------------------------------------------------------------------


def steps_of(start, stride, n):
    return [start, *(start + float(i) * stride for i in range(1, n))]


TIMES = {
    "one frame": [0.5],
    "plain": [0.0, 0.5, 1.0, 1.5],
    "binary fractions": steps_of(0.0, 0.1, 60),
    "with a start": steps_of(100.3, 0.002, 60),
    "minus zero": [-0.0, 1.0, 2.0],
    "all the same": [5.0, 5.0, 5.0],
    "down": [3.0, 2.0, 1.0, 0.0],
    "tiny": [0.0, 5e-324, 1e-323],
    "huge": [1e308, 1.1e308],
    "exact nanoseconds": steps_of(1e9, 1e-7, 40),
}


def is_progression(times):
    """The rule: one multiply, one add, each rounded, equal bit for bit."""
    if not all(map(math.isfinite, times)):
        return False
    stride = times[1] - times[0] if len(times) > 1 else 0.0
    bits = [np.float64(t).tobytes() for t in times]
    return math.isfinite(stride) and all(
        bits[i] == np.float64(times[0] + float(i) * stride).tobytes() for i in range(1, len(times))
    )


@pytest.mark.parametrize("case", TIMES)
def test_time_progressions(tmp_path, case, flush):
    path, times = tmp_path / "a.mrec", TIMES[case]
    record(path, range(len(times)), times, flush)
    found = attributes(path).get("time_progression")
    if is_progression(times):
        assert found == {"start": times[0]} | ({"stride": times[1] - times[0]} if len(times) > 1 else {})
        assert math.copysign(1, found["start"]) == math.copysign(1, times[0])
        assert "time" not in arrays(path)
    else:  # start + (time[1] - start) is not always time[1]
        assert found is None
        assert_bits(arrays(path)["time"], np.array(times))
    with mrec.open(path) as rec:
        assert_bits(rec.trajectory.times, np.array(times))


def test_most_of_these_are_progressions():
    assert sum(map(is_progression, TIMES.values())) >= len(TIMES) - 2


TIME_ENDS = {
    "accumulated": list(np.cumsum([0.1] * 30)),
    "one ulp": [0.0, 0.1, 0.2, np.nextafter(0.1 * 3, 1.0)],
    "minus zero inside": [-1.0, -0.0, 1.0],
    "not a number": [0.0, 1.0, math.nan, 3.0],
    "not a number at first": [math.nan, math.nan],
    "infinite": [0.0, math.inf],
    "infinite at first": [-math.inf, 0.0],
    "a stride beyond the doubles": [-1.7e308, 1.7e308],
    "jump back": [0.0, 1.0, 2.0, 0.0, 1.0],
    "nanoseconds fused": [0.3, 0.3 + 0.1, 0.3 + 0.1 + 0.1, 0.3 + 0.1 + 0.1 + 0.1],
}


@pytest.mark.parametrize("case", TIME_ENDS)
def test_the_first_time_outside_makes_the_array(tmp_path, case, flush):
    path, times = tmp_path / "a.mrec", TIME_ENDS[case]
    assert not is_progression(times)
    record(path, range(len(times)), times, flush)
    assert "time_progression" not in attributes(path)
    assert_bits(arrays(path)["time"], np.array(times, "f8"))
    assert_bits(np.array([f.time for f in frames(path)]), np.array(times, "f8"))


def test_no_times(tmp_path):
    record(tmp_path / "a.mrec", [0, 1])
    assert attributes(tmp_path / "a.mrec").keys() == {"sequence_schema", "nstep", "step_progression"}
    assert [f.time for f in frames(tmp_path / "a.mrec")] == [None, None]

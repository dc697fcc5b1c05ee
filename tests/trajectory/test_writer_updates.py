# SPDX-License-Identifier: BSD-3-Clause
"""Which frames write rows of a block, and the form in which the block then stands."""

from __future__ import annotations

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import array, arrays, assert_bits, attributes, frames, names, write

ABSENT = None


def schema():
    return mrec.Schema().block("b", rows=2).column("q", "f64").column("s", "string")


def block(*values):
    return {"q": np.array(values, "f8"), "s": [f"s{v}" for v in values]}


def record(path, updates, flush=False):
    """One frame for each of `updates`: the values that block b presents, or ABSENT."""
    with write(path, schema()) as w:
        for i, values in enumerate(updates):
            w.append(i, **({} if values is ABSENT else {"b": block(*values)}))
            if flush:
                w.flush(durable=bool(i % 2))


def form(path):
    found = arrays(path)
    index = (found["b/step_index"].tolist(), found["b/offset"].tolist()) if "b/step_index" in found else None
    return attributes(path, "b"), index, found["b/q"].tolist()


REGULAR = {"uniform_rows": 2, "dense_updates": True}
FORMS = {
    "every frame": ([(1, 2), (3, 4), (5, 6)], REGULAR, None, [1, 2, 3, 4, 5, 6]),
    "one frame": ([(1, 2)], REGULAR, None, [1, 2]),
    "carried forward at the end": ([(1, 2), (3, 4), ABSENT, ABSENT], REGULAR, None, [1, 2, 3, 4]),
    "the same again at the end": ([(1, 2), (3, 4), (3, 4)], REGULAR, None, [1, 2, 3, 4]),
    "skipped, then an update": ([(1, 2), ABSENT, (5, 6)], {}, ([0, 2], [0, 2, 4]), [1, 2, 5, 6]),
    "the same, then an update": ([(1, 2), (1, 2), (5, 6)], {}, ([0, 2], [0, 2, 4]), [1, 2, 5, 6]),
    "other rows": ([(1, 2), (3, 4), (5,)], {}, ([0, 1, 2], [0, 2, 4, 5]), [1, 2, 3, 4, 5]),
    "no rows": ([(1, 2), (), (3, 4)], {}, ([0, 1, 2], [0, 2, 2, 4]), [1, 2, 3, 4]),
    "no rows at first": ([(), (3, 4)], {}, ([0, 1], [0, 0, 2]), [3, 4]),
    "no rows twice": ([(), (), (3,)], {}, ([0, 2], [0, 0, 1]), [3]),
    "late": ([ABSENT, (1, 2), (3, 4)], {}, ([1, 2], [0, 2, 4]), [1, 2, 3, 4]),
    "never": ([ABSENT, ABSENT], {}, None, []),
    "there and back": ([(1,), (2,), (1,)], {"uniform_rows": 1, "dense_updates": True}, None, [1, 2, 1]),
}


@pytest.mark.parametrize("flush", [False, True], ids=["at the end", "each frame"])
@pytest.mark.parametrize("case", FORMS)
def test_forms(tmp_path, case, flush):
    updates, group, index, values = FORMS[case]
    record(tmp_path / "a.mrec", updates, flush)
    assert form(tmp_path / "a.mrec") == (group, index, values)
    seen = ABSENT
    for frame, given in zip(frames(tmp_path / "a.mrec"), updates, strict=True):
        seen = seen if given is ABSENT else given
        assert ("b" in frame) == (seen is not ABSENT)
        if seen is not ABSENT:
            assert_bits(frame["b"]["q"], np.array(seen, "f8"))
            assert frame["b"]["s"].tolist() == [f"s{float(v)}"[:-2] for v in seen]


def test_carry_forward_is_per_block(tmp_path):
    path = tmp_path / "a.mrec"
    two = schema().block("c").column("n", "i32")
    with write(path, two) as w:
        w.append(0, b=block(1, 2), c={"n": np.array([1], "i4")})
        w.append(1, b=block(3, 4))
        w.append(2, c={"n": np.array([1], "i4")})
        w.append(3, b=block(5, 6), c={"n": np.array([2], "i4")})
    assert array(path, "b/step_index").tolist() == [0, 1, 3]
    assert array(path, "c/step_index").tolist() == [0, 3]
    assert [(f["b"]["q"][0], f["c"]["n"][0]) for f in frames(path)] == [(1, 1), (3, 1), (3, 1), (5, 2)]


# ---- what a change is --------------------------------------------------------------------------------------------

NAN_1, NAN_2 = np.array([0x7FF8000000000000, 0x7FF8000000000001], "u8").view("f8")


@pytest.mark.parametrize(
    ("first", "second", "changes"),
    [
        ([0.0, 1.0], [-0.0, 1.0], True),
        ([-0.0, 1.0], [-0.0, 1.0], False),
        ([NAN_1, 1.0], [NAN_1, 1.0], False),
        ([NAN_1, 1.0], [NAN_2, 1.0], True),
        ([5e-324, 1.0], [0.0, 1.0], True),
        ([1.0, 2.0], [1.0, np.nextafter(2.0, 3.0)], True),
        ([np.inf, 1.0], [-np.inf, 1.0], True),
    ],
)
def test_changes_are_of_bits(tmp_path, first, second, changes):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().block("b").column("q", "f64")) as w:
        w.append(0, b={"q": np.array(first)})
        w.append(1, b={"q": np.array(second)})
    want = np.array([*first, *second] if changes else first)
    assert_bits(array(path, "b/q"), want)
    assert_bits(frames(path)[1]["b"]["q"], np.array(second))


def test_changes_are_after_rounding(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().block("b").column("q", "f64", precision=0.5)) as w:
        for i, value in enumerate([1.0, 1.1, 0.9, 1.3, 1.2]):
            w.append(i, b={"q": [value]})
    assert array(path, "b/q").tolist() == [1.0, 1.5, 1.0]
    assert array(path, "b/step_index").tolist() == [0, 3, 4]


def test_one_column_changing_writes_all(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, schema()) as w:
        w.append(0, b={"q": [1.0, 2.0], "s": ["a", "b"]})
        w.append(1, b={"q": [1.0, 2.0], "s": ["a", "c"]})
        w.append(2, b={"q": [1.0, 2.0], "s": ["ac", ""]})  # the same letters otherwise divided
    assert array(path, "b/s").tolist() == ["a", "b", "a", "c", "ac", ""]
    assert array(path, "b/q").tolist() == [1.0, 2.0] * 3


# ---- other blocks ------------------------------------------------------------------------------------------------


def test_a_block_without_columns_keeps_its_index(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().block("b").block("c").column("q", "f64")) as w:
        for i, rows in enumerate([2, 2, 0, 5, None, 5]):
            w.append(i, blocks={} if rows is None else {"b": mrec.Block(nrows=rows)})
    assert attributes(path, "b") == {}
    assert array(path, "b/step_index").tolist() == [0, 2, 3]
    assert array(path, "b/offset").tolist() == [0, 2, 2, 7]
    assert names(path, "b") == {"step_index", "offset"}
    assert [f["b"].nrows for f in frames(path)] == [2, 2, 0, 5, 5, 5]


def test_a_structural_shape_is_kept_and_every_update_has_it(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().block("g", structural_shape=(2, 3)).column("rho", "f64")) as w:
        for i in range(3):
            w.append(i, g={"rho": np.arange(6.0) + i})
        w.append(4)
        w.append(5, g={"rho": np.arange(6.0)})
    assert attributes(path, "g") == {"structural_shape": [2, 3]}
    assert attributes(path)["sequence_schema"]["blocks"]["g"]["structural_shape"] == [2, 3]
    assert array(path, "g/step_index").tolist() == [0, 1, 2, 4]
    assert frames(path)[1]["g"].structural_shape == (2, 3)


def test_a_trajectory_without_blocks(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema()) as w:
        for i in range(3):
            w.append(i)
    assert attributes(path)["nstep"] == 3
    assert [len(f) for f in frames(path)] == [0, 0, 0]


def test_a_record_without_frames(tmp_path):
    path = tmp_path / "a.mrec"
    write(path, schema()).close()
    assert attributes(path) == {"sequence_schema": schema().to_json(), "nstep": 0}
    assert frames(path) == []

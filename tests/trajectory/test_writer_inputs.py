# SPDX-License-Identifier: BSD-3-Clause
"""Any array-like input gives the same record, and is the caller's again when append returns."""

from __future__ import annotations

import array as stdlib_array

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import array, arrays, assert_bits, frames, tree, write

N = 7
POSITIONS = np.random.default_rng(5).normal(0, 10, (N, 3))
IDS = np.arange(N, dtype="u8") * 3
NAMES = ["C", "", "naïve", "H1'", "水", "x" * 30, "\x00a\x00"]
DIPOLES = np.random.default_rng(6).normal(size=(N, 2, 3))


def schema():
    declared = mrec.Schema().block("atoms", rows=N)
    for name in "xyz":
        declared.column(name, "f64", precision=1e-3 if name == "z" else None)
    return declared.column("id", "u64").column("name", "string").column("dip", "f64", trailing=(2, 3))


def unaligned(a):
    raw = np.zeros(a.nbytes + 1, "u1")
    view = raw[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    return view


def readonly(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def field(a):
    """One field of packed records: an odd stride, unaligned."""
    records = np.zeros(len(a), [("c", "u1"), ("a", a.dtype, a.shape[1:])])
    records["a"] = a
    return records["a"]


class Subclass(np.ndarray):
    pass


class Protocol:
    """Not an array, but one that numpy knows how to take."""

    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return np.array(self.a, dtype=dtype)


WAYS = {
    "contiguous": np.ascontiguousarray,
    "list": lambda a: a.tolist(),
    "nested tuples": lambda a: tuple(a.tolist()),
    "every third": lambda a: np.repeat(a, 3, axis=0)[::3],
    "reversed": lambda a: a[::-1].copy()[::-1],
    "fortran": np.asfortranarray,
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "other byte order, reversed": lambda a: a.astype(a.dtype.newbyteorder())[::-1].copy()[::-1],
    "read-only": readonly,
    "unaligned": unaligned,
    "a field of records": field,
    "a subclass": lambda a: a.view(Subclass),
    "a mask of nothing": lambda a: np.ma.array(a),
    "through __array__": Protocol,
    "objects": lambda a: a.astype(object),
    "memoryview": lambda a: memoryview(a.copy()),
    "trailing axes backwards": lambda a: a[..., ::-1].copy()[..., ::-1] if a.ndim > 1 else a,
    "trailing axes swapped": lambda a: a.swapaxes(-1, -2).copy().swapaxes(-1, -2) if a.ndim > 2 else a,
}


def record(path, x, y, z, ids, names, dip):
    with write(path, schema()) as w:
        w.append(0, atoms={"x": x, "y": y, "z": z, "id": ids, "name": names, "dip": dip})
    return tree(path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    path = tmp_path_factory.mktemp("plain") / "a"
    x, y, z = POSITIONS.T.copy()
    found = record(path, x, y, z, IDS, NAMES, DIPOLES)
    assert_bits(array(path, "atoms/x"), POSITIONS[:, 0])
    assert_bits(array(path, "atoms/dip"), DIPOLES)
    assert array(path, "atoms/name").tolist() == NAMES
    return found


@pytest.mark.parametrize("way", WAYS)
def test_any_array(tmp_path, plain, way):
    make = WAYS[way]
    x, y, z = (make(POSITIONS[:, k].copy()) for k in range(3))
    assert record(tmp_path / "a", x, y, z, make(IDS), NAMES, make(DIPOLES)) == plain


@pytest.mark.parametrize(
    "names",
    [
        tuple(NAMES),
        np.array(NAMES, object),
        np.array(NAMES, np.dtypes.StringDType()),
        np.array([*NAMES, "other"], object)[:N],
        np.array(NAMES[::-1], object)[::-1],
        np.ma.array(np.array(NAMES, object)),
    ],
    ids=["tuple", "object", "StringDType", "slice", "reversed", "masked"],
)
def test_any_strings(tmp_path, plain, names):
    x, y, z = POSITIONS.T
    assert record(tmp_path / "a", x, y, z, IDS, names, DIPOLES) == plain


KEYS = {
    "a tuple": lambda a: {("x", "y", "z"): a},
    "letters": lambda a: {"xyz": a},
    "in another order": lambda a: {("z", "x", "y"): a[:, [2, 0, 1]]},
    "two and one": lambda a: {("x", "z"): a[:, ::2], "y": a[:, 1]},
    "fortran": lambda a: {("x", "y", "z"): np.asfortranarray(a)},
    "a list": lambda a: {"xyz": a.tolist()},
    "other byte order": lambda a: {"xyz": a.astype(">f8")},
    "part of a wider array": lambda a: {"xyz": np.hstack([a, a])[:, :3]},
}


@pytest.mark.parametrize("way", KEYS)
def test_positions_as_one_array(tmp_path, plain, way):
    with write(tmp_path / "a", schema()) as w:
        w.append(0, atoms={**KEYS[way](POSITIONS), "id": IDS, "name": NAMES, "dip": DIPOLES})
    assert tree(tmp_path / "a") == plain


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray, lambda a: a.astype(">f4"), unaligned, field])
def test_float32_is_widened_exactly(tmp_path, make):
    narrow = POSITIONS.astype("f4")
    with write(tmp_path / "a", schema()) as w:
        w.append(0, atoms={"xyz": make(narrow), "id": IDS, "name": NAMES, "dip": DIPOLES})
    assert_bits(array(tmp_path / "a", "atoms/x"), narrow[:, 0].astype("f8"))
    assert_bits(array(tmp_path / "a", "atoms/y"), narrow[:, 1].astype("f8"))
    grid = 2.0**-10
    assert_bits(array(tmp_path / "a", "atoms/z"), np.rint(narrow[:, 2].astype("f8") / grid) * grid)


def test_float16_is_widened_exactly(tmp_path):
    with write(tmp_path / "a", mrec.Schema().block("b").column("x", "f64")) as w:
        w.append(0, b={"x": np.array([0.1, 65504, -0.0, 6e-8], "f2")})
    assert_bits(array(tmp_path / "a", "b/x"), np.array([0.1, 65504, -0.0, 6e-8], "f2").astype("f8"))


@pytest.mark.parametrize("given", [np.arange(4, dtype="u1"), [0, 1, 2, 3], range(4), stdlib_array.array("h", range(4))])
def test_narrower_integers_are_widened(tmp_path, given):
    with write(tmp_path / "a", mrec.Schema().block("b").column("id", "u64").column("n", "i32")) as w:
        w.append(0, b={"id": given, "n": given})
    assert_bits(array(tmp_path / "a", "b/id"), np.arange(4, dtype="u8"))
    assert_bits(array(tmp_path / "a", "b/n"), np.arange(4, dtype="i4"))


def test_bools_that_are_other_bytes(tmp_path):
    odd = np.array([0, 1, 2, 255], "u1").view(bool)
    with write(tmp_path / "a", mrec.Schema().block("b").column("f", "bool")) as w:
        w.append(0, b={"f": odd})
        w.append(1, b={"f": np.array([False, True, True, True])})
    assert array(tmp_path / "a", "b/f").view("u1").tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("empty", [[], (), np.empty(0), np.empty((0, 3))[:, 0], np.empty(0, object)])
def test_no_rows(tmp_path, empty):
    with write(tmp_path / "a", schema()) as w:
        atoms = {"x": empty, "y": empty, "z": empty, "id": [], "name": [], "dip": np.empty((0, 2, 3))}
        w.append(0, atoms=atoms)
    assert frames(tmp_path / "a")[0]["atoms"].nrows == 0


def test_the_caller_may_change_what_it_passed(tmp_path):
    x, n = np.arange(4.0), np.ma.array(np.arange(4, dtype="i4"), mask=[0, 1, 0, 0])
    names, value, cell = ["a", "b", "c", "d"], np.arange(9.0), np.array([4.0, 5.0, 6.0])
    document = {"k": [1]}
    declared = mrec.Schema().block("b", rows=4).column("x", "f64").column("n", "i32", nullable=True)
    declared.column("s", "string").value("v", "f64x9").value("j", "json")
    with write(tmp_path / "a", declared) as w:
        for i in range(3):
            w.append(i, b={"x": x, "n": n, "s": names}, v=value, j=document, box=cell)
            x[:] += 100
            n.data[:] += 100
            n.mask[:] = ~n.mask
            names[:] = [s + "!" for s in names]
            value[:] = -1
            document["k"].append(i)
            cell += 1
    found = arrays(tmp_path / "a")
    assert found["b/x"].tolist() == [k + 100 * i for i in range(3) for k in range(4)]
    assert found["b/n"].tolist() == [0, 0, 2, 3, 0, 101, 0, 0, 200, 0, 202, 203]
    assert found["b/s"].tolist() == [s + "!" * i for i in range(3) for s in "abcd"]
    assert found["meta/v"].tolist() == [list(range(9)), [-1] * 9, [-1] * 9]
    assert found["meta/j"].tolist() == ['{"k":[1]}', '{"k":[1,0]}', '{"k":[1,0,1]}']
    assert found["box/vectors"][:, 0, 0].tolist() == [4, 5, 6]


def test_frames_of_one_record_go_into_another(tmp_path):
    declared = schema().block("b").column("n", "i16", nullable=True).value("v", "f64x3").value("j", "json", fill=None)
    one, two = tmp_path / "one", tmp_path / "two"
    atoms = {"xyz": POSITIONS, "id": IDS, "name": NAMES, "dip": DIPOLES}
    with write(one, declared) as w:
        w.append(
            5, time=0.5, atoms=atoms, box=(3, 4, 5), v=[1, 2, 3], b={"n": np.ma.array([1, 2], mask=[0, 1], dtype="i2")}
        )
        w.append(7, time=0.7, blocks={}, v=[1, 2, 4], j={"a": 1})
    with write(two, declared) as w, mrec.open(one) as rec:
        for frame in rec.trajectory:
            w.append(frame)
    assert frames(one) == frames(two)
    assert tree(one) == tree(two)


def test_what_stands_beside_a_frame_counts(tmp_path):
    frame = mrec.Frame({"b": {"q": [1.0]}}, step=3, time=0.5, box=(1, 2, 3), values={"pe": 1.0})
    with write(tmp_path / "a", mrec.Schema().block("b").column("q", "f64").value("pe", "f64")) as w:
        w.append(frame)
        w.append(4, frame, time=0.6, box=(1, 1, 1), blocks={"b": {"q": [2.0]}}, values={"pe": 2.0})
    first, second = frames(tmp_path / "a")
    assert first == frame
    assert (second.step, second.time, second.box.lengths.tolist()) == (4, 0.6, [1, 1, 1])
    assert (second["b"]["q"].tolist(), second.values) == ([2.0], {"pe": 2.0})

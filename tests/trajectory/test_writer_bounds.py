# SPDX-License-Identifier: BSD-3-Clause
"""The size of a record is bounded by what it holds, however often it is flushed and reopened."""

from __future__ import annotations

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import array, arrays, document, size, tree, write


def schema():
    declared = mrec.Schema().block("b", rows=1).column("q", "f64").column("p", "f64", precision=1e-3)
    return declared.column("s", "string").column("n", "i32", nullable=True).value("pe", "f64")


def one_atom(i):
    return {"q": [i / 3], "p": [i / 7], "s": [f"name {i}"], "n": np.ma.array([i], mask=[i % 2], dtype="i4")}


def bound(path):
    """For each shard file: its index, its chunks, and three slots of the largest encoding of one chunk."""
    found = {}
    for name, data in arrays(path).items():
        shape = document(path, name)["chunk_grid"]["configuration"]["chunk_shape"]
        inner = document(path, name)["codecs"][0]["configuration"]["chunk_shape"]
        item = 24 if data.dtype.kind in "OT" else data.dtype.itemsize
        chunk = int(np.prod(inner)) * item
        index = 16 * (shape[0] // inner[0]) + 4
        slot = chunk + chunk // 100 + 1024
        found[name] = index + -(-len(data) // inner[0]) * slot + 3 * slot
    return found


def check_sizes(path):
    limits = bound(path)
    for name, limit in limits.items():
        files = sorted((path / "trajectory" / name / "c").rglob("*"))
        found = sum(f.stat().st_size for f in files if f.is_file())
        assert found <= limit, f"{name}: {found} bytes, not above {limit}"


@pytest.mark.parametrize(("how", "n"), [("durable", 50), ("not durable", 300), ("in turn", 100)])
def test_many_small_flushes(tmp_path, how, n):
    path = tmp_path / "a"
    with write(path, schema(), durable=True, chunks_per_shard=100) as w:
        for i in range(n):
            w.append(i, b=one_atom(i), pe=float(i))
            w.flush(durable=how == "durable" or (how == "in turn" and i % 5 == 0))
    check_sizes(path)
    assert array(path, "b/q").tolist() == [i / 3 for i in range(n)]
    assert array(path, "b/s").tolist() == [f"name {i}" for i in range(n)]


def test_one_atom_flushed_two_thousand_times(tmp_path):
    path, n = tmp_path / "a", 2000
    with write(path, mrec.Schema().block("b", rows=1).column("q", "f64").column("s", "string"), flush_every=1) as w:
        for i in range(n):
            w.append(i, b={"q": [i / 3], "s": [f"name {i}"]})
    check_sizes(path)
    assert array(path, "b/q").tolist() == [i / 3 for i in range(n)]
    assert array(path, "b/s").tolist() == [f"name {i}" for i in range(n)]


def test_a_flush_takes_no_room_of_its_own(tmp_path):
    sizes = {}
    for n in (50, 500):
        with write(tmp_path / str(n), schema(), flush_every=1) as w:
            for i in range(n):
                w.append(i, b=one_atom(i), pe=float(i))
        sizes[n] = size(tmp_path / str(n))
    assert sizes[500] < 1.3 * sizes[50]


def test_files_do_not_grow_in_number(tmp_path):
    counts = []
    for n in (20, 200):
        with write(tmp_path / str(n), schema(), flush_every=1) as w:
            for i in range(n):
                w.append(i, b=one_atom(i), pe=float(i))
        counts.append(len(tree(tmp_path / str(n))))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("crash", [False, True], ids=["closed", "left"])
def test_many_reopenings(tmp_path, crash):
    path = tmp_path / "a"
    write(path, schema(), chunks_per_shard=100).close()
    sizes = []
    for i in range(50):
        w = mrec.TrajectoryWriter.open(path, durable=False)
        w.append(i, b=one_atom(i), pe=float(i))
        w.flush(durable=False)
        if crash:
            with pytest.warns(ResourceWarning):
                del w
        else:
            w.close()
        sizes.append(size(path))
    mrec.TrajectoryWriter.open(path).close()
    check_sizes(path)
    assert array(path, "b/q").tolist()[:50] == [i / 3 for i in range(50)]
    assert sizes[-1] < 1.5 * max(sizes[5:15])

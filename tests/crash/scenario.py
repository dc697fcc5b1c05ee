# SPDX-License-Identifier: BSD-3-Clause
"""A trajectory that goes through every transition, with frames that can be told from their ordinal."""

from __future__ import annotations

import numpy as np

import mrec

ATOMS = 40

#: Small chunks and shards, so that a few frames cross their borders.
OPTIONS = {"frames_per_chunk": 3, "chunks_per_shard": 2}


def schema(atoms: int = ATOMS) -> mrec.Schema:
    return (
        mrec.Schema()
        .block("atoms", rows=atoms)
        .column("x", "f64", precision=1e-3)
        .column("y", "f64")
        .column("name", "string")
        .column("tag", "i32", nullable=True)
        .block("bonds", rows=4)
        .column("atomi", "u64")
        .value("pe", "f64")
        .value("note", "string", fill="")
    )


def frame(i: int, atoms: int = ATOMS) -> mrec.Frame:
    """Frame i of every run: rows change at 14, bonds now and then, the cell at 5, steps and times go astray at 9."""
    rng = np.random.default_rng(i)
    n = atoms if i < 14 else max(atoms - i % 3, 0)
    tag = np.ma.MaskedArray(np.arange(n, dtype=np.int32) * i, mask=np.arange(n) % 7 == i % 7)
    columns = {
        "x": np.round(rng.normal(size=n) * 1024) / 1024,
        "y": rng.normal(size=n),
        "name": [f"{k}:{i}" for k in range(n)],
        "tag": tag,
    }
    blocks = {"atoms": columns, "bonds": {"atomi": np.arange(i // 4 % 3, dtype=np.uint64) + i // 4 % 20}}
    return mrec.Frame(
        blocks,
        step=10 * i + (i > 9),
        time=0.5 * i + 0.001 * (i > 9),
        box=mrec.Box.from_lengths(10.0, 10.0, 10.0 + (i > 5) * i),
        values={"pe": -1.5 * i, "note": f"frame {i}"},
    )


def assert_frame(found: mrec.Frame, i: int, atoms: int = ATOMS) -> None:
    wanted = frame(i, atoms)
    assert (found.step, found.time, dict(found.values)) == (wanted.step, wanted.time, dict(wanted.values)), i
    assert found.box is not None and wanted.box is not None
    assert found.box.vectors.tobytes() == wanted.box.vectors.tobytes(), i
    assert set(found.blocks) == set(wanted.blocks), i
    for name, block in wanted.blocks.items():
        for column in block:
            there, right = found[name][column], block[column]
            assert np.ma.getmaskarray(there).tolist() == np.ma.getmaskarray(right).tolist(), (i, name, column)
            assert there.tolist() == right.tolist(), (i, name, column)

# SPDX-License-Identifier: BSD-3-Clause
"""Small records of every kind, each a few kilobytes in several shards, and all that can be read from one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mrec

FRAMES = 5
SMALL = {"durable": False, "frames_per_chunk": 1, "chunks_per_shard": 2}


def raw(path: Path, frames: int = FRAMES) -> None:
    """Floats as they are, integers, flags, a trailing axis, complex numbers, a cell that stays, a value per step."""
    schema = mrec.Schema().block("atoms", rows=3).column("x", "f64").column("v", "f64", trailing=(3,))
    schema = schema.column("id", "u64").column("on", "bool").column("psi", "c128").value("pe", "f64")
    rng = np.random.default_rng(1)
    with mrec.TrajectoryWriter(path, schema, **SMALL) as writer:
        for i in range(frames):
            atoms = {"x": rng.normal(size=3), "v": rng.normal(size=(3, 3)), "id": np.arange(3, dtype=np.uint64) + i}
            atoms |= {"on": np.arange(3) % 2 == i % 2, "psi": rng.normal(size=3) + 1j}
            writer.append(i * i, time=0.5 * i, box=[3.0, 4.0, 5.0], atoms=atoms, pe=-float(i))


def precision(path: Path, frames: int = FRAMES) -> None:
    """Coordinates on a grid, compressed."""
    schema = mrec.Schema().block("atoms", rows=40)
    for name in "xyz":
        schema.column(name, "f64", precision=1e-3)
    rng = np.random.default_rng(2)
    with mrec.TrajectoryWriter(path, schema, **SMALL) as writer:
        for i in range(frames):
            writer.append(10 * i, atoms={name: rng.normal(size=40) for name in "xyz"})


def ragged(path: Path, frames: int = FRAMES) -> None:
    """Rows that come and go, null rows, a block that carries forward, a cell that changes."""
    schema = mrec.Schema().block("atoms", rows=4).column("x", "f64").column("charge", "f64", nullable=True)
    schema = schema.block("bonds", rows=2).column("atomi", "u64").column("atomj", "u64")
    rng = np.random.default_rng(3)
    with mrec.TrajectoryWriter(path, schema, **SMALL) as writer:
        for i in range(frames):
            n = 2 + i % 3
            charge = np.ma.masked_array(rng.normal(size=n), np.arange(n) == i % n)
            blocks: dict[str, Any] = {"atoms": {"x": rng.normal(size=n), "charge": charge}}
            if i % 2:
                pairs = np.arange(i, dtype=np.uint64)
                blocks["bonds"] = {"atomi": pairs, "atomj": pairs + 1}
            writer.append(i, box=[3.0, 4.0, 5.0 + i], **blocks)


def strings(path: Path, frames: int = FRAMES) -> None:
    """Names, a text and a document per step, and a system section."""
    schema = mrec.Schema().block("atoms", rows=3).column("name", "string")
    schema = schema.value("note", "string").value("extra", "json")
    with mrec.TrajectoryWriter(path, schema, meta={"title": "é"}, **SMALL) as writer:
        for i in range(frames):
            writer.append(i, atoms={"name": [f"C{i}", "水", ""]}, note=f"step {i}", extra={"i": i, "of": [1, None]})
    with mrec.open(path) as record:
        record.system = mrec.Frame({"atoms": {"mass": [1.0, 2.0, 3.0], "element": ["O", "H", "H"]}})


KINDS: dict[str, Callable[..., None]] = {f.__name__: f for f in (raw, precision, ragged, strings)}


# ---- reading -----------------------------------------------------------------------------------------------------

#: Frames of which steps and times are read whole.
FEW = 1 << 20

#: What a reader may raise on damage.
ERRORS = (mrec.errors.MrecError, OSError)


def everything(path: Path, most: int = FRAMES, **options: Any) -> dict[str, Any]:
    """All values of a record by every route, place -> value in a form that compares bit for bit, or the error.

    Of a record that claims more frames, the first `most`. options: how it is opened.
    """
    found: dict[str, Any] = {}

    def look(place: str, read: Callable[[], Any]) -> None:
        try:
            found[place] = exact(read())
        except ERRORS as e:
            found[place] = e

    try:
        record = mrec.open(path, **options)
    except ERRORS as e:
        return {"open": e}
    with record:
        look("meta", lambda: record.meta)
        look("sections", lambda: record.sections)
        for section in ("system", "frame"):
            look(section, lambda section=section: getattr(record, section))
        try:
            trajectory = record.trajectory
        except ERRORS as e:
            return {**found, "trajectory": e}
        look("frames", lambda: len(trajectory))
        look("schema", lambda: repr(trajectory.schema))
        n = min(len(trajectory), most)
        if len(trajectory) <= FEW:
            look("steps", lambda: trajectory.steps)
            look("times", lambda: trajectory.times)
        for i in range(n):
            look(f"frame {i}", lambda i=i: trajectory[i])
        for name in trajectory.schema.values:
            look(f"value {name}", lambda name=name: trajectory[:n].values(name))
        for name, block in trajectory.schema.blocks.items():
            for column in block.columns:
                look(
                    f"column {name}/{column}",
                    lambda name=name, column=column: trajectory[:n].read_ragged(name, column),
                )
    return found


def exact(value: Any) -> Any:
    """A value in a form that is equal exactly when every bit is (of null rows: that they are null)."""
    if isinstance(value, mrec.Frame):
        blocks = {name: {c: exact(block[c]) for c in block} for name, block in value.blocks.items()}
        box = value.box and [exact(part) for part in (value.box.vectors, value.box.origin, value.box.periodic)]
        return value.step, exact(value.time), blocks, box, exact(dict(value.values))
    if isinstance(value, np.ma.MaskedArray):
        return "masked", exact(np.ma.getmaskarray(value)), exact(value.filled(value.dtype.type(0)))
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tolist() if value.dtype.kind in "TO" else value.tobytes()
    if isinstance(value, dict):
        return {key: exact(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [exact(entry) for entry in value]
    return repr(value) if isinstance(value, float) else value

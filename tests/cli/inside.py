# SPDX-License-Identifier: BSD-3-Clause
"""The command in this process, and records to run it on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec as library
from mrec.cli import main


class Command:
    """Runs `mrec`; what it printed is `out` and `err`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys
        self.out = self.err = ""

    def __call__(self, *words: object, code: int = 0, printed: bool = False) -> str:
        """printed: there may be output before an error."""
        self.capsys.readouterr()
        done = main([str(word) for word in words])
        self.out, self.err = self.capsys.readouterr()
        assert done == code, self.err
        if code:
            assert printed or self.out == ""
            assert self.err.startswith("mrec: error: ")
            assert self.err.count("\n") == 1, self.err
        return self.err if code else self.out


def triclinic(i: int = 0) -> library.Box:
    """Three vectors in general position, whose rows are not its columns even in their lengths."""
    return library.Box.from_rows([[20.0 + i, 1.0, 2.0], [-3.0, 25.0, 4.0], [5.0, -2.0, 30.0]])


def make(path: Path, frames: int = 6, n: int = 8, *, steps: Any = None, shift: float = 0.0, **options: Any) -> Path:
    """A record with all that a trajectory can have, beside a system with bonds, a snapshot and unknown parts."""
    schema = library.Schema().block("atoms", rows=n)
    for name in "xyz":
        schema.column(name, "f64", precision=1e-3)
    for name in ("vx", "vy", "vz", "fx", "fy", "fz"):
        schema.column(name, "f64")
    schema.column("ix", "i32").column("tag", "string").column("q", "f64", nullable=True)
    schema.block("grid", structural_shape=(2, 3)).column("density", "f64")
    schema.block("events").column("kind", "u8").column("moment", "f64", trailing=3)
    schema.value("pe", "f64").value("stress", "f64x6").value("note", "json", fill=None).value("done", "bool")
    units = {"length": "nm", "time": "fs", "velocity": "nm/fs", "force": "kcal/mol/nm"}
    steps = [100 * i for i in range(frames)] if steps is None else steps
    with library.TrajectoryWriter(path, schema, units=units, meta={"title": "水"}, durable=False, **options) as writer:
        for i, step in enumerate(steps):
            writer.append(step, **frame(i, n, shift))
    with library.open(path) as record:
        record.system = system(n)
        record.frame = library.Frame({"atoms": {"x": np.arange(3.0)}}, meta={"temperature": 300.0})
    return path


def frame(i: int, n: int, shift: float = 0.0) -> dict[str, Any]:
    random = np.random.default_rng(i)
    names = ("x", "y", "z", "vx", "vy", "vz", "fx", "fy", "fz")
    atoms: dict[str, Any] = dict(zip(names, random.normal(size=(9, n)) * 3 + shift, strict=True))
    atoms["ix"] = np.full(n, i, np.int32)
    atoms["tag"] = [f"t{(i // 2 + k) % 3}" for k in range(n)]
    atoms["q"] = np.ma.MaskedArray(np.arange(n) / 7, mask=np.arange(n) == i)
    blocks: dict[str, Any] = {"atoms": atoms}
    if i != 1:
        blocks["grid"] = {"density": np.arange(6.0) + i // 2}
    if i >= 2:
        rows = i % 3
        blocks["events"] = {"kind": np.arange(rows, dtype=np.uint8), "moment": random.normal(size=(rows, 3))}
    values = {"pe": -1.5 * i, "stress": np.arange(6.0) + i, "done": i % 2 == 0}
    if i % 2:
        values["note"] = {"who": ["ä", i]}
    return {"time": 0.5 * i, "box": triclinic(i // 3), "blocks": blocks, "values": values}


def system(n: int) -> library.Frame:
    names = np.array([f"C{k}" for k in range(n)], dtype=np.dtypes.StringDType())
    atoms = {"name": names, "mass": np.arange(n) + 1.0, "res_id": np.arange(n, dtype=np.uint64) // 3}
    bonds = {"atomi": np.arange(n - 1, dtype=np.uint64), "atomj": np.arange(1, n, dtype=np.uint64)}
    return library.Frame({"atoms": atoms, "bonds": bonds | {"order": np.arange(n - 1.0)}})


def bytes_of(folder: Path, skip: tuple[str, ...] = ()) -> dict[str, bytes]:
    """Every file below a folder, but those below some of its children."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            key = str(path.relative_to(folder))
            if key.split("/")[0] not in skip:
                found[key] = path.read_bytes()
    return found

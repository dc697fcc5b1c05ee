# SPDX-License-Identifier: BSD-3-Clause
"""The records that go back and forth between mrec and other programs: one for each thing that can be told wrong."""

from __future__ import annotations

import math

import numpy as np

from tests.interop.model import NUMPY, Cell, Column, Frame, Record, Value

WATER = {name: Column("f64") for name in "xyz"}
CUBE = Cell(np.diag([30.0, 31.0, 32.0]))
EVERY_VALUE = {
    "bool": True,
    "i32": -(2**31),
    "i64": -(2**63),
    "u32": 2**32 - 1,
    "u64": 2**64 - 1,
    "f64": -0.0,
    "string": "héliß 水 \x00 end",
    "json": {"a": [1, 2.5, None, "x"], "b": {}},
    "bool3": (True, False, True),
    "i32x3": (-1, 0, 2**31 - 1),
    "i64x3": (-1, 0, 2**63 - 1),
    "u32x3": (0, 1, 2**32 - 1),
    "u64x3": (0, 1, 2**64 - 1),
    "f64x3": (5e-324, -0.0, 1.5),
    "f64x6": (1.0, 2.0, 3.0, 0.1, 0.2, 0.3),
    "f64x9": tuple(i / 7 for i in range(9)),
}


def walk(rng: np.random.Generator, rows: int, frames: int) -> list[dict[str, np.ndarray]]:
    """x, y, z of atoms that wander by about 0.1 a frame."""
    start = rng.uniform(0, 30, (1, 3, rows))
    path = start + np.cumsum(rng.normal(0, 0.1, (frames, 3, rows)), axis=0)
    return [dict(zip("xyz", frame, strict=True)) for frame in path]


def fixed() -> Record:
    """Regular, raw, progressions, a fixed cell, over several chunks and shards."""
    rng = np.random.default_rng(1)
    frames = [
        Frame(10 * i, 0.5 * i, {"atoms": atoms}, CUBE if i == 0 else None, {"pe": -1.5 * i, "temp": 300.0})
        for i, atoms in enumerate(walk(rng, 700, 60))
    ]
    values = {"pe": Value("f64"), "temp": Value("f64")}
    return Record("fixed", {"atoms": WATER}, frames, values, {"atoms": 700}, {"chunks_per_shard": 4})


def precise() -> Record:
    """Columns with a precision, two grids, and the values that rounding must leave alone or send to a signed zero."""
    rng = np.random.default_rng(2)
    columns = {"x": Column("f64", precision=1e-3), "y": Column("f64", precision=0.01), "z": Column("f64")}
    frames = []
    for i, atoms in enumerate(walk(rng, 1000, 40)):
        atoms["x"][:10] = [np.nan, np.inf, -np.inf, -0.0, 1e300, 5e-324, -1e-9, 2.0**-11, 3 * 2.0**-11, 2.0**43]
        frames.append(Frame(i, 0.1 * i, {"atoms": atoms}, CUBE))
    return Record("precise", {"atoms": columns}, frames, rows={"atoms": 1000}, options={"chunks_per_shard": 4})


def ragged() -> Record:
    """Rows that change, down to none; a block that is carried forward, emptied, given again; one never given."""
    rng = np.random.default_rng(3)
    blocks = {
        "atoms": WATER | {"element": Column("string")},
        "bonds": {"atomi": Column("u64"), "atomj": Column("u64")},
        "ghosts": {"x": Column("f64")},
    }
    bonds = {0: 4, 3: 0, 5: 0, 6: 6, 8: 6}
    frames = []
    for i, rows in enumerate([10, 12, 12, 7, 0, 15, 15, 4000, 9, 20]):
        atoms = walk(rng, rows, 1)[0] | {"element": np.array(["C", "Cl", ""] * rows, object)[:rows]}
        given = {"atoms": atoms}
        if i in bonds:
            ends = np.arange(bonds[i], dtype="u8")
            given["bonds"] = {"atomi": ends, "atomj": ends + 1}
        frames.append(Frame(5 * i, None, given))
    return Record("ragged", blocks, frames, rows={"atoms": 20, "bonds": 6})


def every_type() -> Record:
    """Every column type, trailing axes, and per-step values of every tag, given and filled."""
    rng = np.random.default_rng(4)
    plain = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f64", "c64", "c128", "string"]
    columns = {f"a_{name}": Column(name) for name in plain}
    columns |= {"dip": Column("f64", (3,)), "img": Column("i32", (3,)), "q": Column("f64", (2, 2), precision=1e-4)}
    values = {f"v_{tag}": Value(tag) for tag in EVERY_VALUE}
    values |= {f"f_{tag}": Value(tag, fill) for tag, fill in EVERY_VALUE.items()}
    values["f_nan"] = Value("f64", math.nan)
    values["f_null"] = Value("json", None)
    frames = []
    for i in range(12):
        atoms = {name: random_column(rng, column, 33) for name, column in columns.items()}
        given = {f"v_{tag}": value for tag, value in EVERY_VALUE.items()}
        if i % 3 == 0:
            given |= {f"f_{tag}": value for tag, value in EVERY_VALUE.items()} | {"f_nan": 1.0, "f_null": [i]}
            given["v_json"] = i
        frames.append(Frame(i, i / 3, {"atoms": atoms}, None, given))
    return Record("every_type", {"atoms": columns}, frames, values, {"atoms": 33})


def nullable() -> Record:
    """Null rows in columns of several types: none, some, all; the mask alone changing counts as a change."""
    rng = np.random.default_rng(5)
    columns = {
        "id": Column("u64"),
        "bfac": Column("f64", nullable=True),
        "p": Column("f64", precision=1e-3, nullable=True),
        "n": Column("i32", nullable=True),
        "chain": Column("string", nullable=True),
        "v": Column("f64", (3,), nullable=True),
    }
    frames = []
    for i in range(9):
        atoms = {name: random_column(np.random.default_rng(i // 3), column, 50) for name, column in columns.items()}
        null = rng.random(50) < [0.0, 0.3, 1.0][i % 3]
        for name in columns.keys() - {"id"}:
            mask = np.zeros(atoms[name].shape, bool)
            mask[null] = True
            atoms[name] = np.ma.array(atoms[name], mask=mask)
        frames.append(Frame(i, None, {"atoms": atoms}))
    return Record("nullable", {"atoms": columns}, frames, rows={"atoms": 50})


def changing_cell() -> Record:
    """A triclinic cell that changes, stays, and changes its origin and an axis's periodicity."""
    rng = np.random.default_rng(6)
    frames = []
    for i, atoms in enumerate(walk(rng, 20, 12)):
        vectors = np.array([[20.0 + i // 2, 1.0, 0.5], [0.0, 20.0, 0.25 * (i // 4)], [0.0, 0.0, 20.0]])
        cell = Cell(vectors, (0.0, -1.0, 0.0) if i > 5 else (0.0, 0.0, 0.0), (True, True, i < 9))
        frames.append(Frame(i, 0.1 * i, {"atoms": atoms}, cell if i % 3 else None))
    return Record("changing_cell", {"atoms": WATER}, frames, rows={"atoms": 20})


def irregular_steps() -> Record:
    """Steps and times that leave their progressions late, with times that are no numbers and fall."""
    rng = np.random.default_rng(7)
    steps = [-30, -20, -10, 0, 10, 11, 2**40, 2**63 - 2, 2**63 - 1]
    times = [-0.0, 0.1, 0.2, 0.1 * 3, 0.4, math.nan, -math.inf, 0.1, 0.0]
    frames = [
        Frame(step, time, {"atoms": atoms}) for step, time, atoms in zip(steps, times, walk(rng, 30, 9), strict=True)
    ]
    return Record("irregular_steps", {"atoms": WATER}, frames, rows={"atoms": 30})


def random_column(rng: np.random.Generator, column: Column, rows: int) -> np.ndarray:
    """Any values of the type."""
    shape = (rows, *column.trailing)
    if column.dtype == "string":
        texts = ["", "C", "H1'", "naïve", "水分子", "a" * 40]
        return np.array([texts[i] for i in rng.integers(len(texts), size=rows)], object)
    if column.dtype == "bool":
        return rng.random(shape) < 0.5
    if column.dtype[0] == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(NUMPY[column.dtype])
    if column.dtype == "f64":
        return rng.normal(0, 10, shape)
    info = np.iinfo(NUMPY[column.dtype])
    return rng.integers(info.min, info.max, shape, info.dtype, endpoint=True)


RECORDS = {
    record.name: record
    for record in [fixed(), precise(), ragged(), every_type(), nullable(), changing_cell(), irregular_steps()]
}

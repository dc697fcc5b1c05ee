# SPDX-License-Identifier: BSD-3-Clause
"""Schemas, and frames that fit them, with all that can be told wrong: NaN payloads, -0.0, no rows, null rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from mrec import dtypes
from mrec.box import Box
from mrec.dtypes import DType, Tag
from mrec.frame import Frame
from mrec.testing.model import Model
from mrec.trajectory.schema import BlockSchema, Column, Schema

TEXTS = ["", "C", "H1'", "naïve", "水分子", "a" * 40, "\0", "end\0", "\U0001f9ea"]
DOCUMENTS: list[Any] = [None, 0, [], {}, {"a": [1, 2.5, None, "é"], "b": {}}, "text", True, -1.5]
TIMES = [0.0, -0.0, 0.1, 7.0, -1e300, 5e-324, np.nan, np.inf]

#: Seeds of what an array holds: 0 is all zeros, small ones come again, so that frames equal others.
seeds = st.one_of(st.integers(0, 3), st.integers(0, 2**32 - 1))


# ---- schemas -----------------------------------------------------------------------------------------------------


@st.composite
def schemas(
    draw: st.DrawFn, *, max_blocks: int = 3, max_columns: int = 3, max_values: int = 3, max_rows: int = 7
) -> Schema:
    """A declaration: blocks of columns of any type, with trailing axes, precision, null rows; values of any tag."""
    schema = Schema()
    for i in range(draw(st.integers(0 if max_values else 1, max_blocks))):
        grid = draw(st.sampled_from([None, None, None, (1, 2), (3,)]))
        schema.block(f"block{i}", rows=0 if grid else draw(st.integers(0, max_rows)), structural_shape=grid)
        for k in range(draw(st.integers(1, max_columns))):
            dtype = draw(st.sampled_from(["f64", "f64", "f64", *dtypes.DTYPES]))
            trailing = draw(st.sampled_from([(), (), (), (3,), (2, 2)]))
            precision = draw(st.sampled_from([None, 1e-3, 0.25, 100.0])) if dtype == "f64" else None
            nullable = draw(st.booleans())
            schema.column(f"column{k}", dtype, trailing=trailing, precision=precision, nullable=nullable)
    for i in range(draw(st.integers(0 if schema.blocks else 1, max_values))):
        tag = dtypes.TAGS[draw(st.sampled_from(list(dtypes.TAGS)))]
        fill = {"fill": value_of(tag, draw(seeds))} if draw(st.booleans()) else {}
        schema.value(f"value{i}", tag, **fill)
    return schema


# ---- frames ------------------------------------------------------------------------------------------------------


@st.composite
def frames(draw: st.DrawFn, model: Model, *, steady: bool = False) -> Frame:
    """A frame that may be appended next to what the model holds.

    steady: of the kind that keeps a record in its short forms: every block, with rows as before, steps and times
    that count on.
    """
    last = model.given[-1] if model.given else None
    blocks = {}
    for name, block in model.schema.blocks.items():
        if steady or draw(st.booleans()):
            blocks[name] = draw(_block(block, _rows_before(model, block) if steady else None))
    values = {
        name: value_of(value.tag, draw(seeds))
        for name, value in model.schema.values.items()
        if not value.has_fill or draw(st.booleans())
    }
    step = draw(_step(model, steady))
    time = draw(_time(model, steady))
    box = None if steady and last is not None else draw(_box(model))
    return Frame(blocks, step=step, time=time, box=box, values=values)


def _rows_before(model: Model, block: BlockSchema) -> int:
    last = model.frames[-1].blocks.get(block.name) if model.frames else None
    return last.nrows if last is not None and last.nrows else block.rows or 2


@st.composite
def _block(draw: st.DrawFn, block: BlockSchema, rows: int | None) -> dict[str, np.ndarray]:
    if block.structural_shape is not None:
        rows = block.rows
    elif rows is None:
        rows = draw(st.sampled_from([block.rows, block.rows, 0, 1, 2, block.rows + 3]))
    seed = draw(seeds)
    return {column.name: column_of(column, rows, seed and seed + i) for i, column in enumerate(block.columns.values())}


@st.composite
def _step(draw: st.DrawFn, model: Model, steady: bool) -> int:
    given = model.given
    if not given:
        return draw(st.sampled_from([0, 0, 1, -7, -(2**63)]))
    last = given[-1].step or 0
    stride = last - (given[-2].step or 0) if len(given) > 1 else 10
    return last + (stride if steady else draw(st.sampled_from([1, stride, stride, 2**31])))


@st.composite
def _time(draw: st.DrawFn, model: Model, steady: bool) -> float | None:
    given = model.given
    if not given:
        return draw(st.sampled_from([None, 0.0, 0.5, -0.0]))
    last = given[-1].time
    if last is None or (steady and not np.isfinite(last)):
        return last
    counted = (given[0].time or 0.0) + len(given) * 0.5
    return counted if steady else draw(st.sampled_from([counted, *TIMES]))


@st.composite
def _box(draw: st.DrawFn, model: Model) -> Box | None:
    """None, or a cell; a trajectory has cells that are defined, or none that is."""
    before = model.frames[-1].box if model.frames else None
    if draw(st.booleans()):
        return None
    if (not before.defined) if before is not None else draw(st.integers(0, 9)) == 9:
        return Box.undefined()
    if draw(st.booleans()):
        return Box.from_lengths(10.0, 11.0, 12.0)
    rng = np.random.default_rng(draw(seeds))
    vectors = np.diag(rng.uniform(1, 9, 3)) + np.triu(rng.normal(size=(3, 3)), 1)
    origin = draw(st.sampled_from([(0.0, 0.0, 0.0), (0.0, -0.0, 0.0), (1.0, -2.0, 0.5)]))
    return Box.from_columns(vectors, origin=origin, periodic=draw(st.sampled_from([True, (True, False, True)])))


# ---- what a seed stands for --------------------------------------------------------------------------------------


def column_of(column: Column, rows: int, seed: int) -> np.ndarray:
    """Rows of a column; masked where they are null."""
    rng = np.random.default_rng(seed)
    values = elements(rng, column.dtype, (rows, *column.trailing), seed)
    if not column.nullable or not seed:
        return values
    null = rng.random(rows) < (0.0, 0.3, 1.0)[seed % 3]
    return np.ma.MaskedArray(values, np.broadcast_to(null.reshape(-1, *[1] * len(column.trailing)), values.shape))


def value_of(tag: Tag, seed: int) -> Any:
    """A per-step value."""
    rng = np.random.default_rng(seed)
    if tag.json:
        return DOCUMENTS[seed % len(DOCUMENTS)]
    found = elements(rng, tag.dtype, (tag.width,), seed).tolist()
    return found[0] if tag.width == 1 else tuple(found)


def elements(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Elements of a type: any bits, a few special ones, and ordinary ones."""
    count = int(np.prod(shape))
    if dtype.name == "string":
        return np.array([TEXTS[i if seed else 0] for i in rng.integers(len(TEXTS), size=count)], object).reshape(shape)
    if not seed:
        return np.zeros(shape, dtype.numpy)
    if dtype.name == "bool":
        return rng.random(shape) < 0.5
    found = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype.numpy).copy()
    if dtype.numpy.kind in "fc":
        parts = found.view(found.real.dtype)
        special = np.array([0.0, -0.0, 1.0, 1 / 3, 5e-324, 1e300, np.nan, -np.nan, np.inf, -np.inf])
        with np.errstate(over="ignore", under="ignore"):
            ordinary = rng.normal(0, 10, len(parts)).astype(parts.dtype)
            chosen = rng.choice(special, len(parts)).astype(parts.dtype)
        which = rng.integers(3, size=len(parts))
        parts[which == 1] = chosen[which == 1]
        parts[which == 2] = ordinary[which == 2]
    return found.reshape(shape)

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec head`: the first frames of a record."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from mrec.box import Box
from mrec.cli.choice import positive
from mrec.display import describe, text
from mrec.dtypes import to_json
from mrec.frame import Block, Frame
from mrec.trajectory.schema import Schema

_ROWS = 5


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("head", help="print the first frames", description="Print the first frames.")
    parser.add_argument("path", metavar="PATH", help="a record")
    parser.add_argument("-n", "--frames", type=positive, default=1, metavar="N", help="how many (default: 1)")
    parser.add_argument(
        "--rows", type=positive, metavar="N", help=f"rows of a block (default: {_ROWS}, in JSON all of them)"
    )
    parser.add_argument("--json", action="store_true", help="print a list of frames as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the frames."""
    import mrec

    with mrec.open(arguments.path) as record:
        frames = record.trajectory[: arguments.frames]
        if arguments.json:
            documents = [document(frame, frames.schema, arguments.rows) for frame in frames]
            print(json.dumps(documents, allow_nan=False))
            return
        for frame in frames:
            print("\n".join(_lines(frame, arguments.rows or _ROWS)))
        print(f"{len(frames)} of {len(record.trajectory)} frames")


# ---- JSON --------------------------------------------------------------------------------------------------------


def document(frame: Frame, schema: Schema, rows: int | None = None) -> dict[str, Any]:
    """A frame as JSON: numbers that JSON has not are strings as in the format, complex ones pairs, null rows null."""
    return {
        "index": frame.index,
        "step": frame.step,
        "time": None if frame.time is None else number(frame.time),
        "cell": None if frame.box is None else _cell(frame.box),
        "values": {name: to_json(schema.values[name].tag, value) for name, value in frame.values.items()},
        "blocks": {name: _block(block, rows) for name, block in frame.blocks.items()},
    }


def _cell(box: Box) -> dict[str, Any] | None:
    if not box.defined:
        return {"defined": False}
    return {
        "vectors": _plain(box.rows.tolist()),
        "origin": _plain(box.origin.tolist()),
        "periodic": box.periodic.tolist(),
    }


def _block(block: Block, rows: int | None) -> dict[str, Any]:
    return {"rows": block.nrows, "columns": {name: _plain(values[:rows].tolist()) for name, values in block.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, complex):
        return [number(value.real), number(value.imag)]
    return number(value) if isinstance(value, float) else _integer(value)


def number(value: float) -> Any:
    """A number, or the text for what JSON has no number for."""
    if np.isfinite(value):
        return value
    return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _integer(value: Any) -> Any:
    return str(value) if isinstance(value, int) and abs(value) > 2**53 else value


# ---- text --------------------------------------------------------------------------------------------------------


def _lines(frame: Frame, rows: int) -> Iterator[str]:
    time = "" if frame.time is None else f", time {frame.time:.10g}"
    yield f"frame {frame.index}: step {frame.step}{time}"
    if frame.box is not None:
        yield f"  cell {describe(frame.box)}"
    for name, value in frame.values.items():
        yield f"  {name} {text(value)}"
    for name, block in frame.blocks.items():
        yield f"  {name}, {block.nrows} rows"
        yield from _table(block, rows)


def _table(block: Block, rows: int) -> Iterator[str]:
    """The first rows, in columns."""
    table = [[name, *(text(value) for value in values[:rows])] for name, values in block.items()]
    if not table:
        return
    numbers = [column.dtype.kind in "fciu" and column.ndim == 1 for column in block.values()]
    widths = [max(map(len, column)) for column in table]
    for row in zip(*table, strict=True):
        cells = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numbers, strict=True)]
        yield ("    " + "  ".join(cells)).rstrip()
    if block.nrows > rows:
        yield "    ..."

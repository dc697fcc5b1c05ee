# SPDX-License-Identifier: BSD-3-Clause
"""What a terminal and a notebook show of records, frames and cells."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from mrec.box import Box
from mrec.errors import MrecError
from mrec.frame import Block, Frame

if TYPE_CHECKING:
    from mrec.record import Record
    from mrec.trajectory.reader import Frames

#: What a notebook shows of a block: so many rows and columns, and characters of a text.
ROWS, COLUMNS, CHARACTERS = 5, 12, 60


# ---- text --------------------------------------------------------------------------------------------------------


def counted(n: int, what: str) -> str:
    """1 frame, 2 frames."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def text(value: Any) -> str:
    """A value for people: up to 8 digits, "-" for null, and nothing that a terminal would act upon."""
    if value is np.ma.masked or (np.ma.isMA(value) and np.ma.getmaskarray(value).all()):
        return "-"
    if isinstance(value, np.ndarray):
        return " ".join(text(item) for item in value.ravel().tolist())
    if isinstance(value, (float, np.floating)):
        return f"{value:.8g}"
    if isinstance(value, str):
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
    if isinstance(value, (int, np.integer, bool, np.bool_)):
        return str(value)
    return f"{value:.8g}" if isinstance(value, (complex, np.complexfloating)) else json.dumps(value, ensure_ascii=False)


def describe(box: Box) -> str:
    """A cell in a line: lengths, and what is not a matter of course."""
    if not box.defined:
        return "undefined"
    line = text(box.lengths)
    if not np.allclose(box.angles, 90.0, rtol=0, atol=1e-9):
        line += f", angles {text(box.angles)}"
    if box.origin.any():
        line += f", origin {text(box.origin)}"
    return line + ("" if box.periodic.all() else f", periodic {text(box.periodic)}")


# ---- HTML --------------------------------------------------------------------------------------------------------


def record_html(record: Record) -> str:
    """A record: what is in it, and of the trajectory what it declares. No frame is read."""
    rows = [("units", ", ".join(f"{kind} {unit}" for kind, unit in record.units.items()))]
    rows += [(name, "") for name in record.sections if name not in ("meta", "trajectory")]
    body = _pairs(rows)
    if "trajectory" in record:
        try:
            body += trajectory_html(record.trajectory)
        except MrecError as e:
            body += f"<p>trajectory: {_short(e)}</p>"
    return _titled(f"Record {record.path}", body)


def trajectory_html(frames: Frames) -> str:
    """Frames: how many, from when to when, and what is declared of them. No frame is read."""
    schema = frames.schema
    rows = [("frames", str(len(frames)))]
    if len(frames):
        (first, began), (last, ended) = frames.ends
        rows.append(("steps", f"{first} to {last}"))
        if began is not None and ended is not None:
            rows.append(("times", f"{text(began)} to {text(ended)}"))
    rows += [(f"block {name}", repr(block).removeprefix(f"{name!r}").lstrip(": ")) for name, block in
             schema.blocks.items()]  # fmt: skip
    if schema.values:
        rows.append(("per step", ", ".join(map(repr, schema.values.values()))))
    return _titled(type(frames).__name__, _pairs(rows))


def frame_html(frame: Frame) -> str:
    """A frame: step, time, cell, values, and the first rows of each block."""
    rows = [(key, text(value)) for key in ("step", "time") if (value := getattr(frame, key)) is not None]
    rows += [("cell", describe(frame.box))] if frame.box is not None else []
    rows += [(name, text(value)) for name, value in frame.values.items()]
    title = "Frame" if frame.index is None else f"Frame {frame.index}"
    return _titled(title, _pairs(rows) + "".join(block_html(block, name) for name, block in frame.blocks.items()))


def block_html(block: Block, name: str = "Block") -> str:
    """A block: its first rows, under the names and types of its columns."""
    shown = list(block.items())[:COLUMNS]
    more = len(block) - len(shown)
    title = f"{name}: {counted(block.nrows, 'row')}" + (f", {more} more columns" if more else "")
    heads = [escape(column) + f"<br><small>{_short(_kind(values))}</small>" for column, values in shown]
    table = [[_short(text(values[i])) for _, values in shown] for i in range(min(ROWS, block.nrows))]
    if block.nrows > ROWS:
        table.append(["&hellip;"] * len(shown))
    lines = [_row(heads, "th"), *(_row(row, "td") for row in table)] if shown else []
    return _titled(title, f"<table>{''.join(lines)}</table>" if lines else "")


def box_html(box: Box) -> str:
    """A cell: lengths, angles, volume."""
    if not box.defined:
        return _titled("Box", _pairs([("cell", "undefined")]))
    rows = [("lengths", text(box.lengths)), ("angles", text(box.angles)), ("volume", text(box.volume))]
    rows += [("origin", text(box.origin))] if box.origin.any() else []
    return _titled("Box", _pairs([*rows, ("periodic", text(box.periodic))]))


def _kind(values: np.ndarray) -> str:
    kind = "string" if values.dtype.kind in "OTU" else values.dtype.name
    return kind + "".join(f"[{n}]" for n in values.shape[1:])


def _titled(title: str, body: str) -> str:
    return f"<details open><summary>{_short(title, 4 * CHARACTERS)}</summary>{body}</details>"


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    lines = [f"<tr><th>{_short(name)}</th><td>{_short(value, 4 * CHARACTERS)}</td></tr>" for name, value in rows]
    return f"<table>{''.join(lines)}</table>"


def _row(cells: list[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _short(value: Any, characters: int = CHARACTERS) -> str:
    """Escaped, cut where it is long, without what is not printable."""
    shown = text(str(value))
    return escape(shown if len(shown) <= characters else shown[: characters - 1] + "…")

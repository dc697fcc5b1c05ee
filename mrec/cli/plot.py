# SPDX-License-Identifier: BSD-3-Clause
"""`mrec plot`: per-step values over time, as a picture."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from mrec.cli.choice import add_frames, add_overwrite, check_ending, chosen, frames
from mrec.display import counted
from mrec.errors import SchemaError
from mrec.extras import extra
from mrec.record.output import new_file


@dataclass(frozen=True)
class Series:
    """One value over the frames: y is (frames,) or, for a vector, (frames, width)."""

    name: str
    y: np.ndarray


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "plot", help="draw per-step values as a PNG", description="Draw per-step values over time (or steps) as a PNG."
    )
    parser.add_argument("path", metavar="PATH", help="a record")
    parser.add_argument("names", metavar="VALUE", nargs="+", help="per-step values, one panel each")
    parser.add_argument("-o", "--output", metavar="OUT.png", help="default: the record's name with .png, here")
    add_frames(parser)
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Draw, then say where."""
    import mrec

    name = os.path.basename(os.path.abspath(arguments.path)).removesuffix(".zip").removesuffix(".mrec")
    output = arguments.output or f"{name}.png"
    check_ending(output, {".png"}, "a picture is a .png")
    with mrec.open(arguments.path) as record, new_file(output, arguments.overwrite) as made:
        view = chosen(arguments.path, record.trajectory, frames(arguments))
        figure = draw(*axis(view, record.units), [series(view, name) for name in arguments.names], title=name)
        figure.savefig(made, format="png", dpi=150)
    print(f"{output}: {', '.join(arguments.names)} at {counted(len(view), 'frame')}")


def axis(view: Any, units: dict[str, Any]) -> tuple[str, np.ndarray]:
    """What the values are drawn over: times with their unit where there are any, else steps."""
    if view.times is None:
        return "step", view.steps
    return (f"time ({units['time']})" if "time" in units else "time"), view.times


def series(view: Any, name: str) -> Series:
    """A per-step value of some frames. SchemaError when it is no number."""
    values = view.values(name)
    if values.dtype.kind not in "fiub":
        raise SchemaError(f"{name!r} is {view.schema.values[name].tag}, which cannot be drawn; choose a number")
    return Series(name, values.astype(np.float64) if values.dtype.kind == "b" else values)


def draw(label: str, x: np.ndarray, lines: list[Series], title: str = "") -> Any:
    """A matplotlib figure with a panel for each series."""
    with extra("plot", "plot"):
        figure_class = import_module("matplotlib.figure").Figure
    figure = figure_class(figsize=(8, 1 + 2.5 * len(lines)), layout="constrained")
    panels = figure.subplots(len(lines), 1, sharex=True, squeeze=False)[:, 0]
    for panel, line in zip(panels, lines, strict=True):
        panel.plot(x, line.y, linewidth=1, marker="." if len(x) < 50 else None)
        panel.set_ylabel(line.name, parse_math=False)
        panel.grid(alpha=0.3)
        if line.y.ndim > 1:
            panel.legend([str(i) for i in range(line.y.shape[1])], loc="best", fontsize="small")
    panels[-1].set_xlabel(label, parse_math=False)
    figure.suptitle(title, parse_math=False)
    return figure

# SPDX-License-Identifier: BSD-3-Clause
"""A picture of each data set: what the peers take to append, to read in order, and for one frame, and their sizes."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from mrec.bench.report import Missing, Report
from mrec.bench.run import label

PANELS = (
    ("append", "cpu_us", "append, us a frame"),
    ("read", "cpu_us", "read in order, us a frame"),
    ("read-random", "cpu_us", "one random frame, us"),
    ("append", "disk_bytes", "bytes an atom and frame"),
)
COLOURS = {"raw": "#888888", "p=0.001": "#1f77b4", "p=0.01": "#ff7f0e"}


def draw(report: Report, out: Path) -> list[str]:
    """Make NAME.svg of each data set in a folder; their names, none where matplotlib is missing."""
    try:
        figure_class = import_module("matplotlib.figure").Figure
        settings = import_module("matplotlib").rc_context
    except ImportError:
        return []
    made = []
    for data, found in report.data.items():
        if "missing" in found:
            continue
        name = re.sub(r"\W+", "-", data).strip("-") + ".svg"
        figure = figure_class(figsize=(13, 1 + 0.28 * len(report.peers)), layout="constrained")
        axes = figure.subplots(1, len(PANELS), sharey=True, squeeze=True)
        for panel, (job, what, title) in zip(axes, PANELS, strict=True):
            _bars(panel, report, data, job, what)
            panel.set_title(title, fontsize="medium")
        axes[-1].legend(fontsize="small", loc="best")
        figure.suptitle(f"{data}: {found['atoms']:,} atoms, {found['frames']:,} frames", fontsize="medium")
        with settings({"svg.hashsalt": "mrec"}):  # the same figures make the same file
            figure.savefig(out / name, format="svg", metadata={"Date": None})
        made.append(name)
    return made


def _bars(panel: Any, report: Report, data: str, job: str, what: str) -> None:
    """A line for each peer, a bar for each precision; less is better."""
    peers = [name for name, peer in report.peers.items() if peer["missing"] is None]
    frames = report.data[data]["atoms"] * report.data[data]["frames"] if what == "disk_bytes" else 1
    precisions = list(dict.fromkeys(row.precision for row in report.rows))
    height = 0.8 / max(1, len(precisions))
    for k, precision in enumerate(precisions):
        values = [_value(report, job, peer, data, precision, what) / frames for peer in peers]
        at = [i + (k - (len(precisions) - 1) / 2) * height for i in range(len(peers))]
        name = label(precision)
        panel.barh(at, values, height, label=name, color=COLOURS.get(name))
    panel.set_yticks(range(len(peers)), peers, fontsize="small")
    if what == "cpu_us":
        panel.set_xscale("log")
    panel.grid(axis="x", alpha=0.3)
    if not panel.yaxis_inverted():
        panel.invert_yaxis()


def _value(report: Report, job: str, peer: str, data: str, precision: float | None, what: str) -> float:
    try:
        return report.row(job, peer, data, precision).median(what)
    except Missing:
        return 0.0

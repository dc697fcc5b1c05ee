# SPDX-License-Identifier: BSD-3-Clause
"""Medians and ratios, as JSON and as a table."""

from __future__ import annotations

import statistics
from importlib.metadata import version
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- table: make bench -->\n", "<!-- end of table -->\n"
PACKAGES = {"mrec": "mrec", "molrs": "molcrafts-molrs", "zarr-python": "zarr", "h5py": "h5py", "XTC": "mdtraj"}


def summary(timings: Any, sizes: Any) -> dict[str, Any]:
    """rows: one a job, with microseconds a frame; sizes: bytes an atom and frame."""
    rows = [
        {"atoms": atoms, "mode": mode, "job": job, "unit": "us/frame", "values": medians(programs)}
        for (atoms, mode, job), programs in timings.items()
    ]
    rows += [
        {"atoms": atoms, "mode": mode, "job": "size", "unit": "B/atom/frame", "values": programs}
        for (atoms, mode), programs in sizes.items()
    ]
    for row in rows:
        row["molrs/mrec"] = row["values"]["molrs"] / row["values"]["mrec"] if "molrs" in row["values"] else None
    return {
        "versions": {name: version(package) for name, package in PACKAGES.items()},
        "rows": sorted(rows, key=lambda row: (row["atoms"], row["mode"] != "raw")),
    }


def medians(programs: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(values) for name, values in programs.items()}


def markdown(result: dict[str, Any]) -> str:
    names = [*PACKAGES, "plain file"]
    head = [f"{name} {result['versions'].get(name, '')}".strip() for name in names]
    lines = [
        "| atoms | data | job | " + " | ".join(head) + " | molrs / mrec |",
        "|---" * 3 + "|--:" * (len(names) + 1) + "|",
    ]
    for row in result["rows"]:
        cells = [figure(row["values"].get(name)) for name in names]
        ratio = figure(row["molrs/mrec"])
        lines.append(
            f"| {row['atoms']} | {row['mode']} | {row['job']}, {row['unit']} | " + " | ".join(cells) + f" | {ratio} |"
        )
    return "\n".join(lines) + "\n"


def figure(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def replace_table(page: Path, table: str, begin: str = BEGIN) -> None:
    before, _, rest = page.read_text().partition(begin)
    page.write_text(before + begin + "\n" + table + "\n" + END + rest.partition(END)[2])

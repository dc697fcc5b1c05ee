#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write the tables of docs/comparison.md from docs/figures.md: `comparison.py`."""

from __future__ import annotations

import re
from pathlib import Path

from mrec.bench.report import replace_between

DOCS = Path(__file__).parent.parent / "docs"
PAGE, FIGURES = DOCS / "comparison.md", DOCS / "figures.md"

#: What is told of each peer, and the jobs: B/atom/frame, then microseconds.
JOBS = ("B/atom/frame", "append", "read", "read-random", "read-atom", "open")
PEERS = {
    "mrec": "mrec",
    "mrec-256KiB": 'mrec, `chunk="256KiB"`',
    "xtc-mdtraj": "XTC, mdtraj",
    "xtc-mdanalysis": "XTC, MDAnalysis",
    "dcd-mdtraj": "DCD, mdtraj",
    "dcd-mdanalysis": "DCD, MDAnalysis",
    "gsd": "GSD",
    "h5py": "HDF5, h5py",
    "zarr-python": "Zarr, zarr-python",
    "zarrs": "Zarr, zarrs",
    "tensorstore": "Zarr, tensorstore",
}
TABLES = {"liquid raw": "liquid:5000x400, raw", "liquid 0.01": "liquid:5000x400, p=0.01",
          "rhodopsin 0.01": "rhodopsin, p=0.01"}  # fmt: skip


def rows(figures: str, heading: str) -> dict[str, dict[str, str]]:
    """peer -> job -> what stands in the cell, of one table of docs/figures.md."""
    found = re.search(rf"^### {re.escape(heading)}: .*\n\n((?:\|.*\n)+)", figures, re.M)
    if found is None:
        raise SystemExit(f"comparison: docs/figures.md has no table {heading!r}")
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]
    return {row[0]: dict(zip(table[0][1:], row[1:], strict=True)) for row in table[2:]}


def table(figures: str, heading: str) -> str:
    """One table of the page; the CPU time, which others on the machine disturb least."""
    found = rows(figures, heading)
    lines = [f"| {heading} | " + " | ".join(JOBS) + " |", "|---|" + "--:|" * len(JOBS)]
    for peer, name in PEERS.items():
        if peer in found:
            lines.append(f"| {name} | " + " | ".join(cpu(found[peer][job]) for job in JOBS) + " |")
    return "\n".join(lines) + "\n"


def cpu(cell: str) -> str:
    """The CPU time of `wall (CPU)`, or what stands there alone."""
    found = re.search(r"\(([^)]*)\)", cell)
    return found[1] if found else cell


def write(page: Path, figures: str) -> None:
    """Put the tables into a page."""
    for name, heading in TABLES.items():
        replace_between(page, name, table(figures, heading))


if __name__ == "__main__":
    write(PAGE, FIGURES.read_text(encoding="utf-8"))

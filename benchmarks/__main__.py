# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks: what `mrec bench` does, with one option more: --docs renews docs/figures.md and docs/plots."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from mrec.bench import Report, plots
from mrec.cli import bench
from mrec.cli.help import Help

ROOT = Path(__file__).parents[1]
HEAD = """# Figures

Written by `make bench-docs`; [benchmarks.md](benchmarks.md) explains it. Less is better, and only ratios within this
run mean anything elsewhere. The first figure of a cell is wall time, the one in brackets CPU time of all threads.

"""
APART = """Goals and single figures are all of one run too, but of another (`mrec bench goals`, on the same machine).

"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=Help)
    bench.declare(parser)
    parser.set_defaults(out=ROOT / "benchmarks" / "out")
    parser.add_argument("--docs", action="store_true", help="renew the pages with what this run found")
    parser.add_argument(
        "--docs-from", type=Path, nargs="+", metavar="RESULTS.json",
        help="renew them from an earlier run, and run nothing; of two, the second gives the goals and single figures",
    )  # fmt: skip
    arguments = parser.parse_args()
    results, code = arguments.docs_from, 0
    if results is None:
        code = bench.run(arguments)
        results = [arguments.out / "results.json"]
    if arguments.docs or arguments.docs_from:
        reports = [Report.from_json(json.loads(path.read_text(encoding="utf-8"))) for path in results]
        write_docs(reports[0], reports[-1])
    return code


def write_docs(report: Report, aims: Report) -> None:
    """The page of figures, and a plot of each data set, in place of those that are there. aims: has the goals."""
    report.goals, report.probes = aims.goals, aims.probes
    folder = ROOT / "docs" / "plots"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    pictures = "".join(f"![{name.removesuffix('.svg')}](plots/{name})\n\n" for name in plots.draw(report, folder))
    apart = "" if aims is report else APART
    page = f"{HEAD}{apart}{report.markdown()}\n## Plots\n\n{pictures}".rstrip() + "\n"
    (ROOT / "docs" / "figures.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

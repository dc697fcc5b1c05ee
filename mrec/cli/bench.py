# SPDX-License-Identifier: BSD-3-Clause
"""`mrec bench`: mrec and other programs side by side, on this machine."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

from mrec.cli.choice import names, positive

_EPILOG = """Each peer runs in a process of its own, on one core, and all do each job in turn, round after round; what
they read is compared with what they wrote. Peers that are not installed are named as missing: pip install 'mrec[bench]'
has all of them. docs/benchmarks.md describes jobs, data and results, and how to add your own."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "bench",
        help="hold mrec against other programs on this machine",
        description="Hold mrec against other programs on this machine: time, memory and size of everyday jobs.",
        epilog=_EPILOG,
    )
    declare(parser)
    parser.set_defaults(run=run)


def declare(parser: argparse.ArgumentParser) -> None:
    """The options, which `python -m benchmarks` has as well."""
    parser.add_argument(
        "what", nargs="?", choices=("all", "goals", "list"), default="all", metavar="WHAT",
        help="all (the default); goals: only what the goals need; list: jobs, peers and data",
    )  # fmt: skip
    parser.add_argument("--jobs", type=_some, default=[], metavar="NAMES", help="only these, separated by commas")
    parser.add_argument("--peers", type=_some, default=[], metavar="NAMES", help="only these, separated by commas")
    parser.add_argument(
        "--data", type=_some, default=[], metavar="SETS",
        help="only these, separated by commas: NAME:ATOMSxFRAMES, rhodopsin, or file:PATH",
    )  # fmt: skip
    parser.add_argument(
        "--precision",
        type=_precisions,
        default=[],
        metavar="PS",
        help="only these, separated by commas: raw, 1e-3, ...",
    )
    parser.add_argument("--rounds", type=positive, metavar="N", help="how often (default: 5, with --quick 2)")
    parser.add_argument("--quick", action="store_true", help="small data and few rounds: done in about three minutes")
    parser.add_argument("--no-probes", action="store_true", help="no goals and single figures at the end")
    parser.add_argument(
        "--plugin", action="append", default=[], metavar="MODULE:OBJECT", help="a job or peer of yours; may be repeated"
    )
    parser.add_argument("--out", type=Path, default=Path("bench-out"), help="folder of results (default: bench-out)")


def run(arguments: argparse.Namespace) -> int:
    """Run, save, and print the tables; 1 when a peer failed at something."""
    from mrec.bench import goals, plots
    from mrec.bench import run as runs

    if arguments.what == "list":
        _list(arguments.plugin)
        return 0
    rounds = arguments.rounds or (2 if arguments.quick else 5)
    if arguments.what == "goals":
        report = goals.run(arguments.out, rounds, arguments.quick, _say, not arguments.quick, arguments.data)
    else:
        report = runs.Run(
            out=arguments.out,
            jobs=arguments.jobs,
            peers=arguments.peers,
            data=arguments.data or (runs.QUICK_DATA if arguments.quick else runs.DATA),
            precisions=arguments.precision or (runs.QUICK_PRECISIONS if arguments.quick else runs.PRECISIONS),
            rounds=rounds,
            plugins=arguments.plugin,
            say=_say,
        ).report()
        if not arguments.no_probes:
            goals.add(report, arguments.out, _say, not arguments.quick)
    report.save(arguments.out)
    print(report.markdown())
    for row in report.failures:
        print(f"{row.peer} failed at {row.job} ({row.data}):\n{row.reason}", file=sys.stderr)
    drawn = plots.draw(report, arguments.out)
    _say(f"{arguments.out}: results.json, results.md{', '.join(['', *drawn])}")
    return 1 if report.failures else 0


def _list(plugins: list[str]) -> None:
    from mrec.bench.data import SYNTHETIC
    from mrec.bench.jobs import JOBS
    from mrec.bench.peers import PEERS
    from mrec.bench.plugin import register

    for plugin in plugins:
        register(plugin)
    sets = {f"{name}:ATOMSxFRAMES": (make.__doc__ or "").partition("\n")[0] for name, make in SYNTHETIC.items()}
    sets |= {"rhodopsin": "A membrane protein, 5547 atoms, 51 frames (in a checkout)."}
    sets |= {"file:PATH": "Any trajectory that MDAnalysis reads."}
    _names("jobs", {name: job.about for name, job in JOBS.items()})
    _names("peers", {name: ", ".join(peer.packages) for name, peer in PEERS.items()})
    _names("data", sets)


def _names(title: str, found: dict[str, str]) -> None:
    print(f"{title}:")
    for name, about in found.items():
        print(f"  {name:22} {about}")


def _precisions(text: str) -> list[float | None]:
    try:
        found = [None if name == "raw" else float(name) for name in _some(text)]
    except ValueError:
        found = [math.nan]
    if not all(p is None or 0 < p < math.inf for p in found):
        raise argparse.ArgumentTypeError(f"{text!r}: a precision is raw, or a number above 0")
    return found


def _some(text: str) -> list[str]:
    found = names(text)
    if not found:
        raise argparse.ArgumentTypeError("no name is given; leave the option out for all")
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

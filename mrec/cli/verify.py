# SPDX-License-Identifier: BSD-3-Clause
"""`mrec verify`: check every checksum and every rule of a record."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from mrec.cli import collections
from mrec.cli.progress import counter
from mrec.cli.sizes import human
from mrec.display import counted
from mrec.errors import NotARecord


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "verify",
        help="check every checksum and every rule of a record",
        description="Check every checksum and every rule of a record; nothing is changed.",
        epilog="The exit code is 0 when nothing is found, 1 when something is, 2 when there is no record.",
    )
    parser.add_argument("path", metavar="PATH", help="a record: closed, crashed, or being written; or a collection")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print nothing, the exit code says it")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings, one a line."""
    import mrec

    if collections.is_collection(arguments.path):
        return collections.verify(arguments)

    try:
        with counter("chunks") as progress:
            report = mrec.verify(arguments.path, progress)
    except NotARecord as e:
        print(f"mrec: error: {e}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(report.to_json(), indent=1))
    elif not arguments.quiet:
        for finding in report.findings:
            print(finding)
        faults = counted(len(report.findings), "fault") if report.findings else "no fault"
        read = f"{counted(report.frames, 'frame')}, {counted(report.chunks, 'chunk')}, {human(report.nbytes)}"
        print(f"{arguments.path}: {faults} in {read}")
    return 0 if report.ok else 1

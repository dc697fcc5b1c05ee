# SPDX-License-Identifier: BSD-3-Clause
"""`mrec repair`: what verifies of a damaged record, as a new one."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from mrec.cli.choice import names, one_line
from mrec.cli.progress import counter
from mrec.errors import MrecError

_DESCRIPTION = """Write what verifies of a damaged record as a new one, and say what was lost, by frame and column. The
damaged record is only read; no value is guessed."""
_EPILOG = """A frame is kept when all of it verifies. What verifies in no frame at all (a column whose document is gone)
is left out, and costs no frames. --drop leaves out more, for the frames that it would cost; --keep-frames leaves out
whatever is damaged. The names are those that are printed. Everything beside the trajectory is carried over byte for
byte, but for what does not verify. The exit code is 0 when nothing is lost, 1 when something is, 2 when nothing was
made."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "repair", help="write what verifies of a damaged record as a new one", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("path", metavar="IN", help="a record, packed or not, that no writer has")
    parser.add_argument("output", metavar="OUT.mrec", help="the record to make, where there is nothing yet")
    parser.add_argument(
        "--drop", action="extend", type=names, default=[], metavar="NAMES",
        help="leave these out, separated by commas: BLOCK, BLOCK/COLUMN, meta/VALUE, time or box",
    )  # fmt: skip
    parser.add_argument(
        "--keep-frames", action="store_true", help="leave out all that lost anything, rather than its frames"
    )
    parser.add_argument(
        "--trust-marker", action="store_true",
        help="the machine has not stopped since the record was last written; asked for when that has to be known",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Repair, then say what was lost, one part a line, and what was made."""
    import mrec

    try:
        with counter("chunks") as progress:
            report = mrec.repair(
                arguments.path,
                arguments.output,
                drop=arguments.drop,
                keep_frames=arguments.keep_frames,
                trust_marker=arguments.trust_marker,
                progress=progress,
            )
    except (MrecError, OSError) as e:
        print(f"mrec: error: {one_line(e)}", file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(report.to_json(), indent=1))
    else:
        for line in report.lines():
            print(line)
        print(f"{arguments.output}: {report.kept} of {report.frames} frames")
    return 0 if report.ok else 1

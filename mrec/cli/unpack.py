# SPDX-License-Identifier: BSD-3-Clause
"""`mrec unpack`: a record of a packed one, each checksum checked. Nothing is left unless all of it is right."""

from __future__ import annotations

import argparse
from typing import Any

from mrec.cli.sizes import disk_usage, human


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("unpack", help="make a record of a packed one", description=__doc__)
    parser.add_argument("zip", metavar="ZIP", help="a packed record")
    parser.add_argument("target", metavar="TARGET", nargs="?", help="the record to make (default: ZIP without .zip)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Unpack, then say what was made."""
    import mrec

    made = mrec.unpack(arguments.zip, arguments.target)
    size, files = disk_usage(made)
    print(f"{made}: {human(size)} in {files} files")

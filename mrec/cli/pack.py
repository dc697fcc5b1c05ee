# SPDX-License-Identifier: BSD-3-Clause
"""`mrec pack`: one file for a record at rest. Every command that reads a record reads the packed one in place."""

from __future__ import annotations

import argparse
from typing import Any

from mrec.cli.sizes import disk_usage, human


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("pack", help="make one file of a record", description=__doc__)
    parser.add_argument("path", metavar="PATH", help="a record; PATH with .zip behind it is made or replaced")
    parser.add_argument("--remove", action="store_true", help="delete the record once the file is there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Pack, then say what was made."""
    import mrec

    made = mrec.pack(arguments.path, remove=arguments.remove)
    print(f"{made}: {human(disk_usage(made)[0])}")

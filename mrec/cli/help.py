# SPDX-License-Identifier: BSD-3-Clause
"""Help that reads the same with every version of Python."""

from __future__ import annotations

import argparse
from typing import Any


class Help(argparse.HelpFormatter):
    """Options as Python 3.13 prints them ("-n, --frames N"), 100 columns wide whatever the terminal."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{**options, "width": 100, "max_help_position": 28})

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        return f"{', '.join(action.option_strings)} {self._format_args(action, action.dest.upper())}"


class Commands:
    """What commands declare themselves with: their help is a `Help`."""

    def __init__(self, subparsers: Any) -> None:
        self._subparsers = subparsers

    def add_parser(self, name: str, **options: Any) -> argparse.ArgumentParser:
        """The parser of a command."""
        made: argparse.ArgumentParser = self._subparsers.add_parser(name, formatter_class=Help, **options)
        return made

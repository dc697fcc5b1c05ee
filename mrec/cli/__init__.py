# SPDX-License-Identifier: BSD-3-Clause
"""The command `mrec`."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from mrec import __version__
from mrec.cli import bench, cat, collect, convert, export, head, info, ls, pack, plot, repair, unpack, verify, watch
from mrec.cli.choice import WrongCall, one_line
from mrec.cli.help import Commands, Help
from mrec.errors import MrecError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code is 0, 1 for an error (one line on stderr), 2 for a wrong call.

    A command that has something to say by its exit code returns it.
    """
    arguments = parser().parse_args(argv)
    signal.signal(signal.SIGTERM, _terminated)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr has it
    code: int | None = 0
    try:
        code = arguments.run(arguments)
        if sys.stdout is not None:  # it was closed before we came
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output has seen enough
    except (MrecError, OSError, ImportError) as e:
        print(f"mrec: error: {one_line(e)}", file=sys.stderr)
        return 2 if isinstance(e, WrongCall) else 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return code or 0


def parser() -> argparse.ArgumentParser:
    """The command line, all of it."""
    made = argparse.ArgumentParser(prog="mrec", description="Molecular trajectory records.", formatter_class=Help)
    made.add_argument("--version", action="version", version=f"mrec {__version__}")
    commands = Commands(made.add_subparsers(title="commands", required=True, metavar="COMMAND"))
    for module in (info, ls, head, convert, export, cat, plot, pack, unpack, collect, verify, repair, watch, bench):
        module.add_parser(commands)
    return made


def _terminated(signum: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + signum)

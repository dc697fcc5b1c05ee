# SPDX-License-Identifier: BSD-3-Clause
"""The options that several commands have, the same in each, and opening what they choose from."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Collection
from typing import Any, TypeVar

from mrec.errors import MrecError

T = TypeVar("T")


class WrongCall(MrecError):
    """The words of a call do not fit one another, whatever the files hold. The exit code is 2."""


def add_frames(parser: argparse.ArgumentParser) -> None:
    """Declare --start, --stop and --stride."""
    parser.add_argument("--start", type=int, metavar="FRAME", help="first frame, counted from 0; -1 is the last one")
    parser.add_argument("--stop", type=int, metavar="FRAME", help="first frame not taken")
    parser.add_argument("--stride", type=positive, metavar="N", help="take every N-th frame")


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Declare --overwrite."""
    parser.add_argument("--overwrite", action="store_true", help="replace what is at OUT")


def positive(text: str) -> int:
    """A whole number of at least 1, as an option takes it."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError("it is at least 1")
    return number


def checked(check: Callable[..., T], *arguments: Any) -> T:
    """What a check of words returns; what it refuses is a wrong call."""
    try:
        return check(*arguments)
    except MrecError as e:
        raise WrongCall(str(e)) from None


def check_ending(path: str, endings: Collection[str], otherwise: str) -> str:
    """The ending of a file name, in lower case. WrongCall when it is none of these; otherwise: what to say then."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in endings:
        raise WrongCall(f"{path}: {otherwise}")
    return ending


def names(text: str) -> list[str]:
    """Names separated by commas, as an option takes them."""
    return [name for name in text.split(",") if name]


def frames(arguments: argparse.Namespace) -> slice:
    """What --start, --stop and --stride say."""
    return slice(arguments.start, arguments.stop, arguments.stride)


def chosen(path: str, trajectory: Any, which: slice) -> Any:
    """The frames of a slice; MrecError when it names none."""
    view = trajectory[which]
    if not len(view):
        raise MrecError(f"{path} has {len(trajectory)} frames, and none of them is chosen")
    return view


def is_record(path: str) -> bool:
    """Whether a path names a record, whatever is there."""
    return path.rstrip("/").endswith((".mrec", ".mrec.zip")) or os.path.isfile(os.path.join(path, "zarr.json"))


def one_line(error: Exception) -> str:
    """An error as it is printed."""
    if isinstance(error, OSError) and error.errno is not None and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def note(text: str) -> None:
    """Say on stderr what the user may not expect."""
    print(f"mrec: note: {text}", file=sys.stderr)

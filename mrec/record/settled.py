# SPDX-License-Identifier: BSD-3-Clause
"""Reading what others may replace meanwhile: again, until it was the same before and after."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from mrec.errors import CorruptData, MrecError

T = TypeVar("T")

#: What changes when a directory is replaced, or a name in it; None: there is none.
Mark = tuple[int, ...] | None

#: How often it is read again: two processes that do nothing but replace a section beat five in a row.
ATTEMPTS = 25


def settled(mark: Callable[[], object], read: Callable[[], T], what: str) -> T:
    """What `read` returns, or raises, between two calls of `mark` that return the same. `what` it is, for errors."""
    for attempt in range(ATTEMPTS):
        before = mark()
        try:
            found = read()
        except (MrecError, OSError):
            if attempt + 1 == ATTEMPTS or mark() == before:
                raise
            continue
        if mark() == before:
            return found
    raise CorruptData(f"{what} is replaced again and again while it is being read")


def mark_of(path: str) -> Mark:
    """The mark of a directory, or of a file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns


def marks_of(root: str) -> dict[str, Mark]:
    """The marks of the groups of a record, without the trajectory, which has a lock, and what writers are making."""
    with os.scandir(root) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    return {name: mark_of(os.path.join(root, name)) for name in names if name != "trajectory" and name[:1] != "."}

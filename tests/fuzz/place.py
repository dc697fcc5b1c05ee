# SPDX-License-Identifier: BSD-3-Clause
"""Where a target puts its input, and how it reads a record with it."""

from __future__ import annotations

import atexit
from pathlib import Path

import mrec
import mrec.verify
from tests.faults.story import memory
from tests.flips.stores import ERRORS, everything


def folder() -> Path:
    """A new folder until the program ends, in memory where there is one."""
    held = memory()
    atexit.register(held.__exit__, None, None, None)
    return held.__enter__()


def look(path: Path, how: int) -> None:
    """Read (1), verify (2) or do both (3) with a record.

    That it claims more values than there is memory for is no fault of ours; opening it takes no more than its files.
    """
    if how & 1:
        try:
            with mrec.open(path) as record:
                len(record.trajectory)
        except ERRORS:
            pass
    for bit, read in ((1, lambda: everything(path, 2)), (2, lambda: mrec.verify(path))):
        if how & bit:
            try:
                read()
            except (*ERRORS, MemoryError):
                pass

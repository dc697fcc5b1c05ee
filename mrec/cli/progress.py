# SPDX-License-Identifier: BSD-3-Clause
"""A progress bar for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """`items`; with a bar on stderr once they take over a second, where stderr is a terminal and tqdm is installed."""
    if not sys.stderr.isatty():
        return iter(items)
    try:
        tqdm: Any = import_module("tqdm").tqdm
    except ImportError:
        return iter(items)
    return iter(tqdm(items, total=total, unit=f" {unit}", delay=1, leave=False, file=sys.stderr))

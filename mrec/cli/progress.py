# SPDX-License-Identifier: BSD-3-Clause
"""A progress bar for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

T = TypeVar("T")


def progress(items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """`items`; with a bar on stderr once they take over a second, where stderr is a terminal and tqdm is installed."""
    tqdm = _tqdm()
    if tqdm is None:
        return iter(items)
    return iter(tqdm(items, total=total, unit=f" {unit}", delay=1, leave=False, file=sys.stderr))


@contextmanager
def counter(unit: str) -> Iterator[Callable[[int, int], None] | None]:
    """A function that takes what is done and the total, and moves such a bar; None where there is none to be seen."""
    tqdm = _tqdm()
    if tqdm is None:
        yield None
        return
    with tqdm(total=0, unit=f" {unit}", delay=1, leave=False, file=sys.stderr) as bar:

        def move(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield move


def _tqdm() -> Any:
    """The class, where stderr is a terminal and tqdm is installed."""
    if not sys.stderr.isatty():
        return None
    try:
        return import_module("tqdm").tqdm
    except ImportError:
        return None

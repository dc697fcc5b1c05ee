# SPDX-License-Identifier: BSD-3-Clause
"""Libraries that are there only with an extra, `pip install mrec[...]`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mrec.errors import MissingLibrary


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Around an import: MissingLibrary says, on one line, what needs the library, and which extra brings it."""
    try:
        yield
    except ImportError as e:
        library = (e.name or "a library").partition(".")[0]
        raise MissingLibrary(f"{what} needs {library} ({e}): pip install 'mrec[{name}]'", name=e.name) from None

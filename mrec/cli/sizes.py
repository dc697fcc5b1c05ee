# SPDX-License-Identifier: BSD-3-Clause
"""Sizes on disk, and how people read them."""

from __future__ import annotations

import os


def disk_usage(path: str) -> tuple[int, int]:
    """Bytes in the files at and below a path, and the number of files; what goes meanwhile does not count."""
    if os.path.isfile(path):
        return os.path.getsize(path), 1
    sizes = [_size(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
    there = [size for size in sizes if size is not None]
    return sum(there), len(there)


def _size(path: str) -> int | None:
    try:
        return os.path.getsize(path)
    except FileNotFoundError:
        return None


def human(size: float) -> str:
    """A number of bytes in a few characters: 999 B, 1.04 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.3g} {unit}" if unit != "B" else f"{size:.0f} B"
        size /= 1000
    return f"{size:.4g} TB"

# SPDX-License-Identifier: BSD-3-Clause
"""What a run ran on."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def describe(folder: Path) -> dict[str, Any]:
    """The processor, the system, the file system of a folder, and Python."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "cpu": _cpu(),
        "features": _features(),
        "cores": cores,
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "file_system": _file_system(folder),
        "python": platform.python_version(),
        "numpy": _installed("numpy"),
    }


def _cpu() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.M)
    return found[1] if found else platform.processor() or "unknown"


def _features() -> list[str]:
    """Those of the processor that the core has kernels for."""
    found = re.search(r"^flags\s*:\s*(.+)$", _text("/proc/cpuinfo"), re.M)
    there = set(found[1].split()) if found else set()
    return [name for name in ("sse4_2", "avx2", "avx512bw", "vpclmulqdq") if name in there]


def _file_system(folder: Path) -> str:
    """Its type: ext4, tmpfs."""
    best, kind = "", "unknown"
    path = str(folder.resolve())
    for line in _text("/proc/mounts").splitlines():
        _, point, found, *_ = line.split()
        if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
            best, kind = point, found
    return kind


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""

# SPDX-License-Identifier: BSD-3-Clause
"""What a long run found, for people and programs: build/results/<name>.json."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "build" / "results"


def in_parts(
    work: Callable[[int, int], tuple[Counter[str], str]], n: int, a_part: int, seed: int
) -> tuple[Counter[str], list[str]]:
    """work(seed of its own, how many) on all processors until it was done n times: what was seen, and what failed."""
    parts = [min(a_part, n - done) for done in range(0, n, a_part)]
    seen, failures = Counter[str](), []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for found, failure in pool.map(work, range(1000 * seed, 1000 * seed + len(parts)), parts):
            seen += found
            failures += [failure] if failure else []
            print(dict(seen), flush=True)
    return seen, failures


def save(name: str, seed: int, seconds: float, figures: dict[str, Any]) -> None:
    """Write the results of a run, and print them."""
    about = {"seed": seed, "seconds": round(seconds), "python": platform.python_version(), "system": platform.system()}
    text = json.dumps(about | figures, indent=2)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(text + "\n")
    print(text)

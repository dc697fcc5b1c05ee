# SPDX-License-Identifier: BSD-3-Clause
"""1000 kills of writers with 1 to 5000 atoms that flush every frame, every 10, or land by themselves.

The figures go to build/results/kill.json. MREC_KILLS=100 kills less often, MREC_SEED elsewhere.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.crash.killing import Run, kill_often
from tests.faults.story import memory
from tests.long.results import in_parts, save

KILLS = int(os.environ.get("MREC_KILLS", 1000))
SEED = int(os.environ.get("MREC_SEED", 1))
A_TIME = 50


def many(number: int, kills: int) -> tuple[Counter[str], str]:
    """So many kills of one seed, and what failed."""
    rng = random.Random(number)

    def next_run() -> Run:
        atoms = min(5000, int(10 ** rng.uniform(0, 3.72)))
        return Run(atoms, rng.choice((1, 10, 0)), frames=45, threads=rng.choice((1, 2)))

    with memory() as folder, tempfile.TemporaryDirectory(dir=folder) as own:
        try:
            return kill_often(Path(own), kills, rng, next_run), ""
        except Exception as e:
            return Counter(), f"seed {number}: " + "".join(traceback.format_exception(e))


def test_a_thousand_kills_lose_nothing_published() -> None:
    started = time.monotonic()
    seen, failures = in_parts(many, KILLS, A_TIME, SEED)
    share = seen["in commit"] / max(seen["kills"], 1)
    figures = {**sorted_figures(seen), "share inside a commit": round(share, 3), "lost": len(failures)}
    save("kill", SEED, time.monotonic() - started, figures | {"failures": failures})
    assert not failures, failures[0]
    assert share >= 0.3


def sorted_figures(seen: Counter[str]) -> dict[str, int]:
    return {name: seen[name] for name in sorted(seen)}

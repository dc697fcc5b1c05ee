# SPDX-License-Identifier: BSD-3-Clause
"""A writer is killed 80 times (tests/long/test_kill.py: other runs too, 1000 times)."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.crash.killing import Run, kill_often

KILLS = 80


@pytest.mark.filterwarnings("ignore:This process.*fork")
def test_killed_writer_loses_nothing_published(tmp_path: Path) -> None:
    rng = random.Random(20)
    seen = kill_often(
        tmp_path, KILLS, rng, lambda: Run(rng.choice((1, 40)), rng.choice((1, 1, 10, 0)), threads=rng.choice((1, 2)))
    )
    print(dict(seen))
    assert seen["in commit"] >= 0.3 * KILLS
    assert seen["in opening"] > 0 and seen["records finished"] > 0

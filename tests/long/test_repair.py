# SPDX-License-Identifier: BSD-3-Clause
"""`make test-long-repair`: what `mrec.repair` keeps of a record with a flipped bit is exact."""

from __future__ import annotations

from pathlib import Path

from tests.repair.flips import Flips

FLIPS = 2000


def test_what_is_kept_is_exact(tmp_path: Path) -> None:
    flips = Flips(tmp_path, seed=2)
    lost = sum(flips.one() for _ in range(FLIPS))
    print(f"{FLIPS} flipped bits, {lost} cost something, no frame that was kept is another")
    assert FLIPS / 6 < lost < FLIPS

# SPDX-License-Identifier: BSD-3-Clause
"""Flipped bits; tests/long/test_repair.py flips more of them."""

from __future__ import annotations

from pathlib import Path

from tests.repair.flips import Flips


def test_what_is_kept_is_exact(tmp_path: Path) -> None:
    flips = Flips(tmp_path, seed=1)
    lost = sum(flips.one() for _ in range(60))
    assert 10 < lost < 60  # bytes that nothing names are dead

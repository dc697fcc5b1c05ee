# SPDX-License-Identifier: BSD-3-Clause
"""Collections whose program is killed at its calls; tests/long does it at every one."""

from __future__ import annotations

from pathlib import Path

from tests.faults.preload import library, linux_only, run
from tests.faults.story import memory

__all__ = ["library"]

pytestmark = linux_only


def test_killed_at_a_call(library: Path) -> None:
    run_kills(library, 7)


def run_kills(library: Path, every: int) -> None:
    with memory() as folder:
        assert int(run(library, "tests.collection.killing", str(every), str(folder / "x"))) > 150 // every

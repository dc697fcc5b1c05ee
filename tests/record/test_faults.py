# SPDX-License-Identifier: BSD-3-Clause
"""Sections written, killed, failed and interrupted at their calls; tests/long does it at every one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.preload import library, linux_only, run
from tests.faults.story import memory
from tests.record.faults import JOBS

EVERY = 61

__all__ = ["library"]

pytestmark = linux_only


@pytest.mark.parametrize("action", ["kill", "fail", "interrupt"])
@pytest.mark.parametrize("job", JOBS)
def test_hit_at_a_call(job: str, action: str, library: Path) -> None:
    run_faults(library, job, action, EVERY)


def run_faults(library: Path, job: str, action: str, every: int) -> None:
    with memory() as folder:
        calls = run(library, "tests.record.faults", job, action, str(every), str(folder / "x"))
    assert int(calls) > 10

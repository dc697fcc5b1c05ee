# SPDX-License-Identifier: BSD-3-Clause
"""Collections killed at every call, and the power lost in more ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.collection.faulty import JOBS, Job
from tests.collection.test_faults import power_lost
from tests.collection.test_kill import run_kills
from tests.faults.preload import library, linux_only

__all__ = ["library"]


@linux_only
def test_killed_at_every_call(library: Path) -> None:
    run_kills(library, 1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_power_lost_in_many_ways(job: Job, seed: int, tmp_path: Path) -> None:
    assert power_lost(job, tmp_path, 60, seed) >= (18 if job.name == "delete" else 500)  # all that there are for delete

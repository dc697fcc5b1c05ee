# SPDX-License-Identifier: BSD-3-Clause
"""Sections written, killed, failed and interrupted at every call."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.preload import library
from tests.record.faults import JOBS
from tests.record.test_faults import pytestmark, run_faults

__all__ = ["library", "pytestmark"]


@pytest.mark.parametrize("action", ["kill", "fail", "interrupt"])
@pytest.mark.parametrize("job", JOBS)
def test_hit_at_every_call(job: str, action: str, library: Path) -> None:
    run_faults(library, job, action, 1)

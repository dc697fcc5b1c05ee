# SPDX-License-Identifier: BSD-3-Clause
"""The whole program, hit at a sample of its system calls from outside: what the test table of calls cannot miss."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.preload import library, linux_only, run
from tests.faults.program import STORIES
from tests.faults.story import memory

EVERY = 59

__all__ = ["library"]

pytestmark = linux_only


@pytest.mark.parametrize("action", ["kill", "fail", "interrupt"])
@pytest.mark.parametrize("story", STORIES)
def test_hit_at_a_call(story: str, action: str, library: Path) -> None:
    with memory() as folder:
        calls = run(library, "tests.faults.program", story, action, str(EVERY), str(folder / "x"))
    assert int(calls) > 100

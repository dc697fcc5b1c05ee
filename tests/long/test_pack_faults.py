# SPDX-License-Identifier: BSD-3-Clause
"""Packing and unpacking killed, failed and interrupted at every call."""

from __future__ import annotations

import pytest

from tests.pack.test_faults import library, memory, pytestmark, run_faults

__all__ = ["library", "memory", "pytestmark"]


@pytest.mark.parametrize("action", ["kill", "fail", "interrupt"])
@pytest.mark.parametrize("job", ["pack", "replace", "remove", "unpack"])
def test_hit_at_every_call(job, action, library, memory):
    run_faults(library, memory, job, action, 1)

# SPDX-License-Identifier: BSD-3-Clause
"""Every call of the stories of a stream, every fault; many power losses; 5000 tilings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.story import memory
from tests.stream.story import STORIES
from tests.stream.sweep import FAULTS, Powered, sweep
from tests.stream.test_tilings import check_tilings


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", STORIES)
def test_faults(name: str, fault: str, threads: int) -> None:
    with memory() as folder:
        calls = sweep([name], folder / "s", [fault], 1, threads=threads)
        print(f"{name}, {fault}, {threads} threads: {calls} calls")


@pytest.mark.parametrize("name", STORIES)
def test_power(name: str) -> None:
    with memory() as folder:
        told = Powered(name, folder)
        told.lose(1.0, 20, 0.1)
        print(f"{name}: {len(told.seen)} states, {told.went_on} gone on with")


def test_tilings(tmp_path: Path) -> None:
    check_tilings(range(5000))

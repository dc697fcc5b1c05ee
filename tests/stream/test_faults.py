# SPDX-License-Identifier: BSD-3-Clause
"""A sample of the faults and power losses; tests/long/test_streams.py has every call."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.story import memory
from tests.stream.story import STORIES, Calls, Story
from tests.stream.sweep import FAULTS, Powered, sweep


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory() as found:
        yield found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", STORIES)
def test_no_call_that_fails_costs_a_record(name: str, threads: int, folder: Path) -> None:
    step = 101
    for k, fault in enumerate(FAULTS):
        assert sweep([name], folder / "s", [fault], step, 1 + 19 * k % 23, threads) > 0


@pytest.mark.parametrize("name", STORIES)
def test_a_power_loss_leaves_the_last_commit(name: str, folder: Path) -> None:
    told = Powered(name, folder)
    told.lose(0.1, 2, 0.2)
    assert len(told.seen) > 3


def test_without_durability_nothing_is_synced(folder: Path) -> None:
    for durability, synced in ((None, False), ("fsync", True)):
        files = Calls()
        story = Story(folder / "s", "append", files, durability)
        story.tell("C a a a S D R a D T a D")
        story._leave()
        assert any(op == "s" for op, *_ in files.log) == synced
        shutil.rmtree(folder / "s")


def test_each_file_is_synced_before_its_rename_and_its_name_after(folder: Path) -> None:
    files = Calls()
    story = Story(folder / "s", "append", files)
    story.tell("C a a a S D")
    story._leave()
    synced: set[bytes] = set()
    names: dict[int, bytes] = {}
    unsynced: set[bytes] = set()
    for op, fd, _, data in files.log:
        if op == "o":
            names[fd] = data
        elif op == "s":
            synced.add(names[fd])
            unsynced.discard(names[fd])
        elif op == "r":
            old, new = data.split(b"\0")
            assert old in synced, old
            if new.endswith(b"/output_manifest.json"):
                assert not unsynced, "what the manifest names has no lasting name"
            unsynced.add(new.rpartition(b"/")[0])
    assert not unsynced - {b"%s/s/locks" % bytes(folder)}

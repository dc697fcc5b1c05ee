# SPDX-License-Identifier: BSD-3-Clause
"""A sample of the power losses; tests/long/test_power.py goes through many more."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.faults.story import COLUMN, Teller, memory
from tests.power.disk import Disk, State
from tests.power.loss import SCENARIOS, Scenario, Simulation, tell

#: Of the calls of each story, the share after which the power is lost.
SHARE = 0.08


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_power_loss_leaves_the_last_durable_flush(scenario: Scenario) -> None:
    started = time.process_time()
    with memory() as folder:
        simulation = Simulation(scenario, folder)
        simulation.lose(Disk(simulation.home), simulation.told, 2, 0, SHARE)
    seconds = time.process_time() - started
    print(f"{scenario.name}: {len(simulation.seen)} states, {simulation.recovered} written on, {seconds:.1f} s")


# ---- the model itself --------------------------------------------------------------------------------------------


def every(calls: list[tuple[str, int, int, bytes]]) -> list[State]:
    disk = Disk("/m")
    for call in calls:
        disk.apply(*call)
    return list(disk.losses(random.Random(0), 10**6))


NEW = [("o", 3, 0o102, b"/m/a"), ("w", 3, 0, b"x" * 600)]
NAMED = [("o", 9, 0, b"/m"), ("s", 9, 0, b"")]


def test_nothing_synced_is_lost_kept_or_torn() -> None:
    found = {state.get("a") for state in every(NEW)}
    assert None in found and b"x" * 600 in found
    assert b"x" * 512 + bytes(88) in found and bytes(512) + b"x" * 88 in found and b"" in found


def test_a_name_may_be_there_without_the_bytes() -> None:
    assert {state["a"] for state in every(NEW + NAMED)} >= {b"", b"x" * 600}


def test_synced_bytes_need_a_synced_name() -> None:
    synced = [*NEW, ("s", 3, 0, b"")]
    assert {state.get("a") for state in every(synced)} == {None, b"x" * 600}
    assert every(synced + NAMED) == [{"a": b"x" * 600}]


def test_a_rename_keeps_the_old_file_or_brings_the_new() -> None:
    old = [("o", 3, 0o102, b"/m/a"), ("w", 3, 0, b"old"), ("s", 3, 0, b""), *NAMED]
    new = [("o", 4, 0o102, b"/m/.a"), ("w", 4, 0, b"new"), ("s", 4, 0, b""), ("r", 0, 0, b"/m/.a\0/m/a")]
    assert {state["a"] for state in every(old + new)} == {b"old", b"new"}


def test_writes_to_one_sector_do_not_overtake_each_other() -> None:
    base = [("o", 3, 0o102, b"/m/a"), ("w", 3, 0, b"--"), ("s", 3, 0, b""), *NAMED]
    both = [*base, ("w", 3, 0, b"1"), ("w", 3, 1, b"2")]
    assert {state["a"] for state in every(both)} == {b"--", b"1-", b"12"}


# ---- what was found ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [[".zarr.json.tmp"], ["zarr.json", "meta/.zarr.json.tmp"]])
def test_what_a_creation_left_can_be_replaced(left: list[str], tmp_path: Path) -> None:
    for name in left:
        (tmp_path / "run.mrec" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run.mrec" / name).touch()
    Teller(tmp_path / "run.mrec", COLUMN).tell("W a X")


def test_overwriting_does_not_leave_what_it_would_refuse(tmp_path: Path) -> None:
    """A record's other folders go first, then what it is known by, each for good before the next."""
    teller = Teller(tmp_path / "run.mrec", COLUMN)
    teller.tell("C a X")
    (teller.path / "zoo").mkdir()
    told = tell(teller, "W")
    gone = [(op, data.decode()) for _, op, _, _, data in told.log if op in "du" and data.startswith(bytes(teller.path))]
    order = [path.removeprefix(f"{teller.path}/") for _, path in gone]
    wanted = ["trajectory/zarr.json", "zoo", "trajectory", "zarr.json"]
    assert [path for path in order if path in wanted] == wanted


# ---- with threads ------------------------------------------------------------------------------------------------


def barriers(calls: list[tuple[int, str, int, int, bytes]], home: str) -> list[list[tuple[str, str, int, bytes]]]:
    """The calls between those that order them, each lot sorted: a power loss makes no other difference. Without boot
    and process, and without the descriptors' numbers."""
    names: dict[int, str] = {}
    lots: list[list[tuple[str, str, int, bytes]]] = [[]]
    for _, op, fd, number, data in calls:
        if op == "o":
            names[fd] = data.decode()
        if op in "oc":
            continue
        name = names[fd] if op in "wts" else ""
        lots[-1].append((op, name.removeprefix(home), number, data.replace(home.encode(), b"")))
        if op in "srud":
            lots.append([])
    return [sorted(lot) for lot in lots]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_threads_make_the_same_calls(scenario: Scenario) -> None:
    """In the same order between syncs and renames: so what holds of power losses holds with threads too."""
    found = []
    for threads in (1, 2, 4):
        with memory() as folder:
            told = tell(Teller(folder / "run.mrec", scenario.kind, threads=threads), scenario.words)
            found.append(barriers(told.log, str(folder)))
    assert found[1] == found[0]
    assert found[2] == found[0]
    assert sum(len(lot) for lot in found[0]) > 50

# SPDX-License-Identifier: BSD-3-Clause
"""Stories that a power loss ends, at each call and in many ways; what is left is read, and written on."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mrec._core import FaultFiles
from tests.faults.story import (
    COLUMN,
    FULL,
    LATE_CELL,
    PAGES,
    RESTING,
    SLOTS,
    Kind,
    Point,
    Teller,
    Wrong,
    as_of_another_boot,
    check,
)
from tests.power.disk import Disk, State

#: Calls that change what a power loss may leave.
CHANGES = "wtrudm"

#: The record's name in the model.
NAME = "run.mrec"

DURABLE = f"{NAME}/trajectory/.durable"


@dataclass(frozen=True)
class Scenario:
    """A story, and how it is called."""

    name: str
    kind: Kind
    words: str


SCENARIOS = [
    Scenario("creation", FULL, "C a D"),
    Scenario("one column", COLUMN, "C a A a A a D a A a A D a A X"),
    Scenario("open tail", SLOTS, "C a D a A a A a A a A a D a A a A a A a X"),
    Scenario("kills of one column", COLUMN, "C a D a A a A K O a A K O a A a D a A"),
    Scenario("restart of one column", COLUMN, "C a D a A a A P O a A a D a A"),
    Scenario("cell appears", LATE_CELL, "C a D a A a A a D"),
    Scenario("several shards", COLUMN, "C a a a A a a D a a A a A a D a a a a a A a X"),
    Scenario("cell changes", FULL, "C a D a A a A D a A"),
    Scenario("a block comes to rest", RESTING, "C a D a A a A a A a A a A a D a A"),
    Scenario("steps go astray", FULL, "C a a a D a A a A D a A"),
    Scenario("rows change", FULL, "C a a a a a D a A a A D a A"),
    Scenario("every transition unsynced", FULL, "C a D a a A a a A a a A D a A X"),
    Scenario("torn index", PAGES, "C a a A a D a A a a A D a X"),
    Scenario("close and open", FULL, "C a A X O a A a A X O a A D"),
    Scenario("open after kills", FULL, "C a D a a A a a A K O a A K O a A D a A"),
    Scenario("open after a restart", FULL, "C a a D a A a a A P O a A a D a A"),
    Scenario("truncation in a shard", COLUMN, "C a a a a A a D a A T2 a A a a D a A X"),
    Scenario("truncation over transitions", FULL, "C a a a a a a a D T3 a A a D a A"),
    Scenario("truncation to nothing", FULL, "C a a a a a a a D T0 a A D"),
    Scenario("overwriting", FULL, "C a a D a A W a A D"),
]


@dataclass
class Span:
    """A word of a story: where its calls end in the log, and the points it stands between."""

    end: int
    between: tuple[Point, ...]
    making: bool


@dataclass
class Told:
    """A story as it was recorded: its calls, and the words they belong to."""

    log: list[tuple[int, str, int, int, bytes]]
    spans: list[Span]


def tell(teller: Teller, words: str) -> Told:
    """Run a story and record it."""
    files, spans = FaultFiles(), []

    def note(between: tuple[Point, ...]) -> None:
        spans.append(Span(files.recorded, between, teller.making))

    teller.on_point = note
    files.record()
    with files:
        teller.tell(words)
        teller.leave()
    return Told(files.log(), spans)


class Folder:
    """A directory that takes on one state after another, by what differs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state: State = {}
        path.mkdir()

    def put(self, state: State) -> None:
        """Hold this state, from a machine that was started again."""
        if DURABLE in state and state[DURABLE] is not None:
            state = {**state, DURABLE: as_of_another_boot(state[DURABLE])}
        for path in sorted(self.state.keys() - state.keys(), reverse=True):
            place = self.path / path
            place.rmdir() if self.state[path] is None else place.unlink()
        for path in sorted(path for path in state if path not in self.state or self.state[path] != state[path]):
            content = state[path]
            if content is None:
                (self.path / path).mkdir()
            else:
                (self.path / path).write_bytes(content)
        self.state = state

    def forget(self) -> None:
        """Something else wrote here."""
        shutil.rmtree(self.path)
        self.path.mkdir()
        self.state = {}


@dataclass
class Simulation:
    """The power losses of one scenario."""

    scenario: Scenario
    folder: Path
    seed: int = 0
    threads: int = 1
    again: float = 0.15  # how often a state is written on, and the power lost a second time
    seen: set[Any] = field(default_factory=set)
    recovered: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(f"{self.scenario.name} {self.seed}")
        self.reading, self.writing = Folder(self.folder / "read"), Folder(self.folder / "write")
        home = self.folder / "told"
        home.mkdir()
        self.told = tell(Teller(home / NAME, self.scenario.kind, threads=self.threads), self.scenario.words)
        self.home = str(home)

    def round(self, a_point: int) -> None:
        """At most so many losses at every call; those seen already do not count."""
        self.lose(Disk(self.home), self.told, a_point, 0)

    def lose(self, disk: Disk, told: Told, a_point: int, depth: int, share: float = 1.0) -> None:
        """Lose the power at the calls (a share of them) of a story that is told on a disk."""
        for calls, (between, making) in self.moments(disk, told):
            if share < 1.0 and self.rng.random() > share:
                continue
            for state in disk.losses(self.rng, a_point):
                if self.is_new(state, between):
                    self.examine(state, between, making, depth, told.log[:calls])

    def moments(self, disk: Disk, told: Told) -> Iterator[tuple[int, tuple[tuple[Point, ...], bool]]]:
        """Play the calls; after each that matters: how many there were, what is promised, whether a record is made."""
        spans = iter(told.spans)
        span = next(spans)
        for i, (end, *call) in enumerate(told.log):
            disk.apply(*call)
            while end > span.end:
                span = next(spans, Span(1 << 62, span.between[-1:], False))
            if end == span.end:  # the word is over: nothing but what it made holds
                yield i + 1, (span.between[-1:], False)
            elif call[0] in CHANGES:
                yield i + 1, (span.between, span.making)

    def is_new(self, state: State, between: tuple[Point, ...]) -> bool:
        key = hash((between, tuple(sorted(state.items(), key=lambda item: item[0]))))
        new = key not in self.seen
        self.seen.add(key)
        return new

    def examine(self, state: State, between: tuple[Point, ...], making: bool, depth: int, log: list[Any]) -> None:
        """Read a state; now and then write on from it, and lose the power again."""
        kind = self.scenario.kind
        try:
            self.reading.put(state)
            stands = check(self.reading.path / NAME, kind, between, "durable", making)
            if self.rng.random() < self.again:
                self.write_on(state, stands, depth)
        except Exception as e:
            if not hasattr(e, "__notes__"):
                e.add_note(report(self.scenario, log, state))
            raise

    def write_on(self, state: State, stands: Point | None, depth: int) -> None:
        """A new writer goes on from the state, and loses and doubles nothing, also when the power goes once more."""
        self.recovered += 1
        self.writing.forget()
        self.writing.put(state)
        path = self.writing.path / NAME
        generation = 50 * (depth + 1)
        teller = Teller(path, self.scenario.kind, stands or Point(), generation, threads=self.threads)
        told = tell(teller, "O a A a D a X" if stands else "W a D X")
        check(path, teller.kind, teller.under_way, "durable")
        left = list(path.rglob(".*"))
        if left:
            raise Wrong(f"left over: {left}")
        if depth < 2:
            self.lose(Disk(str(self.writing.path), state), told, 1, depth + 1, share=0.05)


def report(scenario: Scenario, log: list[tuple[int, str, int, int, bytes]], state: State) -> str:
    """The calls up to the power loss, and what it left."""
    names: dict[int, str] = {}
    lines = [f"{scenario.name}: {scenario.words}", "calls:"]
    for _, op, fd, number, data in log:
        if op == "o":
            names[fd] = os.fsdecode(data)
        elif op in "wts":
            what = {"w": f"write {len(data)} at {number}", "t": f"cut to {number}", "s": "sync"}[op]
            lines.append(f"  {what} {names.get(fd)}")
        elif op != "c":
            lines.append(f"  {({'r': 'rename', 'u': 'unlink', 'd': 'rmdir', 'm': 'mkdir'})[op]} {os.fsdecode(data)!r}")
    lines.append("left:")
    lines += [f"  {path} {'/' if data is None else len(data)}" for path, data in sorted(state.items())]
    return "\n".join(lines)

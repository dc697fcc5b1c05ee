# SPDX-License-Identifier: BSD-3-Clause
"""Stories during which a system call fails, for every call and every way to fail."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mrec
from mrec._core import FaultFiles
from mrec.errors import MrecError
from tests.faults.story import (
    COLUMN,
    FULL,
    LATE_CELL,
    PAGES,
    RESTING,
    UNSYNCED,
    WIDE,
    Kind,
    Point,
    Teller,
    Wrong,
    check,
    restart,
)


@dataclass(frozen=True)
class Fault:
    """One way to fail. `errno` is what the writer has to report; None: nothing, the story goes on."""

    name: str
    arm: dict[str, Any]
    errno: int | None
    only: str = ""  # letters of calls that it can strike; all when empty

    @property
    def stops(self) -> bool:
        """Whether the process is as good as dead."""
        return "stop" in self.arm


ERRORS = [
    Fault(f"{code} {'persistent' if persistent else 'transient'}", {"error": n, "persistent": persistent}, n)
    for code in ("ENOSPC", "EIO", "EDQUOT", "EACCES")
    for n in [getattr(errno, code)]
    for persistent in (False, True)
]
FAULTS = [
    *ERRORS,
    Fault("EINTR transient", {"error": errno.EINTR}, None),
    Fault("1 byte transient", {"short": 1}, None, "wp"),
    Fault("half transient", {"short": 2}, None, "wp"),
    Fault("half persistent", {"short": 2, "persistent": True}, None, "wp"),
    Fault("stop before", {"stop": "before"}, errno.EIO),
    Fault("stop within", {"stop": "within"}, errno.EIO, "w"),
]


@dataclass(frozen=True)
class Scenario:
    """What is there before (no fault strikes it), and the story that is told with faults."""

    name: str
    kind: Kind
    before: str
    words: str


SCENARIOS = [
    Scenario("create", FULL, "", "C a D X"),
    Scenario("chunks and shards", COLUMN, "C a D X", "O a a a A a a D a X"),
    Scenario("partial tails", WIDE, "C a K", "O a A a A a D a D a A a A X"),
    Scenario("cell changes", FULL, "C a D K", "O a A a D X"),
    Scenario("cell appears", LATE_CELL, "C a a A K", "O a A a D X"),
    Scenario("a block comes to rest", RESTING, "C a A a K", "O a A a A a A a A a D X"),
    Scenario("steps go astray", FULL, "C a a a a A K", "O a A a D X"),
    Scenario("rows change", FULL, "C a a a D a a A K", "O a A a A a D X"),
    Scenario("torn index", PAGES, "C a a D K", "O a A a D a X"),
    Scenario("reopen", FULL, "C a a a A a a a D a a A K", "O a X"),
    Scenario("reopen after a restart", FULL, "C a a a D a a A a a A P", "O a X"),
    Scenario("truncate", FULL, "C a a a a a a a a D X", "T3 a A a D X"),
    Scenario("truncate to nothing", FULL, "C a a a a a a a D K", "T0 a D X"),
    Scenario("close", FULL, "C a a A a a A K", "O a A X"),
    Scenario("without syncs", UNSYNCED, "", "C a a A a X"),
    Scenario("overwrite", FULL, "C a a a D K", "W a D X"),
]


@dataclass
class Sweep:
    """The runs of one scenario in a directory of its own."""

    scenario: Scenario
    folder: Path
    threads: int = 1
    files: FaultFiles = field(default_factory=FaultFiles)
    seen: set[Any] = field(default_factory=set)  # what was found right
    start: Teller = field(init=False)
    calls: str = field(init=False)

    def __post_init__(self) -> None:
        self.start = Teller(self.folder / "before.mrec", self.scenario.kind, threads=self.threads)
        self.start.tell(self.scenario.before)
        self.start.leave()
        _, self.calls = self.tell(None, 0)

    def points(self, fault: Fault) -> Iterator[int]:
        """The calls that a fault can strike."""
        return (k for k, call in enumerate(self.calls, 1) if not fault.only or call in fault.only)

    def tell(self, fault: Fault | None, k: int) -> tuple[tuple[Teller, OSError | None], str]:
        """The story on a copy, with the fault at call k; the error it ended with."""
        path = self.folder / "run.mrec"
        shutil.rmtree(path, ignore_errors=True)
        if self.start.path.exists():
            shutil.copytree(self.start.path, path)
        teller = replace(self.start, path=path, generation=self.start.generation + 1)
        self.files.arm(k, **fault.arm if fault else {})
        error = None
        with self.files:
            try:
                teller.tell(self.scenario.words)
            except OSError as e:
                # A writer that never came about lets go of the record by itself.
                error = e.with_traceback(None) if teller.writer else e
            if fault and not fault.stops:
                self.ask_again(teller, error)
            teller.leave()
        return (teller, error), self.files.calls

    def ask_again(self, teller: Teller, error: OSError | None) -> None:
        """A poisoned writer gives its first error again, also when it is closed; closing twice is no error."""
        writer = teller.writer
        if error is None or writer is None or writer.closed:
            return
        for again in (lambda: writer.append(teller.kind.frame((99, 99))), writer.flush, writer.close):
            try:
                again()
            except OSError as e:
                if (e.errno, str(e)) != (error.errno, str(error)):
                    raise Wrong(f"first {error}, then {e}") from None
            else:
                raise Wrong(f"{again} succeeded after {error}")
        writer.close()

    def run(self, fault: Fault, k: int) -> None:
        """One run, and what has to hold after it."""
        (teller, error), calls = self.tell(fault, k)
        struck, self_healed = self.files.struck, error is None
        if struck and fault.errno is not None and self_healed and not self.harmless(k, calls):
            raise Wrong(f"call {k} ({calls[k - 1]}) failed, and nothing was said")
        if error is not None and (error.errno != fault.errno or not error.filename):
            raise Wrong(f"{fault.name} was reported as {error!r}")
        making = teller.making and error is not None
        state = (teller.under_way, making, digest(teller.path))
        if state in self.seen:
            return
        stands = check(teller.path, teller.kind, teller.under_way, "published", making)
        if making and not fault.stops and not fault.arm.get("persistent") and self.start.point.published is None:
            self.retry_creation(teller.path)
        self.go_on(teller, stands)
        self.seen.add(state)

    def harmless(self, k: int, calls: str) -> bool:
        """A failed close of what was only read or is synced loses nothing; the last one lets go of the lock."""
        return calls[k - 1] == "c" and (self.scenario.kind is not UNSYNCED or k == len(calls))

    def retry_creation(self, path: Path) -> None:
        if path.exists():
            raise Wrong(f"a creation that failed left {sorted(p.name for p in path.iterdir())}")

    def go_on(self, teller: Teller, stands: Point | None) -> None:
        """With a new writer nothing is lost and nothing doubled, and no temporary file stays."""
        again = Teller(teller.path, teller.kind, stands or Point(), generation=50, threads=self.threads)
        again.tell("O" if stands else "W")
        left = [p for p in teller.path.rglob(".*") if p.name != ".durable"]
        if left:
            raise Wrong(f"left over: {left}")
        again.tell("a a A X")
        check(again.path, again.kind, again.under_way, "published")
        if list(teller.path.rglob(".*")):
            raise Wrong("a closed record holds hidden files")
        findings = mrec.verify(teller.path).findings
        if findings:
            raise Wrong(f"verify says {findings[0]}")
        restart(again.path)  # changes nothing: it is closed


def digest(path: Path) -> int:
    """All bytes and names below a directory."""
    return hash(tuple(sorted((str(p), p.read_bytes() if p.is_file() else b"") for p in path.rglob("*"))))


def describe(error: BaseException) -> str:
    """One line of what went wrong."""
    return f"{type(error).__name__}: {error}"


#: What a failed run raises.
FAILURES = (Wrong, OSError, MrecError)

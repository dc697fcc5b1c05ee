# SPDX-License-Identifier: BSD-3-Clause
"""A run: every peer does every job on every data set in turn, round after round."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mrec.bench import data as data_sets
from mrec.bench.data import DataSet
from mrec.bench.job import remove
from mrec.bench.jobs import JOBS
from mrec.bench.machine import describe
from mrec.bench.peers import PEERS
from mrec.bench.plugin import register
from mrec.bench.report import Report, Row
from mrec.bench.worker import Worker
from mrec.errors import MrecError

DATA = (
    "liquid:100x20000",
    "liquid:5000x400",
    "liquid:1000000x6",
    "crystal:5000x400",
    "chain:5000x400",
    "rhodopsin",
    "noise:5000x400",
)
PRECISIONS = (None, 1e-3, 1e-2)
QUICK_DATA = ("liquid:100x1000", "liquid:5000x30", "rhodopsin")
QUICK_PRECISIONS = (None, 1e-3)


@dataclass
class Run:
    """What to do. Empty jobs, peers or data mean all of them; plugins come on top.

    rounds: how often. out: a folder for what is written, which is on the file system that is measured. say: gets a line
    of progress.
    """

    out: Path
    jobs: Sequence[str] = ()
    peers: Sequence[str] = ()
    data: Sequence[str] = ()
    precisions: Sequence[float | None] = PRECISIONS
    rounds: int = 5
    plugins: Sequence[str] = ()
    say: Callable[[str], None] = field(default=lambda line: None)

    def report(self) -> Report:
        """Do it. MrecError when a name is unknown."""
        for plugin in self.plugins:
            register(plugin)
        jobs = _known("job", self.jobs, JOBS)
        peers = _known("peer", self.peers, PEERS)
        for spec in self.data:
            data_sets.check(spec)
        self.out.mkdir(parents=True, exist_ok=True)
        report = Report(machine=describe(self.out), rounds=self.rounds, command=sys.argv[1:])
        report.jobs = {name: {"about": JOBS[name].about, "unit": JOBS[name].unit} for name in jobs}
        with ExitStack() as stack:
            own = TemporaryDirectory(prefix="scratch-", dir=self.out, ignore_cleanup_errors=True)
            scratch = Path(stack.enter_context(own))
            workers = Workers(self.out, list(self.plugins), stack)
            for name in peers:
                worker = workers.of(name, 1)
                report.peers[name] = {"versions": worker.versions, "missing": worker.missing}
            there = [name for name in peers if report.peers[name]["missing"] is None]
            for spec in self.data or DATA:
                self._on(spec, jobs, there, workers, scratch, report)
        return report

    def _on(
        self, spec: str, jobs: list[str], peers: list[str], workers: Workers, scratch: Path, report: Report
    ) -> None:
        """All jobs on one data set."""
        try:
            data = data_sets.make(spec, scratch / "data")
        except MrecError as e:
            report.data[spec] = {"missing": str(e)}
            return
        report.data[spec] = {"frames": data.frames, "atoms": data.atoms}
        for precision in self.precisions:
            rows = {(job, name): Row(spec, precision, job, name) for job in jobs for name in peers}
            for turn in range(self.rounds):
                for job in jobs:
                    started = time.perf_counter()
                    for name in _rotated(peers, turn):
                        self._once(rows[job, name], workers, data, scratch, turn == 0)
                    spent = time.perf_counter() - started
                    self.say(f"{spec}, {label(precision)}, round {turn + 1} of {self.rounds}, {job}: {spent:.1f} s")
            for name in peers:
                remove(scratch / name)
            report.rows += rows.values()

    def _once(self, row: Row, workers: Workers, data: DataSet, scratch: Path, check: bool) -> None:
        """One turn of one peer at one job."""
        cores = JOBS[row.job].cores
        if cores > 1 and not PEERS[row.peer].threaded:
            row.reason = "works with one thread"
        if row.reason is not None:
            return
        answer = workers.of(row.peer, cores).ask(
            job=row.job,
            data=data.name,
            files=str(data.folder),
            precision=row.precision,
            folder=str(scratch / row.peer),
            check=check,
        )
        if "sample" in answer:
            row.samples.append(answer["sample"])
        elif "unsupported" in answer:
            row.reason = answer["unsupported"]
        else:
            row.reason, row.failed = answer["error"], True


class Workers:
    """A process for each peer, and one more for its jobs on more cores, started when it is first asked for."""

    def __init__(self, out: Path, plugins: list[str], stack: ExitStack) -> None:
        self._out, self._plugins, self._stack = out, plugins, stack
        self._started: dict[tuple[str, int], Worker] = {}

    def of(self, peer: str, cores: int) -> Worker:
        """The one that runs on so many cores."""
        if (peer, cores) not in self._started:
            worker = Worker(peer, cores, self._plugins, self._out / f"{peer}-{cores}.log")
            self._stack.callback(worker.close)
            self._started[peer, cores] = worker
        return self._started[peer, cores]


def label(precision: float | None) -> str:
    """How a precision is called."""
    return "raw" if precision is None else f"p={precision:g}"


def _known(kind: str, wanted: Sequence[str], there: dict[str, Any]) -> list[str]:
    for name in wanted:
        if name not in there:
            raise MrecError(f"there is no {kind} {name!r}; there are {', '.join(there)}")
    return [name for name in there if name in wanted or not wanted]


def _rotated(names: list[str], turn: int) -> Iterator[str]:
    """Another one first in every round."""
    at = turn % max(1, len(names))
    yield from names[at:] + names[:at]

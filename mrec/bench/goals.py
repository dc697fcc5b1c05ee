# SPDX-License-Identifier: BSD-3-Clause
"""The goals: what mrec aims at, each a figure or a ratio within one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrec.bench import probes
from mrec.bench.report import Missing, Report, Row, ratio
from mrec.bench.run import Run

SMALL, MEDIUM, LARGE, REAL = "liquid:100x", "liquid:5000x", "liquid:1000000x", "rhodopsin"
#: An fdatasync of fewer microseconds reaches no disk.
IN_MEMORY = 10
XTC = ("xtc-mdtraj", "xtc-mdanalysis", "xtc-chemfiles")
#: What the goals need of a run.
JOBS = ("append", "append-threaded", "read", "read-slabs", "read-again", "read-atom", "pack")
PEERS = ("mrec", "mrec-256KiB", "mrec-768KiB", "molrs", "plain", *XTC)
DATA = ("liquid:100x20000", "liquid:5000x400", "liquid:1000000x4", "rhodopsin")
QUICK_DATA = ("liquid:100x2000", "liquid:5000x60", "liquid:1000000x1", "rhodopsin")


@dataclass(frozen=True)
class Goal:
    """value gives a figure of a report, in the unit (none: a ratio), or raises Missing."""

    name: str
    value: Callable[[Report], float]
    bound: float
    at_least: bool
    unit: str = ""

    def of(self, report: Report) -> dict[str, Any]:
        """As it stands in a report."""
        found = {"name": self.name, "bound": self.bound, "at_least": self.at_least, "unit": self.unit}
        try:
            value = self.value(report)
        except Missing as e:
            return found | {"value": None, "held": None, "ratio": None, "verdict": str(e)}
        short = self.bound / value if self.at_least else value / self.bound
        held = short <= 1
        verdict = "held" if held else f"missed by {short:.2f}x"
        return found | {"value": value, "held": held, "ratio": 1 / short, "verdict": verdict}


def run(
    out: Path, rounds: int, quick: bool, say: Callable[[str], None], instructions: bool, data: Sequence[str] = ()
) -> Report:
    """The jobs that the goals need, the probes, and the verdicts. data: other sets than those they are meant for."""
    sets = data or (QUICK_DATA if quick else DATA)
    report = Run(out=out, jobs=JOBS, peers=PEERS, data=sets, rounds=rounds, say=say).report()
    add(report, out, say, instructions)
    return report


def add(report: Report, out: Path, say: Callable[[str], None], instructions: bool) -> None:
    """Probes and verdicts, to a report of any run."""
    for name in probes.PROBES:
        if name != "instructions" or instructions:
            say(f"probe: {name}")
            report.probes[name] = probes.run(name, out)
    report.goals = [goal.of(report) for goal in GOALS]


# ---- figures of a report -----------------------------------------------------------------------------------------


def faster(job: str, data: str, precision: float | None, than: str, peer: str = "mrec", what: str = "cpu_us") -> Any:
    """How many times as fast as another peer is at a job."""
    return lambda report: ratio(
        fastest(report, job, than, data, precision), report.row(job, peer, data, precision), what
    )


def smaller(data: str, precision: float, than: str, peer: str = "mrec") -> Any:
    """The size on the disk, relative to another peer's."""
    return lambda report: ratio(
        report.row("append", peer, data, precision), fastest(report, "append", than, data, precision), "disk_bytes"
    )


def fastest(report: Report, job: str, peer: str, data: str, precision: float | None) -> Row:
    """The row of a peer; of "xtc" that of the library that is the fastest in this run."""
    if peer != "xtc":
        return report.row(job, peer, data, precision)
    found = [row for name in XTC if (row := _row(report, job, name, data, precision)) is not None and row.samples]
    if not found:
        raise Missing("no library that writes XTC")
    return min(found, key=lambda row: row.median("cpu_us"))


def _row(report: Report, job: str, peer: str, data: str, precision: float | None) -> Row | None:
    try:
        return report.row(job, peer, data, precision)
    except Missing:
        return None


def microseconds(job: str, data: str, precision: float | None) -> Any:
    """CPU time of mrec, a frame or call."""
    return lambda report: report.row(job, "mrec", data, precision).median("cpu_us")


def gigabytes(job: str, data: str, precision: float | None) -> Any:
    """Of f64 a second."""

    def value(report: Report) -> float:
        row = report.row(job, "mrec", data, precision)
        return 24 * float(report.data[row.data]["atoms"]) / row.median("cpu_us") / 1e3

    return value


def threads(data: str) -> Any:
    """Two threads against one, by the wall clock."""
    return lambda report: ratio(
        report.row("append", "mrec", data, 1e-3), report.row("append-threaded", "mrec", data, 1e-3), "wall_us"
    )


def peak(report: Report) -> float:
    """The most memory that appending takes beyond the caller's arrays, over all data, in MiB."""
    rows = [row for row in report.rows if row.job == "append" and row.peer == "mrec" and row.samples]
    if not rows:
        raise Missing("not in this run")
    return max(row.median("peak_bytes") for row in rows) / 2**20


def probe(name: str, what: str, less: str | None = None, per: str | None = None) -> Any:
    """A figure of a probe, less another, or relative to it."""

    def value(report: Report) -> float:
        found = report.probes.get(name, {"missing": "not in this run"})
        if "missing" in found:
            raise Missing(found["missing"])
        figures = found["figures"]
        return (figures[what] - (figures[less] if less else 0)) / (figures[per] if per else 1)

    return value


def growth(form: str) -> Any:
    """Memory of a long run over that of a short one."""
    return probe("memory", f"{form}, 1000 frames, MiB", less=f"{form}, 100 frames, MiB")


def flush_time(report: Report) -> float:
    """A durable flush, relative to as many fdatasync calls as it may make syncs."""
    if probe("durable flush", "fdatasync, us")(report) < IN_MEMORY:
        raise Missing("syncs cost nothing here: --out is in memory")
    syncs = probe("durable flush", "syncs allowed")(report)
    return probe("durable flush", "flush, us", per="fdatasync, us")(report) / float(syncs)


def least(name: str, value: Callable[[Report], float], bound: float, unit: str = "") -> Goal:
    """At least so much."""
    return Goal(name, value, bound, True, unit)


def most(name: str, value: Callable[[Report], float], bound: float, unit: str = "") -> Goal:
    """At most so much."""
    return Goal(name, value, bound, False, unit)


def against_xtc(data: str, name: str, precision: float, chunk: str) -> tuple[Goal, Goal]:
    """With the chunks that make files small."""
    how = f"p={precision:g}, {chunk} a chunk, {name}"
    return (
        most(f"size, {how}: of XTC", smaller(data, precision, "xtc", f"mrec-{chunk}"), 1),
        least(f"append, {how}: times XTC", faster("append", data, precision, "xtc", f"mrec-{chunk}"), 1),
    )


GOALS = (
    least("append, raw, 5000 atoms: of a gathered pwrite", faster("append", MEDIUM, None, "plain"), 0.85),
    least("append, raw, 1,000,000 atoms: of a gathered pwrite", faster("append", LARGE, None, "plain"), 0.85),
    least("append, raw, 5000 atoms: times molrs", faster("append", MEDIUM, None, "molrs"), 2.5),
    least("append, raw, 1,000,000 atoms: times molrs", faster("append", LARGE, None, "molrs"), 2.5),
    least("append, p=1e-3, 5000 atoms: times molrs", faster("append", MEDIUM, 1e-3, "molrs"), 5),
    least("append, p=1e-3, 5000 atoms: times XTC", faster("append", MEDIUM, 1e-3, "xtc"), 2.5),
    most("size, p=1e-3, 5000 atoms: of molrs", smaller(MEDIUM, 1e-3, "molrs"), 0.90),
    *against_xtc(MEDIUM, "5000 atoms", 1e-2, "256KiB"),
    *against_xtc(MEDIUM, "5000 atoms", 1e-3, "256KiB"),
    *against_xtc(REAL, "rhodopsin", 1e-2, "768KiB"),
    *against_xtc(REAL, "rhodopsin", 1e-3, "768KiB"),
    least("two threads, p=1e-3, 5000 atoms: times one", threads(MEDIUM), 1.7),
    least("two threads, p=1e-3, 1,000,000 atoms: times one", threads(LARGE), 1.7),
    most("append, raw, 100 atoms, everything included", microseconds("append", SMALL, None), 1.5, "us"),
    most("append, p=1e-3, 100 atoms, everything included", microseconds("append", SMALL, 1e-3), 3.5, "us"),
    most("the call itself, from Python, over its copy", probe("append call", "raw, ns", less="copy, ns"), 250, "ns"),
    most("the call itself, from C, over its copy", probe("append call in C", "raw, ns", less="copy, ns"), 60, "ns"),
    least("read, raw, 5000 atoms: of preadv", faster("read", MEDIUM, None, "plain"), 0.7),
    least("read in slabs, raw, 5000 atoms: of preadv", faster("read-slabs", MEDIUM, None, "plain"), 0.7),
    least("read, p=1e-3, 5000 atoms", gigabytes("read", MEDIUM, 1e-3), 1.5, "GB/s"),
    least("read in slabs, p=1e-3, 5000 atoms", gigabytes("read-slabs", MEDIUM, 1e-3), 1.5, "GB/s"),
    most("random frame, warm, raw, 100 atoms", microseconds("read-again", SMALL, None), 15, "us"),
    most("random frame, warm, raw, 5000 atoms", microseconds("read-again", MEDIUM, None), 50, "us"),
    most("random frame, warm, p=1e-3, 5000 atoms", microseconds("read-again", MEDIUM, 1e-3), 110, "us"),
    least("one atom over all frames, raw, 5000 atoms: times molrs", faster("read-atom", MEDIUM, None, "molrs"), 5),
    most("durable flush: syncs, of those allowed", probe("durable flush", "syncs", per="syncs allowed"), 1),
    most("durable flush: of the time of as many fdatasync as allowed", flush_time, 1.5),
    most("memory of appending, over the caller's arrays", peak, 64, "MiB"),
    most("memory, ten times the frames, raw: more by", growth("raw"), 1, "MiB"),
    most("memory, ten times the frames, p=1e-3: more by", growth("p=1e-3"), 1, "MiB"),
    most("open a closed record of ten arrays", probe("open", "100000 frames, ms"), 5, "ms"),
    most(
        "open, a thousand times the frames: of the time", probe("open", "100000 frames, ms", per="100 frames, ms"), 1.1
    ),
    least("pack, 1,000,000 atoms: of a copy", faster("pack", LARGE, None, "plain", what="wall_us"), 0.85),
)

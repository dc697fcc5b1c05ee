# SPDX-License-Identifier: BSD-3-Clause
"""What a run found: medians and their spread, as JSON and as tables."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMAT = 1


class Missing(Exception):
    """A figure that a run does not have; the text says why."""


@dataclass
class Row:
    """One peer at one job: a sample of each round, or the reason why there is none."""

    data: str
    precision: float | None
    job: str
    peer: str
    samples: list[dict[str, Any]] = field(default_factory=list)
    reason: str | None = None
    failed: bool = False

    def median(self, what: str) -> float:
        """Of wall_us, cpu_us, peak_bytes or disk_bytes; Missing when there is none."""
        found = [sample[what] for sample in self.samples if sample[what] is not None]
        if not found:
            raise Missing(f"{self.peer}: {self.reason or f'no {what}'}")
        return statistics.median(found)

    def to_json(self, atoms: int, frames: int) -> dict[str, Any]:
        """As docs/benchmarks.md says."""
        row: dict[str, Any] = {"data": self.data, "precision": self.precision, "job": self.job, "peer": self.peer}
        if not self.samples:
            return row | {"reason": self.reason, "failed": self.failed}
        for what in ("wall_us", "cpu_us"):
            found = [sample[what] for sample in self.samples]
            row[what] = {"median": statistics.median(found), "least": min(found), "most": max(found)}
        peaks = [sample["peak_bytes"] for sample in self.samples if sample["peak_bytes"] is not None]
        row["peak_bytes"] = max(peaks) if peaks else None
        row["disk_bytes"] = size = self.samples[-1]["disk_bytes"]
        row["bytes_per_atom_frame"] = None if size is None else size / (atoms * frames)
        return row | {"samples": self.samples, "failed": self.failed}


@dataclass
class Report:
    """All of a run. peers, data: by name, with the reason where one is missing. goals, probes: see goals and probes."""

    machine: dict[str, Any]
    rounds: int
    command: list[str] = field(default_factory=list)
    jobs: dict[str, dict[str, str]] = field(default_factory=dict)
    peers: dict[str, dict[str, Any]] = field(default_factory=dict)
    data: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    probes: dict[str, dict[str, Any]] = field(default_factory=dict)
    goals: list[dict[str, Any]] = field(default_factory=list)

    def row(self, job: str, peer: str, data: str, precision: float | None = None) -> Row:
        """The row of a data set whose name begins so; Missing when the run has none."""
        for row in self.rows:
            if (row.job, row.peer, row.precision) == (job, peer, precision) and row.data.startswith(data):
                return row
        reason = self.peers.get(peer, {}).get("missing") or "not in this run"
        raise Missing(f"{peer}: {reason}")

    @property
    def failures(self) -> list[Row]:
        """Where a peer did what it should not: an error, or other values than those that went in."""
        return [row for row in self.rows if row.failed]

    def to_json(self) -> dict[str, Any]:
        """As docs/benchmarks.md says."""
        sizes = {name: (found.get("atoms", 0), found.get("frames", 0)) for name, found in self.data.items()}
        return {
            "format": FORMAT,
            "machine": self.machine,
            "command": self.command,
            "rounds": self.rounds,
            "jobs": self.jobs,
            "peers": self.peers,
            "data": self.data,
            "rows": [row.to_json(*sizes[row.data]) for row in self.rows],
            "probes": self.probes,
            "goals": self.goals,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Report:
        """What `to_json` gave."""
        members = {name: document[name] for name in ("machine", "rounds", "command", "jobs", "peers", "data")}
        rows = [
            Row(
                **{name: row[name] for name in ("data", "precision", "job", "peer", "failed")},
                samples=row.get("samples", []),
                reason=row.get("reason"),
            )
            for row in document["rows"]
        ]
        return cls(**members, rows=rows, probes=document["probes"], goals=document["goals"])

    def save(self, out: Path) -> None:
        """results.json and results.md in a folder."""
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")
        (out / "results.md").write_text(self.markdown(), encoding="utf-8")

    # ---- tables ----------------------------------------------------------------------------------------------------

    def markdown(self) -> str:
        """The whole report."""
        parts = [self._head(), self.goals_table(), self._probes()]
        for data, found in self.data.items():
            if "missing" in found:
                parts.append(f"## {data}\n\nMissing: {found['missing']}\n")
                continue
            parts.append(f"## {data}\n\n{found['atoms']:,} atoms, {found['frames']:,} frames.\n")
            precisions = dict.fromkeys(row.precision for row in self.rows if row.data == data)
            parts += [self._table(data, precision) for precision in precisions]
        return "\n".join(part for part in parts if part)

    def _head(self) -> str:
        machine = self.machine
        lines = [
            f"{machine['cpu']} ({', '.join(machine['features']) or machine['architecture']}), {machine['cores']} cores,"
            f" {machine['memory_bytes'] / 2**30:.0f} GiB; {machine['kernel']}; {machine['file_system']}; "
            f"Python {machine['python']}, numpy {machine['numpy']}. Medians of {self.rounds} rounds.\n"
        ]
        for name, peer in self.peers.items():
            versions = ", ".join(f"{package} {version}" for package, version in peer["versions"].items())
            lines.append(
                f"- {name}: {versions or 'numpy'}"
                if peer["missing"] is None
                else f"- {name}: missing ({peer['missing']})"
            )
        lines += ["", *(f"- *{name}* (a {job['unit']}): {job['about']}" for name, job in self.jobs.items())]
        return "\n".join(lines) + "\n"

    def _table(self, data: str, precision: float | None) -> str:
        """A line for each peer, a column for each job that somebody did."""
        rows = {(row.job, row.peer): row for row in self.rows if row.data == data and row.precision == precision}
        peers = [name for name in self.peers if any(row.samples for row in rows.values() if row.peer == name)]
        jobs = [name for name in self.jobs if any(row.samples for row in rows.values() if row.job == name)]
        if not peers:
            return ""
        title = "raw" if precision is None else f"p={precision:g}"
        atoms, frames = self.data[data]["atoms"], self.data[data]["frames"]
        lines = [
            f"### {data}, {title}: microseconds a frame or call, wall (CPU)\n",
            "| | B/atom/frame | peak of append, MB | " + " | ".join(jobs) + " |",
            "|---|" + "--:|" * (len(jobs) + 2),
        ]
        for peer in peers:
            append = rows.get(("append", peer))
            size = cell(append, "disk_bytes", lambda found: figure(found / (atoms * frames)))
            peak = cell(append, "peak_bytes", lambda found: figure(found / 1e6))
            times = [self._times(rows.get((job, peer))) for job in jobs]
            lines.append(f"| {peer} | {size} | {peak} | " + " | ".join(times) + " |")
        failed = [f"- {row.peer}, {row.job}: {str(row.reason).splitlines()[-1]}" for row in rows.values() if row.failed]
        return "\n".join([*lines, "", *(["Failed:", "", *failed, ""] if failed else [])])

    @staticmethod
    def _times(row: Row | None) -> str:
        wall, cpu = (cell(row, what, figure) for what in ("wall_us", "cpu_us"))
        return wall if wall in ("-", "failed") else f"{wall} ({cpu})"

    def goals_table(self) -> str:
        """What is aimed at, and how far it is."""
        if not self.goals:
            return ""
        lines = ["## Goals\n", "| | goal | found | |", "|---|---|--:|---|"]
        for goal in self.goals:
            sign = "≥" if goal["at_least"] else "≤"
            unit = f" {goal['unit']}" if goal["unit"] else ""
            found = "-" if goal["value"] is None else f"{figure(goal['value'])}{unit}"
            lines.append(f"| {goal['name']} | {sign} {goal['bound']:g}{unit} | {found} | {goal['verdict']} |")
        return "\n".join(lines) + "\n"

    def _probes(self) -> str:
        lines = []
        for name, probe in self.probes.items():
            if "missing" in probe:
                lines.append(f"| {name} | missing: {probe['missing']} | |")
            for what, value in probe.get("figures", {}).items():
                lines.append(f"| {name} | {what} | {figure(value)} |")
        return "\n".join(["## Single figures\n", "| | | |", "|---|---|--:|", *lines, ""]) if lines else ""


def cell(row: Row | None, what: str, show: Callable[[float], str]) -> str:
    """A figure of a row, or why there is none."""
    if row is None:
        return "-"
    try:
        return show(row.median(what))
    except Missing:
        return "failed" if row.failed else "-"


def figure(value: float) -> str:
    """Three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def ratio(above: Row, below: Row, what: str = "cpu_us") -> float:
    """The median of what the rounds say, each for itself; Missing when one of the two has no figures."""
    above.median(what), below.median(what)
    pairs = zip(above.samples, below.samples, strict=False)
    return statistics.median(a[what] / b[what] for a, b in pairs if a[what] is not None and b[what])


def replace_between(page: Path, name: str, text: str) -> None:
    """Put text between the lines `<!-- begin: NAME -->` and `<!-- end: NAME -->` of a page."""
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"{page} has no lines {begin.strip()} and {end.strip()}")
    page.write_text(f"{before}{begin}\n{text.strip()}\n\n{end}{after}", encoding="utf-8")

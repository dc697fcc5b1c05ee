# SPDX-License-Identifier: BSD-3-Clause
"""What was found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from mrec.verify.rules import RULES

#: Called with the chunks that are checked and their number.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and where.

    rule: its name, one of `mrec.verify.rules.RULES`. severity: "error", or "warning" for what the format lets another
    program do and mrec never does. array: path of the array, group or file in the record. shard: the shard's chunk key
    ("c/3"). chunk: its number in the shard, in C order. frame: the ordinal of the first frame that it touches.
    """

    rule: str
    message: str
    severity: str = "error"
    array: str | None = None
    shard: str | None = None
    chunk: int | None = None
    frame: int | None = None

    def __str__(self) -> str:
        places = [self.array] if self.array else []
        places += [f"{what} {at}" for what in ("shard", "chunk", "frame") if (at := getattr(self, what)) is not None]
        return f"{self.severity} {self.rule}: {' '.join(places)}{': ' if places else ''}{self.message}"

    def to_json(self) -> dict[str, Any]:
        """The finding as a JSON object; what is not known is null."""
        return asdict(self)


@dataclass
class Report:
    """The findings on a record, and how much was looked at: frames, chunks, and bytes in them."""

    path: str
    findings: list[Finding] = field(default_factory=list)
    frames: int = 0
    chunks: int = 0
    nbytes: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {**asdict(self), "ok": self.ok}


class Log:
    """Gathers the findings of one pass over a record, and counts what it reads."""

    def __init__(self, report: Report, progress: Progress | None) -> None:
        self.report = report
        self.expected = 0
        self._progress = progress
        self._seen: set[Finding] = set()

    def add(self, rule: str, array: str | None, message: str, **where: Any) -> None:
        """Note a finding, once."""
        assert rule in RULES, rule
        finding = Finding(rule, " ".join(message.split()), array=array, **where)
        if finding not in self._seen:
            self._seen.add(finding)
            self.report.findings.append(finding)

    def read(self, nbytes: int) -> None:
        """A chunk of so many bytes was read."""
        self.report.chunks += 1
        self.report.nbytes += nbytes
        if self._progress is not None:
            self._progress(self.report.chunks, max(self.expected, self.report.chunks))

# SPDX-License-Identifier: BSD-3-Clause
"""What was kept, and what was lost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from mrec.verify.report import Finding

#: Frames from the first to the last, both included.
Ranges = list[tuple[int, int]]
_SHOWN = 8


@dataclass(frozen=True)
class Loss:
    """A part of the trajectory that does not verify.

    part: its path below `trajectory/` ("atoms/x", "meta/pe", "step", "box"); a block ("atoms") where it is not known
    which rows frames have. frames: where it is lost, as the damaged record counts them. why: the first thing found
    wrong. left_out: no frame of the copy has this part; otherwise these frames are not in the copy. would_keep: the
    frames the copy would have without this part.
    """

    part: str
    frames: Ranges
    why: str
    left_out: bool
    would_keep: int

    def __str__(self) -> str:
        what = "left out" if self.left_out else "lost"
        return f"{what} {self.part}: {as_text(self.frames)}: {self.why}"


@dataclass
class Report:
    """How a repair went.

    frames: those of the damaged record, kept: of the copy. losses: by part. lost_frames: those not in the copy. beside:
    path -> why, for what was lost beside the trajectory, or the trajectory whole. notes: what else to know. findings:
    what was found wrong with the trajectory; remaining: what is found in the copy too, and costs nothing.
    """

    path: str
    output: str
    frames: int = 0
    kept: int = 0
    losses: list[Loss] = field(default_factory=list)
    lost_frames: Ranges = field(default_factory=list)
    beside: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    remaining: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was lost."""
        return not self.losses and not self.beside

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {**asdict(self), "ok": self.ok}

    def lines(self) -> list[str]:
        """The report for people."""
        lines = [str(loss) for loss in self.losses]
        lines += [f"lost {path}: {why}" for path, why in self.beside.items()]
        lines += self.notes + [f"kept as it is: {finding}" for finding in self.remaining]
        open_ = [loss for loss in self.losses if not loss.left_out and loss.part != "step"]
        best = max(open_, key=lambda loss: loss.would_keep, default=None)
        if best is not None and best.would_keep > self.kept:
            lines.append(f"without {best.part} (--drop {best.part}) {best.would_keep} frames would be kept")
        return lines


def ranges(flags: np.ndarray) -> Ranges:
    """The stretches of frames that are true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


def as_text(found: Ranges) -> str:
    """A few of the stretches, for people."""
    shown = [str(a) if a == b else f"{a}-{b}" for a, b in found[:_SHOWN]]
    more = len(found) - _SHOWN
    one = len(found) == 1 and found[0][0] == found[0][1]
    return ("frame " if one else "frames ") + ", ".join(shown) + (f" and {more} stretches more" if more > 0 else "")


def first_of(findings: Iterable[Finding], path: str) -> str | None:
    """What the first finding on an array says; None when there is none."""
    for finding in findings:
        if finding.array == path:
            places = [f"{what} {at}" for what in ("shard", "chunk") if (at := getattr(finding, what)) is not None]
            return f"{' '.join(places)}{': ' if places else ''}{finding.message}"
    return None

# SPDX-License-Identifier: BSD-3-Clause
"""A copy of a damaged record with everything that verifies.

What verifies is decided as `mrec.verify` does, chunk by chunk, and nothing else goes into the copy: no value is
guessed, filled in or taken from a chunk whose checksum does not match. The frames are written anew, everything beside
the trajectory is carried over byte for byte, and the copy is verified before it gets its name.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from mrec.repair.report import Loss, Report
from mrec.verify.report import Progress

__all__ = ["Loss", "Report", "repair"]


def repair(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    drop: Collection[str] = (),
    keep_frames: bool = False,
    trust_marker: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write what verifies of the record at `path` as a new record at `out`; what was lost is in the report.

    A frame is kept when all of it verifies. A part (a column, a per-step value, the times, the cell, a block) of which
    nothing verifies is left out, so that it costs no frames. drop: parts to leave out too, by their paths below
    `trajectory/` ("atoms/vx", "bonds", "meta/pe", "time", "box"). keep_frames: leave out every part that lost
    anything, and keep all frames with a step that verifies.

    trust_marker: says that the machine has not stopped since the record was last written; it is asked for when the
    record was not closed and the file that would tell is damaged. progress: called with chunks done and their number.

    `path` is opened for reading only; it may be packed. RecordLocked while a writer has it. RecordExists when there is
    anything at `out`; afterwards it is whole or not there. NotARecord, CorruptData: there is nothing to keep.

    >>> report = mrec.repair("water.mrec", "sound.mrec")
    >>> report.ok, report.kept, report.losses
    (True, 10, [])
    """
    from mrec.repair.record import repair_record  # slow to import, and most programs repair nothing

    return repair_record(path, out, drop, keep_frames, trust_marker, progress)

# SPDX-License-Identifier: BSD-3-Clause
"""molrs reads what mrec wrote, and each goes on where the other stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop import molrs_side, mrec_side
from tests.interop.compare import assert_frames
from tests.interop.model import Record


def test_molrs_reads_every_frame(record: Record, ours: Path) -> None:
    assert_frames(molrs_side.read(record, ours), record.resolved(), "molrs")


def test_mrec_reads_what_molrs_wrote(record: Record, tmp_path: Path) -> None:
    molrs_side.write(record, tmp_path / "a.mrec", record.frames)
    assert_frames(mrec_side.read(record, tmp_path / "a.mrec"), record.resolved(), "mrec")


@pytest.mark.parametrize("turns", [(mrec_side, molrs_side), (molrs_side, mrec_side)], ids=["mrec-molrs", "molrs-mrec"])
def test_each_appends_to_the_other(record: Record, tmp_path: Path, turns) -> None:
    path = tmp_path / "a.mrec"
    first, second = turns
    third = len(record.frames) // 3
    first.write(record, path, record.frames[:third])
    second.append(record, path, record.frames[third : 2 * third])
    first.append(record, path, record.frames[2 * third :])
    assert_frames(mrec_side.read(record, path), record.resolved(), "mrec")
    assert_frames(molrs_side.read(record, path), record.resolved(), "molrs")

# SPDX-License-Identifier: BSD-3-Clause
"""Four readers during 10,000 flushes of a record that is closed and opened again on the way."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

import mrec
from tests.concurrency.live import assert_frame, read_along, start
from tests.concurrency.processes import ended_well, together
from tests.long.results import save

FLUSHES = int(os.environ.get("MREC_FLUSHES", 10_000))
SEED = int(os.environ.get("MREC_SEED", 1))
READERS = 4


@pytest.mark.filterwarnings("ignore:This process.*fork")
def test_reading_during_ten_thousand_flushes(tmp_path: Path) -> None:
    path, started = tmp_path / "x.mrec", time.monotonic()
    writer = start(path, FLUSHES)
    reads = together(READERS, lambda k: str(read_along(path, FLUSHES, k % 2 == 1, SEED + k)))
    assert ended_well(writer)
    for i, frame in enumerate(mrec.open(path).trajectory):
        assert_frame(frame, i)
    figures = {"flushes": FLUSHES, "readers": READERS, "frames_read_meanwhile": sum(map(int, reads)), "failures": 0}
    save("readers", SEED, time.monotonic() - started, figures)
    assert min(map(int, reads)) > FLUSHES // 20

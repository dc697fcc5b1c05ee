# SPDX-License-Identifier: BSD-3-Clause
"""One bit flipped in every byte of small records, everything read each time. The table goes to build/flips.txt.

MREC_SEED draws other bits.
"""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.flips.flips import HEAD, PARTS, flip
from tests.flips.stores import KINDS

RESULTS = Path(__file__).parents[2] / "build" / "flips.txt"
SEED = int(os.environ.get("MREC_SEED", 1))


def test_no_flipped_bit_is_read_silently() -> None:
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(flip, kind, part, seed=SEED) for part in reversed(PARTS) for kind in KINDS]
        rows = sorted((task.result() for task in tasks), key=lambda row: PARTS.index(row.part))
    lines = [HEAD, *map(str, rows), *(place for row in rows for place in row.silent)]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join(lines) + "\n")
    print("\n".join(lines[: len(rows) + 1]))
    silent = [place for row in rows if row.part != "zarr.json" for place in row.silent]
    assert not silent, "\n".join(silent[:20])

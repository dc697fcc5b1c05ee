# SPDX-License-Identifier: BSD-3-Clause
"""One bit flipped in every byte of small records, everything read each time. MREC_SEED draws other bits."""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.flips.flips import HEAD, PARTS, flip
from tests.flips.stores import KINDS
from tests.long.results import save

SEED = int(os.environ.get("MREC_SEED", 1))


def test_no_flipped_bit_is_read_silently() -> None:
    started = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(flip, kind, part, seed=SEED) for part in reversed(PARTS) for kind in KINDS]
        rows = sorted((task.result() for task in tasks), key=lambda row: PARTS.index(row.part))
    save("flips", SEED, time.monotonic() - started, {"rows": [vars(row) for row in rows]})
    print(HEAD, *rows, sep="\n")
    silent = [place for row in rows if row.part != "zarr.json" for place in row.silent]
    assert not silent, "\n".join(silent[:20])

# SPDX-License-Identifier: BSD-3-Clause
"""Fourteen minutes of fuzzing for each target, two at a time. The table goes to build/fuzz.txt.

MREC_FUZZ_SECONDS says how long, MREC_SEED where to begin.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.fuzz import BUILD, HEAD, TARGETS, run

RESULTS = Path(__file__).parents[2] / "build" / "fuzz.txt"
SECONDS = int(os.environ.get("MREC_FUZZ_SECONDS", 840))
SEED = int(os.environ.get("MREC_SEED", 1))


def test_no_input_does_harm() -> None:
    found = BUILD / "long"
    shutil.rmtree(found, ignore_errors=True)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda target: run(target, SECONDS, found / target.name, SEED), TARGETS))
    lines = [HEAD, *map(str, done), *(each.finding for each in done if each.finding)]
    RESULTS.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    assert not any(each.finding for each in done)

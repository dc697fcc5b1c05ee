# SPDX-License-Identifier: BSD-3-Clause
"""Nine minutes of fuzzing for each target, two at a time. Inputs that were found stay below build/fuzz/long.

MREC_FUZZ_SECONDS says how long, MREC_SEED where to begin.
"""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from tests.fuzz.fuzz import BUILD, TARGETS, command, run
from tests.long.results import save

SECONDS = int(os.environ.get("MREC_FUZZ_SECONDS", 540))
SEED = int(os.environ.get("MREC_SEED", 1))


def test_no_input_does_harm() -> None:
    started, found = time.monotonic(), BUILD / "long"
    shutil.rmtree(found, ignore_errors=True)
    for target in TARGETS:
        command(target)
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda target: run(target, SECONDS, found / target.name, SEED), TARGETS))
    save("fuzz", SEED, time.monotonic() - started, {"targets": [asdict(each) for each in runs]})
    findings = [each.finding for each in runs if each.finding]
    assert not findings, "\n".join(findings)

# SPDX-License-Identifier: BSD-3-Clause
"""The whole sweep: every call of every scenario, every way to fail. The table goes to build/faults.txt.

MREC_SCENARIOS="create,close" runs these alone, MREC_THREADS=2 with a thread behind each writer.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.faults.story import memory
from tests.faults.sweep import FAULTS, SCENARIOS, Scenario, Sweep, describe

THREADS = int(os.environ.get("MREC_THREADS", 1))
RESULTS = Path(__file__).parents[2] / "build" / f"faults{'-threads' if THREADS > 1 else ''}.txt"


def whole(scenario: Scenario) -> tuple[Scenario, str, Counter[str], list[str]]:
    """Every run of one scenario: its calls, the points a fault, and what failed."""
    points: Counter[str] = Counter()
    failures = []
    with memory() as folder:
        sweep = Sweep(scenario, folder, THREADS)
        for fault in FAULTS:
            for k in sweep.points(fault):
                points[fault.name] += 1
                try:
                    sweep.run(fault, k)
                except Exception as e:
                    failures.append(f"{scenario.name} | {fault.name} | call {k} ({sweep.calls[k - 1]}) | {describe(e)}")
        return scenario, sweep.calls, points, failures


def test_every_call_fails_in_every_way() -> None:
    started = time.monotonic()
    names = os.environ.get("MREC_SCENARIOS")
    scenarios = [s for s in SCENARIOS if names is None or s.name in names.split(",")]
    lines, failures = [], []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        # The long ones first, so that the processes end together.
        for done in as_completed(
            [pool.submit(whole, s) for s in sorted(scenarios, key=lambda s: -len(s.words + s.before))]
        ):
            scenario, calls, points, failed = done.result()
            failures += failed
            for fault in FAULTS:
                bad = sum(f" | {fault.name} | " in line for line in failed)
                lines.append(f"{scenario.name:24} | {fault.name:18} | {points[fault.name]:6} | {bad}")
            print(f"{scenario.name}: {len(calls)} calls, {points.total()} runs, {len(failed)} failures", flush=True)
    head = f"{'scenario':24} | {'fault':18} | points | failures"
    total = sum(int(line.split("|")[2]) for line in lines)
    seconds = time.monotonic() - started
    summary = f"{total} runs, {len(failures)} failures, {seconds:.0f} s"
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join([head, *sorted(lines), summary, *failures]) + "\n")
    print(summary)
    assert not failures, "\n".join(failures[:20])

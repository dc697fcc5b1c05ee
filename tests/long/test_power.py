# SPDX-License-Identifier: BSD-3-Clause
"""Power losses until 20,000 different states a scenario were read. The table goes to build/power.txt.

MREC_STATES=1000 reads fewer, MREC_SCENARIOS="creation,one column" runs these alone, MREC_SEED draws others.
"""

from __future__ import annotations

import gc
import os
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.faults.story import memory
from tests.power.loss import SCENARIOS, Scenario, Simulation

RESULTS = Path(__file__).parents[2] / "build" / "power.txt"
STATES = int(os.environ.get("MREC_STATES", 20_000))
SEED = int(os.environ.get("MREC_SEED", 1))


def many(scenario: Scenario) -> tuple[str, str]:
    """A line of the table, and what failed."""
    gc.freeze()
    gc.set_threshold(100_000)  # looking for cycles took a tenth of the time
    started, failure, a_point = time.monotonic(), "", 1
    with memory() as folder:
        simulation = Simulation(scenario, folder, SEED)
        try:
            while len(simulation.seen) < STATES:
                before = len(simulation.seen)
                simulation.round(a_point)
                if len(simulation.seen) - before < before // 100:  # few new ones came: look wider
                    if a_point > STATES:
                        break
                a_point *= 2
        except Exception as e:
            failure = "".join(traceback.format_exception(e))
        states, seconds = len(simulation.seen), time.monotonic() - started
        calls, written = len(simulation.told.log), simulation.recovered
    rate = states / seconds
    return f"{scenario.name:28} | {calls:5} | {states:6} | {written:7} | {rate:9.0f} | {int(bool(failure))}", failure


def test_every_power_loss_leaves_the_last_durable_flush() -> None:
    names = os.environ.get("MREC_SCENARIOS")
    scenarios = [s for s in SCENARIOS if names is None or s.name in names.split(",")]
    lines = [f"{'scenario':28} | calls | states | written | states/s | failures"]
    failures = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for done in as_completed([pool.submit(many, scenario) for scenario in scenarios]):
            line, failure = done.result()
            lines.append(line)
            print(line, flush=True)
            failures += [failure] if failure else []
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join([*lines, *failures]) + "\n")
    assert not failures, failures[0]

# SPDX-License-Identifier: BSD-3-Clause
"""The state machine of mrec.testing, read by zarr-python and molrs too, with figures in build/results/prop.json; and
tests/zarr/test_prop.py at length, as many arrays a test.

MREC_EXAMPLES=100 runs fewer, MREC_SEED draws others.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections import Counter

from hypothesis import seed, settings
from hypothesis.stateful import run_state_machine_as_test

from mrec.testing import Model
from tests.long.results import in_parts, save
from tests.testing.peers import PeerMachine

EXAMPLES = int(os.environ.get("MREC_EXAMPLES", 1500))
SEED = int(os.environ.get("MREC_SEED", 1))
A_TIME = 50  # examples of one seed
STEPS = 30


class Counting(PeerMachine):
    """Counts what happens."""

    seen: Counter[str] = Counter()

    def append(self, writer, frame):
        self.seen["frames"] += 1
        super().append(writer, frame)

    def flush(self, writer, durable):
        self.seen["flushes"] += 1
        super().flush(writer, durable)

    def create(self, path, schema, **options):
        self.seen["records"] += 1
        return super().create(path, schema, **options)

    def reopen(self, path, at=None):
        self.seen["reopenings" if at is None else "truncations"] += 1
        return super().reopen(path, at)

    def read_elsewhere(self, path: str, model: Model) -> None:
        self.seen["read by zarr-python and molrs"] += 1
        super().read_elsewhere(path, model)

    def _kill(self) -> None:
        self.seen["kills between calls"] += 1
        super()._kill()

    def _write_until_killed(self, given, durable, after):
        self.seen["kills by SIGKILL"] += 1
        return super()._write_until_killed(given, durable, after)


def many(number: int, examples: int) -> tuple[Counter[str], str]:
    """What happened in so many examples of one seed, and what failed."""
    Counting.seen = Counter()
    how = settings(Counting.TestCase.settings, max_examples=examples, stateful_step_count=STEPS, database=None)
    try:
        run_state_machine_as_test(seed(number)(Counting), settings=how)
    except Exception as e:
        return Counting.seen, f"seed {number}: " + "".join(traceback.format_exception(e))
    return Counting.seen, ""


def test_any_turn_of_calls() -> None:
    started = time.monotonic()
    seen, failures = in_parts(many, EXAMPLES, A_TIME, SEED)
    save("prop", SEED, time.monotonic() - started, {"examples": EXAMPLES, **seen, "failures": failures})
    assert not failures, failures[0]


def test_arrays_of_any_kind() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/zarr/test_prop.py"]
    subprocess.run(command, env={**os.environ, "MREC_EXAMPLES": str(EXAMPLES)}, check=True)

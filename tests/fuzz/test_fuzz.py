# SPDX-License-Identifier: BSD-3-Clause
"""A minute of fuzzing for each target or less, two at a time, and every input that once found something.

MREC_SEED says where to begin. tests/long/test_fuzz.py is longer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.fuzz.fuzz import HERE, TARGETS, Run, Target, command, replay, run

SEED = int(os.environ.get("MREC_SEED", 1))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_was_found_once(target: Target) -> None:
    inputs = sorted((HERE / "found").glob(f"{target.name}-*"))
    if inputs:
        done = replay(target, inputs)
        assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Run]]]:
    """Every target under way."""
    with ThreadPoolExecutor(2) as pool:
        yield {t.name: pool.submit(run, t, t.seconds, tmp_path_factory.mktemp(t.name), SEED) for t in TARGETS}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_no_input_does_harm(target: Target, runs: dict[str, Future[Run]]) -> None:
    command(target)  # which skips in this thread
    done = runs[target.name].result()
    print(done)
    assert not done.finding, done.finding
    assert done.executions > 0

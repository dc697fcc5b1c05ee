# SPDX-License-Identifier: BSD-3-Clause
"""Each rule of docs/order-of-writes.md, broken, makes the suites fail. The table goes to build/mutations.txt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long.mutants import MUTANTS, REPOSITORY, Mutant, build, build_base

FOLDER = REPOSITORY / "build" / "mutants"
RESULTS = REPOSITORY / "build" / "mutations.txt"


@pytest.fixture(scope="module")
def objects() -> Iterator[dict[str, Path]]:
    RESULTS.unlink(missing_ok=True)
    yield build_base(FOLDER / "base")


def outcome(mutant: Mutant | None, objects: dict[str, Path], power: tuple[str, ...], stops: tuple[str, ...]) -> str:
    """The last line of what went wrong; "" when nothing did."""
    folder = FOLDER / "mutant"
    build(mutant, objects, folder)
    paths = os.pathsep.join((str(folder), str(REPOSITORY)))
    arguments = [f"power={','.join(power)}", f"stops={','.join(stops)}", f"rounds={4 if mutant else 1}"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.long.mutants", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    wrong = [line for line in done.stderr.splitlines() if line and not line.startswith(" ") and ": " in line]
    return (wrong[0] if wrong else "failed") if done.returncode else ""


def test_the_sound_build_passes(objects: dict[str, Path]) -> None:
    assert outcome(None, objects, ("one column",), ("partial tails", "close", "rows change")) == ""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_a_broken_rule_is_noticed(mutant: Mutant, objects: dict[str, Path]) -> None:
    found = outcome(mutant, objects, mutant.power, mutant.stops)
    line = f"{mutant.rule:66} | {found[:100] or ('commutes' if mutant.commutes else 'NOT NOTICED')}"
    print(line)
    with RESULTS.open("a") as results:
        results.write(line + "\n")
    assert bool(found) is not mutant.commutes, mutant.rule

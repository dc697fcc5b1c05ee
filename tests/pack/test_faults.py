# SPDX-License-Identifier: BSD-3-Clause
"""Packing and unpacking killed, failed and interrupted at their calls; tests/long does it at every one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EVERY = 9

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the faults are made by LD_PRELOAD")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("there is no C compiler")
    made = tmp_path_factory.mktemp("faults") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


@pytest.fixture
def memory() -> Iterator[Path]:
    """A directory in memory where there is one: the calls are the same, and nothing waits for a device."""
    shared = Path("/dev/shm")
    where = shared if shared.is_dir() and os.access(shared, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as path:
        yield Path(path)


@pytest.mark.parametrize("action", ["kill", "fail", "interrupt"])
@pytest.mark.parametrize("job", ["pack", "replace", "remove", "unpack"])
def test_hit_at_a_call(job, action, library, memory):
    run_faults(library, memory, job, action, EVERY)


def run_faults(library: Path, directory: Path, job: str, action: str, every: int) -> None:
    call = [sys.executable, "-W", "ignore", "-m", "tests.pack.faults", job, action, str(every), str(directory / "x")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": str(library)}
    done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100  # calls

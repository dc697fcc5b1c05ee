# SPDX-License-Identifier: BSD-3-Clause
"""The restart example: killed and gone on with, it ends in the bits of the run that nobody disturbed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mrec import stream

pytest.importorskip("mpi4py")
from tests.stream.test_mpi import MPIEXEC, ROOT


def run(ranks: int, path: Path, *options: str) -> str:
    command = [str(MPIEXEC), "-n", str(ranks), sys.executable, str(ROOT / "examples/heat/heat.py"), str(path), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120).stdout


def final(path: Path) -> bytes:
    (slot,) = stream.read_manifest(path).readable()
    assert stream.read_manifest(path).times[slot] == 200
    return stream.read_record(path, "temperature", slot).tobytes()


def test_a_killed_run_ends_in_the_same_bits(tmp_path: Path) -> None:
    assert "from step 0" in run(4, tmp_path / "whole", "--steps", "200")
    run(4, tmp_path / "killed", "--steps", "200", "--die-at", "150")
    assert stream.Stream(tmp_path / "killed").times().tolist() == [100]
    assert "from step 100" in run(4, tmp_path / "killed", "--steps", "200")
    run(4, tmp_path / "other", "--steps", "200", "--die-at", "100")
    assert "from step 50" in run(3, tmp_path / "other", "--steps", "200")
    assert final(tmp_path / "killed") == final(tmp_path / "whole") == final(tmp_path / "other")

# SPDX-License-Identifier: BSD-3-Clause
"""The stub of the extension module says what the module has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_stub_is_what_the_module_has(tmp_path: Path) -> None:
    pytest.importorskip("mypy.stubtest")
    command = [sys.executable, "-m", "mypy.stubtest", "mrec._core", "--allowlist", "tools/stubtest.txt", "--concise"]
    environ = {
        **os.environ,
        "MYPY_CACHE_DIR": str(tmp_path),
    }  # not in the tree, where another process may be writing one
    command += ["--mypy-config-file", "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

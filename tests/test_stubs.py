# SPDX-License-Identifier: BSD-3-Clause
"""The stub of the extension module says what the module has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def test_the_stub_is_what_the_module_has(tmp_path: Path) -> None:
    pytest.importorskip("mypy.stubtest")
    command = [sys.executable, "-m", "mypy.stubtest", "mrec._core", "--allowlist", "tools/stubtest.txt", "--concise"]
    config = tmp_path / "mypy.ini"  # without a cache in the tree, which another process may be writing
    config.write_text(f"[mypy]\ncache_dir = {tmp_path / 'cache'}\n")
    done = subprocess.run([*command, "--mypy-config-file", config], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

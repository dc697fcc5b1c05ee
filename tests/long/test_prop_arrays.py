# SPDX-License-Identifier: BSD-3-Clause
"""tests/zarr/test_prop.py at length; MREC_EXAMPLES says how many arrays a test, MREC_SEED which."""

from __future__ import annotations

import os
import subprocess
import sys


def test_arrays_of_any_kind() -> None:
    examples = os.environ.get("MREC_EXAMPLES", "2000")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/zarr/test_prop.py"],
        env={**os.environ, "MREC_EXAMPLES": examples},
        check=False,
    )
    assert done.returncode == 0

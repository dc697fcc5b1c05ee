# SPDX-License-Identifier: BSD-3-Clause
"""What `import mrec` brings in: nothing heavier than numpy, and nothing that most programs never call."""

from __future__ import annotations

import subprocess
import sys

LATER = ("mrec.repair.record", "mrec.verify.record", "mrec.testing", "mrec.cli", "concurrent.futures")
LATER += ("MDAnalysis", "ase", "mdtraj", "torch")


def test_what_is_imported_later() -> None:
    code = f"import sys, mrec; print([name for name in {LATER} if name in sys.modules], mrec.repair, mrec.verify)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] <function repair "), done.stdout

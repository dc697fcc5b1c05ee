# SPDX-License-Identifier: BSD-3-Clause
"""What `import mrec` brings in: nothing heavier than numpy, and nothing that most programs never call."""

from __future__ import annotations

import subprocess
import sys

import pytest

LATER = ("mrec.repair.record", "mrec.verify.record", "mrec.testing", "mrec.cli", "concurrent.futures")
LATER += ("MDAnalysis", "ase", "mdtraj", "torch", "xarray", "nglview", "matplotlib", "h5py", "zarr", "fsspec", "tqdm")


def test_what_is_imported_later() -> None:
    code = f"import sys, mrec; print([name for name in {LATER} if name in sys.modules], mrec.repair, mrec.verify)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] <function repair "), done.stdout


@pytest.mark.parametrize(
    ("library", "name", "module", "extra"),
    [
        ("MDAnalysis", "MDAnalysis", "mda", "mdanalysis"),
        ("mdtraj", "mdtraj", "mdtraj", "mdtraj"),
        ("ase", "ASE", "ase", "ase"),
        ("xarray", "xarray", "xarray", "xarray"),
    ],
)
def test_what_is_not_there_is_named_with_its_extra(library: str, name: str, module: str, extra: str) -> None:
    code = f"import sys; sys.modules[{library!r}] = None\nimport mrec.interop.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: mrec.interop.{module} needs {name} (")
    assert last.endswith(f"): pip install 'mrec[{extra}]'")
    assert "During handling" not in done.stderr

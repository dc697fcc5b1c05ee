# SPDX-License-Identifier: BSD-3-Clause
"""What `import mrec` brings in: nothing heavier than numpy, and nothing that most programs never call."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import mrec

ROOT = Path(__file__).parents[1]
LATER = ("mrec.repair.record", "mrec.verify.record", "mrec.testing", "mrec.cli", "concurrent.futures")
LATER += ("MDAnalysis", "ase", "mdtraj", "torch", "xarray", "nglview", "matplotlib", "h5py", "zarr", "fsspec", "tqdm")


def test_what_is_imported_later() -> None:
    code = f"import sys, mrec; print([name for name in {LATER} if name in sys.modules], mrec.repair, mrec.verify)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[] <function repair "), done.stdout


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert mrec.__version__ == project["version"]
    assert f"\nversion: {mrec.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    done = subprocess.run([sys.executable, "-m", "mrec.cli", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"mrec {mrec.__version__}\n"


def test_completion_offers_all_that_is_public() -> None:
    offered = dir(mrec)
    assert {*mrec.__all__, "__version__"} <= set(offered)
    assert [name for name in offered if name.startswith("_")] == ["__version__"]


@pytest.mark.parametrize(
    "library, extra, code",
    [
        ("hypothesis", "testing", "import mrec.testing"),
        ("pandas", "collection", "mrec.open_collection({path!r}).to_pandas()"),
        ("xarray", "collection", "mrec.open_collection({path!r}).to_xarray('a')"),
        ("fsspec", "collection", "mrec.open_collection('memory://set')"),
        ("ase", "ase", "import mrec.interop.ase"),
        ("MDAnalysis", "mdanalysis", "import mrec.interop.mda"),
        ("mdtraj", "mdtraj", "import mrec.interop.mdtraj"),
        ("xarray", "xarray", "import mrec.interop.xarray"),
        ("matplotlib", "plot", "from mrec.cli.plot import draw; draw('', None, [])"),
        ("nglview", "view", "from mrec.interop.nglview import view; view([])"),
        ("MDAnalysis", "convert", "from mrec.interop.mdanalysis_out import library; library('this')"),
    ],
)
def test_a_library_that_is_missing_is_told_with_the_extra_that_brings_it(
    tmp_path: Path, library: str, extra: str, code: str
) -> None:
    with mrec.CollectionWriter(tmp_path / "set") as writer, writer.add_dataset("a"):
        pass
    lines = "import sys; sys.modules[{library!r}] = None; import mrec; " + code
    call = [sys.executable, "-c", lines.format(library=library, path=str(tmp_path / "set"))]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("mrec.errors.MissingLibrary: ") and f"needs {library} (" in last
    assert last.endswith(f"pip install 'mrec[{extra}]'")
    assert "During handling" not in done.stderr

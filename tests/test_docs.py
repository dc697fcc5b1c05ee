# SPDX-License-Identifier: BSD-3-Clause
"""The examples in each page run, from top to bottom, and the links between pages lead somewhere."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
BLOCK = re.compile(r"^```([\w{}-]*)\n(.*?)^```", re.M | re.S)
EXAMPLE = re.compile(r"^```(python|sh)\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")

#: Blocks that are no programs, and calls that install something or take minutes.
SHOWN = {"text", "json", "console", "{toctree}", "{eval-rst}", "{include}"}
#: Whose other blocks are run by tests of their own: page -> languages.
ELSEWHERE = {
    "command-line.md": {"sh"},  # tests/cli/test_page.py
    "embedding.md": {"sh", "c", "cpp", "cython", "py"},  # tests/embed/test_page.py
    "streams.md": {"sh", "py"},  # tests/stream/test_page.py
    "engines.md": {"py"},  # tests/interop/test_openmm.py, test_lammps.py
}


def examples(page: Path) -> list[tuple[str, str, int]]:
    """Language, text and line of each block that runs here."""
    text = page.read_text(encoding="utf-8")
    skipped = ELSEWHERE.get(page.name, set())
    found = [(match[1], match[2], text.count("\n", 0, match.start()) + 1) for match in EXAMPLE.finditer(text)]
    return [example for example in found if example[0] not in skipped]


def test_the_pages_are_found() -> None:
    assert examples(ROOT / "README.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_run_somewhere(page: Path) -> None:
    languages = {match[1] for match in BLOCK.finditer(page.read_text(encoding="utf-8"))}
    assert languages <= {"python", "sh"} | SHOWN | ELSEWHERE.get(page.name, set())


@pytest.mark.filterwarnings("ignore::DeprecationWarning:MDAnalysis")
@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside run.xtc and run.gro, in pages about them."""
    monkeypatch.chdir(tmp_path)
    if "run.xtc" in page.read_text(encoding="utf-8"):
        for ending in ("xtc", "gro"):
            shutil.copy(ROOT / f"tests/data/rhodopsin/md_1u19.{ending}", f"run.{ending}")
    names: dict[str, Any] = {}
    for language, text, line in examples(page):
        if language == "sh":
            shell(text, page, line)
        else:
            exec(compile("\n" * line + text, str(page), "exec"), names)  # tracebacks show the page's line


def shell(text: str, page: Path, line: int) -> None:
    """Run a block as bash does, with this tree's `mrec`."""
    command = f'set -eo pipefail; mrec() {{ "{sys.executable}" -m mrec "$@"; }}\n{text}'
    programs = os.path.dirname(sys.executable)  # python itself, and what came with packages
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{page}, line {line}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    dead = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert not dead


def test_the_comparison_has_the_figures(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("comparison", ROOT / "tools/comparison.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = Path(shutil.copy(module.PAGE, tmp_path))
    module.write(page, module.FIGURES.read_text(encoding="utf-8"))
    assert page.read_text() == module.PAGE.read_text(), "run: python tools/comparison.py"

# SPDX-License-Identifier: BSD-3-Clause
"""docs/command-line.md says what --help says, and its examples run."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import mrec as library
from tests.cli.command import ROOT, mrec

PAGE = ROOT / "docs/command-line.md"


def script() -> Any:
    spec = importlib.util.spec_from_file_location("command_line", ROOT / "tools/command_line.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_as_the_script_writes_it() -> None:
    assert PAGE.read_text(encoding="utf-8") == script().page(), "run: python tools/command_line.py"


def test_help_prints_what_the_page_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"^## mrec (\w+)$", text, re.M)
    assert names == list(script().commands())
    for name in ("convert", "watch"):
        assert f"```text\n{mrec(name, '--help', env={'COLUMNS': '40', 'NO_COLOR': '1'}).stdout}```\n" in text


@pytest.mark.filterwarnings("ignore")
def test_the_examples_run(tmp_path: Path) -> None:
    data = ROOT / "tests/data/rhodopsin"
    shutil.copy(data / "md_1u19.xtc", tmp_path / "run.xtc")
    shutil.copy(data / "md_1u19.gro", tmp_path / "run.gro")
    schema = library.Schema().value("pe", "f64").value("temp", "f64")
    schema.block("atoms", rows=2).column("x", "f64")
    with library.TrajectoryWriter(tmp_path / "energies.mrec", schema, durable=False) as writer:
        for i in range(30):
            writer.append(i, atoms={"x": [0.0, i]}, pe=-float(i), temp=300.0)
    examples = script().EXAMPLES
    assert all(f"```sh\n{example}\n```" in PAGE.read_text(encoding="utf-8") for example in examples.values())
    shell = f'set -eo pipefail; mrec() {{ PYTHONPATH={ROOT} {sys.executable} -m mrec.cli "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-c", shell + "\n".join(examples.values())], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr
    made = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert made >= {
        "calphas.mrec",
        "whole.mrec",
        "run.trr",
        "first.pdb",
        "calphas.extxyz",
        "energies.png",
        "first.json",
    }
    assert len(library.open(tmp_path / "whole.mrec").trajectory) == 51


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "mrec", "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("usage: mrec ")

# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/embedding.md, compiled and run as the page says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import mrec
from tests.embed.conftest import ROOT, Installed

PAGE = (ROOT / "docs/embedding.md").read_text(encoding="utf-8")
FILE = re.compile(r"^```(?:c|cpp|cython|py)\n((?:/\*|//|#) (\S+\.\w+).*?)^```", re.M | re.S)
COMMANDS = re.compile(r"^```sh\n(.*?)^```", re.M | re.S)


def test_the_page_runs(installed: Installed, tmp_path: Path) -> None:
    names = []
    for text, name in FILE.findall(PAGE):
        (tmp_path / name).write_text(text, encoding="utf-8")
        names.append(name)
    assert names == ["walk.c", "drift.pyx", "use_drift.py", "engine.cpp", "use_engine.py"]
    copied = shutil.ignore_patterns("*.so", "lj_cython.c")
    shutil.copytree(ROOT / "examples/lennard_jones", tmp_path / "lennard_jones", ignore=copied)
    printed = installed.run("bash", "-euc", "\n".join(COMMANDS.findall(PAGE)), cwd=tmp_path)
    assert "1000 frames" in printed
    assert "\n51\n" in printed
    assert printed.count("343 atoms, 100 steps: ") == 2
    trajectory = mrec.open(tmp_path / "drift.mrec").trajectory
    assert trajectory.read("atoms", "x", frames=49)[0] == pytest.approx(0.5)
    assert mrec.open(tmp_path / "engine.mrec").trajectory.values("pe").tolist() == [-0.5 * i for i in range(10)]

# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site builds without a warning, and its notebook runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


class Page(HTMLParser):
    """The links and first heading of a page's article, without what surrounds it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self._within = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = dict(attrs)
        self.ids.add(found.get("id", ""))
        self._within += tag == "article"
        if tag == "a" and self._within:
            self.links.append(found.get("href", ""))

    def handle_endtag(self, tag: str) -> None:
        self._within -= tag == "article"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("myst_nb")
    pytest.importorskip("furo")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", folder / "doctrees"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}  # for the kernel of the notebook
    done = subprocess.run([*command, ROOT / "docs", folder / "html"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


def test_a_newcomer_finds_each_task_within_a_click(site: Path) -> None:
    links = Page(site / "index.html").links
    for task in ("write", "read", "convert", "restart"):
        assert f"{task}.html" in links
        assert re.search(rf"<h1>{task.capitalize()}<", (site / f"{task}.html").read_text(encoding="utf-8"))


def test_links_between_pages_lead_somewhere(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): Page(path) for path in site.glob("*.html")}
    dead = []
    for name, page in pages.items():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if "://" in link or not link:
                continue
            if target and not (site / target).exists():
                dead.append(f"{name}: {link}")
            elif anchor and (target or name) in pages and anchor not in pages[target or name].ids:
                dead.append(f"{name}: {link}")
    assert not dead


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.glob("*.html"):
        assert not re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', path.read_text()), path


def test_the_reference_has_what_is_public(site: Path) -> None:
    import mrec

    ids = Page(site / "api.html").ids
    modules = {"errors", "MrecError"}
    assert not [name for name in mrec.__all__ if name not in modules and f"mrec.{name}" not in ids]
    assert "mrec.errors.MrecError" in ids


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("nglview")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(ROOT / "docs/tutorial.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "store the notebook without its outputs"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    html = [output["data"]["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert any("springs.mrec" in text for text in html)
    assert any("Frame 199" in text for text in html)
    assert any("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for output in shown)
    assert not [output for output in shown if output.get("name") == "stderr"]

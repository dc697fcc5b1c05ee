# SPDX-License-Identifier: BSD-3-Clause
"""The examples in each page run, from top to bottom, and the links between pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")

with_examples = [page for page in PAGES if EXAMPLE.search(page.read_text())]


def test_the_pages_are_found() -> None:
    assert ROOT / "README.md" in with_examples


@pytest.mark.parametrize("page", with_examples, ids=lambda page: page.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, names = page.read_text(), {}
    for match in EXAMPLE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        exec(compile("\n" * line + match[1], str(page), "exec"), names)  # tracebacks show the page's line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    dead = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert not dead

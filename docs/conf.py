# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site: `make site` builds it into build/site."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent

project = "mrec"
author = copyright = "mrec developers"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx_copybutton"]
exclude_patterns = ["**.ipynb_checkpoints"]

myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_ipywidgets_js: dict[str, Any] = {}  # a page of the site loads nothing from elsewhere

autodoc_typehints = "none"  # the signatures stay short; the docstrings say what things are
autodoc_member_order = "bysource"
default_role = "py:obj"
toc_object_entries = False

html_theme = "furo"
html_title = f"mrec {release}"
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
copybutton_exclude = ".linenos, .gp, .go"

_OUTSIDE = re.compile(r"(!?)\[([^\]]*)\]\((\.\./[^)#]+)(#[^)]*)?\)")


#: Pages that have their place on the start page before they are written.
_TO_COME = {"mdanalysis", "ase", "mdtraj", "loading", "sections", "arrays", "streams", "collections"}


def _skip_what_is_to_come(app: Any, page: str, source: list[str]) -> None:
    if page == "index":
        missing = _TO_COME - app.env.found_docs
        source[0] = "".join(line for line in source[0].splitlines(True) if line.strip() not in missing)


def _leave_the_repository(app: Any, page: str, source: list[str]) -> None:
    """A link to a file of the repository is its path here: the site has none of them."""

    def path(match: re.Match[str]) -> str:
        target = match[3].removeprefix("../")
        if target == "README.md":
            return f"[{match[2]}](index.md)"
        return f"{match[2]} (`{target}`)" if match[2].strip("`") != target else f"`{target}`"

    source[0] = _OUTSIDE.sub(path, source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _skip_what_is_to_come)
    app.connect("source-read", _leave_the_repository)

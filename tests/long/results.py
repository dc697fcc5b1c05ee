# SPDX-License-Identifier: BSD-3-Clause
"""What a long run found, for people and programs: build/results/<name>.json."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "build" / "results"


def save(name: str, seed: int, seconds: float, figures: dict[str, Any]) -> None:
    """Write the results of a run, and print them."""
    about = {"seed": seed, "seconds": round(seconds), "python": platform.python_version(), "system": platform.system()}
    text = json.dumps(about | figures, indent=2)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.json").write_text(text + "\n")
    print(text)

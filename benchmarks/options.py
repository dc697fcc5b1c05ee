# SPDX-License-Identifier: BSD-3-Clause
"""The options of benchmarks whose peers take turns."""

from __future__ import annotations

import argparse
from pathlib import Path


def parsed(module: str, about: str | None, rounds: int, out: Path | None = None) -> argparse.Namespace:
    """rounds, quick and out, as the command line has them; one round when it is to be quick."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=about)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--quick", action="store_true", help="one round, a tenth of the frames; the docs stay")
    parser.add_argument("--out", type=Path, default=out, help=f"a folder for the files ({out or 'a temporary one'})")
    options = parser.parse_args()
    if options.quick:
        options.rounds = 1
    return options

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write docs/command-line.md from what each command says of itself, and the examples below."""

from __future__ import annotations

import argparse
from pathlib import Path

from mrec.cli import parser

PAGE = Path(__file__).parent.parent / "docs" / "command-line.md"

HEAD = """# The command line

Each command answers `--help` with what stands here. It ends with 0; with 1 after an error, which is one line on stderr;
with 2 when it was called wrongly (`verify` and `repair` say more by it). What a command makes appears under its name
when it is whole, or not at all, and replaces nothing without `--overwrite` (`pack` alone renews its file). Work of over
a second shows its progress on a terminal (with tqdm). Reading and writing the formats of other programs, and
`--select`, need MDAnalysis (`pip install 'mrec[convert]'`); pictures need matplotlib (`pip install 'mrec[plot]'`).

"""

#: Run by the tests, in this order, beside run.xtc, run.gro, and energies.mrec with the values pe and temp.
EXAMPLES = {
    "info": "mrec info energies.mrec",
    "convert": """mrec convert run.xtc -t run.gro run.mrec --precision 0.01
mrec convert run.xtc -t run.gro archive.mrec --precision 0.01 --chunk 256KiB
mrec convert run.mrec calphas.mrec --select "name CA" --stride 10
mrec convert run.mrec early.mrec --stop 20
mrec convert run.mrec late.mrec --start 15
mrec convert energies.mrec coarse.mrec --drop temp --frames-per-chunk 100 --compression zstd:9
mrec convert run.mrec run.trr --start -5""",
    "ls": "mrec ls run.mrec",
    "head": "mrec head calphas.mrec -n 2 --rows 3\nmrec head calphas.mrec --json > first.json",
    "export": """mrec export run.mrec first.pdb --stop 1
mrec export run.mrec calphas.extxyz --select "name CA" --stride 25""",
    "cat": "mrec cat early.mrec late.mrec whole.mrec --overlap last",
    "plot": "mrec plot energies.mrec pe temp -o energies.png",
    "repair": "mrec repair run.mrec sound.mrec",
    "watch": "mrec watch run.mrec",
}


def page() -> str:
    """The page's text."""
    return HEAD + "\n".join(_section(name, command) for name, command in commands().items())


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, in the order of `mrec --help`."""
    actions = [a for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(actions[0].choices)


def _section(name: str, command: argparse.ArgumentParser) -> str:
    example = f"\n```sh\n{EXAMPLES[name]}\n```\n" if name in EXAMPLES else ""
    return f"## mrec {name}\n\n```text\n{command.format_help()}```\n{example}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

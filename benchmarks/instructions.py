# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.instructions [--against REV]: what a frame costs a C program, in instructions (callgrind).

They repeat exactly where the clock does not; valgrind sees the kernels up to AVX2. --against builds the core of another
commit as well.
"""

from __future__ import annotations

import argparse
import subprocess
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

from mrec.bench.native import APPENDS, READS, ROOT, append_instructions, build, read_instructions
from mrec.bench.report import Missing


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--against", metavar="REV", help="a commit to compare with")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        try:
            compare(here, options.against)
        except Missing as e:
            parser.exit(1, f"{e}\n")


def compare(here: Path, revision: str | None) -> None:
    """Print a line for each case."""
    trees = [ROOT] if revision is None else [ROOT, checkout(revision, here / "tree")]
    programs = []
    for i, tree in enumerate(trees):
        folder = here / str(i)
        folder.mkdir()
        programs.append((build("append", folder, tree), build("read", folder, tree)))
    print(f"{'instructions a frame':34} {'now':>12}" + (f" {'then':>12}   now/then" if revision else ""))
    for name, case in APPENDS.items():
        show(f"append, {name}", [append_instructions(append, here, case) for append, _ in programs])
    for name, reading in READS.items():
        show(f"read a column, {name}", [read_instructions(*both, here, reading) for both in programs])


def checkout(revision: str, folder: Path) -> Path:
    """The core as it was."""
    archive = subprocess.run(["git", "archive", revision, "csrc"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def show(name: str, counts: list[float]) -> None:
    """One line."""
    line = f"{name:34}" + "".join(f" {count:12,.0f}" for count in counts)
    print(line + (f" {counts[0] / counts[1]:10.3f}" if len(counts) > 1 else ""), flush=True)


if __name__ == "__main__":
    main()

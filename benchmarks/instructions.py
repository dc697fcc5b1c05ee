# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.instructions [--against REV]: what a frame costs a C program, in instructions (callgrind).

Each figure is the difference of a long and a short run, so that opening and closing do not count. They repeat exactly
where the clock does not; valgrind sees the kernels up to AVX2. --against builds the core of another commit as well.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parents[1]
CASES = {  # name: atoms, frames of the long run beyond those of the short, precision, frames a flush
    "100 atoms": (100, 4200, "0", "0"),
    "100 atoms, p=1e-3": (100, 4200, "1e-3", "0"),
    "100 atoms, each flushed": (100, 210, "0", "1"),
    "5000 atoms": (5000, 120, "0", "0"),
    "5000 atoms, p=1e-3": (5000, 120, "1e-3", "0"),
    "5000 atoms, each flushed": (5000, 60, "0", "1"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--against", metavar="REV", help="a commit to compare with")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        parser.exit(1, "valgrind is missing: install the package of that name\n")
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        program = build(ROOT, here / "now")
        other = build(checkout(options.against, here / "tree"), here / "then") if options.against else None
        print("instructions a frame        " + "          now" + ("         then   now/then" if other else ""))
        for name, case in CASES.items():
            now = a_frame(program, here, *case)
            line = f"{name:28} {now:12,.0f}"
            if other:
                then = a_frame(other, here, *case)
                line += f" {then:12,.0f} {now / then:10.3f}"
            print(line, flush=True)


def checkout(revision: str, folder: Path) -> Path:
    """The core as it was."""
    archive = subprocess.run(["git", "archive", revision, "csrc"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder


def build(tree: Path, program: Path) -> Path:
    """append.c and the core, in one command."""
    libraries = subprocess.run(
        ["pkg-config", "--libs", "libdeflate", "libzstd"], check=True, capture_output=True, text=True
    ).stdout
    sources = [ROOT / "benchmarks" / "append.c", *sorted((tree / "csrc").glob("*.c"))]
    includes = [f"-I{tree / 'csrc/include'}", f"-I{tree / 'csrc'}"]
    command = ["cc", "-std=c11", "-O2", "-g", *includes, *map(str, sources), *shlex.split(libraries), "-pthread", "-lm"]
    subprocess.run([*command, "-o", str(program)], check=True)
    return program


def a_frame(program: Path, here: Path, atoms: int, frames: int, precision: str, flush: str) -> float:
    """Instructions of one frame."""
    short, long = (
        instructions(program, here, str(atoms), str(n), precision, flush) for n in (frames // 10, frames // 10 + frames)
    )
    return (long - short) / frames


def instructions(program: Path, here: Path, *arguments: str) -> int:
    """Of the whole program."""
    record = here / "record.mrec"
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={here / 'callgrind.out'}"]
    done = subprocess.run([*command, program, record, *arguments], capture_output=True, text=True)
    shutil.rmtree(record)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        raise RuntimeError(done.stderr)
    return int(found[1])


if __name__ == "__main__":
    main()

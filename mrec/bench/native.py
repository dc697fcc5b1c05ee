# SPDX-License-Identifier: BSD-3-Clause
"""The C programs of benchmarks/, compiled with the core: what a call costs without Python, in time and instructions."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from mrec.bench.report import Missing

ROOT = Path(__file__).parents[2]

#: name: atoms, frames of the long run beyond those of the short, precision, frames a flush.
APPENDS = {
    "100 atoms": (100, 4200, "0", "0"),
    "100 atoms, p=1e-3": (100, 4200, "1e-3", "0"),
    "100 atoms, each flushed": (100, 210, "0", "1"),
    "5000 atoms": (5000, 120, "0", "0"),
    "5000 atoms, p=1e-3": (5000, 120, "1e-3", "0"),
    "5000 atoms, each flushed": (5000, 60, "0", "1"),
}
#: name: atoms, frames, precision. Reading is of one column.
READS = {
    "100 atoms": (100, 4200, "0"),
    "100 atoms, p=1e-3": (100, 4200, "1e-3"),
    "5000 atoms": (5000, 120, "0"),
    "5000 atoms, p=1e-3": (5000, 120, "1e-3"),
}


def build(name: str, folder: Path, tree: Path = ROOT) -> Path:
    """benchmarks/NAME.c with the core of a source tree, in one command. Missing without sources or a compiler."""
    source = ROOT / "benchmarks" / f"{name}.c"
    if not source.exists():
        raise Missing("needs a checkout, for the sources in C")
    compiler, pkg_config = shutil.which("cc"), shutil.which("pkg-config")
    if compiler is None or pkg_config is None:
        raise Missing("needs a C compiler and pkg-config")
    asked = [pkg_config, "--cflags", "--libs", "libdeflate", "libzstd"]
    flags = subprocess.run(asked, check=True, capture_output=True, text=True).stdout
    core = [str(path) for path in sorted((tree / "csrc").glob("*.c"))]
    command = [compiler, "-std=c11", "-O2", "-g", f"-I{tree / 'csrc/include'}", f"-I{tree / 'csrc'}", str(source)]
    program = folder / name
    subprocess.run([*command, *core, *shlex.split(flags), "-pthread", "-lm", "-o", str(program)], check=True)
    return program


def append_instructions(program: Path, folder: Path, case: tuple[int, int, str, str]) -> float:
    """Of one frame that append.c appends: the difference of a long and a short run, without opening and closing."""
    atoms, frames, precision, flush = case
    record = folder / "record.mrec"
    counts = []
    for n in (frames // 10, frames // 10 + frames):
        counts.append(instructions([program, record, atoms, n, precision, flush], folder))
        shutil.rmtree(record)
    return (counts[1] - counts[0]) / frames


def read_instructions(append: Path, read: Path, folder: Path, case: tuple[int, int, str]) -> float:
    """Of one frame of one column that read.c reads, a megabyte at a time: reading all twice, less reading it once."""
    atoms, frames, precision = case
    record = folder / "record.mrec"
    subprocess.run([append, record, str(atoms), str(frames), precision], check=True)
    column = record / "trajectory" / "atoms" / "x"
    words = [read, column, *layout(column), int(precision != "0"), max(1, 2**20 // (8 * atoms)) * atoms]
    once, twice = (instructions([*words, turns], folder) for turns in (1, 2))
    shutil.rmtree(record)
    return (twice - once) / frames


def layout(column: Path) -> tuple[int, int, int]:
    """Rows of an array, of one of its files, and of a chunk."""
    document = json.loads((column / "zarr.json").read_text())
    grid = document["chunk_grid"]["configuration"]["chunk_shape"][0]
    return document["shape"][0], grid, document["codecs"][0]["configuration"]["chunk_shape"][0]


def instructions(words: list[Any], folder: Path) -> int:
    """Of a whole program, by callgrind, which knows the kernels up to AVX2. Missing where it is not installed."""
    if shutil.which("valgrind") is None:
        raise Missing("needs valgrind")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind.out'}", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or found is None:
        raise RuntimeError(done.stderr)
    return int(found[1])

# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks: every program does every job in turn, round after round; medians, and ratios within the run."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
SIZES = {100: 20_000, 5000: 400}  # atoms: frames
RANDOM_FRAMES = 200

Timings = dict[tuple[int, str, str], dict[str, list[float]]]  # (atoms, mode, job) -> program -> microseconds a frame


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", type=int, default=1, help="processors to run on (default 1)")
    parser.add_argument("--quick", action="store_true", help="one round, a tenth of the frames; the docs stay")
    parser.add_argument("--out", type=Path, default=ROOT / "out")
    options = parser.parse_args()
    if sys.version_info < (3, 12):
        sys.exit("the benchmark compares with molrs, which needs Python 3.12 or newer")
    if hasattr(os, "sched_setaffinity"):  # before the peers start their threads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])

    from benchmarks import report

    timings, sizes = run(options.out, 1 if options.quick else options.rounds, 10 if options.quick else 1)
    result = report.summary(timings, sizes) | {"machine": machine(options.cores)}
    (options.out / "results.json").write_text(json.dumps(result, indent=1) + "\n")
    table = report.markdown(result)
    print(table)
    if not options.quick:
        report.replace_table(ROOT.parent / "docs" / "performance.md", table)


def run(out: Path, rounds: int, fewer: int) -> tuple[Timings, dict[tuple[int, str], dict[str, float]]]:
    from benchmarks.data import water
    from benchmarks.programs import PROGRAMS

    timings: Timings = defaultdict(lambda: defaultdict(list))
    sizes: dict[tuple[int, str], dict[str, float]] = defaultdict(dict)
    for atoms, frames in SIZES.items():
        sample = water(atoms, frames // fewer)
        for turn in range(rounds):
            for mode in ("raw", "p=1e-3"):
                programs = [program for program in PROGRAMS if mode in program.modes]
                for program in programs[turn % len(programs) :] + programs[: turn % len(programs)]:
                    path = out / "scratch"
                    remove(path)
                    for job, microseconds in jobs(program, path, sample, mode, check=turn == 0):
                        timings[atoms, mode, job][program.name].append(microseconds)
                    sizes[atoms, mode][program.name] = size(path) / (atoms * sample.frames)
                    remove(path)
    return timings, sizes


def jobs(program: Any, path: Path, water: Any, mode: str, check: bool) -> Any:
    """The jobs of one program on one sample, each with its microseconds a frame."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    yield "write", timed(lambda: program.write(path, water, mode != "raw")) / water.frames
    if check:
        check_values(program, path, water)
    for ways, job in ((program.frames, "read in order"), (program.slabs, "read in slabs")):
        if (items := ways(program.open(path, water), water)) is not None:  # a new handle: nothing decoded is kept
            yield job, timed(lambda items=items: exhaust(items)) / water.frames
    picks = np.random.default_rng(0).permutation(water.frames)[:RANDOM_FRAMES].tolist()
    opened = program.open(path, water)
    program.frame(opened, 0)
    yield "random frame", timed(lambda: [program.frame(opened, i) for i in picks]) / len(picks)


def check_values(program: Any, path: Path, water: Any) -> None:
    """The data lie on the grid, so that every program must give them back exactly; XTC as float32."""
    import numpy as np

    for ways in (program.frames, program.slabs):
        if (items := ways(program.open(path, water), water)) is not None:
            got = np.concatenate([np.atleast_3d(np.stack(item, -1)).reshape(-1, water.atoms, 3) for item in items])
            error = np.abs(got - water.xyz.swapaxes(1, 2)).max()
            assert error <= (0.6e-3 if program.name == "XTC" else 0), f"{program.name} is off by {error}"


def timed(work: Callable[[], Any]) -> float:
    """Microseconds."""
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e6


def exhaust(items: Any) -> None:
    for _ in items:
        pass


def size(path: Path) -> int:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def machine(cores: int) -> dict[str, Any]:
    return {"cores": cores, "machine": platform.machine(), "python": platform.python_version()}


if __name__ == "__main__":
    main()

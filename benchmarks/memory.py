# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.memory: resident memory and open descriptors while a process goes on and on."""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import mrec
from mrec.bench.job import remove
from mrec.bench.report import replace_between

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
ATOMS, LOOKS, DISTINCT = 20, 5, 16


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of it; the docs stay")
    parser.add_argument("--folder", default="/dev/shm", help="a folder of a file system in memory (default: /dev/shm)")
    options = parser.parse_args()
    fewer = 100 if options.quick else 1
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lines = table(Path(folder), fewer)
    print("\n".join(lines))
    if fewer == 1:
        replace_between(PAGE, "memory", "\n".join(lines))


def table(folder: Path, fewer: int) -> list[str]:
    """A line for each thing that is done over and over, a column for each look at the process."""
    shares = " | ".join(f"{100 * look // LOOKS} %" for look in range(1, LOOKS + 1))
    lines = [f"| | times | {shares} | descriptors |", "|---|--:|" + "--:|" * (LOOKS + 1)]
    for name, times, work in (
        ("append, raw", 10**6, appends(folder, None)),
        ("append, p=1e-3", 10**6, appends(folder, 1e-3)),
        ("append and flush, p=1e-3", 10**5, flushes(folder)),
        ("read a random frame", 10**5, reads(folder)),
        ("open, read a frame, close", 5000, openings(folder)),
        ("open to append, append, close", 5000, reopenings(folder)),
        ("refresh beside a writer, read", 10**4, refreshes(folder)),
    ):
        found, descriptors = watched(work, max(LOOKS, times // fewer))
        cells = " | ".join(f"{size / 2**20:.1f}" for size in found)
        held = f"{descriptors[0]}" if len(set(descriptors)) == 1 else f"{min(descriptors)} to {max(descriptors)}"
        lines.append(f"| {name} | {times // fewer:,} | {cells} | {held} |")
    return lines


def watched(work: Iterator[Callable[[int], None]], times: int) -> tuple[list[int], list[int]]:
    """Do it so often; the resident bytes and the open descriptors at each look."""
    once = next(work)
    found, descriptors = [], []
    for look in range(LOOKS):
        for i in range(times * look // LOOKS, times * (look + 1) // LOOKS):
            once(i)
        gc.collect()
        found.append(resident())
        descriptors.append(len(os.listdir("/proc/self/fd")))
    next(work, None)
    return found, descriptors


def resident() -> int:
    """Bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# Each of these yields a call that is given its number, and cleans up behind it.


def appends(folder: Path, precision: float | None) -> Iterator[Callable[[int], None]]:
    with writer(folder, precision) as made:
        yield lambda i: made.append(i, atoms=FRAMES[i % DISTINCT])
    remove(folder / "run.mrec")


def flushes(folder: Path) -> Iterator[Callable[[int], None]]:
    with writer(folder, 1e-3) as made:

        def once(i: int) -> None:
            made.append(i, atoms=FRAMES[i % DISTINCT])
            made.flush(durable=False)

        yield once
    remove(folder / "run.mrec")


def reads(folder: Path) -> Iterator[Callable[[int], None]]:
    path, frames = closed(folder), 20_000
    trajectory, picks = mrec.open(path).trajectory, np.random.default_rng(0)

    def once(i: int) -> None:
        _ = trajectory[int(picks.integers(frames))]["atoms"]["x"]

    yield once
    remove(path)


def openings(folder: Path) -> Iterator[Callable[[int], None]]:
    path = closed(folder)

    def once(i: int) -> None:
        with mrec.open(path) as record:
            _ = record.trajectory[i]["atoms"]["x"]

    yield once
    remove(path)


def reopenings(folder: Path) -> Iterator[Callable[[int], None]]:
    path = closed(folder)

    def once(i: int) -> None:
        with mrec.TrajectoryWriter.open(path, durable=False) as made:
            made.append(atoms=FRAMES[i % DISTINCT])

    yield once
    remove(path)


def refreshes(folder: Path) -> Iterator[Callable[[int], None]]:
    with writer(folder, None) as made:
        made.append(0, atoms=FRAMES[0])
        made.flush(durable=False)
        trajectory = mrec.open(made.path).trajectory

        def once(i: int) -> None:
            made.append(i + 1, atoms=FRAMES[i % DISTINCT])
            made.flush(durable=False)
            assert trajectory.refresh() == i + 2
            _ = trajectory[-1]["atoms"]["x"]

        yield once
    remove(folder / "run.mrec")


def writer(folder: Path, precision: float | None) -> mrec.TrajectoryWriter:
    schema = mrec.Schema().block("atoms", rows=ATOMS)
    for name in "xyz":
        schema.column(name, "f64", precision=precision)
    return mrec.TrajectoryWriter(folder / "run.mrec", schema, durable=False)


def closed(folder: Path) -> Path:
    """A record of 20,000 frames."""
    with writer(folder, 1e-3) as made:
        for i in range(20_000):
            made.append(i, atoms=FRAMES[i % DISTINCT])
    return folder / "run.mrec"


FRAMES = [
    dict(zip("xyz", frame, strict=True)) for frame in np.random.default_rng(0).uniform(0, 30, (DISTINCT, 3, ATOMS))
]

if __name__ == "__main__":
    main()

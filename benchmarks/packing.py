# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.packing: packing a record beside copying the same bytes, round after round, all of it synced."""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import mrec
from benchmarks.__main__ import remove
from benchmarks.report import figure, replace_table

ROOT = Path(__file__).parent
FILES, FILE_BYTES = 12, 32 << 20
BEGIN = "<!-- table: packing -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="one round; the docs stay")
    parser.add_argument("--out", type=Path, default=ROOT / "out")
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    record = make_record(options.out / "packing.mrec")
    packed, made = record.with_name("packing.mrec.zip"), options.out / "copy"
    jobs: dict[str, Callable[[], object]] = {
        "mrec.pack": lambda: mrec.pack(record),
        "copy into one file": lambda: copy_into_one(record, made),
        "copy the directory": lambda: copy_directory(record, made),
        "mrec.unpack": lambda: mrec.unpack(packed, made),
    }
    seconds: dict[str, list[float]] = defaultdict(list)
    for _ in range(1 if options.quick else options.rounds):
        for name, job in jobs.items():
            remove(made)
            os.sync()
            start = time.perf_counter()
            job()
            seconds[name].append(time.perf_counter() - start)
    table = markdown({name: FILES * FILE_BYTES / 1e6 / statistics.median(found) for name, found in seconds.items()})
    print(table)
    for path in (record, packed, made):
        remove(path)
    if not options.quick:
        replace_table(ROOT.parent / "docs" / "performance.md", table, BEGIN)


def make_record(path: Path) -> Path:
    """A small trajectory beside files that nothing can make smaller."""
    remove(path)
    schema = mrec.Schema().block("atoms", rows=1).column("x", "f64")
    with mrec.TrajectoryWriter(path, schema) as writer:
        writer.append(atoms={"x": [0.0]})
    for i in range(FILES):
        (path / f"part{i}").write_bytes(os.urandom(FILE_BYTES))
    return path


def copy_into_one(record: Path, made: Path) -> None:
    """The bytes and nothing else, inside the kernel."""
    with open(made, "wb") as target:
        for path in sorted(record.rglob("*")):
            if path.is_file():
                with open(path, "rb") as source:
                    at, size = 0, path.stat().st_size
                    while at < size:
                        at += os.sendfile(target.fileno(), source.fileno(), at, size - at)
        os.fsync(target.fileno())


def copy_directory(record: Path, made: Path) -> None:
    """As `cp -r` does it, then each file synced."""
    shutil.copytree(record, made)
    for path in made.rglob("*"):
        fd = os.open(path, os.O_RDONLY)
        os.fsync(fd)
        os.close(fd)


def markdown(speeds: dict[str, float]) -> str:
    """Megabytes a second, and how they compare to the fastest copy."""
    copy = max(speed for name, speed in speeds.items() if name.startswith("copy"))
    lines = ["| job | MB/s | of the faster copy |", "|---|--:|--:|"]
    lines += [f"| {name} | {figure(speed)} | {speed / copy:.2f} |" for name, speed in speeds.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

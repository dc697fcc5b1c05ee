# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.reading: parts of a trajectory, beside plain reads of the same files and molrs; CPU time."""

from __future__ import annotations

import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from molrs.io.mrec import MrecReader

import mrec
from benchmarks.options import parsed
from mrec.bench.data import DataSet, make
from mrec.bench.job import remove
from mrec.bench.peer import XYZ, slab_frames
from mrec.bench.peers import PEERS
from mrec.bench.report import figure, replace_between
from mrec.bench.run import label
from mrec.bench.worker import use_cores

ROOT = Path(__file__).parent
SIZES = {100: 20_000, 5000: 400}  # atoms: frames
RANDOM_FRAMES = 200
COLUMNS = [("atoms", name) for name in XYZ]
Job = Callable[[], object]


def main() -> None:
    options = parsed("benchmarks.reading", __doc__, 7, ROOT / "out")
    options.out.mkdir(exist_ok=True)
    use_cores(1)
    peer = PEERS["mrec"]()
    path = options.out / "reading.mrec"
    rows = []
    for atoms, frames in SIZES.items():
        sample = make(f"liquid:{atoms}x{frames // (10 if options.quick else 1)}", options.out / "data")
        for precision in (None, 1e-3):
            remove(path)
            peer.write(path, peer.given(sample, precision), precision)
            seconds: dict[str, list[float]] = defaultdict(list)
            for _ in range(options.rounds):
                for name, job, n in jobs(path, sample):
                    start = time.process_time()
                    job()
                    seconds[name].append((time.process_time() - start) / n)
            rows += [(atoms, label(precision), name, statistics.median(found) * 1e6) for name, found in seconds.items()]
    remove(path)
    remove(options.out / "data")
    table = markdown(rows)
    print(table)
    if not options.quick:
        replace_between(ROOT.parent / "docs" / "performance.md", "reading", table)


def jobs(path: Path, sample: DataSet) -> Iterator[tuple[str, Job, int]]:
    """Each with the number of frames that it reads."""
    n, step = sample.frames, slab_frames(sample.atoms)
    one = {"rows": [sample.atoms // 2]}
    picks = np.random.default_rng(0).permutation(n)[:RANDOM_FRAMES].tolist()
    out = np.empty((3, step, sample.atoms))
    files = sorted(path.rglob("c/*"))
    fresh, unverified, trajectory = (opened(path, verify) for verify in (True, False, True))
    reader = MrecReader(path)
    yield "all, plain", lambda: plain(files), n
    yield "all, x, y, z each", lambda: slabs(fresh, out, n), n
    yield "all, xyz together", lambda: fresh.read("atoms", XYZ), n
    yield "one atom", lambda: fresh.read("atoms", XYZ, **one), n
    yield "one atom, verify=False", lambda: unverified.read("atoms", XYZ, **one), n
    yield "one atom, molrs", lambda: one_by_molrs(reader, sample), n
    yield "random frame, plain", lambda: plain_frames(files, sample, picks), len(picks)
    for name in ("random frame", "random frame, again"):
        yield name, lambda: [trajectory[i] for i in picks], len(picks)


def opened(path: Path, verify: bool) -> Any:
    """With its documents and indexes read."""
    trajectory = mrec.open(path, verify=verify).trajectory
    _ = trajectory[0]
    return trajectory


def plain(files: list[Path]) -> None:
    """All bytes, a megabyte at a time."""
    buffer = np.empty(1 << 20, np.uint8)
    for file in files:
        fd, at = os.open(file, os.O_RDONLY), 0
        while got := os.preadv(fd, [buffer], at):
            at += got
        os.close(fd)


def plain_frames(files: list[Path], sample: Any, picks: list[int]) -> None:
    """As many bytes from as many places as the chunks of frames have, from files that are open."""
    fds = [os.open(file, os.O_RDONLY) for file in files if file.parent.parent.name in XYZ and file.name == "0"]
    sizes = [os.fstat(fd).st_size for fd in fds]
    for i in picks:
        for fd, size in zip(fds, sizes, strict=True):
            chunk = min(size // 2, max(16384, 8 * sample.atoms))
            os.preadv(fd, [np.empty(chunk, np.uint8)], (size - chunk) * i // sample.frames)
    for fd in fds:
        os.close(fd)


def slabs(trajectory: Any, out: np.ndarray, n: int) -> None:
    step = out.shape[1]
    for start in range(0, n, step):
        for k, name in enumerate(XYZ):
            stop = min(start + step, n)
            trajectory.read("atoms", name, frames=slice(start, stop), out=out[k, : stop - start])


def one_by_molrs(reader: Any, sample: Any) -> list[Any]:
    """It has whole frames only."""
    row = sample.atoms // 2
    frames = (reader.frame_columns(i, COLUMNS)["atoms"] for i in range(sample.frames))
    return [[atoms[name][row] for name in XYZ] for atoms in frames]


def markdown(rows: list[tuple[int, str, str, float]]) -> str:
    """Microseconds a frame."""
    columns = list(dict.fromkeys((atoms, mode) for atoms, mode, _, _ in rows))
    found = {(atoms, mode, name): value for atoms, mode, name, value in rows}
    head = "| us of CPU time a frame | " + " | ".join(f"{atoms} atoms, {mode}" for atoms, mode in columns) + " |"
    lines = [head, "|---|" + "--:|" * len(columns)]
    for name in dict.fromkeys(name for _, _, name, _ in rows):
        lines.append(f"| {name} | " + " | ".join(figure(found[(*column, name)]) for column in columns) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

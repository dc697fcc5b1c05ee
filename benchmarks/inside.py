# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.inside: records, XTC and DCD read by MDAnalysis and mdtraj, in turns; medians of CPU time."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import MDAnalysis
import mdtraj
import numpy as np
from MDAnalysis.analysis import rms
from MDAnalysis.coordinates import XDR

import mrec
import mrec.interop.mda
import mrec.interop.mdtraj
from benchmarks.options import parsed
from mrec.bench.report import figure, replace_between
from mrec.bench.worker import use_cores

DOCS = Path(__file__).parents[1] / "docs"
SIZES = {100: 5000, 5000: 300, 50_000: 40}  # atoms: frames
PRECISION = 0.01  # angstrom: that of an XTC file
CHUNK = "256KiB"
PEERS = ("mrec", "mrec, 256KiB chunks", "XTC", "DCD")
Job = Callable[[Any], object]


def main() -> None:
    options = parsed("benchmarks.inside", __doc__, 3)
    warnings.simplefilter("ignore")
    use_cores(1)
    with tempfile.TemporaryDirectory(dir=options.out) as folder:
        tables: dict[str, dict[tuple[str, int], dict[str, float]]] = {"mdanalysis": {}, "mdtraj": {}}
        for atoms, frames in SIZES.items():
            files = written(Path(folder), atoms, frames // (10 if options.quick else 1))
            for library, jobs in (("mdanalysis", in_mdanalysis(files)), ("mdtraj", in_mdtraj(files))):
                for name, (n, runs) in jobs.items():
                    with quiet():
                        tables[library][name, atoms] = measured(runs, n, options.rounds)
    for library, rows in tables.items():
        table = markdown(rows)
        print(f"## {library}\n\n{table}")
        if not options.quick:
            replace_between(DOCS / f"{library}.md", "inside", table)


@contextmanager
def quiet() -> Iterator[None]:
    """mdtraj's reader of DCD files prints a line for each that it opens."""
    kept, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def measured(runs: dict[str, Callable[[], object]], n: int, rounds: int) -> dict[str, float]:
    """Peer -> microseconds of CPU time a frame; the peers take turns."""
    seconds = defaultdict(list)
    for turn in range(rounds + 1):
        for peer, run in runs.items():
            start = time.process_time()
            run()
            if turn:  # the first one is to warm up
                seconds[peer].append((time.process_time() - start) / n)
    return {peer: statistics.median(found) * 1e6 for peer, found in seconds.items()}


def written(folder: Path, atoms: int, frames: int) -> dict[str, str]:
    """A liquid at the density of water that diffuses, in each format. The topology goes beside it as PDB."""
    side = (atoms / 0.1) ** (1 / 3)
    rng = np.random.default_rng(0)
    universe = MDAnalysis.Universe.empty(atoms, trajectory=True)
    universe.add_TopologyAttr("names", ["O"] * atoms)
    positions = rng.uniform(0, side, (atoms, 3))
    files = {
        name: str(folder / f"{atoms}.{ending}") for name, ending in (("XTC", "xtc"), ("DCD", "dcd"), ("top", "pdb"))
    }
    files |= {"mrec": str(folder / f"{atoms}.mrec"), "mrec, 256KiB chunks": str(folder / f"{atoms}-large.mrec")}
    options: dict[str, dict[str, Any]] = {"mrec": {"precision": PRECISION}, "XTC": {}, "DCD": {}}
    options["mrec, 256KiB chunks"] = {"precision": PRECISION, "chunk": CHUNK}
    writers = [MDAnalysis.Writer(files[peer], atoms, **given) for peer, given in options.items()]
    for i in range(frames):
        positions += rng.normal(0, 0.1, positions.shape)
        universe.atoms.positions = positions
        universe.trajectory.ts.dimensions = [side, side, side, 90, 90, 90]
        universe.trajectory.ts.time = universe.trajectory.ts.frame = i
        for writer in writers:
            writer.write(universe.atoms)
    for writer in writers:
        writer.close()
    universe.atoms.write(files["top"])
    return files


def in_mdanalysis(files: dict[str, str]) -> dict[str, tuple[int, dict[str, Callable[[], object]]]]:
    universes = {peer: MDAnalysis.Universe(files["top"], files[peer]) for peer in PEERS}
    n = len(universes["XTC"].trajectory)
    picks = np.random.default_rng(1).permutation(n)[:500].tolist()
    tenth = next(iter(universes.values())).atoms[::10].indices
    jobs: dict[str, tuple[int, Job]] = {
        "in order": (n, lambda u: [None for _ in u.trajectory]),
        "every 10th": (len(range(0, n, 10)), lambda u: [None for _ in u.trajectory[::10]]),
        "one here, one there": (len(picks), lambda u: [u.trajectory[i] for i in picks]),
        "timeseries, a tenth of the atoms": (n, lambda u: u.trajectory.timeseries(atomgroup=u.atoms[tenth])),
        "RMSD": (n, lambda u: rms.RMSD(u.atoms).run()),
    }
    found = {
        name: (k, {p: (lambda u=u, job=job: job(u)) for p, u in universes.items()}) for name, (k, job) in jobs.items()
    }
    found["open, the first time"] = (1, {p: (lambda p=p: opened(files[p], True)) for p in PEERS})
    found["open, one frame"] = (1, {p: (lambda p=p: opened(files[p])) for p in PEERS})
    return found


def opened(file: str, first: bool = False) -> None:
    """Open it in MDAnalysis, which reads a frame; first: without the index that it leaves beside an XTC file."""
    if first:
        Path(XDR.offsets_filename(file)).unlink(missing_ok=True)
    MDAnalysis.coordinates.core.reader(file)


def in_mdtraj(files: dict[str, str]) -> dict[str, tuple[int, dict[str, Callable[[], object]]]]:
    top = mdtraj.load_topology(files["top"])
    n = len(mrec.open(files["mrec"]).trajectory)
    tenth = list(range(0, top.n_atoms, 10))
    picks = np.random.default_rng(1).permutation(n)[:50].tolist()
    jobs: dict[str, tuple[int, Job]] = {
        "load": (n, lambda file: mdtraj.load(file, top=top)),
        "load, every 10th": (len(range(0, n, 10)), lambda file: mdtraj.load(file, top=top, stride=10)),
        "load, a tenth of the atoms": (n, lambda file: mdtraj.load(file, top=top, atom_indices=tenth)),
        "iterload": (n, lambda file: [None for _ in mdtraj.iterload(file, chunk=50, top=top)]),
        "load_frame": (len(picks), lambda file: [mdtraj.load_frame(file, i, top=top) for i in picks]),
    }
    return {name: (k, {p: (lambda p=p, job=job: job(files[p])) for p in PEERS}) for name, (k, job) in jobs.items()}


def markdown(rows: dict[tuple[str, int], dict[str, float]]) -> str:
    """Microseconds a frame, and how many times that of records XTC takes."""
    lines = ["| us of CPU time a frame | atoms | " + " | ".join(PEERS) + " | XTC / mrec |", "|---|--:|" + "--:|" * 5]
    for (name, atoms), found in rows.items():
        ratio = figure(found["XTC"] / found["mrec"])
        lines.append(f"| {name} | {atoms:,} | " + " | ".join(figure(found[p]) for p in PEERS) + f" | {ratio} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

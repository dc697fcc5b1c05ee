# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.loading: batches of frames in a random order, from records, HDF5 and plain arrays, in turns."""

from __future__ import annotations

import multiprocessing
import resource
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import mrec
from benchmarks.options import parsed
from mrec.bench.report import figure, replace_between
from mrec.interop.loading import FrameDataset, FrameStream

DOCS = Path(__file__).parents[1] / "docs"
SIZES = {50: 20_000, 5000: 600}  # atoms: frames
BATCH = 32
XYZ = ("x", "y", "z")
FIELDS: Any = {"r": ("atoms", XYZ), "f": ("atoms", ("fx", "fy", "fz")), "energy": "pe"}


def main() -> None:
    options = parsed("benchmarks.loading", __doc__, 3)
    rows = {}
    with tempfile.TemporaryDirectory(dir=options.out) as folder:
        for atoms, frames in SIZES.items():
            n = frames // (10 if options.quick else 1)
            runs = jobs(*written(Path(folder), atoms, n), n)
            rows[atoms] = measured(runs, n, options.rounds)
    table = markdown(rows)
    print(table)
    if not options.quick:
        replace_between(DOCS / "loading.md", "loading", table)


def written(folder: Path, atoms: int, frames: int) -> tuple[str, str, str]:
    """Positions and forces float32 and energies, as a record, as HDF5 with a frame a chunk, and as plain arrays."""
    rng = np.random.default_rng(0)
    positions, forces = (rng.normal(size=(frames, atoms, 3)).astype(np.float32) * 10 for _ in range(2))
    schema = mrec.Schema().block("atoms", rows=atoms)
    for name in XYZ:
        schema.column(name, "f64", precision=1e-3)
    for name in ("fx", "fy", "fz"):
        schema.column(name, "f64", precision=1e-4)
    schema.value("pe", "f64")
    path = folder / f"{atoms}.mrec"
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for i in range(frames):
            writer.append(i, atoms={"xyz": positions[i], ("fx", "fy", "fz"): forces[i]}, pe=float(i))
    with h5py.File(folder / f"{atoms}.h5", "w") as file:
        for name, values in (("r", positions), ("f", forces)):
            file.create_dataset(
                name, data=values, chunks=(1, atoms, 3), compression="gzip", compression_opts=1, shuffle=True
            )
        file["energy"] = np.arange(float(frames))
    np.save(folder / f"{atoms}.npy", np.stack([positions, forces], axis=1))
    return str(path), str(folder / f"{atoms}.h5"), str(folder / f"{atoms}.npy")


def jobs(record: str, hdf5: str, plain: str, n: int) -> dict[str, Callable[[], object]]:
    data = FrameDataset(record, FIELDS, dtype="float32")
    batches = np.array_split(np.random.default_rng(1).permutation(n), max(1, n // BATCH))
    mapped = np.load(plain, mmap_mode="r")
    return {
        "one item at a time": lambda: [collated([data[i] for i in batch.tolist()]) for batch in batches],
        "a batch at a time": lambda: [collated(data.items(batch)) for batch in batches],
        "a batch at a time, 2 workers": lambda: pooled(data, batches),
        "a stream": lambda: [collated(items) for items in grouped(FrameStream(data, shuffle=True))],
        "HDF5, gzip, one item at a time": lambda: from_hdf5(hdf5, batches),
        "plain arrays in memory": lambda: [np.array(mapped[batch]) for batch in batches],
    }


def collated(items: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.stack([item[name] for item in items]) for name in items[0]}


def grouped(items: Any) -> Iterator[list[Any]]:
    some = []
    for item in items:
        some.append(item)
        if len(some) == BATCH:
            yield some
            some = []
    if some:
        yield some


def batch_of(data: FrameDataset, batch: np.ndarray) -> dict[str, np.ndarray]:
    return collated(data.items(batch))


_shared: list[FrameDataset] = []


def batch_of_shared(batch: np.ndarray) -> dict[str, np.ndarray]:
    return batch_of(_shared[0], batch)


def pooled(data: FrameDataset, batches: list[np.ndarray]) -> None:
    """As a loader with two workers that were forked: each batch is made there, and comes back."""
    _shared[:] = [data]
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        for _ in pool.map(batch_of_shared, batches):
            pass


def from_hdf5(path: str, batches: list[np.ndarray]) -> None:
    with h5py.File(path) as file:
        r, f, energy = file["r"], file["f"], file["energy"]
        for batch in batches:
            collated([{"r": r[i], "f": f[i], "energy": energy[i]} for i in batch.tolist()])


def cpu_seconds() -> float:
    """Of this process and of the children that ended."""
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def measured(runs: dict[str, Callable[[], object]], n: int, rounds: int) -> dict[str, float]:
    """Job -> frames a second of CPU time, workers included, the median; the jobs take turns."""
    seconds = defaultdict(list)
    for turn in range(rounds + 1):
        for name, run in runs.items():
            start = cpu_seconds()
            run()
            if turn:  # the first one is to warm up
                seconds[name].append((cpu_seconds() - start) / n)
    return {name: 1 / statistics.median(found) for name, found in seconds.items()}


def markdown(rows: dict[int, dict[str, float]]) -> str:
    lines = [
        "| frames a second of CPU time | " + " | ".join(f"{atoms} atoms" for atoms in rows) + " |",
        "|---|" + "--:|" * len(rows),
    ]
    for name in next(iter(rows.values())):
        lines.append(f"| {name} | " + " | ".join(figure(found[name]) for found in rows.values()) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

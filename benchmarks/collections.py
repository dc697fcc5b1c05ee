# SPDX-License-Identifier: BSD-3-Clause
"""Collections against atlas-python and one zarr store per data set: python -m benchmarks.collections [--many N].

Prints the tables of docs/collections.md. Each figure is the median of interleaved runs; only ratios of one run count.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import mrec
from mrec._core import block_decode

NAMES = ("temperature", "salinity", "pressure")


def data(count: int, length: int) -> list[list[np.ndarray]]:
    """Random walks, rounded as instruments do."""
    rng = np.random.default_rng(0)
    return [
        [(rng.normal(size=length).cumsum() * 0.01).round(3).astype(np.float32) for _ in NAMES] for _ in range(count)
    ]


def attributes(i: int) -> dict[str, Any]:
    return {"number": i, "depth": i * 0.5, "station": f"station {i % 50}", "good": i % 3 == 0, "levels": [1, 2, 3]}


# ---- writing -------------------------------------------------------------------------------------------------------


def fill(writer: Any, sets: list[list[np.ndarray]]) -> None:
    """The calls are the same for both."""
    for i, arrays in enumerate(sets):
        dataset = writer.add_dataset(f"set{i}")
        for name, values in zip(NAMES, arrays, strict=True):
            dataset.define_array(name, "float32", ["time"], [len(values)], None, float("nan"))
            dataset.write_array(name, [0], values)
        for key, value in attributes(i).items():
            dataset.set_attribute(key, value)
        dataset.finish()
    writer.finish()


def ours(path: Path, codec: str, sets: list[list[np.ndarray]]) -> None:
    fill(mrec.CollectionWriter(path, codec=codec, threads=2), sets)


def theirs(path: Path, codec: str, sets: list[list[np.ndarray]]) -> None:
    from atlas import _atlas

    fill(_atlas.AtlasWriter.create(str(path), codec), sets)


def zarrs(path: Path, codec: str, sets: list[list[np.ndarray]]) -> None:
    import zarr

    for i, arrays in enumerate(sets):
        group = zarr.create_group(path / f"set{i}", attributes=attributes(i))
        compressors = "auto" if codec == "zstd" else None
        for name, values in zip(NAMES, arrays, strict=True):
            group.create_array(name, data=values, chunks=values.shape, compressors=compressors)


# ---- timing --------------------------------------------------------------------------------------------------------


def timed(job: Callable[[], Any]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def medians(jobs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Each job once a round."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            times[name].append(timed(job))
    return {name: statistics.median(found) for name, found in times.items()}


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=os.environ.get("MREC_BENCH_DIR")) as made:
        yield Path(made)


def anew(write: Callable[..., None], path: Path, codec: str, sets: Any) -> Callable[[], float]:
    def job() -> None:
        write(path, codec, sets)

    def run() -> float:
        shutil.rmtree(path, ignore_errors=True)
        os.sync()  # what another left unsynced would be written in our time
        return timed(job)

    return run


def writing(root: Path, codec: str, sets: Any, rounds: int, zarr_too: bool) -> dict[str, float]:
    """Seconds; what was there before is removed outside of the time."""
    jobs = {"mrec": anew(ours, root / "mrec", codec, sets), "atlas": anew(theirs, root / "atlas", codec, sets)}
    if zarr_too:
        jobs["zarr"] = anew(zarrs, root / "zarr", codec, sets)
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for k in range(rounds):
        for name, job in jobs.items():
            if name != "zarr" or k == 0:
                times[name].append(job())
    return {name: statistics.median(found) for name, found in times.items()}


# ---- reading -------------------------------------------------------------------------------------------------------


def catalogue_ours(path: Path) -> Any:
    found = mrec.open_collection(path)
    return len(found), found.codec, found.created, found.nbytes, len(found.footer.schemas)


def catalogue_theirs(path: Path) -> Any:
    from atlas import _atlas

    return _atlas.Atlas.open(str(path)).summary()


def bare_segment(path: Path, name: str) -> tuple[bytes, Any]:
    """The bytes of a variable, read."""
    found = mrec.open_collection(path)
    offset, size = found.footer.segments[name]
    with open(path / "data.atlas", "rb") as file:
        file.seek(offset)
        return file.read(size), found


def bare_attribute(path: Path) -> int:
    """Read the segment of the attributes and unpack every number in it."""
    stored, _ = bare_segment(path, "_datasets")
    return len(np.frombuffer(stored, np.uint8, len(stored) // 8 * 8).view("<u8").tolist())


def bare_values(path: Path) -> int:
    """Read and decompress the blocks of a variable."""
    stored, found = bare_segment(path, NAMES[0])
    footer = found.segment(NAMES[0]).footer
    blocks = (footer.block(i) for i in range(footer.nblocks))
    return sum(len(block_decode(codec, stored[o : o + n], raw)) for o, n, raw, codec in blocks)


def reading(path: Path, other: Path, rounds: int) -> dict[str, float]:
    """What takes less than a millisecond takes its turns many times, and not behind what empties the caches."""
    small: dict[str, Callable[[], Any]] = {
        "catalogue": lambda: catalogue_ours(path),
        "catalogue, atlas": lambda: catalogue_theirs(other),
        "attribute": lambda: mrec.open_collection(path).attribute("number"),
        "attribute, bare": lambda: bare_attribute(path),
    }
    large: dict[str, Callable[[], Any]] = {
        "variable": lambda: mrec.open_collection(path).variable(NAMES[0]).read(),
        "variable, bare": lambda: bare_values(path),
    }
    return medians(small, 30 * rounds) | medians(large, rounds)


# ---- many ----------------------------------------------------------------------------------------------------------


def many(count: int) -> None:
    """Memory while writing, and what opening costs."""
    values = np.zeros(4, np.float32)
    with folder() as root:
        before = resident()
        writer = mrec.CollectionWriter(root / "set", codec="zstd")
        for i in range(count):
            dataset = writer.add_dataset(f"set{i}")
            for name in NAMES:
                dataset.define_array(name, "float32", ["time"], [4])
                dataset.write_array(name, [0], values + i)
            dataset.set_attribute("number", i)
            dataset.finish()
        grown = resident() - before
        open_blocks = count * 16 * len(NAMES)
        each = (grown - open_blocks) / count / len(NAMES)  # that of the attribute counts as the variables'
        writer.finish()
        print(f"\n{count} data sets of {len(NAMES)} variables: {each:.0f} bytes a data set and variable while writing")
        bare = timed(lambda: (root / "set" / "data.atlas").read_bytes())
        opened = timed(lambda: mrec.open_collection(root / "set"))
        attribute = timed(lambda: mrec.open_collection(root / "set").attribute("number"))
        unpack = timed(lambda: bare_attribute(root / "set"))
        print(f"open {opened:.3f} s, the file read {bare:.3f} s")
        print(f"one attribute over all {attribute:.3f} s, its segment read and unpacked {unpack:.3f} s")


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--many", type=int, default=100_000, help="data sets of the large collection; 0: leave it out")
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    columns = ("data sets", "codec", "write", "atlas-python", "zarr", "speed-up", "open", "attribute", "variable")
    print(_row(columns), _row(["---"] * len(columns)), sep="\n")
    for label, count, length in (("1000 × 3 × 200", 1000, 200), ("20 × 3 × 2,000,000", 20, 2_000_000)):
        sets = data(count, length)
        for codec in ("zstd", "none"):
            rounds = arguments.rounds if count > 20 else 3
            with folder() as root:
                wrote = writing(root, codec, sets, rounds, count > 20)
                found = reading(root / "mrec", root / "atlas", arguments.rounds)
            seconds = [f"{wrote[who]:.3f} s" if who in wrote else "" for who in ("mrec", "atlas", "zarr")]
            ratios = [
                wrote["atlas"] / wrote["mrec"],
                found["catalogue, atlas"] / found["catalogue"],
                found["attribute, bare"] / found["attribute"],
                found["variable, bare"] / found["variable"],
            ]
            print(_row([label, codec, *seconds, *(f"{ratio:.2f}" for ratio in ratios)]), flush=True)
    if arguments.many:
        many(arguments.many)


if __name__ == "__main__":
    main()

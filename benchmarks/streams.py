# SPDX-License-Identifier: BSD-3-Clause
"""Streams against their peers: python -m benchmarks.streams. Records of 193 x 384 grids, four variables.

One time shard is `SHARD` records; every program writes the same shards. Each round runs all in turn; printed is
the median of the rounds' times, as MB/s of raw values and as ratios of speed. TMPDIR says on which disk.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from mrec import stream
from mrec.files import Files
from mrec.stream import mpi
from mrec.stream.place import LocalPlace

LAT, LON, SHARD = 193, 384, 20
NAMES = ("t", "u", "v", "ps")
ROWS = 16
SHARD_ROWS = 48


def fields(records: int) -> list[dict[str, np.ndarray]]:
    """Smooth fields with noise in their low bits, as models write them."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0 : np.pi : LAT * 1j, 0 : 2 * np.pi : LON * 1j]
    return [
        {
            name: (280 + 20 * np.sin(y + k) * np.cos(x + 0.1 * r) + rng.normal(0, 0.01, y.shape)).astype("f4")
            for k, name in enumerate(NAMES)
        }
        for r in range(records)
    ]


def schema(profile: str, shard: int = SHARD, rows: int = ROWS) -> stream.StreamSchema:
    return stream.StreamSchema(
        dims={"lat": LAT, "lon": LON},
        variables={name: stream.Variable(("time", "lat", "lon"), "f32") for name in NAMES},
        chunk={"time": 1, "lat": rows, "lon": LON},
        shard={"time": shard, "lat": LAT if rows == LAT else SHARD_ROWS, "lon": LON},
        profile=profile,
    )


def ours(path: Path, data: list, profile: str = "diagnostic", ranks: int = 1, every: int = 0, threads: int = 1) -> None:
    """Written by one process, or by a process a rank."""
    s = schema(profile)
    if ranks == 1:
        with stream.create(path, s, threads=threads) as writer:
            for t, arrays in enumerate(data):
                writer.write_record(t, arrays)
                if every and t % every == every - 1:
                    writer.flush()
        return
    regions = mpi.plan(s, ranks, ["lat"])
    context = multiprocessing.get_context("fork")
    owner = stream.create(path, s, stream.Owner(len(regions)), regions[0])
    queue = context.Queue()
    workers = [context.Process(target=_rank, args=(path, r, regions[r], data, queue)) for r in range(1, len(regions))]
    for worker in workers:
        worker.start()
    for t, arrays in enumerate(data):
        owner.write_record(t, {n: a[slice(*regions[0]["lat"])] for n, a in arrays.items()})
    tokens = [owner.flush(), *(queue.get() for _ in workers)]
    owner.commit(tokens)
    for worker in workers:
        worker.join()
    owner.close()


def _rank(path: Path, r: int, region: dict, data: list, queue: multiprocessing.Queue) -> None:
    writer = stream.join(path, stream.Contributor(r), region)
    for t, arrays in enumerate(data):
        writer.write_record(t, {n: a[slice(*region["lat"])] for n, a in arrays.items()})
    queue.put(writer.flush().to_json())
    writer.close()


def earthsciio(path: Path, data: list) -> None:
    from earthsciio.backends.zarr_write import OutputSchema, OutputVar, ZarrWriter

    s = schema("wasm")
    made = OutputSchema(
        dims=[("time", 0), ("lat", LAT), ("lon", LON)],
        time_dim="time",
        vars=[(n, OutputVar(["time", "lat", "lon"], "f4")) for n in NAMES],
        chunk_shape=dict(s.chunk),
        shard_shape=dict(s.shard),
        profile="wasm",
    )
    writer = ZarrWriter()
    handle = writer.write_open(str(path), made)
    for t, arrays in enumerate(data):
        writer.write_record(handle, float(t), arrays)
    writer.write_close(handle)


def bare_zarr(path: Path, data: list, pipeline: str = "zarr.core.codec_pipeline.BatchedCodecPipeline") -> None:
    import zarr
    from zarr.codecs import ZstdCodec

    s = schema("wasm")
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        group = zarr.open_group(path, mode="w")
        arrays = {
            n: group.create_array(
                n,
                shape=(len(data), LAT, LON),
                chunks=tuple(s.chunk.values()),
                shards=tuple(s.shard.values()),
                dtype="f4",
                compressors=[ZstdCodec(level=3)],
            )
            for n in NAMES
        }
        for start in range(0, len(data), SHARD):
            for n in NAMES:
                arrays[n][start : start + SHARD] = np.stack([r[n] for r in data[start : start + SHARD]])


def zarrs(path: Path, data: list) -> None:
    bare_zarr(path, data, "zarrs.ZarrsCodecPipeline")


def plain(path: Path, data: list) -> None:
    """A file a shard and variable, as large as ours: the raw bytes, and zeros for the rest of the last chunk."""
    path.mkdir()
    rest = np.zeros((-LAT % ROWS, LON), "f4")
    for start in range(0, len(data), SHARD):
        for n in NAMES:
            for top in range(0, LAT, SHARD_ROWS):
                with open(path / f"{n}.{start}.{top}", "wb", buffering=0) as file:
                    for record in data[start : start + SHARD]:
                        file.write(record[n][top : top + SHARD_ROWS])
                        if top + SHARD_ROWS > LAT:
                            file.write(rest)


class Log(Files):
    """Notes what is written, and to which name it comes."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.named: list[tuple[str, int]] = []

    def open(self, path: str, flags: int) -> int:
        self.path = path
        return super().open(path, flags)

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        self.sizes[self.path] = offset + len(data)
        return super().pwrite(fd, data, offset)

    def rename(self, old: str, new: str) -> None:
        self.named.append((new, self.sizes.pop(old)))
        super().rename(old, new)


def bytes_of(path: Path, data: list, profile: str) -> list[tuple[str, int]]:
    """Every file that a flush of each record publishes, in its order, with its size."""
    log = Log()
    ours(LocalPlace(path, log), data, profile, every=1)
    shutil.rmtree(path)
    return log.named


def replay(named: list[tuple[str, int]]) -> None:
    """What these bytes cost: each file written by one call, and renamed. They come from memory as large as the open
    shards, not from one place that stays in the processor's caches."""
    memory = memoryview(np.ones(SHARD * len(NAMES) * LAT * LON, "f4")).cast("B")
    at = 0
    for folder in {os.path.dirname(name) for name, _ in named}:
        os.makedirs(folder, exist_ok=True)
    for name, size in named:
        at = at if at + size <= len(memory) else 0
        fd = os.open(f"{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        os.write(fd, memory[at : at + size])
        os.close(fd)
        os.rename(f"{name}.tmp", name)
        at += size


PROGRAMS: dict[str, Callable[[Path, list], None]] = {
    "mrec diagnostic": ours,
    "mrec checkpoint": lambda p, d: ours(p, d, "checkpoint"),
    "mrec wasm": lambda p, d: ours(p, d, "wasm"),
    "mrec none": lambda p, d: ours(p, d, "none"),
    "mrec none, 2 threads": lambda p, d: ours(p, d, "none", threads=2),
    "mrec diagnostic, 2 threads": lambda p, d: ours(p, d, threads=2),
    "mrec diagnostic, 2 ranks": lambda p, d: ours(p, d, ranks=2),
    "mrec diagnostic, 4 ranks": lambda p, d: ours(p, d, ranks=4),
    "mrec none, 2 ranks": lambda p, d: ours(p, d, "none", 2),
    "mrec none, 4 ranks": lambda p, d: ours(p, d, "none", 4),
    "mrec none, flush every record": lambda p, d: ours(p, d, "none", every=1),
    "mrec diagnostic, flush every record": lambda p, d: ours(p, d, every=1),
    "mrec none, 2 threads, flush every record": lambda p, d: ours(p, d, "none", every=1, threads=2),
    "mrec diagnostic, 2 threads, flush every record": lambda p, d: ours(p, d, every=1, threads=2),
    "earthsciio wasm": earthsciio,
    "zarr-python zstd 3": bare_zarr,
    "zarrs zstd 3": zarrs,
    "plain files": plain,
}


def memory(records: int = 10_000) -> None:
    """Resident memory while a stream grows."""
    s = schema("none", shard=100, rows=LAT)
    given = {n: np.ones((LAT, LON), "f4") for n in NAMES}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        writer = stream.create(f"{folder}/s", s)
        for t in range(records):
            writer.write_record(t, given)
            if t % 100 == 99:
                for name in NAMES:  # of the disk, not of the manifest
                    shutil.rmtree(f"{folder}/s/{name}/c/{t // 100 - 2}", ignore_errors=True)
            if t in (999, records // 2, records - 1):
                with open("/proc/self/statm") as file:
                    print(f"{t + 1:6} records: {int(file.read().split()[1]) * 4096 / 2**20:.0f} MiB resident")


def cost(act: Callable[[], object]) -> tuple[float, float]:
    """Seconds that passed, and that processors worked, in all processes."""
    before = os.times()
    act()
    after = os.times()
    return after.elapsed - before.elapsed, sum(after[:4]) - sum(before[:4])


def main(records: int = 200, rounds: int = 3) -> None:
    """The table."""
    warnings.simplefilter("ignore")
    data = fields(records)
    raw = sum(a.nbytes for a in data[0].values()) * records / 1e6
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path = Path(folder) / "s"
        programs: dict[str, Callable[[], object]] = {n: partial(act, path, data) for n, act in PROGRAMS.items()}
        for profile in ("none", "diagnostic"):
            programs[f"the bytes of {profile}, flush every record"] = partial(replay, bytes_of(path, data, profile))
        costs: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
        for _ in range(rounds):
            for name, act in programs.items():
                costs[name].append(cost(act))
                shutil.rmtree(path)
    wall, work = ({n: statistics.median(c[k] for c in found) for n, found in costs.items()} for k in (0, 1))
    for name in programs:
        print(f"{name:46} {raw / wall[name]:6.0f} MB/s, {raw / work[name]:6.0f} MB a CPU second")
    for name, peer in (
        ("mrec wasm", "earthsciio wasm"),
        ("mrec diagnostic", "zarr-python zstd 3"),
        ("mrec diagnostic", "zarrs zstd 3"),
        ("mrec none", "plain files"),
        ("mrec none, 2 threads", "plain files"),
        *(
            (f"mrec {p}{how}, flush every record", f"the bytes of {p}, flush every record")
            for p in ("none", "diagnostic")
            for how in ("", ", 2 threads")
        ),
    ):
        times, works = wall[peer] / wall[name], work[peer] / work[name]
        print(f"{name} / {peer}: {times:.2f} by the clock, {works:.2f} by CPU time")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
    if len(sys.argv) < 2:
        memory()

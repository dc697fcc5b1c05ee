# SPDX-License-Identifier: BSD-3-Clause
"""python -m benchmarks.dead: bytes that no index names, after a flush of every frame; at most three slots a shard."""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import mrec
from mrec.bench.job import remove
from mrec.bench.report import replace_between
from mrec.zarr import json

ROOT = Path(__file__).parent
PAGE = ROOT.parent / "docs" / "performance.md"
ATOMS = (1, 10, 100, 5000)
LOOKS = 50  # at the files of a run, so many times
MISSING = 2**64 - 1


@dataclass
class Shard:
    """What a shard file holds: chunks that its index names, and the rest."""

    named: int
    dead: int
    slot: int  # bytes of one slot: the largest encoding of a chunk


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dead", description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the frames; the docs stay")
    parser.add_argument("--out", type=Path, default=ROOT / "out")
    options = parser.parse_args()
    frames = options.frames // 100 if options.quick else options.frames
    options.out.mkdir(exist_ok=True)
    lines = [
        "| atoms | precision | frames, each flushed | shards of a column | data, MB | most dead bytes of a column |"
        " of them in one shard | slots that is |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for atoms, precision in itertools.product(ATOMS, (0.0, 1e-3)):
        lines.append(run(options.out / "dead.mrec", atoms, precision, frames))
        print(lines[-1], flush=True)
    if not options.quick:
        replace_between(PAGE, "dead bytes", "\n".join(lines))


def run(path: Path, atoms: int, precision: float, frames: int) -> str:
    """Flush every frame, look at the files now and then, and print the worst look."""
    remove(path)
    x = np.random.default_rng(1).normal(size=(16, atoms)).cumsum(axis=0)
    schema = mrec.Schema().block("atoms", rows=atoms).column("x", "f64", precision=precision or None)
    column = path / "trajectory" / "atoms" / "x"
    worst, in_one, slots = 0, 0, 0.0
    with mrec.TrajectoryWriter(path, schema, durable_every=None) as writer:
        for i in range(frames):
            writer.append(i, atoms={"x": x[i % len(x)]})
            writer.flush(durable=False)
            if (i + 1) % max(1, frames // LOOKS) == 0:
                shards = look(column)
                worst = max(worst, sum(shard.dead for shard in shards))
                in_one = max(in_one, max(shard.dead for shard in shards))
                slots = max(slots, max(shard.dead / shard.slot for shard in shards))
    shards = look(column)
    remove(path)
    data = sum(shard.named for shard in shards) / 1e6
    grid = f"{precision:g}" if precision else "none"
    return f"| {atoms} | {grid} | {frames} | {len(shards)} | {data:.1f} | {worst} | {in_one} | {slots:.2f} |"


def look(column: Path) -> list[Shard]:
    """The shard files of a column as they are on disk."""
    document = json.parse((column / "zarr.json").read_bytes(), str(column))
    sharding = document["codecs"][0]["configuration"]
    rows, inner = document["chunk_grid"]["configuration"]["chunk_shape"][0], sharding["chunk_shape"][0]
    chunk = inner * 8
    compressed = any(codec["name"] == "zstd" for codec in sharding["codecs"])
    slot = (compress_bound(chunk) if compressed else chunk) + 4
    entries = rows // inner
    found = []
    for file in sorted((column / "c").iterdir()):
        index = np.fromfile(file, "<u8", 2 * entries).reshape(-1, 2)
        named = int(index[index[:, 0] != MISSING, 1].sum())
        found.append(Shard(named, file.stat().st_size - 16 * entries - 4 - named, slot))
    return found


def compress_bound(n: int) -> int:
    """Of zstd.h: the largest frame that n bytes can become."""
    return n + n // 256 + (math.floor((2**17 - n) / 2**11) if n < 2**17 else 0)


if __name__ == "__main__":
    main()

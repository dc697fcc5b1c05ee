# SPDX-License-Identifier: BSD-3-Clause
"""Heat in a square plate on any number of ranks, with restart slots.

    mpiexec -n 4 python examples/heat/heat.py restart.stream --steps 400
    mpiexec -n 4 python examples/heat/heat.py restart.stream --steps 400 --die-at 250     # killed ...
    mpiexec -n 4 python examples/heat/heat.py restart.stream --steps 400                  # ... and gone on with

Every 50 steps the whole state goes to one of two slots, in turn. A run that was killed at any moment goes on from the
last slot that was committed, also on another number of ranks, and ends in the same bits.
"""

from __future__ import annotations

import argparse
import os
import signal

import numpy as np
from mpi4py import MPI

from mrec import stream
from mrec.stream import mpi

ROWS, COLUMNS, EVERY = 96, 64, 50
COMM = MPI.COMM_WORLD

SCHEMA = stream.StreamSchema(
    dims={"y": ROWS, "x": COLUMNS},
    variables={"temperature": stream.Variable(("time", "y", "x"), "f64", {"units": "K"})},
    chunk={"time": 1, "y": 8, "x": COLUMNS},
    shard={"time": 1, "y": 8, "x": COLUMNS},
    profile="checkpoint",
    mode=stream.indexed(2, rewrite="rotate"),
)


def start(path: str) -> tuple[mpi.Ranks, np.ndarray, int]:
    """The writers, this rank's rows, and the step they are of."""
    exists = COMM.bcast(os.path.exists(f"{path}/output_manifest.json") if COMM.rank == 0 else None)
    ranks = mpi.resume(COMM, path, ["y"]) if exists else mpi.create(COMM, path, SCHEMA, ["y"], overwrite=True)
    assert ranks.writer is not None, "more ranks than shards"
    rows = ranks.writer.region["y"]
    slots = stream.read_manifest(path)
    if not slots.readable():
        y, x = np.mgrid[0:ROWS, 0:COLUMNS]
        return ranks, (300.0 + 50.0 * ((y - 30) ** 2 + (x - 20) ** 2 < 200))[slice(*rows)], 0
    (slot,) = slots.readable()
    field = stream.read_record(path, "temperature", slot, {"y": rows})
    return ranks, field, int(slots.times[slot])


def step(field: np.ndarray) -> np.ndarray:
    """One explicit step; the rows beside ours come from the neighbours, the rim of the plate is insulated."""
    above, below = field[:1].copy(), field[-1:].copy()
    up = COMM.rank - 1 if COMM.rank > 0 else MPI.PROC_NULL
    down = COMM.rank + 1 if COMM.rank < COMM.size - 1 else MPI.PROC_NULL
    COMM.Sendrecv(np.ascontiguousarray(field[-1:]), down, recvbuf=above, source=up)
    COMM.Sendrecv(np.ascontiguousarray(field[:1]), up, recvbuf=below, source=down)
    tall = np.concatenate([above, field, below])
    wide = np.pad(field, ((0, 0), (1, 1)), mode="edge")
    return field + 0.2 * (tall[:-2] + tall[2:] + wide[:, :-2] + wide[:, 2:] - 4 * field)


def main() -> None:
    """Run to the last step."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--die-at", type=int, default=-1)
    options = parser.parse_args()
    ranks, field, done = start(options.path)
    assert ranks.writer is not None
    for now in range(done + 1, options.steps + 1):
        field = step(field)
        if now % EVERY == 0:
            ranks.writer.write_record_at(ranks.writer.next_slot(), now, {"temperature": field})
            if now == options.die_at and COMM.rank == COMM.size - 1:
                os.kill(os.getpid(), signal.SIGKILL)  # the record is on disk, and not committed
            ranks.commit()
    ranks.close()
    if COMM.rank == 0:
        print(f"step {options.steps}, from step {done}")


if __name__ == "__main__":
    main()

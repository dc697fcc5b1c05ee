# SPDX-License-Identifier: BSD-3-Clause
"""A program of several ranks: `mpiexec -n 4 python -m tests.stream.ranks <what> <path>`."""

from __future__ import annotations

import os
import signal
import sys

from mpi4py import MPI

from mrec import stream
from mrec.errors import CommitError
from mrec.stream import mpi
from tests.stream.crew import cut, schema, value

COMM = MPI.COMM_WORLD


def write(ranks: mpi.Ranks, *records: int) -> None:
    writer = ranks.writer
    if writer is not None:
        for i in records:
            arrays = {n: cut(writer.schema, n, writer.region, value(writer.schema, n, i)) for n in writer.mine}
            assert writer.write_record(10.0 * i, arrays) == i


def story(what: str, path: str) -> None:
    if what == "write":
        with mpi.create(COMM, path, schema(), durability="fsync") as ranks:
            write(ranks, 0, 1)
            assert ranks.commit().records == (0, 1)
            write(ranks, 2, 3, 4)
    elif what == "killed":
        ranks = mpi.create(COMM, path, schema())
        write(ranks, 0, 1)
        ranks.commit()
        write(ranks, 2)
        if COMM.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)  # before its flush
        ranks.writer.flush()
        os._exit(0)
    elif what == "resume":
        with mpi.resume(COMM, path) as ranks:
            write(ranks, 2, 3)
    elif what == "missed":
        ranks = mpi.create(COMM, path, schema())
        write(ranks, 0, 1)
        tokens = COMM.gather(ranks.writer.flush())
        if COMM.rank == 0:
            ranks.writer.commit(tokens)
        COMM.barrier()  # no receipt is sent
        ranks.writer.refresh()
        write(ranks, 2)
        ranks.commit()
        ranks.close()
    elif what == "refused":
        ranks = mpi.create(COMM, path, schema())
        t = 0.0 if COMM.rank != 3 else 1.0
        writer = ranks.writer
        writer.write_record(
            t, {n: cut(writer.schema, n, writer.region, value(writer.schema, n, 0)) for n in writer.mine}
        )
        try:
            ranks.commit()
        except CommitError as e:
            assert "time of record 0 differs" in str(e) and not e.retry
            assert stream.read_manifest(path).n_records == 0
        else:
            raise AssertionError("it was not refused")


if __name__ == "__main__":
    try:
        story(*sys.argv[1:])
    except BaseException:
        import traceback

        traceback.print_exc()
        COMM.Abort(1)

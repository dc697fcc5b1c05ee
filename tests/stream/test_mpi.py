# SPDX-License-Identifier: BSD-3-Clause
"""Four ranks of MPI write one stream."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mrec import stream
from mrec.stream import MemoryStore, StreamSchema, Variable, mpi
from tests.stream.crew import Crew, check, data, schema

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
ROOT = Path(__file__).parent.parent.parent


def run(n: int, what: str, path: Path) -> int:
    assert MPIEXEC is not None, "the wheel mpich brings mpiexec"
    command = [MPIEXEC, "-n", str(n), sys.executable, "-m", "tests.stream.ranks", what, str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, timeout=120
    )
    if done.returncode and what != "killed":
        raise AssertionError(done.stderr.decode())
    return done.returncode


def test_four_ranks_write_the_bytes_of_one(tmp_path: Path) -> None:
    run(4, "write", tmp_path / "s")
    check(tmp_path / "s", schema(), range(5))
    one = Crew(MemoryStore(), schema())
    one.write(0, 1)
    one.commit()
    one.write(2, 3, 4)
    one.commit()
    assert data(tmp_path / "s") == data(one.base)


def test_a_rank_is_killed_before_its_flush(tmp_path: Path) -> None:
    run(4, "killed", tmp_path / "s")
    check(tmp_path / "s", schema(), range(2))
    run(2, "resume", tmp_path / "s")
    check(tmp_path / "s", schema(), range(4))
    assert len(stream.read_manifest(tmp_path / "s").writers) == 2


@pytest.mark.parametrize(("what", "records"), [("missed", 3), ("refused", 0)])
def test_receipts_and_refusals(tmp_path: Path, what: str, records: int) -> None:
    run(4, what, tmp_path / "s")
    check(tmp_path / "s", schema(), range(records))


@pytest.mark.parametrize("n", range(1, 9))
def test_a_plan_covers_the_stream(n: int) -> None:
    s = schema()
    for dims in (None, ["lat"], ["lon", "lat"], ["lev"]):
        regions = mpi.plan(s, n, dims)
        assert 1 <= len(regions) <= n
        cells = np.zeros([s.dims[d] for d in ("lat", "lon", "lev")], int)
        for region in regions:
            cells[tuple(slice(*region.get(d, (0, s.dims[d]))) for d in ("lat", "lon", "lev"))] += 1
        assert (cells == 1).all()
    crew = Crew(MemoryStore(), s, mpi.plan(s, n))
    crew.write(0)
    crew.commit()
    check(crew.base, s, [0])


def test_193_rows_are_48_48_48_49() -> None:
    s = StreamSchema(
        {"lat": 193, "lon": 4}, {"v": Variable(("time", "lat", "lon"), "f4")},
        {"time": 1, "lat": 16, "lon": 4}, {"time": 1, "lat": 16, "lon": 4},
    )  # fmt: skip
    assert [r["lat"][1] - r["lat"][0] for r in mpi.plan(s, 4)] == [48, 48, 48, 49]


def test_errors_travel() -> None:
    """MPI pickles what it sends."""
    from mrec.errors import CommitError, RegionNotShardAligned

    for error in (CommitError("x", retry=False), RegionNotShardAligned("x")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == "x" and vars(again) == vars(error)

# SPDX-License-Identifier: BSD-3-Clause
"""Every system call of every job failed, shortened, stopped; and the power lost at each."""

from __future__ import annotations

import os
import random
import shutil
import warnings
from pathlib import Path

import pytest

from tests.collection.faulty import JOBS, KEPT, OLD, FaultyFiles, Job, Stopped, content, full
from tests.power.disk import Disk, State

FINAL = {"data.atlas", "data.atlas.crc", "deleted.mask"}


def fresh(path: Path, job: Job) -> None:
    shutil.rmtree(path, ignore_errors=True)
    job.prepare(path)


@pytest.mark.parametrize("kind", ["fail", "short", "stop"])
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_struck_at_each_call(job: Job, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "set"
    at, struck = 0, True
    while struck:
        at += 1
        fresh(path, job)
        files = FaultyFiles(at, kind)
        failed = False
        try:
            job.run(path, files)
        except (OSError, Stopped):
            failed = True
        struck = files.count >= at
        found = content(path)
        assert found in job.allowed, f"call {at}, {files.struck}"
        assert failed or found == job.allowed[-1]
        assert failed == (bool(files.struck) and kind != "short") or files.struck in ("unlink", "rmdir"), at
        if kind != "stop" and path.exists() and files.struck != "unlink":
            assert set(os.listdir(path)) <= FINAL, f"call {at}, {files.struck}"
        if failed and found != job.allowed[-1]:
            job.run(path, FaultyFiles())  # what was left stands in nobody's way
            assert content(path) in ([full(OLD), KEPT] if job.name == "compact" else job.allowed[-1:])
            assert set(os.listdir(path)) <= FINAL
    assert at > 10


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_power_lost_at_each_call(job: Job, tmp_path: Path) -> None:
    power_lost(job, tmp_path, 3, 1)


def power_lost(job: Job, folder: Path, most: int, seed: int) -> int:
    """Lose the power after each call in up to `most` ways; how many states were seen."""
    path, after = folder / "set", folder / "after"
    fresh(path, job)
    rng = random.Random(seed)
    disk = Disk(str(folder), state_of(folder))
    files = FaultyFiles()
    job.run(path, files)
    seen = 0
    for call in files.log:
        disk.apply(*call)
        if call[0] in "wsrudm":
            for state in disk.losses(rng, most):
                assert loaded(state, after) in job.allowed
                seen += 1
    for state in disk.losses(rng, 20 * most):
        assert loaded(state, after) == job.allowed[-1]  # it was finished: it is there for good
        seen += 1
    return seen


def state_of(folder: Path) -> State:
    found: State = {}
    for entry in sorted(folder.rglob("*")):
        found[str(entry.relative_to(folder))] = entry.read_bytes() if entry.is_file() else None
    return found


def loaded(state: State, after: Path) -> object:
    """What a reader finds in such a state."""
    shutil.rmtree(after, ignore_errors=True)
    for name, data in sorted(state.items()):
        target = after / name
        if data is None:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*crc is not used")
        return content(after / "set")

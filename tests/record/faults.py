# SPDX-License-Identifier: BSD-3-Clause
"""Runs with preload.c loaded: does a job again and again in a child, and hits it at one call after the other.

python -m tests.record.faults JOB ACTION EVERY DIRECTORY, with JOB one of those below, ACTION one of kill, fail,
interrupt, and EVERY for each EVERY-th call only. Prints how many calls there are; whatever is not as it has to be is an
AssertionError.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mrec
from tests.faults.preload import ACTIONS, DONE, KILL, WRONG, loaded, struck

OLD = mrec.Frame({"atoms": {"x": np.arange(5.0), "name": ["a"] * 5}}, box=[1, 2, 3], meta={"n": 1})
NEW = mrec.Frame({"atoms": {"x": np.arange(7.0)}, "other": {"id": np.arange(3, dtype="u8")}}, meta={"n": 2})
FIRST, SECOND = (mrec.Observable(np.full(n, float(n)), "k", "d", False) for n in (3, 4))


def make(path: Path) -> None:
    """What is there before."""
    with mrec.create(path, frame=OLD, status={"state": "old"}, observables={"a": FIRST}) as record:
        with mrec.MetricsLog(record.path) as log:
            for i in range(6):
                log.log("loss", float(i), step=i)


def replace(path: Path) -> None:
    mrec.open(path).frame = NEW


def add(path: Path) -> None:
    mrec.open(path).system = NEW


def remove(path: Path) -> None:
    del mrec.open(path).frame


def document(path: Path) -> None:
    mrec.open(path).status = {"state": "new"}


def observables(path: Path) -> None:
    mrec.open(path).observables.update(a=SECOND, b=FIRST)


def trajectory(path: Path) -> None:
    from mrec.record.create import add_trajectory

    add_trajectory(str(path), mrec.Schema().block("atoms").column("y", "f64"))


def copy(path: Path) -> None:
    mrec.open(path).copy_to(path.with_name("copy.mrec"))


def metrics(path: Path) -> None:
    with mrec.MetricsLog(path) as log:
        for i in range(4, 10):
            log.log("loss", 10.0 * i, step=i)
            if i == 6:
                log.flush()


JOBS: dict[str, Callable[[Path], None]] = {
    job.__name__: job for job in (replace, add, remove, document, observables, trajectory, copy, metrics)
}

#: Jobs that are refused when they were done, and another that clears up after them then.
ONCE: dict[str, Callable[[Path], None]] = {
    "remove": lambda path: mrec.MetricsLog(path).close(),
    "trajectory": lambda path: mrec.TrajectoryWriter.open(path).close(),
}


def look(path: Path) -> dict[str, Any]:
    """All of the record; what is half there is an error."""
    with mrec.open(path) as record:
        found: dict[str, Any] = {name: getattr(record, name) for name in ("frame", "system", "status")}
        found |= {f"observable {name}": value for name, value in record.observables.items()}
        found["trajectory"] = len(record.trajectory) if "trajectory" in record else None
        loss = record.metrics["loss"]
        found["loss"] = dict(zip(loss.steps.tolist(), loss.values.tolist(), strict=True))
        assert len(found["loss"]) == len(loss)
        return found


def check(job: str, path: Path, old: dict[str, Any], new: dict[str, Any], done: bool) -> None:
    """The record before or after, and the metrics with the first of what was logged."""
    found = look(path)
    loss = found.pop("loss")
    if job == "metrics":
        wanted = dict(old["loss"])
        states = [dict(wanted)] + [dict(wanted := wanted | {i: 10.0 * i}) for i in range(4, 10)]
        assert loss in states if not done else loss == states[-1], loss
    else:
        assert loss == old["loss"]
    before, after = ({k: v for k, v in state.items() if k != "loss"} for state in (old, new))
    assert found == after or (not done and found == before), found
    copied = path.with_name("copy.mrec")
    assert not copied.exists() or look(copied) == old
    assert mrec.verify(path).ok, mrec.verify(path).findings


def child(path: Path, job: str, shim: ctypes.CDLL, n: int, action: int, pipe: int) -> None:
    code = WRONG
    try:
        warnings.simplefilter("ignore")
        code, call = struck(shim, n, action, lambda: JOBS[job](path))
        os.write(pipe, call.encode())
    finally:
        os._exit(code)


def main(job: str, action: int, every: int, directory: Path) -> None:
    shim = loaded()
    directory.mkdir(exist_ok=True)
    start, after, path = directory / "start.mrec", directory / "after.mrec", directory / "run.mrec"
    make(start)
    shutil.copytree(start, after)
    JOBS[job](after)
    shutil.rmtree(directory / "copy.mrec", ignore_errors=True)
    old, new = look(start), look(after)
    n = 0 if every == 1 else len(job) * action % every
    while True:
        for name in ("run.mrec", "copy.mrec"):
            shutil.rmtree(directory / name, ignore_errors=True)
        shutil.copytree(start, path)
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            child(path, job, shim, n, action, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            call = pipe.read().decode()
        status = os.waitpid(pid, 0)[1]
        killed = os.WIFSIGNALED(status)
        code = WRONG if killed else os.WEXITSTATUS(status)
        assert killed or code != WRONG, f"call {n}, {call}"
        assert not killed or action == KILL
        try:
            check(job, path, old, new, not killed and code == DONE)
            shutil.rmtree(directory / "copy.mrec", ignore_errors=True)
            next_job = JOBS[job] if job not in ONCE or look(path) == old else ONCE[job]
            next_job(path)
            check(job, path, old, new, True)
            assert not [name for name in os.listdir(path) if name.startswith(".")], os.listdir(path)
        except BaseException as e:
            e.add_note(f"{job} hit at call {n}, {call or 'killed'}")
            raise
        if not killed and not call:
            assert code == DONE
            break
        n += every
    print(n)


if __name__ == "__main__":
    main(sys.argv[1], ACTIONS[sys.argv[2]], int(sys.argv[3]), Path(sys.argv[4]))

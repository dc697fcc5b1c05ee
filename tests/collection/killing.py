# SPDX-License-Identifier: BSD-3-Clause
"""Runs with preload.c loaded: does each job again and again in a child, and kills it at one call after the other.

python -m tests.collection.killing EVERY DIRECTORY. Prints how many were killed; what is not as it has to be is an
AssertionError.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from pathlib import Path

from mrec.files import Files
from tests.collection.faulty import JOBS, Job, content
from tests.faults.preload import DONE, KILL, WRONG, loaded, struck


def child(job: Job, path: Path, n: int) -> None:
    code = WRONG
    try:
        code, _ = struck(loaded(), n, KILL, lambda: job.run(path, Files()))
    finally:
        os._exit(code)


def main(every: int, directory: Path) -> None:
    warnings.filterwarnings("ignore", ".*crc is not used")
    directory.mkdir(exist_ok=True)
    path = directory / "set"
    killed = 0
    for number, job in enumerate(JOBS):
        n, alive = number % every, False
        while not alive:
            shutil.rmtree(path, ignore_errors=True)
            job.prepare(path)
            if (pid := os.fork()) == 0:
                child(job, path, n)
            status = os.waitpid(pid, 0)[1]
            alive = not os.WIFSIGNALED(status)
            found = content(path)
            assert found in job.allowed, f"{job.name}, call {n}"
            assert not alive or (os.WEXITSTATUS(status) == DONE and found == job.allowed[-1]), f"{job.name}, call {n}"
            killed += not alive
            n += every
    print(killed)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

# SPDX-License-Identifier: BSD-3-Clause
"""Runs with preload.c loaded: does a job again and again in a child, and hits it at one call after the other.

python -m tests.pack.faults JOB ACTION EVERY DIRECTORY, with JOB one of pack, replace, remove, unpack, ACTION one of
kill, fail, interrupt, and EVERY for each EVERY-th call only. Prints how many calls there are; whatever is not as it has
to be is an AssertionError.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path

import mrec
from tests.faults.preload import ACTIONS, DONE, FAILED, KILL, WRONG, loaded, struck
from tests.pack.archives import files, make_record


class Job:
    """One of the jobs in a directory of its own, and what may be found after it."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.record = make_record(directory / "run.mrec")
        (self.record / "big").write_bytes(os.urandom(9 << 20))
        self.source = files(self.record)
        self.packed = Path(mrec.pack(self.record))
        self.new = self.packed.read_bytes()
        self.out = directory / "out.mrec"

    def prepare(self) -> None:
        """As before the first run."""
        for entry in self.directory.iterdir():
            if entry not in (self.record, self.packed):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        if not self.record.exists():
            mrec.unpack(self.packed, self.record)
        if self.name == "replace":
            self.packed.write_bytes(b"old")
        elif self.name == "unpack":
            self.packed.write_bytes(self.new)
        else:
            self.packed.unlink(missing_ok=True)

    def run(self) -> None:
        """In the child."""
        if self.name == "unpack":
            mrec.unpack(self.packed, self.out)
        else:
            mrec.pack(self.record, remove=self.name == "remove")

    def check(self, code: int, call: str, killed: bool) -> None:
        """What is there is whole, and old or new; unless it was killed, nothing else is there."""
        there = self.packed.read_bytes() if self.packed.exists() else None
        packed = there == self.new
        assert packed or there == (b"old" if self.name == "replace" else None)
        if self.record.exists() or self.name != "remove" or not packed:
            assert files(self.record) == self.source
        if self.out.exists():
            assert files(self.out) == self.source
        assert code != DONE or (self.out.exists() if self.name == "unpack" else packed)
        left = {p.name for p in self.directory.iterdir()} - {self.record.name, self.packed.name, self.out.name}
        cleaning = call in ("unlink", "unlinkat", "rmdir") or (self.name == "remove" and packed)
        assert not left or killed or cleaning, f"{left} is left after {call}"
        assert all(name.startswith(".") for name in left), left


def child(job: Job, shim: ctypes.CDLL, n: int, action: int, pipe: int) -> None:
    code = WRONG
    try:
        code, call = struck(shim, n, action, job.run)
        os.write(pipe, call.encode())
    finally:
        os._exit(code)


def main(name: str, action: int, every: int, directory: Path) -> None:
    shim = loaded()
    directory.mkdir(exist_ok=True)
    job = Job(name, directory)
    n = 0 if every == 1 else len(name) * action % every
    while True:
        job.prepare()
        reading, writing = os.pipe()
        if (pid := os.fork()) == 0:
            child(job, shim, n, action, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            call = pipe.read().decode()
        status = os.waitpid(pid, 0)[1]
        killed = os.WIFSIGNALED(status)
        code = FAILED if killed else os.WEXITSTATUS(status)
        assert code != WRONG, f"call {n}, {call}"
        assert not killed or action == KILL
        job.check(code, call, killed)
        if not killed and not call:
            assert code == DONE
            break
        n += every
    job.prepare()
    job.run()
    job.check(DONE, "", False)
    print(n)


if __name__ == "__main__":
    main(sys.argv[1], ACTIONS[sys.argv[2]], int(sys.argv[3]), Path(sys.argv[4]))

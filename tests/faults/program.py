# SPDX-License-Identifier: BSD-3-Clause
"""Runs with preload.c loaded: a program that writes a record is hit at one system call after the other.

python -m tests.faults.program STORY ACTION EVERY DIRECTORY, with ACTION one of kill, fail, interrupt, and EVERY for
each EVERY-th call only. Prints how many calls there are; whatever is not as it has to be is an AssertionError.
"""

from __future__ import annotations

import mmap
import os
import pickle
import shutil
import sys
from ctypes import CDLL
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.preload import ACTIONS, DONE, FAIL, FAILED, KILL, WRONG, loaded, struck
from tests.faults.story import FULL, Point, Teller, Wrong, check, restart

#: What is there before, and what the program does.
STORIES = {
    "create": ("", "C a A a a D a a A a D X"),
    "append": ("C a a a D a A K", "O a A a D a A X"),
    "restart": ("C a a a D a A P", "O a A a D X"),
    "truncate": ("C a a a a a a a D X", "T3 a A a D X"),
}
#: Calls of which none can fail without a word.
TELLING = {"pwrite", "pwrite64", "write", "ftruncate", "ftruncate64", "fsync", "fdatasync", "rename", "mkdir", "unlink"}


class Board:
    """What the program says of itself, in memory that outlives it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 16)

    def put(self, said: object) -> None:
        self._memory.seek(0)
        self._memory.write(pickle.dumps(said))

    def get(self) -> tuple[tuple[Point, ...], bool, str]:
        self._memory.seek(0)
        return pickle.loads(self._memory.read())


@dataclass
class Program(Teller):
    """A teller that says, before each word, between which points it stands."""

    board: Board = field(default_factory=Board)

    def _run(self, word: str, after: Point) -> None:
        self.board.put((self.under_way, self.making, ""))
        super()._run(word, after)


def child(program: Program, words: str, shim: CDLL, n: int, action: int) -> None:
    code = WRONG
    try:
        code, call = struck(shim, n, action, lambda: program.tell(words))
        program.board.put((program.under_way, program.making, call))
    finally:
        os._exit(code)


def main(story: str, action: int, every: int, directory: Path) -> None:
    shim, board = loaded(), Board()
    directory.mkdir(exist_ok=True)
    before, words = STORIES[story]
    start = Teller(directory / "before.mrec", FULL)
    start.tell(before)
    start.leave()
    warm = Teller(directory / "warm.mrec", FULL)  # so that nothing is imported while calls fail
    warm.tell("C a X T0 a X")
    check(warm.path, FULL, warm.under_way, "published")
    n, call = 0 if every == 1 else len(story) * action % every, "the first"
    while call:
        path = directory / "run.mrec"
        shutil.rmtree(path, ignore_errors=True)
        if start.path.exists():
            shutil.copytree(start.path, path)
        program = Program(path, FULL, start.point, start.generation + 1, board=board)
        if (pid := os.fork()) == 0:
            child(program, words, shim, n, action)
        status = os.waitpid(pid, 0)[1]
        killed = os.WIFSIGNALED(status)
        code = FAILED if killed else os.WEXITSTATUS(status)
        call = "killed" if killed else board.get()[2]
        if code == WRONG or (killed and action != KILL):
            raise Wrong(f"call {n}, {call}: ended with status {status}")
        if action == FAIL and code == DONE and call in TELLING:
            raise Wrong(f"call {n}, {call}, failed, and nothing was said")
        go_on(path, board, n)
        n += every
    print(n)


def go_on(path: Path, board: Board, n: int) -> None:
    """What is there is right, and a new writer goes on from it."""
    between, making, _ = board.get()
    try:
        stands = check(path, FULL, between, "published", making)
        again = Teller(path, FULL, stands or Point(), generation=50)
        again.tell("O a A a X" if stands else "W a A X")
        restart(path)  # changes nothing: it is closed
        check(path, FULL, again.under_way, "published")
        if left := list(path.rglob(".*")):
            raise Wrong(f"left over: {left}")
    except Exception as e:
        e.add_note(f"hit at call {n}, between {between}")
        raise


if __name__ == "__main__":
    main(sys.argv[1], ACTIONS[sys.argv[2]], int(sys.argv[3]), Path(sys.argv[4]))

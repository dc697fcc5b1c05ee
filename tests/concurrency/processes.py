# SPDX-License-Identifier: BSD-3-Clause
"""Forked processes that start together and report."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from contextlib import suppress


def child(what: Callable[[], object]) -> int:
    """The process id of a forked child that does it. It ends with status 0, or 1 when that raised."""
    pid = os.fork()
    if pid:
        return pid
    with suppress(BaseException):  # nothing of pytest may run here
        try:
            what()
            os._exit(0)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
    os._exit(1)


def ended_well(pid: int) -> bool:
    """Wait for a child to end, and tell how it did."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def together(n: int, what: Callable[[int], str]) -> list[str]:
    """What n forked processes return that are let go at the same time, in no order."""
    ready, go = os.pipe(), os.pipe()
    told = os.pipe()

    def run(i: int) -> None:
        os.close(go[1])
        os.write(ready[1], b".")
        os.read(go[0], 1)
        os.write(told[1], f"{what(i)}\n".encode())

    children = [child(lambda i=i: run(i)) for i in range(n)]
    for _ in children:
        os.read(ready[0], 1)
    os.close(go[1])
    os.close(told[1])
    with open(told[0]) as pipe:
        found = pipe.read().splitlines()
    for fd in (*ready, go[0]):
        os.close(fd)
    assert sum(map(ended_well, children)) == n
    return found

# SPDX-License-Identifier: BSD-3-Clause
"""Threads that share the work of one call.

Those of concurrent.futures take 0.1 ms to begin and to be waited for, which is a tenth of a record; a queue takes 0.02.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import TypeAlias, TypeVar

Item = TypeVar("Item")
Queue: TypeAlias = "SimpleQueue[Callable[[], None] | None]"


def _work(asked: Queue) -> None:
    while (act := asked.get()) is not None:
        act()


def _end(asked: Queue, threads: int) -> None:
    for _ in range(threads):
        asked.put(None)


class Pool:
    """So many threads, the caller's among them: with one, all is done where it is asked for, in order. Of use to one
    caller at a time. end(): let go of the threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._asked: Queue = SimpleQueue()
        self.end = weakref.finalize(self, _end, self._asked, threads - 1)
        for _ in range(threads - 1):
            threading.Thread(target=_work, args=(self._asked,), name="mrec-stream", daemon=True).start()

    def each(self, act: Callable[[Item], object], items: Iterable[Item]) -> None:
        """Call act with each item (none is None). They are taken in order and one at a time, by whichever thread is
        free. After the first error none is taken any more; it is raised when no thread is at work."""
        left, mutex, errors = iter(items), threading.Lock(), list[BaseException]()
        asked, ended = 0, list[None]()
        woken: SimpleQueue[None] = SimpleQueue()

        def taken() -> Item | None:
            with mutex:
                return None if errors else next(left, None)

        def work() -> None:
            try:
                while (item := taken()) is not None:
                    act(item)
            except BaseException as e:
                errors.append(e)

        def join() -> None:
            work()
            ended.append(None)
            woken.put(None)

        try:
            while asked < self.threads - 1:
                self._asked.put(join)
                asked += 1
            work()
        except BaseException as e:  # an interrupt in between
            errors.append(e)
        while len(ended) < asked:  # whatever interrupts it: what they work on is the caller's
            try:
                woken.get()
            except BaseException as e:
                errors.append(e)
        if errors:
            raise errors[0]


#: The caller alone.
ALONE = Pool(1)

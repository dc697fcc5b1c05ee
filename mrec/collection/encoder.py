# SPDX-License-Identifier: BSD-3-Clause
"""Blocks on their way to bytes: in the caller's thread, or in others, which hold it back when they cannot follow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from mrec.errors import ClosedError


class Encoder:
    """Runs jobs, `threads` at a time; the caller's own thread is the one when there is one. The first error is kept:
    `error`."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "mrec-collection") if threads > 1 else None
        self._room = threading.BoundedSemaphore(threads + 1)
        self.error: BaseException | None = None

    def run(self, job: Callable[[], Any]) -> Future[Any]:
        """Do it, now or soon. An error shows in `error` and in the future."""
        future: Future[Any]
        if self._pool is None:
            future = Future()
            try:
                future.set_result(job())
            except BaseException as e:
                self.error = self.error or e
                raise
            return future
        self._room.acquire()
        try:
            future = self._pool.submit(job)
        except RuntimeError:
            self._room.release()
            raise ClosedError("the collection was finished or aborted meanwhile") from None
        future.add_done_callback(self._done)
        return future

    def _done(self, future: Future[Any]) -> None:
        self._room.release()
        if not future.cancelled() and future.exception() is not None:
            self.error = self.error or future.exception()

    def fail(self, error: BaseException) -> None:
        """From now on this is the error, if there is none before it."""
        self.error = self.error or error

    def close(self) -> None:
        """Wait for what runs, drop what waits."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec watch`: a record while it is being written."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections import deque
from typing import Any

from mrec.cli.choice import WrongCall
from mrec.cli.sizes import disk_usage, human
from mrec.display import counted, text
from mrec.errors import MrecError
from mrec.trajectory.standing import DURABLE
from mrec.trajectory.writer import lock_holder

#: Frames per second are those of so many seconds.
WINDOW = 30.0


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "watch", help="follow a record that is being written",
        description="Follow a record until its writer closes it, or is gone: frames, rate, size, and the last values.",
        epilog="On a terminal one line is kept up to date, otherwise each change is a line. Ctrl-C ends it.",
    )  # fmt: skip
    parser.add_argument("path", metavar="PATH", help="a record")
    parser.add_argument("--interval", type=float, default=1.0, metavar="S", help="look every S seconds (default: 1)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Follow until the end."""
    if not arguments.interval > 0:
        raise WrongCall(f"--interval is {arguments.interval:g}; it is above 0")
    import mrec

    with mrec.open(arguments.path) as record:
        screen = Screen()
        try:
            ended = follow(record, arguments.interval, screen)
        except KeyboardInterrupt:
            ended = ""
        finally:
            screen.end()
    if ended:
        print(ended)


def follow(record: Any, interval: float, screen: Screen) -> str:
    """Show each change until the record is closed; how it ended. MrecError when its writer died."""
    trajectory, rate = record.trajectory, Rate()
    shown: tuple[int, int] | None = None
    while True:
        closed = not os.path.exists(os.path.join(record.path, DURABLE))
        lives = closed or is_written(record.path)
        frames = trajectory.refresh()  # after the looks above: what was published before them is counted
        size = disk_usage(record.path)[0]
        rate.add(frames, time.monotonic())
        if (frames, size) != shown:
            screen.show(line(trajectory, frames, rate.per_second, size))
            shown = frames, size
        if closed:
            return f"closed with {counted(frames, 'frame')}"
        if not lives and os.path.exists(os.path.join(record.path, DURABLE)):
            screen.end()
            raise MrecError(f"{record.path}: its writer ended without closing it; it has {counted(frames, 'frame')}")
        time.sleep(interval)


def is_written(path: str) -> bool:
    """Whether a writer has the record, as far as its lock can tell: where locks are not known, it is believed."""
    if lock_holder(path) is not None:
        return True
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # held, by a process that is not shown to us; or there are no locks here
        return True
    finally:
        os.close(directory)
    return False


class Rate:
    """Frames per second over the last while."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, float]] = deque()

    def add(self, frames: int, now: float) -> None:
        """So many frames there are now."""
        if self._seen and frames < self._seen[-1][0]:
            self._seen.clear()  # the record was cut back
        self._seen.append((frames, now))
        while len(self._seen) > 2 and now - self._seen[1][1] >= WINDOW:
            self._seen.popleft()

    @property
    def per_second(self) -> float | None:
        """None until something was seen to change."""
        (first, start), (last, end) = self._seen[0], self._seen[-1]
        return (last - first) / (end - start) if last > first and end > start else None


def line(trajectory: Any, frames: int, rate: float | None, size: int) -> str:
    """One state in words."""
    parts = [counted(frames, "frame")]
    if rate is not None:
        parts.append(f"{rate:.3g}/s")
    parts.append(human(size))
    if frames:
        last = trajectory[frames - 1 : frames]
        parts.append(f"step {last.steps[0]}")
        if last.times is not None:
            parts.append(f"time {last.times[0]:.8g}")
        parts += [f"{name} {text(last.values(name)[0])}" for name in trajectory.schema.values]
    return "  ".join(parts)


class Screen:
    """Where states are shown: one line kept up to date on a terminal, lines one after another elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._open = False

    def show(self, text: str) -> None:
        """Show a state."""
        if self._terminal:
            print(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
            self._open = True
        else:
            print(text, flush=True)

    def end(self) -> None:
        """Leave the line that is being kept up to date."""
        if self._open:
            print(flush=True)
            self._open = False

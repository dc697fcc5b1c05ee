# SPDX-License-Identifier: BSD-3-Clause
"""What a job is: one thing that every peer does on every data set, with the clock running."""

from __future__ import annotations

import gc
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mrec.bench.data import DataSet
from mrec.bench.peer import Peer


@dataclass
class Sample:
    """One turn of one peer.

    wall_us, cpu_us: microseconds a unit, CPU time of all threads. units: how many were done. peak_bytes: by how much
    the resident memory of the process rose at most, None where the system does not tell. disk_bytes: of what was made.
    """

    wall_us: float
    cpu_us: float
    units: int
    peak_bytes: int | None
    disk_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As a worker sends it."""
        return asdict(self)


@dataclass
class Place:
    """Where a job runs: a peer, a data set, a precision, and a folder of its own."""

    peer: Peer
    data: DataSet
    precision: float | None
    folder: Path

    @property
    def path(self) -> Path:
        """What the peer wrote of the data set, and reads."""
        return self.folder / f"data{self.peer.suffix}"

    @cached_property
    def given(self) -> list[Any]:
        """The frames as the peer takes them, all of them in memory, so that they do not count as what a job needs."""
        frames = self.peer.given(self.data, self.precision)
        for frame in frames:
            np.sum(frame)
        return frames

    def write(self) -> None:
        """Make `path` anew."""
        remove(self.path)
        self.peer.write(self.path, self.given, self.precision)

    def written(self) -> Path:
        """`path`, made now if no job did."""
        if not self.path.exists():
            self.write()
        return self.path


class Job:
    """One thing to do. `run` gives a Sample, and with `check` compares what came of it with the data (AssertionError).

    name: as on the command line. unit: what a figure is of. cores: how many the process may use.
    """

    name: str
    about = ""
    unit = "frame"
    cores = 1

    def run(self, place: Place, check: bool) -> Sample:
        """Do it once. Unsupported when the peer has no way to."""
        raise NotImplementedError


class FunctionJob(Job):
    """A function of a Place, that says how many units it did: all of it is timed."""

    def __init__(self, function: Callable[[Place], int]) -> None:
        self.name = function.__name__.replace("_", "-")
        self.about = (function.__doc__ or "").strip().partition("\n")[0]
        self.function = function

    def run(self, place: Place, check: bool) -> Sample:
        place.written()
        return measured(lambda: self.function(place))


def measured(work: Callable[[], int]) -> Sample:
    """What it costs to do some work, which says how many units it did."""
    gc.collect()
    before = _start_of_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    units = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = None if before is None else max(0, _status("VmHWM") - before)
    return Sample(1e6 * wall / units, 1e6 * cpu / units, units, peak)


def exhaust(items: Iterator[Any]) -> int:
    """How many there are."""
    count = 0
    for _ in items:
        count += 1
    return count


def disk_bytes(path: Path) -> int:
    """Bytes of a file, or of all the files below a directory."""
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(p.stat().st_size for p in files)


def remove(path: Path) -> None:
    """A file or a directory, or nothing."""
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def copy(path: Path, to: Path) -> Path:
    """A file or a directory, in place of what is there."""
    remove(to)
    to.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, to)
    else:
        shutil.copyfile(path, to)
    return to


def settle(path: Path, forget: bool = False) -> None:
    """Sync these files; forget: and let the system drop its pages of them, so that a reader waits for the disk."""
    for file in [path] if path.is_file() else path.rglob("*"):
        if file.is_file():
            fd = os.open(file, os.O_RDONLY)
            os.fsync(fd)
            if forget and hasattr(os, "posix_fadvise"):
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def _start_of_peak() -> int | None:
    """Bytes resident now, from where the peak is counted; None where it cannot be."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    return None


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")

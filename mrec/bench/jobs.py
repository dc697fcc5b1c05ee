# SPDX-License-Identifier: BSD-3-Clause
"""The jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import numpy as np

from mrec.bench.data import DataSet
from mrec.bench.job import Job, Place, Sample, copy, disk_bytes, exhaust, measured, remove, settle
from mrec.bench.peer import slab_frames

DURABLE_FRAMES = 20
APPENDED_FRAMES = 4
RANDOM_FRAMES = 100
STRIDE = 10
BONDS_HOLD = 50  # frames


# ---- writing -----------------------------------------------------------------------------------------------------


class Append(Job):
    """Frames one at a time, and closing; nothing is synced."""

    name = "append"
    about = "frames one at a time, closing included, nothing synced"

    def run(self, place: Place, check: bool) -> Sample:
        remove(place.path)
        frames = place.given
        sample = measured(lambda: self.write(place, frames))
        sample.disk_bytes = disk_bytes(place.path)
        if check:
            compare(place, read(place), place.data.xyz)
        return sample

    def write(self, place: Place, frames: list[Any]) -> int:
        """To `place.path`."""
        place.peer.write(place.path, frames, place.precision)
        return len(frames)


class AppendThreaded(Append):
    """The same on two cores."""

    name = "append-threaded"
    about = "append with two threads on two cores"
    cores = 2

    def write(self, place: Place, frames: list[Any]) -> int:
        place.peer.write_threaded(place.path, frames, place.precision)
        return len(frames)


class AppendRagged(Job):
    """Frames whose number of atoms changes by up to a fifth."""

    name = "append-ragged"
    about = "append where every frame has another number of atoms (up to a fifth fewer)"

    def run(self, place: Place, check: bool) -> Sample:
        path = place.folder / f"ragged{place.peer.suffix}"
        remove(path)
        frames = [(f[0, :n], f[1, :n], f[2, :n]) for f, n in zip(place.data.xyz, place.data.counts(), strict=True)]
        sample = measured(lambda: self.write(place, path, frames))
        sample.disk_bytes = disk_bytes(path)
        if check:
            for got, frame in zip_longest(place.peer.read_ragged(path), frames):
                close(place, np.asarray(got), np.stack(frame))
        remove(path)
        return sample

    @staticmethod
    def write(place: Place, path: Any, frames: list[Any]) -> int:
        """To a path of its own."""
        place.peer.write_ragged(path, frames, place.precision)
        return len(frames)


class AppendSparse(Job):
    """Bonds that change every 50 frames, beside atoms that move in each."""

    name = "append-sparse"
    about = f"append with bonds that change every {BONDS_HOLD} frames, and hold in between"

    def run(self, place: Place, check: bool) -> Sample:
        path = place.folder / f"sparse{place.peer.suffix}"
        remove(path)
        first = np.arange(place.data.atoms)
        bonds = {
            i: np.array([first, np.roll(first, 1 + i // BONDS_HOLD)]) for i in range(0, place.data.frames, BONDS_HOLD)
        }
        frames = place.given
        sample = measured(lambda: self.write(place, path, frames, bonds))
        sample.disk_bytes = disk_bytes(path)
        if check:
            for i, got in enumerate(place.peer.read_bonds(path, place.data.frames)):
                assert np.array_equal(got, bonds[i - i % BONDS_HOLD]), f"bonds of frame {i}"
        remove(path)
        return sample

    @staticmethod
    def write(place: Place, path: Any, frames: list[Any], bonds: dict[int, np.ndarray]) -> int:
        """To a path of its own."""
        place.peer.write_sparse(path, frames, bonds, place.precision)
        return len(frames)


class FlushDurable(Job):
    """Each frame on the disk before the next."""

    name = "flush-durable"
    about = f"append {DURABLE_FRAMES} frames, each synced before the next comes"

    def run(self, place: Place, check: bool) -> Sample:
        path = place.folder / f"durable{place.peer.suffix}"
        remove(path)
        frames = place.given[:DURABLE_FRAMES]

        def work() -> int:
            place.peer.write_durably(path, frames, place.precision)
            return len(frames)

        sample = measured(work)
        remove(path)
        return sample


class Reopen(Job):
    """Open what is there, append a few frames, close."""

    name = "reopen"
    about = f"open what is there, append {APPENDED_FRAMES} frames, close"
    unit = "call"

    def run(self, place: Place, check: bool) -> Sample:
        path = copy(place.written(), place.folder / "again" / place.path.name)
        frames = place.given[:APPENDED_FRAMES]

        def work() -> int:
            place.peer.append(path, frames, place.precision)
            return 1

        sample = measured(work)
        if check:
            handle = place.peer.open(path, place.data)
            for i, expected in enumerate(place.data.xyz[: len(frames)]):
                compare(place, iter([place.peer.frame(handle, place.data.frames + i)]), expected[None])
            place.peer.close(handle)
        remove(path)
        return sample


# ---- reading -----------------------------------------------------------------------------------------------------


class Read(Job):
    """Frame by frame, from the page cache."""

    name = "read"
    about = "frame by frame in order, opening included, from the page cache"

    def run(self, place: Place, check: bool) -> Sample:
        place.written()

        def work() -> int:
            handle = self.open(place)
            exhaust(self.items(place, handle))
            place.peer.close(handle)
            return self.units(place)

        sample = measured(work)
        if check:
            handle = self.open(place)
            compare(place, self.items(place, handle), self.expected(place.data.xyz))
            place.peer.close(handle)
        return sample

    def open(self, place: Place) -> Any:
        """A handle to read from."""
        return place.peer.open(place.path, place.data)

    def items(self, place: Place, handle: Any) -> Iterator[Any]:
        """What is read."""
        return place.peer.frames(handle, place.data)

    def expected(self, xyz: np.ndarray) -> np.ndarray:
        """What has to come of it, of f64 (frames, 3, atoms)."""
        return xyz

    def units(self, place: Place) -> int:
        """Frames that are read, or looked at."""
        return place.data.frames


class ReadSlabs(Read):
    """About a megabyte of each column at a time."""

    name = "read-slabs"
    about = "about a megabyte of a column at a time, in order"

    def items(self, place: Place, handle: Any) -> Iterator[Any]:
        return place.peer.slabs(handle, place.data, slab_frames(place.data.atoms))


class ReadStrided(Read):
    """Every tenth frame."""

    name = "read-strided"
    about = f"every {STRIDE}th frame; the figure is of a frame that is read"

    def items(self, place: Place, handle: Any) -> Iterator[Any]:
        return place.peer.strided(handle, place.data, STRIDE)

    def expected(self, xyz: np.ndarray) -> np.ndarray:
        return xyz[::STRIDE]

    def units(self, place: Place) -> int:
        return len(range(0, place.data.frames, STRIDE))


class ReadRandom(Job):
    """One frame here and one there, no frame twice, from a file that is open."""

    name = "read-random"
    about = "one frame here and one there, no frame twice, in a file that is open and in the page cache"

    def run(self, place: Place, check: bool) -> Sample:
        handle = place.peer.open(place.written(), place.data)
        picks = np.random.default_rng(0).permutation(place.data.frames)[:RANDOM_FRAMES].tolist()
        frame = place.peer.frame
        frame(handle, 0)

        def work() -> int:
            for i in picks:
                frame(handle, i)
            return len(picks)

        self.warm_up(work)
        sample = measured(work)
        if check:
            compare(place, (frame(handle, i) for i in picks), place.data.xyz[picks])
        place.peer.close(handle)
        return sample

    def warm_up(self, work: Callable[[], int]) -> None:
        """What is done before, and not timed."""


class ReadAgain(ReadRandom):
    """The same frames a second time: what a reader keeps is warm."""

    name = "read-again"
    about = "the same frames once more, in a file that is still open: a reader may have kept what it decoded"

    def warm_up(self, work: Callable[[], int]) -> None:
        """Once through all of them."""
        work()


class ReadColumn(Job):
    """The x of all atoms over all frames."""

    name = "read-column"
    about = "the x of all atoms over all frames, as one array"

    def run(self, place: Place, check: bool) -> Sample:
        place.written()
        got = []

        def work() -> int:
            handle = place.peer.open(place.path, place.data)
            got.append(self.take(place, handle))
            place.peer.close(handle)
            return self.units(place)

        sample = measured(work)
        if check:
            close(place, got[0], self.expected(place.data))
        return sample

    def take(self, place: Place, handle: Any) -> np.ndarray:
        """What is read."""
        return place.peer.column(handle, place.data)

    def expected(self, data: DataSet) -> np.ndarray:
        """What has to come of it."""
        return data.xyz[:, 0]

    def units(self, place: Place) -> int:
        """What the figure is of."""
        return place.data.frames


class ReadAtom(ReadColumn):
    """One atom over all frames."""

    name = "read-atom"
    about = "one atom over all frames; the figure is of all of them"
    unit = "call"

    def take(self, place: Place, handle: Any) -> np.ndarray:
        return place.peer.atom(handle, place.data, place.data.atoms // 2)

    def expected(self, data: DataSet) -> np.ndarray:
        return data.xyz[:, :, data.atoms // 2]

    def units(self, place: Place) -> int:
        return 1


class Open(Job):
    """Open, read the first frame, close, with everything in the page cache."""

    name = "open"
    about = "open, read the first frame, close, from the page cache"
    unit = "call"

    def run(self, place: Place, check: bool) -> Sample:
        place.written()
        self.before(place)

        def work() -> int:
            handle = place.peer.open(place.path, place.data)
            place.peer.frame(handle, 0)
            place.peer.close(handle)
            return 1

        return measured(work)

    def before(self, place: Place) -> None:
        """What is done before the clock starts: once to warm up."""
        place.peer.close(place.peer.open(place.path, place.data))


class OpenCold(Open):
    """The same from the disk."""

    name = "open-cold"
    about = "the same when nothing of the file is in the page cache"

    def before(self, place: Place) -> None:
        super().before(place)
        settle(place.path, forget=True)


# ---- packing -----------------------------------------------------------------------------------------------------


class Pack(Job):
    """One file of what was written, synced."""

    name = "pack"
    about = "one file of what was written, synced; plain: a copy inside the kernel"

    def run(self, place: Place, check: bool) -> Sample:
        remove(place.folder / "pack")
        path = copy(place.written(), place.folder / "pack" / place.path.name)
        made = []

        def work() -> int:
            made.append(place.peer.pack(path))
            return place.data.frames

        settle(path)
        sample = measured(work)
        sample.disk_bytes = disk_bytes(made[0])
        remove(place.folder / "pack")
        return sample


class ReadPacked(Read):
    """Frame by frame out of the packed file."""

    name = "read-packed"
    about = "read, of what pack made"

    def run(self, place: Place, check: bool) -> Sample:
        remove(place.folder / "packed")
        self.packed = place.peer.pack(copy(place.written(), place.folder / "packed" / place.path.name))
        sample = super().run(place, check)
        remove(place.folder / "packed")
        return sample

    def open(self, place: Place) -> Any:
        return place.peer.open_packed(self.packed, place.data)


# ---- comparing ---------------------------------------------------------------------------------------------------


def read(place: Place) -> Iterator[Any]:
    """All frames of `place.path`."""
    handle = place.peer.open(place.path, place.data)
    yield from place.peer.frames(handle, place.data)
    place.peer.close(handle)


def compare(place: Place, items: Iterator[Any], expected: np.ndarray) -> None:
    """AssertionError unless these items are those frames, f64 (frames, 3, atoms), as well as the peer keeps them."""
    at = 0
    for item in items:
        columns = np.moveaxis(item, -1, -2) if place.peer.by_rows else np.stack(list(item), axis=-2)
        columns = columns.reshape(-1, *columns.shape[-2:])
        close(place, columns, expected[at : at + len(columns)])
        at += len(columns)
    assert at == len(expected), f"{place.peer.name} gave {at} frames of {len(expected)}"


def close(place: Place, got: np.ndarray, expected: np.ndarray) -> None:
    """AssertionError unless the values are what they should be, as well as the peer keeps them."""
    values = place.peer.in_angstrom(np.asarray(got, np.float64), place.precision)
    assert values.shape == expected.shape, f"{place.peer.name} gave {values.shape} for {expected.shape}"
    error = float(np.abs(values - expected).max())
    assert error <= place.peer.tolerance(place.data, place.precision), f"{place.peer.name} is off by {error}"


JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Append(),
        AppendThreaded(),
        AppendRagged(),
        AppendSparse(),
        FlushDurable(),
        Reopen(),
        Read(),
        ReadSlabs(),
        ReadStrided(),
        ReadRandom(),
        ReadAgain(),
        ReadAtom(),
        ReadColumn(),
        Open(),
        OpenCold(),
        Pack(),
        ReadPacked(),
    )
}

# SPDX-License-Identifier: BSD-3-Clause
"""Stories of a writer, told in short words, and what a record may hold at each point of them.

    C create    W create over what is there    a append a frame    A flush    D flush durably
    X close     K leave the writer as a kill would     P the machine restarted     O open     T5 open, cut to 5 frames

Frame i goes through every transition: the cell changes from 2 on, steps and times go astray at 4, rows change at 6. A
frame that is appended again, after a loss or a cut, is another one (its *generation*), so that none is taken for it.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mrec
from mrec._core import boot_id
from mrec.errors import NotARecord

#: Generation and ordinal of a frame.
Tag = tuple[int, int]

NEVER = {"flush_every": 10**6, "durable_every": None}
SMALL = {"frames_per_chunk": 2, "chunks_per_shard": 2}


@dataclass(frozen=True)
class Kind:
    """A schema, its frames, and how it is laid out."""

    schema: Callable[[], mrec.Schema]
    frame: Callable[[Tag], mrec.Frame]
    options: tuple[tuple[str, Any], ...] = tuple(SMALL.items())


def _column_schema() -> mrec.Schema:
    return mrec.Schema().block("atoms", rows=50).column("x", "f64")


def _column_frame(tag: Tag) -> mrec.Frame:
    return mrec.Frame({"atoms": {"x": np.random.default_rng(tag).normal(size=50)}}, step=tag[1])


def _wide_schema() -> mrec.Schema:
    return mrec.Schema().block("atoms", rows=300).column("x", "f64")


def _wide_frame(tag: Tag) -> mrec.Frame:
    return mrec.Frame({"atoms": {"x": np.random.default_rng(tag).normal(size=300)}}, step=tag[1])


def _resting_frame(tag: Tag) -> mrec.Frame:
    return mrec.Frame(_column_frame((tag[0], min(tag[1], 3))).blocks, step=tag[1])


def _late_cell_frame(tag: Tag) -> mrec.Frame:
    box = mrec.Box.from_lengths(10.0, 10.0, 10.0 + tag[0]) if tag[1] >= 2 else None
    return mrec.Frame(_column_frame(tag).blocks, step=tag[1], box=box)


def _full_schema() -> mrec.Schema:
    return (
        mrec.Schema()
        .block("atoms", rows=20)
        .column("x", "f64", precision=1e-3)
        .column("name", "string")
        .column("tag", "i32", nullable=True)
        .block("bonds", rows=4)
        .column("atomi", "u64")
        .value("pe", "f64")
    )


def _full_frame(tag: Tag) -> mrec.Frame:
    generation, i = tag
    rng = np.random.default_rng(tag)
    n = 20 if i < 6 else 20 - i % 3
    atoms = {
        "x": np.round(rng.normal(size=n) * 1024) / 1024,
        "name": [f"{generation}:{k}:{i}" for k in range(n)],
        "tag": np.ma.MaskedArray(np.arange(n, dtype=np.int32) * i, mask=np.arange(n) % 7 == i % 7),
    }
    astray = i >= 4
    return mrec.Frame(
        {"atoms": atoms, "bonds": {"atomi": (np.arange(i // 3 % 3, dtype=np.uint64) + generation) % 18}},
        step=10 * i + astray * (1 + generation % 8),
        time=0.5 * i + 0.001 * astray * (1 + generation),
        box=mrec.Box.from_lengths(10.0, 10.0, 10.0 + (i >= 2) * (i + generation)),
        values={"pe": -1.5 * i + generation},
    )


COLUMN = Kind(_column_schema, _column_frame)
FULL = Kind(_full_schema, _full_frame)
#: Many versions of an open chunk.
SLOTS = replace(COLUMN, options=(("frames_per_chunk", 8), ("chunks_per_shard", 2)))
#: The same, over several pages, between which a write can tear.
WIDE = replace(SLOTS, schema=_wide_schema, frame=_wide_frame)
#: Another position in each frame up to the third, then always the same.
RESTING = replace(COLUMN, frame=_resting_frame)
#: No cell before frame 2.
LATE_CELL = Kind(_column_schema, _late_cell_frame)
UNSYNCED = replace(FULL, options=(*SMALL.items(), ("durable", False)))
#: An index of several pages, which a kill can tear.
PAGES = replace(COLUMN, options=(("frames_per_chunk", 2), ("chunks_per_shard", 600)))


# ---- frames as values --------------------------------------------------------------------------------------------


def canonical(frame: mrec.Frame) -> Any:
    """All of a frame, comparable and hashable, bit for bit."""
    box = None if frame.box is None else (frame.box.vectors.tobytes(), frame.box.origin.tobytes())
    blocks = tuple(
        (name, column, _bits(block[column])) for name, block in sorted(frame.blocks.items()) for column in sorted(block)
    )
    return frame.step, frame.time, box, blocks, tuple(sorted(frame.values.items()))


def _bits(array: np.ndarray) -> Any:
    mask = np.ma.getmaskarray(array).tobytes() if isinstance(array, np.ma.MaskedArray) else None
    plain = np.ma.filled(array, 0) if mask is not None else array
    return mask, (tuple(plain.tolist()) if plain.dtype.kind == "T" else plain.tobytes())


@cache
def expected(kind: Kind, tag: Tag) -> Any:
    """What reading that frame gives."""
    return canonical(kind.frame(tag))


# ---- what may be read --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """Between two calls of a story: the frames appended, and how many of them are published and durable."""

    frames: tuple[Tag, ...] = ()
    published: int | None = None  # None: there need be no record
    durable: int | None = None

    def allows(self, kind: Kind, found: list[Any], count: int) -> bool:
        """Whether a record that holds this is as it should be with `count` frames."""
        return len(found) == count and all(expected(kind, t) == f for t, f in zip(self.frames, found, strict=False))


class Wrong(AssertionError):
    """A record that is not what was promised."""


def read(path: Path) -> list[Any] | None:
    """Every frame of the record; None when there is none."""
    try:
        with mrec.open(path) as rec:
            return [canonical(frame) for frame in rec.trajectory]
    except NotARecord:
        return None


def check(path: Path, kind: Kind, between: tuple[Point, ...], which: str, making: bool = False) -> Point | None:
    """The record is that of one of some points, by its published or durable frames. None: there is no record."""
    found = read(path)
    counts = [getattr(point, which) for point in between]
    if found is None:
        if not making and None not in counts:
            raise Wrong(f"no record, where {counts} frames are {which}")
        return None
    for point, count in zip(between, [count or 0 for count in counts], strict=True):
        if point.allows(kind, found, count):
            return Point(point.frames[:count], count, count)
    names = {expected(kind, t): t for point in between for t in point.frames}
    raise Wrong(f"{[names.get(f, '?') for f in found]}, where {counts} of {[p.frames for p in between]} are {which}")


def restart(path: Path) -> None:
    """Let the record have been written before the machine started."""
    durable = path / "trajectory" / ".durable"
    if durable.exists():
        durable.write_bytes(as_of_another_boot(durable.read_bytes()))


def as_of_another_boot(durable: bytes) -> bytes:
    """The durable file with another boot in it."""
    return durable.replace(boot_id().encode(), b"another boot", 1)


# ---- telling -----------------------------------------------------------------------------------------------------


@dataclass
class Teller:
    """Runs the words of a story on a record, and notes each point. `generation` tells its frames from others."""

    path: Path
    kind: Kind
    point: Point = field(default_factory=Point)
    generation: int = 0
    writer: mrec.TrajectoryWriter | None = None
    on_point: Callable[[tuple[Point, ...]], None] = lambda between: None
    under_way: tuple[Point, ...] = (Point(),)
    making: bool = False
    threads: int = int(os.environ.get("MREC_THREADS", 1))

    def tell(self, words: str) -> None:
        """Run them all. When one raises, `under_way` says between which points; `making`: there need be no record."""
        for word in words.split():
            after = self._after(word)
            # While one is made, there need be no record: neither a new one nor that which was there.
            self.under_way = self.point, after
            if word[0] == "T":  # first opened as it is
                self.under_way = self.point, self._after("O"), after
            self.making = word in "CW"
            self._run(word, after)
            self.on_point(self.under_way)
            self.point = after
        self.under_way, self.making = (self.point,), False

    def _after(self, word: str) -> Point:
        p = self.point
        match word[0]:
            case "C" | "W":
                return Point((), 0, 0)
            case "a":
                return replace(p, frames=(*p.frames, (self.generation, len(p.frames))))
            case "A":
                return replace(p, published=len(p.frames))
            case "D" | "X":
                return Point(p.frames, len(p.frames), len(p.frames))
            case "K":
                return Point(p.frames[: p.published], p.published, p.durable)
            case "P":
                return Point(p.frames[: p.durable], p.durable, p.durable)
            case "O":
                return Point(p.frames[: p.published], p.published, p.published)
            case "T":
                n = int(word[1:])
                return Point(p.frames[:n], n, n)
        raise ValueError(word)

    def _run(self, word: str, after: Point) -> None:
        match word[0]:
            case "C" | "W":
                self.leave()
                options = dict(self.kind.options) | NEVER
                options |= {"overwrite": word == "W", "threads": self.threads}
                self.writer = mrec.TrajectoryWriter(self.path, self.kind.schema(), **options)
                self.generation += word == "W"
            case "O" | "T":
                self.leave()
                cut = {} if word == "O" else {"at": self._position(int(word[1:]))}
                self.writer = mrec.TrajectoryWriter.open(self.path, threads=self.threads, **NEVER, **cut)
                if self.writer.nframes != len(after.frames):
                    raise Wrong(f"opened with {self.writer.nframes} frames, not {len(after.frames)}")
                self.generation += 1
            case "K":
                self.leave()
            case "P":
                self.leave()
                restart(self.path)
            case "a":
                self.writer.append(self.kind.frame(after.frames[-1]))
                self.writer._core.wait()  # so that what the word did is known when it is over
            case "A" | "D":
                self.writer.flush(durable=word == "D")
            case "X":
                self.writer.close()

    def _position(self, n: int) -> str:
        return f"{n}@{self.kind.frame(self.point.frames[n - 1]).step if n else ''}"

    def leave(self) -> None:
        """Let go of the writer without a call to it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.writer = None


@contextmanager
def memory() -> Iterator[Path]:
    """A folder in memory, where the system has one: nothing here depends on what a disk does with a sync."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)

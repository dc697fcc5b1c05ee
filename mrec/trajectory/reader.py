# SPDX-License-Identifier: BSD-3-Clause
"""Trajectories, for reading."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from mrec.errors import (
    CorruptData,
    FrameIndexError,
    InvalidValue,
    MrecError,
    NotARecord,
    RecordNotFound,
    SchemaError,
    UnsupportedCodec,
    UnsupportedVersion,
)
from mrec.frame import Frame
from mrec.trajectory import select
from mrec.trajectory.boxes import Boxes
from mrec.trajectory.frames import State, check_beside_system
from mrec.trajectory.schema import Schema
from mrec.trajectory.standing import Recovered, read_standing, read_token
from mrec.zarr.group import Group
from mrec.zarr.store import DEFAULT, Reading, Store, open_store

T = TypeVar("T")

#: How often a read starts again because the record changed under it.
ATTEMPTS = 5


class Frames(Sequence[Frame]):
    """A sequence of frames: a whole trajectory, or a slice of one. Indexing reads one frame, slicing reads nothing."""

    @property
    def _trajectory(self) -> Trajectory:
        raise NotImplementedError

    def _range(self) -> range:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._range())

    @overload
    def __getitem__(self, index: int) -> Frame: ...
    @overload
    def __getitem__(self, index: slice) -> TrajectoryView: ...
    def __getitem__(self, index: Any) -> Any:
        frames = self._range()
        if isinstance(index, slice):
            return TrajectoryView(self._trajectory, frames[index])
        i = frames[select.frame_number(index, len(frames))]
        return self._trajectory._read(lambda state: state.frame(i))

    def __iter__(self) -> Iterator[Frame]:
        """The frames in order; neighbours are read ahead together."""
        frames = self._range()
        if frames.step != 1:
            yield from (self[i] for i in range(len(frames)))
            return
        start = frames.start
        while start < frames.stop:
            stop = min(frames.stop, self._trajectory._state.batch(start))
            if stop <= start:
                raise FrameIndexError(f"frame {start} is gone: the record was cut back")
            yield from self._trajectory._read(lambda state, a=start, b=stop: state.frames(a, b))  # type: ignore[misc]
            start = stop

    @property
    def schema(self) -> Schema:
        """What the trajectory declares."""
        return self._trajectory._state.schema

    @property
    def blocks(self) -> tuple[str, ...]:
        """The names of the declared blocks."""
        return tuple(self.schema.blocks)

    @property
    def steps(self) -> np.ndarray:
        """The step of each frame, i64. Read-only."""
        return self._trajectory._read(lambda state: state.steps)[_as_slice(self._range())]

    @property
    def times(self) -> np.ndarray | None:
        """The time of each frame, f64; None when the trajectory has no times. Read-only."""
        times = self._trajectory._read(lambda state: state.times)
        return None if times is None else times[_as_slice(self._range())]

    @property
    def ends(self) -> tuple[tuple[int, float | None], tuple[int, float | None]]:
        """Step and time of the first frame and of the last, without those between; FrameIndexError without frames."""
        frames = self._range()
        if not frames:
            raise FrameIndexError("the trajectory has no frames")
        return self._trajectory._read(lambda state: (state.moment(frames[0]), state.moment(frames[-1])))

    def index(  # type: ignore[override]
        self, *, step: int | None = None, time: float | None = None, nearest: bool = False
    ) -> int:
        """The ordinal of the frame with a step or a time; FrameIndexError when none has it.

        A time is met up to rounding (1e-9 of it). nearest: the frame that comes closest instead.
        """
        if (step is None) == (time is None):
            raise InvalidValue("say index(step=...) or index(time=...)")
        wanted: Any = time if step is None else step
        if not isinstance(wanted, (int, float, np.integer, np.floating)) or wanted != wanted:
            raise InvalidValue(f"a step or a time is a number, not {wanted!r}")
        wanted = wanted.item() if isinstance(wanted, np.generic) else wanted
        there = self.steps if time is None else self.times
        if there is None:
            raise FrameIndexError("the trajectory has no times")
        if len(there) == 0:
            raise FrameIndexError("the trajectory has no frames")
        closest, met = select.closest_step(there, wanted) if time is None else select.closest_time(there, wanted)
        if met or nearest:
            return closest
        said = f"step {step}" if time is None else f"time {time}"
        raise FrameIndexError(f"no frame has the {said}; frame {closest} has {there[closest]}")

    def values(self, name: str) -> np.ndarray:
        """A per-step value at each frame: (frames,), or (frames, width); JSON documents as objects."""
        low, high, order = self._span()
        return self._trajectory._read(lambda state: state.values(name, low, high))[order]

    @property
    def boxes(self) -> Boxes | None:
        """The cells of all frames as arrays; None when the trajectory says nothing about a cell.

        >>> mrec.open("water.mrec").trajectory.boxes is None
        True
        """
        low, high, order = self._span()
        found = self._trajectory._read(lambda state: state.box.boxes(low, high))
        return None if found is None else found[order]

    def _span(self) -> tuple[int, int, slice]:
        """The frames from the first to the last in the trajectory, and which of them these are, in their order."""
        frames = self._range()
        if not frames:
            return 0, 0, slice(0, 0)
        low, high = min(frames[0], frames[-1]), max(frames[0], frames[-1]) + 1
        return low, high, slice(None, None, frames.step)

    def read(
        self,
        block: str,
        columns: str | Sequence[str],
        *,
        frames: Any = None,
        rows: Any = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Columns of a block over many frames, as one array (frames, rows, columns).

        A single name gives no column axis; "xyz" stands for x, y and z, as in `append`, unless a column is called so.
        The trailing axes of a column come last. frames, rows: a slice, integers, or booleans; None for all. A single
        integer for frames gives no frame axis. out: an array of the result's type and shape to read into. Null rows
        make the result a masked array.

        All the frames have to see the same number of rows, otherwise SchemaError: see `read_ragged`.

        >>> mrec.open("water.mrec").trajectory.read("atoms", ["x", "y", "z"], frames=slice(0, 5)).shape
        (5, 3, 3)
        """
        chosen, single = self._chosen(frames)
        found = self._trajectory._read(
            lambda state: select.read_block(state.block(block), columns, chosen, rows, out, single)
        )
        return found[0] if single else found

    def read_ragged(
        self, block: str, columns: str | Sequence[str], *, frames: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of many frames one after another, (all rows, columns), and offsets, i64 (frames + 1).

        Frame i has the rows [offsets[i], offsets[i + 1]); a frame without the block has none.
        """
        chosen, _ = self._chosen(frames)
        return self._trajectory._read(lambda state: select.read_ragged(state.block(block), columns, chosen))

    def _chosen(self, frames: Any) -> tuple[np.ndarray, bool]:
        own = self._range()
        single = isinstance(frames, (int, np.integer)) and not isinstance(frames, bool)
        if single:
            return np.array([own[select.frame_number(frames, len(own))]]), True
        return own.start + own.step * select.as_array(select.pick(frames, len(own), "frames")), False

    def __repr__(self) -> str:
        from mrec.display import counted

        frames = self._range()
        parts = [counted(len(frames), "frame")]
        if frames:
            (step, time), (last_step, last_time) = self.ends
            parts.append(f"steps {step} to {last_step}")
            if time is not None:
                parts.append(f"times {time:g} to {last_time:g}")
        lines = [f"  {block!r}" for block in self.schema.blocks.values()]
        if self.schema.values:
            lines.append(f"  per step: {', '.join(map(repr, self.schema.values.values()))}")
        head = f"<{type(self).__name__} {', '.join(parts)}" + (":" if lines else "")
        return "\n".join([head, *lines]) + ">"

    def _repr_html_(self) -> str:
        from mrec.display import trajectory_html

        return trajectory_html(self)

    def view(self, **options: Any) -> Any:
        """The frames as an nglview widget, for a notebook; each is read when it is shown.

        options go to `nglview.NGLWidget`. Needs nglview: pip install 'mrec[view]'.
        """
        from mrec.interop.nglview import view

        return view(self, **options)


class Trajectory(Frames):
    """The frames of a record.

    It shows the frames that were published when it was opened; `refresh()` takes in later ones. Thread-safe; pickles by
    path; reopens itself after a fork.
    """

    def __init__(self, root: str | os.PathLike[str], store: Store | None = None, reading: Reading = DEFAULT) -> None:
        self._store = open_store(os.path.abspath(os.fspath(root)), reading) if store is None else store
        self._lock, self._process = threading.Lock(), os.getpid()
        self._state = self._open()

    @property
    def _trajectory(self) -> Trajectory:
        return self

    def _open(self, limit: int | None = None) -> State:
        root = self._store.root
        try:
            standing = read_standing(self._store)
            if standing is None:
                if not self._store.exists("zarr.json"):
                    raise RecordNotFound(f"{root}: there is no record")
                raise NotARecord(f"{root}: there is no trajectory")
            state = State(standing, self._store, limit)
            check_beside_system(state, _system_blocks(self._store))
        except (CorruptData, SchemaError, UnsupportedCodec, UnsupportedVersion) as e:
            raise self._named(e) from None
        return state

    def _range(self) -> range:
        return range(self._state.nstep)

    def _changing(self) -> threading.Lock:
        """Held while the state is replaced, so that threads take states over in the order in which they stood."""
        if self._process != os.getpid():  # another thread may have held it at the fork
            self._lock, self._process = threading.Lock(), os.getpid()
        return self._lock

    def _read(self, read: Callable[[State], T]) -> T:
        """A read from the state that is open; damage is believed only when the record did not change meanwhile."""
        for attempt in range(ATTEMPTS):
            state = self._state
            try:
                return read(state)
            except CorruptData as e:
                if attempt + 1 == ATTEMPTS:
                    raise self._named(e) from None
                self._again(state, e)
        raise AssertionError

    def _again(self, state: State, error: CorruptData) -> None:
        """Open the record anew, up to the frames of `state`, whose reading failed; the error when that is no cure."""
        with self._changing():
            if self._state is not state:  # another thread did
                return
            if read_token(self._store) == state.standing.token:
                raise self._named(error) from None
            again = self._open(limit=state.nstep)
            if again.nstep < state.nstep:
                raise self._named(error) from None
            self._state = again

    def _named(self, error: MrecError) -> MrecError:
        """An error that says which record it is about."""
        root = self._store.root
        return error if root in str(error) else type(error)(f"{root}: {error}")

    @property
    def recovered(self) -> Recovered | None:
        """What a power loss cost; None when nothing is known to be lost."""
        return self._state.standing.recovered

    def refresh(self) -> int:
        """Take in what was published since, and return the number of frames (which falls only by a truncation)."""
        with self._changing():
            if read_token(self._store) != self._state.standing.token:
                self._state = self._open()
            return len(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Trajectory, (self._store.root, None, self._store.reading)


class TrajectoryView(Frames):
    """Some frames of a trajectory, by a slice; nothing is read until it is asked for."""

    def __init__(self, trajectory: Trajectory, frames: range) -> None:
        self._parent = trajectory
        self._frames = frames

    @property
    def _trajectory(self) -> Trajectory:
        return self._parent

    def _range(self) -> range:
        return self._frames

    def __reduce__(self) -> tuple[Any, ...]:
        return TrajectoryView, (self._parent, self._frames)


def _as_slice(frames: range) -> slice:
    stop = frames.stop if frames.stop >= 0 else None
    return slice(frames.start, stop, frames.step) if frames else slice(0, 0)


def _system_blocks(store: Store) -> dict[str, tuple[Any, set[str]]]:
    found: dict[str, tuple[Any, set[str]]] = {}
    for name in store.names("system"):
        if name != "box" and store.exists(f"system/{name}/zarr.json"):
            group = Group(store, f"system/{name}")
            found[name] = (group.attrs.get("count"), set(group) - {"_validity"})
    return found

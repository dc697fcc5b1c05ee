# SPDX-License-Identifier: BSD-3-Clause
"""Appending frames to a record."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from mrec import dtypes
from mrec._core import Writer as CoreWriter
from mrec.box import Box
from mrec.errors import ClosedError, InvalidValue, MrecError, RecordLocked, SchemaError, UnknownName
from mrec.frame import Frame
from mrec.trajectory import batch
from mrec.trajectory.coerce import coerce_block, coerce_value
from mrec.trajectory.options import (
    chunk_option,
    compression_option,
    count_option,
    flag_option,
    writer_options,
)
from mrec.trajectory.relations import Relations, Seen, register
from mrec.trajectory.schema import BlockSchema, Schema
from mrec.zarr.store import is_url

PathLike = str | os.PathLike[str]


class TrajectoryWriter:
    """Writes the trajectory of one record, frame by frame; a context manager.

    >>> import mrec, numpy as np
    >>> schema = mrec.Schema().block("atoms", rows=3).column("x", "f64", precision=1e-3).value("pe", "f64")
    >>> with mrec.TrajectoryWriter("run.mrec", schema, units={"length": "angstrom", "time": "ps"}) as w:
    ...     for i in range(4):
    ...         w.append(100 * i, time=0.2 * i, atoms={"x": np.arange(3.0) + i}, pe=-12.5)
    >>> len(mrec.open("run.mrec").trajectory)
    4

    path: the directory to make, by convention `<stem>.mrec`. RecordExists when something is there, unless `overwrite`.
    schema: what every frame may hold. units: goes to `meta["units"]`, e.g. {"length": "angstrom", "time": "ps"};
    nothing is ever converted. meta: further members of the record's `meta` document (JSON).

    flush_every: when frames are published: a number of frames, "10s" or "64MiB"; by default after about 4 MiB and at
    least every 10 s of appending. durable_every: seconds after which a publishing is also synced (None: never by
    itself). durable=False: flush() and close() do not sync. compression: "none", "gzip:n", "zstd:n", "shuffle+zstd:n"
    for float columns. chunk: how much of a block's narrowest column is one chunk, a size from "1KiB" to "64MiB" (by
    default 16 KiB), rounded up to whole frames; frames_per_chunk says it in frames. Several frames in a chunk make
    columns with a precision smaller; a random frame then costs the decoding of them all, and each flush writes the
    open chunk anew. chunks_per_shard: chunks in one file. threads: 1 does all in the calling thread; 2
    encodes, publishes and syncs in another, so that append() only copies, and what fails is told by a later call; more
    encode chunks beside each other. None: what the environment variable MREC_THREADS says, or 1.

    A writer holds the record: a second one gets RecordLocked. It serves one thread at a time (WriterBusy). After a
    failed write (OSError) it is poisoned: each further call raises that error, and the record, which holds the frames
    published so far, is opened again to go on.
    """

    def __init__(
        self,
        path: PathLike,
        schema: Schema,
        *,
        units: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | None = None,
        flush_every: int | str | None = None,
        durable_every: float | str | None = 60.0,
        durable: bool = True,
        compression: str | None = None,
        chunk: int | str | None = None,
        frames_per_chunk: int | None = None,
        chunks_per_shard: int | None = None,
        threads: int | None = None,
        overwrite: bool = False,
    ) -> None:
        if not isinstance(schema, Schema):
            raise SchemaError(f"schema is a mrec.Schema, not {type(schema).__name__}; see Schema.from_frame")
        schema.check_writable()
        options = writer_options(
            flush_every,
            durable_every,
            durable,
            threads,
            overwrite=flag_option("overwrite", overwrite),
            meta_json=_meta_json(units, meta),
            **compression_option(compression),
            **chunk_option(chunk, frames_per_chunk),
            **count_option("chunks_per_shard", chunks_per_shard),
        )
        root = new_record_path(path)
        schema = schema.copy()
        with lock_errors(root):
            core = CoreWriter.create(root, schema, options, _declared(schema))
        self._take(core, root, schema)

    def _take(self, core: CoreWriter, path: str, schema: Schema, last: Sequence[Any] = ()) -> None:
        self._core = core
        self.path = path
        self.schema = schema
        self._blocks = list(schema.blocks.values())
        self._block_at = {name: i for i, name in enumerate(schema.blocks)}
        self._values = list(schema.values.values())
        self._value_at = {name: i for i, name in enumerate(schema.values)}
        self._relations = Relations.of(path, schema)
        if self._relations is not None and last:
            self._relations.seen = self._relations.after(last)
        register(self)

    @classmethod
    def open(
        cls,
        path: PathLike,
        *,
        at: str | None = None,
        truncate_after_step: int | None = None,
        flush_every: int | str | None = None,
        durable_every: float | str | None = 60.0,
        durable: bool = True,
        threads: int | None = None,
    ) -> TrajectoryWriter:
        """A writer that appends to the record at `path`; schema, precision, chunks and codecs are those it has.

        at: cut back to a `position` first. truncate_after_step: keep the frames with a step up to this one, and cut the
        rest. Frames that were published but lost to a power failure are gone; `position` and `last_step` tell where the
        record stands. RecordLocked while another writer has it.
        """
        from mrec.record.publish import clear
        from mrec.trajectory.reopen import reopen

        options = writer_options(flush_every, durable_every, durable, threads)
        root = written_path(path)
        core, schema, last = reopen(root, options, at, truncate_after_step)
        self = cls.__new__(cls)
        try:
            clear(root, trajectory=True)
            self._take(core, root, schema, last)
        except BaseException:
            core.close()
            raise
        return self

    # ---- appending -----------------------------------------------------------------------------------------------

    def append(
        self,
        step: int | None = None,
        frame: Frame | None = None,
        /,
        *,
        time: float | None = None,
        box: Any = None,
        blocks: Mapping[str, Mapping[str, Any]] | None = None,
        values: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> None:
        """Append one frame. What it is given may be changed as soon as it returns.

        step: above the last one; None counts on, from 0. frame: a `Frame`, whose step, time, box, blocks and values
        count unless they are given beside it. time: all frames have one, or none has. box: a `Box`, three lengths, or
        three lengths and three angles in degrees; None carries the last one forward. blocks, values: by name; `named`
        is short for both. A block is a mapping of all its columns to arrays of shape `(rows, *trailing)`; several
        columns may come as one array, `{("x", "y", "z"): positions}`, or `{"xyz": positions}` where the names are
        single letters. A block that is left out carries forward.

        A frame that does not fit is refused whole (SchemaError, InvalidValue, UnknownName).
        """
        if isinstance(step, Frame) and frame is None:
            step, frame = None, step
        simple = frame is None and blocks is None and values is None and (box is None or type(box) is Box)
        if simple and self._relations is None:
            if self._core.append_plain(self._next_step() if step is None else step, time, box, named):
                return
        if frame is not None:
            step, time, box, blocks, values = _with_frame(frame, step, time, box, blocks, values)
        if step is None:
            step = self._next_step()
        try:
            slots, taken = self._gather(named, blocks, values)
            cell = None if box is None else Box.coerce(box)
            seen = None if self._relations is None else self._relations.after(slots)
        except MrecError as e:
            raise type(e)(f"frame {self.nframes}: {e}") from None
        self._core.append(_step(step), _time(time), cell, slots, taken)
        if self._relations is not None and seen is not None:
            self._relations.seen = seen

    def _gather(
        self, named: Mapping[str, Any], blocks: Any, values: Any, frames: int | None = None
    ) -> tuple[list[Any], list[Any]]:
        """Every block and every value of the schema as the core takes it, None for what is not given.

        frames: how many there are of each; None is one frame, whose arrays have no frame axis.
        """
        slots: list[Any] = [None] * len(self._blocks)
        taken: list[Any] = [None] * len(self._values)
        for name, data in named.items():
            self._place(name, data, slots, taken, frames)
        for name, data in _by_name("blocks", blocks):
            self._place_block(name, data, slots, frames)
        for name, data in _by_name("values", values):
            self._place_value(name, data, taken, frames)
        return slots, taken

    def _place(self, name: str, data: Any, slots: list[Any], taken: list[Any], frames: int | None) -> None:
        if name in self._block_at:
            if name in self._value_at:
                raise InvalidValue(
                    f"{name!r} is a block and a per-step value; say blocks={{{name!r}: ...}} or "
                    f"values={{{name!r}: ...}}"
                )
            self._place_block(name, data, slots, frames)
        elif name in self._value_at:
            self._place_value(name, data, taken, frames)
        else:
            raise UnknownName(self._unknown(name, "block or per-step value", [*self._block_at, *self._value_at]))

    def _place_block(self, name: str, data: Any, slots: list[Any], frames: int | None) -> None:
        i = self._block_at.get(name)
        if i is None:
            raise UnknownName(self._unknown(name, "block", self._block_at))
        if slots[i] is not None:
            raise InvalidValue(f"block {name!r} is given twice")
        block = self._blocks[i]
        columns = _split_columns(block, data)
        slots[i] = coerce_block(block, columns) if frames is None else batch.blocks(block, columns, frames)

    def _place_value(self, name: str, data: Any, taken: list[Any], frames: int | None) -> None:
        i = self._value_at.get(name)
        if i is None:
            raise UnknownName(self._unknown(name, "per-step value", self._value_at))
        if taken[i] is not None:
            raise InvalidValue(f"per-step value {name!r} is given twice")
        value = self._values[i]
        taken[i] = coerce_value(value, data) if frames is None else batch.values(value, data, frames)

    @staticmethod
    def _unknown(name: str, what: str, declared: Iterable[str]) -> str:
        close = difflib.get_close_matches(str(name), list(declared), 1)
        hint = f"; is it {close[0]!r}?" if close else f"; declared: {', '.join(map(repr, declared)) or 'nothing'}"
        if name == "step":
            hint = "; the step goes first, without a name: append(step, ...)"
        return f"no {what} {name!r} is declared{hint}"

    def _next_step(self) -> int:
        last = self._core.last_step
        return 0 if last is None else last + 1

    def append_many(
        self,
        steps: Sequence[int] | np.ndarray,
        /,
        *,
        times: Sequence[float] | np.ndarray | None = None,
        box: Any = None,
        blocks: Mapping[str, Mapping[str, Any]] | None = None,
        values: Mapping[str, Any] | None = None,
        **named: Any,
    ) -> None:
        """Append F frames at once; arrays have a leading frame axis: `(F, rows, *trailing)`, per-step values (F, ...).

        steps, times: (F,). box: one cell for all, or a sequence of F of them (a list of `Box`, or an array (F, 3) or
        (F, 6)). Refused whole, or taken whole, unless Ctrl-C or a failed write comes between.
        """
        count = batch.check_steps(steps, self._core.last_step)
        if not len(count) and self.closed:
            raise ClosedError(f"{self.path}: the writer was closed")
        slots, taken = self._gather(named, blocks, values, len(count))
        for value, given in zip(self._values, taken, strict=True):
            if given is None and not value.has_fill:
                raise SchemaError(f"per-step value {value.name!r} is declared without a fill, so every frame gives it")
        ticks = batch.check_times(times, len(count), self.nframes, self._core.has_times)
        relations = self._relations if len(count) else None
        seen = None if relations is None else relations.after(slots, frames=True)
        self._core.append_many(count, ticks, batch.cells(box, len(count), self.nframes), slots, taken)
        if relations is not None and seen is not None:
            relations.seen = seen

    def _system_changed(self) -> None:
        """Hold later frames against the system section that is there now."""
        seen = Seen() if self._relations is None else self._relations.seen
        self._relations = Relations.of(self.path, self.schema)
        if self._relations is not None:
            self._relations.seen = seen

    # ---- publishing ----------------------------------------------------------------------------------------------

    def flush(self, *, durable: bool = True) -> None:
        """Publish every frame appended so far, and sync them unless durable=False.

        Afterwards readers see them, they outlive this process, and (durable) a power failure.
        """
        self._core.flush(flag_option("durable", durable))

    def close(self) -> None:
        """Publish what waits, durably, and end the live form of the record. Closing twice is no error."""
        self._core.close()

    @property
    def closed(self) -> bool:
        """Whether `close` did its work, or failed in it."""
        return self._core.closed

    @property
    def nframes(self) -> int:
        """Frames appended."""
        return self._core.nframes

    def __len__(self) -> int:
        return self._core.nframes

    @property
    def published(self) -> int:
        """Of these, frames that readers see and that outlive this process."""
        return self._core.npublished

    @property
    def durable(self) -> int:
        """Of these, frames that outlive a power failure."""
        return self._core.ndurable

    @property
    def last_step(self) -> int | None:
        """The step of the last frame appended; None when there is none."""
        return self._core.last_step

    @property
    def position(self) -> str:
        """Where the record stands, to keep in a checkpoint: `TrajectoryWriter.open(path, at=position)` cuts back to it.

        It counts frames appended: flush before taking it, so that they are there to come back to.
        """
        return f"{self.nframes}@{self.last_step if self.nframes else ''}"

    def __enter__(self) -> TrajectoryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as e:
            if exception is None:
                raise
            exception.add_note(f"closing {self.path} failed as well: {e}")

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is None or core.closed or core.forked:
            return  # it never came about, was closed, or is that of the parent process
        waiting = core.nframes - core.npublished
        if waiting:  # a RuntimeWarning is shown by default, a ResourceWarning is not
            text = f"the writer of {self.path} was never closed; frames lost: {waiting}; close it, or use `with`"
            warnings.warn(text, RuntimeWarning, source=self, stacklevel=1)
        else:
            warnings.warn(f"the writer of {self.path} was never closed", ResourceWarning, source=self, stacklevel=1)

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.published} published"
        return f"<TrajectoryWriter {self.path!r}: {self.nframes} frames, {state}>"

    def __reduce__(self) -> str:
        raise TypeError("a writer cannot be pickled; pickle its path, and open it where it is used")


# ---- what a user passes ------------------------------------------------------------------------------------------


def record_path(path: PathLike) -> str:
    """A path as the core takes it: absolute, so that a later chdir does not matter."""
    name = os.fsdecode(path)
    if "\0" in name:
        raise InvalidValue(f"{name!r} holds a NUL, which no path can")
    if not name:
        raise InvalidValue("the path of a record is not empty; the current directory is '.'")
    return os.path.abspath(name)


def written_path(path: PathLike) -> str:
    """The same of a record that is written. InvalidValue for a URL."""
    name = os.fsdecode(path)
    if is_url(name):
        raise InvalidValue(f"{name}: a record is written to a directory; pack that with mrec.pack, and upload the file")
    return record_path(path)


def new_record_path(path: PathLike) -> str:
    """The same for a record that is to be made. InvalidValue when it is called as a packed one is."""
    name = written_path(path)
    if name.endswith(".zip"):
        raise InvalidValue(f"{name}: a record is written as <name>.mrec; mrec.pack makes one file of it")
    return name


def _declared(schema: Schema) -> str | None:
    """The declaration as text, when it says more than the core knows of: what blocks owe each other."""
    relations = any(block.targets or block.aligned_with is not None for block in schema.blocks.values())
    return dtypes.json_text(schema.to_json()) if relations else None


def _meta_json(units: Mapping[str, str] | None, meta: Mapping[str, Any] | None) -> str | None:
    if meta is not None and not isinstance(meta, Mapping):
        raise InvalidValue(f"meta is a mapping, a JSON document, not {meta!r}")
    document = dict(meta or {})
    if units is not None:
        if "units" in document:
            raise InvalidValue("units are given twice: as units= and in meta")
        if not isinstance(units, Mapping) or not all(isinstance(v, str) for pair in units.items() for v in pair):
            raise InvalidValue(f'units is a mapping of names, as {{"length": "angstrom"}}, not {units!r}')
        document["units"] = dict(units)
    try:
        return dtypes.json_text(document) if document else None
    except ValueError as e:
        raise InvalidValue(f"meta: {e}") from None


def _by_name(what: str, given: Any) -> Iterable[tuple[Any, Any]]:
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        raise InvalidValue(f"{what} is a mapping by name, not {type(given).__name__}")
    return given.items()


def _with_frame(frame: Any, step: Any, time: Any, box: Any, blocks: Any, values: Any) -> tuple[Any, ...]:
    if not isinstance(frame, Frame):
        given = type(frame).__name__
        raise InvalidValue(f"what follows the step is a Frame, not {given}; give blocks by name, as atoms={{...}}")
    return (
        frame.step if step is None else step,
        frame.time if time is None else time,
        frame.box if box is None else box,
        {**frame.blocks, **dict(_by_name("blocks", blocks))},
        {**frame.values, **dict(_by_name("values", values))},
    )


def _step(step: Any) -> int:
    try:
        number = step.__index__()
    except (AttributeError, TypeError):
        raise InvalidValue(f"a step is a whole number, not {step!r}") from None
    if isinstance(step, (bool, np.bool_)) or not -(2**63) <= number < 2**63:
        raise InvalidValue(f"a step is a whole number of 64 bits, not {step!r}")
    return number


def _time(time: Any) -> float | None:
    if time is None or type(time) is float:
        return time
    try:
        return float(dtypes.exact_scalar(dtypes.DTYPES["f64"], time))
    except ValueError as e:
        raise InvalidValue(f"a time is a number: {e}") from None


def _split_columns(block: BlockSchema, data: Any) -> Mapping[str, Any]:
    """Columns by name, where some may have come together as one array with a last axis over them."""
    if not isinstance(data, Mapping):
        raise SchemaError(f"block {block.name!r} takes a mapping of columns to arrays, not {type(data).__name__}")
    if all(name in block.columns for name in data):
        return data
    columns: dict[str, Any] = {}
    for key, array in data.items():
        names = key if isinstance(key, tuple) else block.together(key) if isinstance(key, str) else (key,)
        stacked = np.asanyarray(array) if len(names) > 1 else None
        if stacked is not None and stacked.shape[-1:] != (len(names),):
            raise SchemaError(f"block {block.name!r}: {key!r} takes (rows, {len(names)}), not {stacked.shape}")
        for i, name in enumerate(names):
            if name in columns:
                raise SchemaError(f"block {block.name!r}: column {name!r} is given twice")
            columns[name] = array if stacked is None else stacked[..., i]
    return columns


class lock_errors:
    """Adds the holder's process id to RecordLocked, where the system tells it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, exception: BaseException | None, traceback: Any) -> None:
        if isinstance(exception, RecordLocked):
            holder = lock_holder(self.path)
            if holder is not None:
                raise RecordLocked(f"{exception} (process {holder} has it)") from None


def lock_holder(path: str) -> int | None:
    """The process that holds the flock of a directory, from /proc/locks; None when it cannot be told."""
    try:
        inode = os.stat(path).st_ino
        with open("/proc/locks") as locks:
            for line in locks:
                fields = line.split()
                if fields[1] == "FLOCK" and int(fields[5].rpartition(":")[2]) == inode:
                    return int(fields[4])
    except (OSError, ValueError, IndexError):
        pass
    return None

# SPDX-License-Identifier: BSD-3-Clause
"""Logging the curves of a run: whole lines, appended, and arrays of them when the log is flushed or closed."""

from __future__ import annotations

import errno
import json
import os
import weakref
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import numpy as np

from mrec.dtypes import DTYPES, TAGS, check_text, exact_scalar, to_json
from mrec.errors import ClosedError, ForkedHandle, InvalidValue, NotARecord, RecordLocked, SchemaError
from mrec.names import is_own_file
from mrec.record import publish
from mrec.record.metrics import LOG, SCALAR, SECTION, Curve, read_metrics, replay, safe, wal
from mrec.trajectory.writer import written_path
from mrec.zarr.group import Group
from mrec.zarr.json import checked
from mrec.zarr.metadata import GroupMeta
from mrec.zarr.store import FilesystemStore
from mrec.zarr.write import codecs_of, sync_directory, write_array, write_group

_LIVE: weakref.WeakSet[MetricsLog] = weakref.WeakSet()
_READ = 1 << 20


class MetricsLog:
    """Logs scalars of a run into a record, or into a file of its own; a context manager.

    path: a record, `<stem>.mrec`, where the log is `metrics/metrics.jsonl`; or a file `<stem>.mlp.jsonl`, which is made
    when it is not there, and lies in no record.

    `log` appends a whole line, which outlives a kill of this process as soon as it returns; `flush` and `close` sync
    the log, and write the arrays of a record's metrics from it. A log that a kill left is gone on with: a torn last
    line, which no call of `log` had returned for, is cut. RecordLocked while another process logs there. The lock of a
    TrajectoryWriter is another one: both may write one record. Not for more than one thread at a time.

    >>> with MetricsLog("water.mrec") as log:
    ...     for step in range(3):
    ...         log.log("loss", 1 / (step + 1), step=step)
    >>> mrec.open("water.mrec").metrics["loss"].values[-1]
    np.float64(0.3333333333333333)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        name = written_path(path)
        self.path = name
        self._root: str | None = None
        self._fd = -1
        self._file = ""
        self._curves: dict[str, Curve] = {}
        self._lines = self._bytes = 0
        self._failed: OSError | None = None
        if name.endswith(".jsonl"):
            _refuse_inside(name)
            file = name
        else:
            file = self._open_record(name)
        self._open(file)
        _LIVE.add(self)

    # ---- opening -------------------------------------------------------------------------------------------------

    def _open_record(self, root: str) -> str:
        if not os.path.isfile(os.path.join(root, "zarr.json")):
            raise NotARecord(
                f"{root} is no record that is written to; make one with mrec.create, or name a .jsonl file"
            )
        self._root = root
        if not os.path.isfile(os.path.join(root, SECTION, "zarr.json")):
            with publish.section(root, SECTION, keep=True) as made:
                publish.write_file(os.path.join(made, "zarr.json"), GroupMeta().document().encode())
                if not os.path.lexists(os.path.join(made, "metrics.jsonl")):
                    publish.write_file(os.path.join(made, "metrics.jsonl"), b"")
        return os.path.join(root, LOG)

    def _open(self, file: str) -> None:
        made = not os.path.exists(file)
        fd = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            _lock(fd, file)
            self._cut(fd, file)
            if made:
                sync_directory(os.path.dirname(file))
        except BaseException:
            os.close(fd)
            raise
        self._fd, self._file = fd, file

    def _cut(self, fd: int, file: str) -> None:
        """Take in what is there, and cut a torn last line."""
        log = _whole(fd)
        whole = log.rfind(b"\n") + 1
        if self._root is None:
            replay(self._curves, log[:whole], file)
        else:
            store = FilesystemStore(self._root)
            self._curves = read_metrics(store)._curves
            if wal(Group(store, SECTION))[1] > whole:
                raise InvalidValue(
                    f"{file}: the arrays hold more of the log than there is; it is not the log they were made of"
                )
        for key, curve in self._curves.items():
            if curve.values and curve.stepped is None:
                raise SchemaError(f"{file}: the series {key!r} has events with and without a step; log to another file")
        if whole < len(log):
            os.ftruncate(fd, whole)
            os.fsync(fd)
        self._lines, self._bytes = log.count(b"\n", 0, whole), whole

    # ---- logging -------------------------------------------------------------------------------------------------

    def log(
        self,
        key: str | Mapping[str, Any],
        value: Any = None,
        *,
        step: int | None = None,
        tags: Mapping[str, Any] | None = None,
        time: datetime | None = None,
    ) -> None:
        """Append a value of a series, or one of each of several: log({"loss": 0.1, "lr": 1e-3}, step=5).

        value: a number, NaN and infinities too. step: a whole number; a series has one with every value or with none,
        and a later value with the same step replaces the earlier one. tags: JSON that goes with the event. time: when
        it was, with an offset from UTC; now by default. What is refused is refused whole (SchemaError, InvalidValue).

        An OSError says that the log could not be written, or is not in its place any more (ENOENT, ESTALE). It takes
        nothing more then.
        """
        self._use()
        self._check_place()
        values = dict(key) if isinstance(key, Mapping) else {key: value}
        number = None if step is None else _step(step)
        moment = _moment(time)
        events = {name: _value(name, given) for name, given in values.items()}
        for name in events:
            self._check_key(name, number)
        kept = None if tags is None else checked(tags, "tags")
        lines = [_line(name, number, moment, given, kept) for name, given in events.items()]
        self._write("".join(lines).encode())
        for name, given in events.items():
            self._curves.setdefault(name, Curve()).add(given, number, moment)

    def _check_place(self) -> None:
        """The log goes on in an open file; what is put into one that was moved away or replaced, nobody would find."""
        try:
            if not os.path.samestat(os.stat(self._file), os.fstat(self._fd)):
                raise OSError(errno.ESTALE, "another log is in the place of this one", self._file)
        except OSError as e:
            self._failed = e
            raise

    def _check_key(self, key: str, step: int | None) -> None:
        curve = self._curves.get(key)
        if curve is None:
            check_key(key)
            twin = next((k for k in self._curves if safe(k).casefold() == safe(key).casefold()), None)
            if twin is not None:
                raise InvalidValue(
                    f"the keys {twin!r} and {key!r} differ only in case; some file systems take them for one"
                )
        elif curve.values and (curve.steps[0] is None) != (step is None):
            raise InvalidValue(
                f"the series {key!r} has {'no ' if step is not None else ''}steps; so has every value of it"
            )

    def _write(self, lines: bytes) -> None:
        """Append whole lines. When that fails in the midst, what got there is cut off again."""
        done = 0
        try:
            while done < len(lines):
                done += os.write(self._fd, lines[done:])
        except BaseException as e:
            if isinstance(e, OSError):
                self._failed = e
            try:
                os.ftruncate(self._fd, self._bytes)
            except OSError as also:
                self._failed = self._failed or also
            raise
        self._bytes += len(lines)
        self._lines += lines.count(b"\n")

    # ---- publishing ----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Sync the log, and in a record write the arrays of all series in place of those that were there, at once."""
        self._use()
        self._check_place()
        try:
            os.fsync(self._fd)
            if self._root is not None:
                self._densify(self._root)
        except OSError as e:
            self._failed = e
            raise

    def _densify(self, root: str) -> None:
        catalog = {key: _entry(curve) for key, curve in self._curves.items()}
        before = publish.read_group(os.path.join(root, SECTION))
        held = {"lines": self._lines, "bytes": self._bytes}
        meta = replace(before, attributes={**before.attributes, "series": catalog, "wal": held})
        with publish.section(root, SECTION, keep=True) as made:
            document = os.path.join(made, "zarr.json")
            os.unlink(document)
            publish.write_file(document, meta.document().encode())
            for key, curve in self._curves.items():
                _write_series(made, key, curve)
        self._follow()

    def _follow(self) -> None:
        """Go on in the log that is now in the record: the same file, but where the file system has no links."""
        if not os.path.samestat(os.stat(self._file), os.fstat(self._fd)):
            fd = os.open(self._file, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            _lock(fd, self._file)
            os.close(self._fd)
            self._fd = fd

    def close(self) -> None:
        """Flush, and let go of the log. Closing twice is no error."""
        if self._fd < 0:
            return
        try:
            if self._failed is None:
                self.flush()
        finally:
            self._release()

    def _release(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _use(self) -> None:
        if self._fd == -2:
            raise ForkedHandle(f"{self.path}: the log belongs to the parent process; open one of its own in this one")
        if self._fd < 0:
            raise ClosedError(f"the log of {self.path} was closed")
        if self._failed is not None:
            raise self._failed

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._fd < 0

    def __enter__(self) -> MetricsLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exception: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception as e:
            if exception is None:
                raise
            exception.add_note(f"closing the log of {self.path} failed as well: {e}")

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            self._release()  # all lines are there; only their arrays are not

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self._lines} lines"
        return f"<MetricsLog {self.path!r}: {len(self._curves)} series, {state}>"


def _after_fork() -> None:
    """In the child: the lock, which is that of the parent too, must not outlive it here."""
    for log in list(_LIVE):
        if log._fd >= 0:
            os.close(log._fd)
            log._fd = -2


os.register_at_fork(after_in_child=_after_fork)


# ---- the file ----------------------------------------------------------------------------------------------------


def _refuse_inside(file: str) -> None:
    parent = os.path.dirname(file)
    if not os.path.isdir(parent):
        raise FileNotFoundError(2, "there is no such directory", parent)
    while parent != os.path.dirname(parent):
        if os.path.isfile(os.path.join(parent, "zarr.json")):
            raise InvalidValue(f"{file} lies in the record {parent}; pass the record itself, or a file beside it")
        parent = os.path.dirname(parent)


def _lock(fd: int, file: str) -> None:
    if not publish.try_lock(fd):
        raise RecordLocked(f"{file}: another MetricsLog has it; one at a time logs there")


def _whole(fd: int) -> bytes:
    parts: list[bytes] = []
    at = 0
    while part := os.pread(fd, _READ, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


# ---- lines -------------------------------------------------------------------------------------------------------


def check_key(key: Any) -> None:
    """InvalidValue when no series can be called so."""
    if not isinstance(key, str) or not key:
        raise InvalidValue(f"the key of a series is a name, not {key!r}")
    try:
        check_text(key)
    except ValueError as e:
        raise InvalidValue(f"the key of a series: {e}") from None
    name = safe(key)
    if name == "zarr.json" or is_own_file(name):
        raise InvalidValue(f"no series can be called {key!r}: its arrays would be taken for a file of the format")
    if len(name) > 255:
        raise InvalidValue(f"the key {key[:40]!r}... is too long: its arrays would have a name of {len(name)} bytes")


def _value(key: Any, given: Any) -> float:
    if not isinstance(given, (int, float, np.generic, np.ndarray)) and hasattr(given, "item"):
        given = given.item()  # a tensor
    try:
        return float(exact_scalar(DTYPES["f64"], given))
    except ValueError as e:
        raise SchemaError(f"the value of {key!r}: {e}") from None


def _step(step: Any) -> int:
    if isinstance(step, (bool, np.bool_)) or not hasattr(step, "__index__"):
        raise InvalidValue(f"a step is a whole number, not {step!r}")
    number = int(step.__index__())
    if not -(2**63) <= number < 2**63:
        raise InvalidValue(f"a step is a whole number of 64 bits, not {step!r}")
    return number


def _moment(time: datetime | None) -> str:
    if time is None:
        time = datetime.now(UTC)
    elif not isinstance(time, datetime) or time.utcoffset() is None:
        raise InvalidValue(f"time= takes a datetime with an offset from UTC (tzinfo), not {time!r}")
    return time.isoformat(timespec="microseconds")


def _line(key: str, step: int | None, moment: str, value: float, tags: Any) -> str:
    event: dict[str, Any] = {"t": SCALAR, "k": key}
    if step is not None:
        event["s"] = step
    event |= {"w": moment, "v": to_json(TAGS["f64"], value)}
    if tags is not None:
        event["tags"] = tags
    return json.dumps(event, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


# ---- arrays ------------------------------------------------------------------------------------------------------


def _entry(curve: Curve) -> dict[str, Any]:
    """What the catalog says of a series."""
    last = len(curve.values) - 1
    newest = max(range(len(curve.values)), key=lambda i: curve.steps[i] or 0) if curve.stepped else last
    entry = {
        "type": SCALAR,
        "count": len(curve.values),
        "latest_timestamp": curve.wall_time[newest] if last >= 0 else None,
    }
    return {**entry, "latest_step": curve.steps[newest] if last >= 0 else None}


def _write_series(made: str, key: str, curve: Curve) -> None:
    arrays: dict[str, tuple[np.ndarray, str]] = {
        "series": (np.array(curve.values, np.float64), "float64"),
        "wall_time": (np.array(curve.wall_time, object), "string"),
    }
    if curve.stepped:
        arrays["steps"] = np.array(curve.steps, np.int64), "int64"
    for group, (values, data_type) in arrays.items():
        parent = os.path.join(made, group)
        if not os.path.isdir(parent):
            write_group(parent)
        path = os.path.join(parent, safe(key))
        publish.remove_tree(path)
        kind = np.dtype(np.dtypes.StringDType()) if data_type == "string" else values.dtype
        write_array(path, values, data_type, codecs_of(kind))
    if not curve.stepped:
        publish.remove_tree(os.path.join(made, "steps", safe(key)))

# SPDX-License-Identifier: BSD-3-Clause
"""The curves of a run, `metrics/`: arrays, and a log whose later lines are newer. Reading. (Writing: metricslog.py.)"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mrec.dtypes import TAGS, from_json
from mrec.errors import CorruptData, UnknownName
from mrec.record.whole import read_whole
from mrec.zarr.array import Array
from mrec.zarr.codecs import is_int
from mrec.zarr.group import Group
from mrec.zarr.json import parse_object
from mrec.zarr.store import Store

SECTION = "metrics"
LOG = "metrics/metrics.jsonl"
SCALAR = "scalar"


@dataclass(frozen=True, eq=False)
class Series:
    """One curve. values: f64 (n,). steps: i64 (n,), or None when it was logged without. wall_time: (n,), RFC 3339."""

    key: str
    values: np.ndarray
    steps: np.ndarray | None
    wall_time: np.ndarray

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        steps = f", steps {self.steps[0]} to {self.steps[-1]}" if self.steps is not None and len(self) else ""
        last = f", last {self.values[-1]:g}" if len(self) else ""
        return f"<Series {self.key!r}: {len(self)} values{steps}{last}>"


@dataclass
class Curve:
    """A series that grows. An event with a step that is there replaces that one, in its place."""

    values: list[float] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)
    wall_time: list[str] = field(default_factory=list)
    _at: dict[int, int] = field(default_factory=dict)

    def add(self, value: float, step: int | None, wall_time: str) -> None:
        """Take in one event."""
        at = None if step is None else self._at.get(step)
        if at is not None:
            self.values[at], self.wall_time[at] = value, wall_time
            return
        if step is not None:
            self._at[step] = len(self.values)
        self.values.append(value)
        self.steps.append(step)
        self.wall_time.append(wall_time)

    @property
    def stepped(self) -> bool | None:
        """Whether events have steps; None when some have and some have not, or there are none."""
        with_step = sum(step is not None for step in self.steps)
        return with_step > 0 if with_step in (0, len(self.steps)) and self.steps else None

    def series(self, key: str) -> Series:
        """The curve as arrays; where only some events have steps, the steps are masked."""
        steps: Any = None
        if any(step is not None for step in self.steps):
            null = [step is None for step in self.steps]
            steps = np.array([step or 0 for step in self.steps], np.int64)
            steps = np.ma.array(steps, mask=null) if any(null) else steps
        times = np.array(self.wall_time, np.dtypes.StringDType())
        return Series(key, np.array(self.values, np.float64), steps, times)


class Metrics(Mapping[str, Series]):
    """The curves of a run, by their keys, as they were when this was read.

    torn: whether the log ends in a part of a line, which a kill leaves, and which is passed over.
    """

    def __init__(self, where: str, curves: dict[str, Curve], log: bytes, torn: bool) -> None:
        self._where, self._curves, self._log, self.torn = where, curves, log, torn

    def __getitem__(self, key: str) -> Series:
        if key not in self._curves:
            there = ", ".join(map(repr, self._curves)) or "none"
            raise UnknownName(f"there is no series {key!r}; there are: {there}")
        return self._curves[key].series(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def __contains__(self, key: object) -> bool:
        return key in self._curves

    def events(self) -> Iterator[dict[str, Any]]:
        """Every line of the log as it stands there, with tags, in the order of logging."""
        return (parse_object(line, f"{self._where}, line {n}") for n, line in _lines(self._log))

    def __repr__(self) -> str:
        return f"<Metrics: {', '.join(f'{key} ({len(c.values)})' for key, c in self._curves.items()) or 'none'}>"


def read_log(path: str) -> Metrics:
    """The metrics in a log that stands alone, as `<stem>.mlp.jsonl`."""
    with open(path, "rb") as file:
        log = file.read()
    curves: dict[str, Curve] = {}
    return Metrics(path, curves, log, replay(curves, log, path))


# ---- the log -----------------------------------------------------------------------------------------------------


def _lines(log: bytes) -> Iterator[tuple[int, bytes]]:
    """The number and text of each complete line that is not blank."""
    for n, line in enumerate(log[: log.rfind(b"\n") + 1].split(b"\n"), 1):
        if line.strip():
            yield n, line


def replay(curves: dict[str, Curve], log: bytes, where: str, first: int = 1) -> bool:
    """Add the events of a log to the curves. True: it ends in a part of a line. first: the number of its first line.

    CorruptData for a complete line that is not one JSON object, or a scalar of another form.
    """
    for n, line in _lines(log):
        event = parse_object(line, f"{where}, line {first + n - 1}")
        if event.get("t") == SCALAR:
            key, value, step, wall_time = scalar(event, f"{where}, line {first + n - 1}")
            curves.setdefault(key, Curve()).add(value, step, wall_time)
    return not log.endswith(b"\n") and bool(log.rpartition(b"\n")[2].strip())


def scalar(event: dict[str, Any], where: str) -> tuple[str, float, int | None, str]:
    """Key, value, step and wall time of a scalar event. CorruptData when it has another form."""
    key, step, wall_time = event.get("k"), event.get("s"), event.get("w", "")
    if not isinstance(key, str):
        raise CorruptData(f"{where}: k, the key, is {key!r}")
    if step is not None and not is_int(step, -(2**63), 2**63 - 1):
        raise CorruptData(f"{where}: s, the step, is {step!r}")
    if not isinstance(wall_time, str):
        raise CorruptData(f"{where}: w, the time, is {wall_time!r}")
    try:
        return key, from_json(TAGS["f64"], event.get("v")), step, wall_time
    except ValueError:
        raise CorruptData(f"{where}: v, the value, is {json.dumps(event.get('v'))[:60]}") from None


# ---- the arrays --------------------------------------------------------------------------------------------------


def safe(key: str) -> str:
    """The name of the arrays of a series: what is not of A-Z a-z 0-9 . _ - as %XX, byte by byte."""
    kept = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
    parts = [chr(byte) if byte in kept else f"%{byte:02X}" for byte in key.encode()]
    if key in (".", "..") or key.startswith("__"):
        parts[0] = f"%{ord(key[0]):02X}"
    return "".join(parts)


def read_metrics(store: Store) -> Metrics:
    """The metrics of a record: what the arrays hold, and the lines of the log that they do not."""
    where = store.path(LOG)
    log = store.get(LOG)
    if not store.exists(f"{SECTION}/zarr.json"):
        if log is not None:
            raise CorruptData(f"{where}: the log lies in no group; {SECTION}/zarr.json is missing")
        return Metrics(where, {}, b"", False)
    group = Group(store, SECTION)
    curves = {key: _curve(group, key, entry) for key, entry in _catalog(group).items()}
    lines, taken = wal(group)
    if log is None:
        return Metrics(where, curves, b"", False)
    if taken > len(log) or (taken and log[taken - 1 : taken] != b"\n"):
        raise CorruptData(
            f"{where}: the arrays hold {taken} bytes of the log, which are not there or end within a line"
        )
    torn = replay(curves, log[taken:], where, lines + 1)
    return Metrics(where, curves, log, torn)


def _catalog(group: Group) -> dict[str, Any]:
    catalog = group.attrs.get("series", {})
    if not isinstance(catalog, dict):
        raise CorruptData(f"{group.path}: series is {catalog!r}, no catalog")
    return catalog


def wal(group: Group) -> tuple[int, int]:
    """The lines and bytes of the log that the arrays hold."""
    found = group.attrs.get("wal", {"lines": 0, "bytes": 0})
    if not isinstance(found, dict) or not all(is_int(found.get(key), 0, 2**63 - 1) for key in ("lines", "bytes")):
        raise CorruptData(f"{group.path}: wal is {found!r}, no count of lines and bytes")
    return found["lines"], found["bytes"]


def _curve(group: Group, key: str, entry: Any) -> Curve:
    """A series out of its arrays."""
    count = entry.get("count") if isinstance(entry, dict) else None
    if not is_int(count, 0, 2**63 - 1):
        raise CorruptData(f"{group.path}: the count of the series {key!r} is {count!r}")
    values = _array(group, f"series/{safe(key)}", "float64", count)
    times = _array(group, f"wall_time/{safe(key)}", "string", count)
    has_steps = f"steps/{safe(key)}" in group
    steps = _array(group, f"steps/{safe(key)}", "int64", count) if has_steps else [None] * count
    curve = Curve()
    for value, step, wall_time in zip(values, steps, times, strict=True):
        curve.add(value, step, wall_time)
    return curve


def _array(group: Group, name: str, data_type: str, count: int) -> list[Any]:
    array = group[name] if name in group else None
    if not isinstance(array, Array) or array.meta.data_type != data_type or array.shape != (count,):
        raise CorruptData(f"{group.store.path(group.path)}/{name}: no {data_type}[{count}], as the catalog says")
    found: list[Any] = read_whole(array).tolist()
    return found

# SPDX-License-Identifier: BSD-3-Clause
"""`metrics/`: the lines of the log, the arrays, and that they are of the same runs."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Protocol

import numpy as np

from mrec.dtypes import TAGS, from_json
from mrec.errors import MrecError
from mrec.verify.files import Files
from mrec.verify.report import Log
from mrec.zarr.codecs import is_int
from mrec.zarr.json import parse_object
from mrec.zarr.metadata import ArrayMeta, GroupMeta

_PATH = "metrics"
_LOG = "metrics/metrics.jsonl"
_GROUPS = {"series": "float64", "steps": "int64", "wall_time": "string"}
_PLAIN = re.compile(r"[A-Za-z0-9._-]", re.ASCII)


class Nodes(Protocol):
    """What the checks of sections read nodes with."""

    def _children(self, path: str) -> dict[str, ArrayMeta | GroupMeta]: ...
    def _read(self, path: str, meta: ArrayMeta) -> np.ndarray | None: ...


def check_metrics(log: Log, files: Files, nodes: Nodes, attributes: dict[str, Any]) -> None:
    """All of the section; `attributes` are those of its group."""
    whole = _check_log(log, files.get(_LOG) or b"")
    _check_wal(log, attributes.get("wal", {"lines": 0, "bytes": 0}), whole, files.get(_LOG) is not None)
    catalog = attributes.get("series", {})
    if not isinstance(catalog, dict):
        log.add("metrics", _PATH, f"series is {catalog!r}, no catalog")
        return
    arrays = {group: nodes._children(f"{_PATH}/{group}") for group in _GROUPS}
    keys = {_safe(key): key for key in catalog}
    for group, found in arrays.items():
        for name in found.keys() - keys.keys():
            log.add("metrics", f"{_PATH}/{group}/{name}", "the catalog has no such series")
    for name, key in keys.items():
        _check_series(log, nodes, key, name, catalog[key], arrays)


def _safe(key: str) -> str:
    escaped = "".join(c if _PLAIN.fullmatch(c) else "".join(f"%{b:02X}" for b in c.encode()) for c in key)
    first = key in (".", "..") or key.startswith("__")
    return f"%{ord(key[0]):02X}{escaped[1:]}" if first else escaped


def _check_log(log: Log, text: bytes) -> bytes:
    """Each complete line; the complete lines themselves."""
    whole = text[: text.rfind(b"\n") + 1]
    stepped: dict[str, bool] = {}
    for n, line in enumerate(whole.split(b"\n"), 1):
        if line.strip():
            fault = _line_fault(line, stepped)
            if fault:
                log.add("metrics-log", _LOG, f"line {n}: {fault}")
    return whole


def _line_fault(line: bytes, stepped: dict[str, bool]) -> str:
    try:
        event = parse_object(line, "the line")
    except MrecError as e:
        return str(e)
    if event.get("t") != "scalar":
        return ""
    key, step = event.get("k"), event.get("s")
    if not isinstance(key, str):
        return f"the key is {key!r}"
    if "s" in event and not is_int(step, -(2**63), 2**63 - 1):
        return f"the step is {step!r}"
    if stepped.setdefault(key, "s" in event) != ("s" in event):
        return f"the series {key!r} has events with and without a step"
    if "tags" in event and not isinstance(event["tags"], dict):
        return "tags is no object"
    try:
        from_json(TAGS["f64"], event.get("v"))
    except ValueError as e:
        return f"the value: {e}"
    return "" if _is_moment(event.get("w")) else f"the time is {event.get('w')!r}, none of RFC 3339 with an offset"


def _is_moment(text: Any) -> bool:
    try:
        return isinstance(text, str) and "T" in text.upper() and datetime.fromisoformat(text).utcoffset() is not None
    except ValueError:
        return False


def _check_wal(log: Log, wal: Any, whole: bytes, there: bool) -> None:
    if not isinstance(wal, dict) or not all(is_int(wal.get(key), 0, 2**63 - 1) for key in ("lines", "bytes")):
        log.add("metrics", _PATH, f"wal is {wal!r}, no count of lines and bytes")
        return
    held = whole[: wal["bytes"]]
    if there and (len(held) != wal["bytes"] or held.count(b"\n") != wal["lines"] or held[-1:] not in (b"", b"\n")):
        log.add("metrics", _PATH, f"wal says {wal['lines']} lines in {wal['bytes']} bytes, which the log has not")


def _check_series(log: Log, nodes: Nodes, key: str, name: str, entry: Any, arrays: dict[str, Any]) -> None:
    count = entry.get("count") if isinstance(entry, dict) else None
    if not is_int(count, 0, 2**63 - 1):
        log.add("metrics", _PATH, f"the count of the series {key!r} is {count!r}")
        return
    for group, data_type in _GROUPS.items():
        where, meta = f"{_PATH}/{group}/{name}", arrays[group].get(name)
        if meta is None and group == "steps":
            continue
        if not isinstance(meta, ArrayMeta) or meta.data_type != data_type or meta.shape != (count,):
            log.add("metrics", where, f"it is not {data_type}[{count}], as the catalog says of {key!r}")
            continue
        values = nodes._read(where, meta)
        if group == "steps" and values is not None and len(np.unique(values)) != count:
            log.add("metrics", where, "a step stands twice")
        if group == "wall_time" and values is not None and not all(map(_is_moment, values.tolist())):
            log.add("metrics", where, "a time is none of RFC 3339 with an offset")

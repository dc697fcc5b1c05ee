# SPDX-License-Identifier: BSD-3-Clause
"""The options of a writer, from what a user writes to the members of `mrec_options` (mrec.h)."""

from __future__ import annotations

import math
import operator
import os
import re
from typing import Any

import numpy as np

from mrec.errors import InvalidValue

#: The numbers of `enum mrec_compression`, and the level when none is given.
_COMPRESSION = {"none": (1, 0), "gzip": (2, 1), "zstd": (3, 3), "shuffle+zstd": (4, 3)}
_LEVELS = {"none": range(0), "gzip": range(10), "zstd": range(-131072, 23), "shuffle+zstd": range(-131072, 23)}
_UNITS = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_CHUNK = range(2**10, 2**26 + 1)
_EXAMPLES = {"cache": "64MiB", "flush_every": "10s", "durable_every": "10s", "chunk": "256KiB"}
_NEVER = math.inf
_ALWAYS = -1.0  # 0 means "the default" to the core


def compression_option(text: str | None) -> dict[str, int]:
    """ "none", "gzip:n", "zstd:n" or "shuffle+zstd:n" (n may be left out); None is the default of each column type."""
    if text is None:
        return {}
    name, colon, level = text.partition(":") if isinstance(text, str) else (text, "", "")
    if name not in _COMPRESSION:
        raise InvalidValue(f'compression is {text!r}; use "none", "gzip:n", "zstd:n" or "shuffle+zstd:n"')
    number, default = _COMPRESSION[name]
    try:
        n = int(level) if colon else default
    except ValueError:
        n = None
    if n is None or (colon and n not in _LEVELS[name]):
        levels = _LEVELS[name]
        allowed = f"takes a level from {levels.start} to {levels.stop - 1}" if levels else "takes no level"
        raise InvalidValue(f"compression is {text!r}; {name} {allowed}")
    return {"compression": number, "level": n}


def flush_option(every: int | str | None) -> dict[str, float | int]:
    """When frames land: a number of frames, "10s", "64MiB"; None is the default cadence."""
    if every is None:
        return {}
    if isinstance(every, str):
        number, unit = _quantity(every, "flush_every")
        if unit in _SECONDS:
            return {"flush_frames": 2**63 - 1, "flush_seconds": number * _SECONDS[unit] or _ALWAYS}
        if unit in _UNITS and number * _UNITS[unit] < 2**63:
            return {"flush_bytes": max(1, int(number * _UNITS[unit])), "flush_seconds": _NEVER}
    elif 0 < (_whole(every) or 0) < 2**63:
        return {"flush_frames": _whole(every) or 0, "flush_seconds": _NEVER}
    raise InvalidValue(f'flush_every is {every!r}; use a number of frames, a time ("10s") or a size ("64MiB")')


def durable_option(every: float | str | None) -> dict[str, float]:
    """When a landing is synced: a number of seconds or "60s"; 0: each one; None: only flush() and close()."""
    if every is None:
        return {"durable_seconds": _NEVER}
    number: float | None = None
    if isinstance(every, str):
        amount, unit = _quantity(every, "durable_every")
        number = amount * _SECONDS[unit] if unit in _SECONDS else None
    elif not isinstance(every, bool) and isinstance(every, (int, float, np.integer, np.floating)):
        try:
            number = float(every)
        except OverflowError:
            number = _NEVER if every > 0 else None
    if number is None or not number >= 0:
        raise InvalidValue(f'durable_every is {every!r}; use a number of seconds, a time ("60s"), or None')
    return {"durable_seconds": number or _ALWAYS}


def count_option(name: str, value: int | None) -> dict[str, int]:
    """A positive count, or None for the default."""
    if value is None:
        return {}
    number = _whole(value)
    if number is None or not 0 < number < 2**32:
        raise InvalidValue(f"{name} is {value!r}; use a positive whole number")
    return {name: number}


def flag_option(name: str, value: bool) -> bool:
    """True or False, of Python or numpy: what is taken for true by chance may cost data."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidValue(f"{name} is {value!r}; use True or False")
    return bool(value)


def _whole(value: Any) -> int | None:
    """A whole number of Python or numpy; None for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def threads_option(threads: int | None) -> dict[str, int]:
    """How many threads a writer works with; None is what MREC_THREADS says, or one."""
    asked: Any
    if threads is None:
        name, asked = "MREC_THREADS", os.environ.get("MREC_THREADS") or "1"
        number = int(asked) if asked.strip().isdecimal() else None
    else:
        name, asked, number = "threads", threads, _whole(threads)
    if number is None or not 0 < number <= 256:
        raise InvalidValue(f"{name} is {asked!r}; use a number from 1 to 256")
    return {"threads": number}


def chunk_option(chunk: int | str | None, frames_per_chunk: int | None) -> dict[str, int]:
    """How much of a column is a chunk: a size (bytes, or "256KiB") or a number of frames; None and None: 16 KiB."""
    if chunk is None:
        return count_option("frames_per_chunk", frames_per_chunk)
    if frames_per_chunk is not None:
        raise InvalidValue(f"chunk is {chunk!r} and frames_per_chunk is {frames_per_chunk!r}; give one of them")
    size = size_option("chunk", chunk)
    if size not in _CHUNK:
        raise InvalidValue(f'chunk is {chunk!r}; use a size from "1KiB" to "64MiB", or a number of bytes')
    return {"chunk_bytes": size}


def size_option(name: str, value: int | str) -> int:
    """A number of bytes: 0 or more, or "64MiB"."""
    if isinstance(value, str):
        number, unit = _quantity(value, name)
        if unit in _UNITS and number * _UNITS[unit] < 2**63:
            return int(number * _UNITS[unit])
    elif (whole := _whole(value)) is not None and 0 <= whole < 2**63:
        return whole
    raise InvalidValue(f'{name} is {value!r}; use a number of bytes or a size ("64MiB")')


def _quantity(text: str, option: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InvalidValue(f'{option} is {text!r}; use a number with a unit, as "{_EXAMPLES[option]}"')
    return float(match[1]), match[2]


def writer_options(
    flush_every: int | str | None,
    durable_every: float | str | None,
    durable: bool,
    threads: int | None,
    **others: Any,
) -> dict[str, Any]:
    """The options that creating and reopening share, with others as they are."""
    when = {
        **flush_option(flush_every),
        **durable_option(durable_every),
        "no_durable": not flag_option("durable", durable),
    }
    return {**when, **threads_option(threads), **others}

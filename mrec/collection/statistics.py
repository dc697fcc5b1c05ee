# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of one variable in one data set, or in several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrec.collection.kinds import FILL_TIMESTAMP, Kind, total_order, unpack_bound


@dataclass(frozen=True, slots=True)
class Statistics:
    """min, max: of the values that are not null, None without any; strings and binary as bytes. null_count: values
    that are equal to the fill, or were never written. row_count: all elements."""

    min: Any
    max: Any
    null_count: int
    row_count: int


def statistics_of(kind: Kind, found: Any) -> Statistics | None:
    """What a segment says of an array."""
    if found is None:
        return None
    low, high, nulls, rows = found
    return Statistics(_value(kind, low), _value(kind, high), nulls, rows)


def _value(kind: Kind, bound: Any) -> Any:
    value = unpack_bound(kind, bound)
    return np.datetime64(value, "ns") if value is not None and kind.fill == FILL_TIMESTAMP else value


def merge(parts: Iterable[Statistics]) -> Statistics | None:
    """All together; None of none. Where data sets have types that do not compare, min and max are None."""
    parts = list(parts)
    if not parts:
        return None
    lows = [part.min for part in parts if part.min is not None]
    highs = [part.max for part in parts if part.max is not None]
    try:
        low = min(lows, key=_order) if lows else None
        high = max(highs, key=_order) if highs else None
    except TypeError:
        low = high = None
    return Statistics(low, high, sum(p.null_count for p in parts), sum(p.row_count for p in parts))


def _order(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return int(value.view("i8"))
    if isinstance(value, float) and (value != value or value in (0.0, float("inf"), -float("inf"))):
        return _Float(value)
    return _Float(value) if isinstance(value, float) else value


class _Float:
    """A float in total order; against an integer by value."""

    __slots__ = ("value",)

    def __init__(self, value: float) -> None:
        self.value = value

    def __lt__(self, other: Any) -> bool:
        if isinstance(other, _Float):
            return bool(total_order(self.value) < total_order(other.value))
        if isinstance(other, bytes):
            return NotImplemented
        return self.value < other if self.value == self.value else False

    def __gt__(self, other: Any) -> bool:
        if isinstance(other, _Float):
            return bool(total_order(self.value) > total_order(other.value))
        if isinstance(other, bytes):
            return NotImplemented
        return self.value > other if self.value == self.value else True

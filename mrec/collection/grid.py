# SPDX-License-Identifier: BSD-3-Clause
"""Arrays, regions and chunks: which chunk has what, by index arithmetic alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

from mrec.errors import InvalidValue

Shape = tuple[int, ...]
Region = tuple[slice, ...]


def default_chunk(shape: Shape) -> Shape:
    """The whole array; 1 along an axis without length."""
    return tuple(max(n, 1) for n in shape)


def clipped(coordinate: Shape, chunk: Shape, shape: Shape) -> Shape:
    """The lengths of a chunk, shorter at the edges."""
    return tuple(min(c, n - i * c) for i, c, n in zip(coordinate, chunk, shape, strict=True))


def pieces(start: Shape, stop: Shape, chunk: Shape) -> Iterator[tuple[Shape, Region, Region]]:
    """(coordinate, region in the chunk, region from `start` on) of every chunk that meets the region."""
    if any(a >= b for a, b in zip(start, stop, strict=True)):
        return
    axes = [range(a // c, -(-b // c)) for a, b, c in zip(start, stop, chunk, strict=True)]
    for coordinate in product(*axes):
        inside, outside = [], []
        for i, a, b, c in zip(coordinate, start, stop, chunk, strict=True):
            low, high = max(a, i * c), min(b, (i + 1) * c)
            inside.append(slice(low - i * c, high - i * c))
            outside.append(slice(low - a, high - a))
        yield coordinate, tuple(inside), tuple(outside)


def chunk_count(shape: Shape, chunk: Shape) -> int:
    """How many chunks an array has."""
    return math.prod(-(-n // c) for n, c in zip(shape, chunk, strict=True))


def normal_index(index: Any, shape: Shape) -> tuple[Shape, Shape, Region, tuple[int, ...]]:
    """What `array[index]` needs: start and stop of the region, what to take of it, and the axes to drop.

    Integers, slices of any step and one Ellipsis; IndexError or InvalidValue for others.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    if sum(item is Ellipsis for item in items) > 1 or len(items) - (Ellipsis in items) > len(shape):
        raise IndexError(f"{index!r} is no index into {len(shape)} axes")
    if Ellipsis in items:
        at = items.index(Ellipsis)
        items[at : at + 1] = [slice(None)] * (len(shape) - len(items) + 1)
    items += [slice(None)] * (len(shape) - len(items))
    start, stop, take, dropped = [], [], [], []
    for axis, (item, n) in enumerate(zip(items, shape, strict=True)):
        if isinstance(item, slice):
            places = range(n)[item]
            low, high = (min(places[0], places[-1]), max(places[0], places[-1]) + 1) if places else (0, 0)
            take.append(slice(None, None, places.step) if places else slice(0))
        else:
            try:
                low = range(n)[item]
            except TypeError:
                raise InvalidValue(f"{item!r}: index by integers, slices and ...; take others from the array") from None
            high = low + 1
            take.append(slice(None))
            dropped.append(axis)
        start.append(low)
        stop.append(high)
    return tuple(start), tuple(stop), tuple(take), tuple(dropped)

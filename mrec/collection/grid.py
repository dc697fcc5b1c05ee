# SPDX-License-Identifier: BSD-3-Clause
"""Arrays, regions and chunks: which chunk has what, by index arithmetic alone."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterator
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


def pieces(
    start: Shape, stop: Shape, chunk: Shape, known: Collection[Shape] | None = None
) -> Iterator[tuple[Shape, Region, Region]]:
    """(coordinate, region in the chunk, region from `start` on) of every chunk that meets the region.

    known: the coordinates of the chunks that there are; by default all.
    """
    if any(a >= b for a, b in zip(start, stop, strict=True)):
        return
    axes = [range(a // c, -(-b // c)) for a, b, c in zip(start, stop, chunk, strict=True)]
    for coordinate in product(*axes) if known is None else _among(known, axes):
        inside, outside = [], []
        for i, a, b, c in zip(coordinate, start, stop, chunk, strict=True):
            low, high = max(a, i * c), min(b, (i + 1) * c)
            inside.append(slice(low - i * c, high - i * c))
            outside.append(slice(low - a, high - a))
        yield coordinate, tuple(inside), tuple(outside)


def _integer(item: Any) -> int:
    if isinstance(item, bool) or getattr(item, "shape", ()) != ():
        raise TypeError  # numpy would take others from the array
    return operator.index(item)


def _among(known: Collection[Shape], axes: list[range]) -> Iterator[Shape]:
    """Those in the ranges, looked up from the shorter side: an array may have very few of its chunks."""
    if math.prod(map(len, axes)) <= len(known):
        return (coordinate for coordinate in product(*axes) if coordinate in known)
    return (place for place in known if all(i in axis for i, axis in zip(place, axes, strict=True)))


def normal_index(index: Any, shape: Shape) -> tuple[Shape, Shape, Region, tuple[int, ...]]:
    """What `array[index]` needs: start and stop of the region, what to take of it, and the axes to drop.

    Integers, slices of any step and one Ellipsis; IndexError or InvalidValue for others.
    """
    items = list(index) if isinstance(index, tuple) else [index]
    dots = [at for at, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1 or len(items) - len(dots) > len(shape):
        raise IndexError(f"{index!r} is no index into {len(shape)} axes")
    for at in dots:
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
                low = range(n)[_integer(item)]
            except TypeError:
                raise InvalidValue(f"{item!r}: index by integers, slices and ...; take others from the array") from None
            high = low + 1
            take.append(slice(None))
            dropped.append(axis)
        start.append(low)
        stop.append(high)
    return tuple(start), tuple(stop), tuple(take), tuple(dropped)

# SPDX-License-Identifier: BSD-3-Clause
"""What numpy's indexing selects of an array, axis by axis, and the parts of each axis that are needed for it."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrec.dtypes import room

#: low, high, step: elements of an axis.
Part = tuple[int, int, int]
ReadBox = Callable[[list[int], list[int]], np.ndarray]


@dataclass(frozen=True, slots=True)
class Axis:
    """The parts of an axis to be read, close together, and the key that selects from these."""

    parts: list[Part]
    key: Any

    @property
    def sizes(self) -> list[int]:
        """The elements of each part."""
        return [len(range(*part)) for part in self.parts]


def expand(selection: Any, ndim: int) -> list[Any]:
    """A key for each axis, and None for each new one: ellipsis and booleans written out. IndexError for others.

    A key is an int, a slice, an array of integers, or one axis of a mask.
    """
    found: list[Any] = []
    for key in map(_plain, selection if isinstance(selection, tuple) else [selection]):
        if isinstance(key, np.ndarray) and key.dtype.kind == "b":
            found.extend(_Mask(key, i) for i in range(key.ndim))
        else:
            found.append(key)
    taken = sum(key is not None and key is not Ellipsis for key in found)
    if taken > ndim:
        raise IndexError(f"{taken} indices for {ndim} axes")
    if sum(key is Ellipsis for key in found) > 1:
        raise IndexError("more than one ellipsis")
    if not any(key is Ellipsis for key in found):
        found.append(Ellipsis)
    at = next(i for i, key in enumerate(found) if key is Ellipsis)
    return found[:at] + [slice(None)] * (ndim - taken) + found[at + 1 :]


def _plain(key: Any) -> Any:
    """None, an ellipsis, a slice, an int, or an array of integers or booleans with an axis."""
    if key is None or key is Ellipsis or isinstance(key, slice):
        return key
    if isinstance(key, (list, tuple, range, np.ndarray)):
        try:
            array = np.asarray(key)
        except ValueError:
            raise IndexError(f"a list of lists of different lengths is no index: {key!r}") from None
        if array.size == 0 and not isinstance(key, np.ndarray):
            array = array.astype(np.intp)
        if array.ndim and array.dtype.kind in "iub":
            return array
        key = array[()] if not array.ndim else f"an array of {array.dtype}"
    if isinstance(key, (bool, np.bool_)):
        raise IndexError("an array is not indexed by a single bool")
    try:
        return operator.index(key)
    except TypeError:
        raise IndexError(
            f"an array is indexed by integers, slices, arrays of integers or bools, and an ellipsis, not by {key!r}"
        ) from None


class _Mask:
    """One axis of a boolean array."""

    def __init__(self, mask: np.ndarray, axis: int) -> None:
        self.mask, self.axis = mask, axis

    def indices(self, n: int) -> np.ndarray:
        if self.mask.shape[self.axis] != n:
            raise IndexError(f"a mask of {self.mask.shape[self.axis]} for an axis of {n}")
        return self.mask.nonzero()[self.axis]


def take(selection: Any, shape: tuple[int, ...], chunk: tuple[int, ...], read_box: ReadBox) -> Any:
    """What numpy would select from the array; read_box(low, high) reads a box of it. Only needed chunks are read."""
    keys = expand(selection, len(shape))
    axes: list[Axis] = []
    numpy_keys: list[Any] = []
    for key in keys:
        if key is None:
            numpy_keys.append(None)
            continue
        axis = _axis(key, shape[len(axes)], chunk[len(axes)])
        axes.append(axis)
        numpy_keys.append(axis.key)
    whole = selection if isinstance(selection, tuple) else (selection,)
    if any(key is Ellipsis for key in whole):  # with it not even a single element becomes a scalar
        numpy_keys.append(Ellipsis)
    return _gather(axes, read_box)[tuple(numpy_keys)]


def _gather(axes: list[Axis], read_box: ReadBox) -> np.ndarray:
    """The needed parts of all axes, close together."""
    boxes = list(_boxes(axes))
    if len(boxes) == 1:
        return _read(boxes[0], read_box)
    wanted = _points(axes)
    found: np.ndarray | None = None
    for numbers in itertools.product(*(range(len(axis.parts)) for axis in axes)):
        if wanted is not None and tuple(numbers[i] for i in wanted[0]) not in wanted[1]:
            continue
        box = tuple(axis.parts[i] for axis, i in zip(axes, numbers, strict=True))
        values = _read(box, read_box)
        if found is None:
            found = room(tuple(sum(axis.sizes) for axis in axes), values.dtype)
        starts = [sum(axis.sizes[:i]) for axis, i in zip(axes, numbers, strict=True)]
        found[tuple(slice(a, a + n) for a, n in zip(starts, values.shape, strict=True))] = values
    if found is None:  # some index array is empty
        nothing = _read(tuple((0, 0, 1) for _ in axes), read_box)
        found = room(tuple(sum(axis.sizes) for axis in axes), nothing.dtype)
    return found


def _points(axes: list[Axis]) -> tuple[list[int], set[tuple[int, ...]]] | None:
    """Of several index arrays: which axes they are, and the parts that a point lies in."""
    which = [i for i, axis in enumerate(axes) if isinstance(axis.key, np.ndarray)]
    if len(which) < 2:
        return None
    numbers = [np.searchsorted(np.cumsum(axes[i].sizes), axes[i].key, "right") for i in which]
    try:
        together = np.broadcast_arrays(*numbers)
    except ValueError as e:
        raise IndexError(f"index arrays of different shapes: {e}") from None
    return which, set(zip(*(n.ravel().tolist() for n in together), strict=True))


def _boxes(axes: list[Axis]) -> Iterator[tuple[Part, ...]]:
    return itertools.islice(itertools.product(*(axis.parts for axis in axes)), 2)


def _read(box: tuple[Part, ...], read_box: ReadBox) -> np.ndarray:
    values = read_box([low for low, _, _ in box], [high for _, high, _ in box])
    return values[tuple(slice(None, None, step) for _, _, step in box)] if any(s != 1 for _, _, s in box) else values


def _axis(key: Any, n: int, chunk: int) -> Axis:
    if isinstance(key, slice):
        return _sliced(range(*key.indices(n)), chunk)
    if isinstance(key, _Mask):
        return _listed(key.indices(n), n, chunk)
    if isinstance(key, np.ndarray):
        return _listed(key, n, chunk)
    if not -n <= key < n:
        raise IndexError(f"index {key} in an axis of {n}")
    return Axis([(key % n, key % n + 1, 1)], 0)


def _sliced(chosen: range, chunk: int) -> Axis:
    ascending = chosen if chosen.step > 0 else chosen[::-1]
    key = slice(None) if chosen.step > 0 else slice(None, None, -1)
    if not ascending:
        return Axis([(0, 0, 1)], key)
    if ascending.step <= chunk:
        return Axis([(ascending[0], ascending[-1] + 1, ascending.step)], key)
    return Axis([(i, i + 1, 1) for i in ascending], key)


def _listed(indices: np.ndarray, n: int, chunk: int) -> Axis:
    """An axis by an array of indices: the chunks that these lie in, each from its first to its last."""
    if indices.size == 0:
        return Axis([(0, 0, 1)], indices.astype(np.intp))
    low, high = int(indices.min()), int(indices.max())
    if low < -n or high >= n:
        raise IndexError(f"index {low if low < -n else high} in an axis of {n}")
    indices = np.where(indices < 0, indices + n, indices).astype(np.int64)
    needed, where = np.unique(indices, return_inverse=True)
    cuts = np.flatnonzero(np.diff(needed // chunk)) + 1
    parts: list[Part] = []
    offsets = np.empty(len(needed), np.int64)
    at = 0
    for run in np.split(np.arange(len(needed)), cuts):
        first, last = int(needed[run[0]]), int(needed[run[-1]])
        parts.append((first, last + 1, 1))
        offsets[run] = needed[run] - first + at
        at += last + 1 - first
    return Axis(parts, offsets[where].reshape(indices.shape))

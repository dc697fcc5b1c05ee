# SPDX-License-Identifier: BSD-3-Clause
"""Arrays of what lies in lists, without the guesses that numpy makes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def array_of(values: Any) -> np.ndarray:
    """Values as an array of the type that they have; what is an array already is returned as it is, a masked one too.

    Whole numbers stay whole: numpy makes floats of them when some have a sign and some 64 bits; those that no integer
    type holds are an array of objects, unless floats hold them. ValueError for lists that are uneven, or in which
    something is masked or stands beside a text: numpy would make NaN, the value under the mask, or a text of it.
    """
    if hasattr(values, "dtype") or not isinstance(values, (list, tuple)):
        return np.asanyarray(values)
    leaves = _leaves(values)
    kinds = set(map(type, leaves))
    if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds) and any(map(np.ma.is_masked, leaves)):
        raise ValueError("masked values in a list; pass a masked array, np.ma.array(values, mask=...)")
    array = np.asarray(values)
    if array.dtype.kind == "U":
        odd = [leaf for leaf in leaves if not _is_text(leaf)] if kinds != {str} else []
        if odd:
            raise ValueError(f"{odd[0]!r} is no string, as others beside it are")
    if array.dtype.kind == "f" and kinds and all(map(_is_whole, kinds)):
        return _whole(values, array)
    return array


def _leaves(values: Any) -> list[Any]:
    """The elements of lists in lists; arrays in a list are elements of it."""
    while (kinds := set(map(type, values))) and all(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds):
        if not any(issubclass(kind, (list, tuple)) for kind in kinds):
            break
        values = list(itertools.chain.from_iterable(values))
    return list(values)


def _is_text(leaf: Any) -> bool:
    return isinstance(leaf, str) or (isinstance(leaf, np.ndarray) and leaf.dtype.kind in "UT")


def _is_whole(kind: type) -> bool:
    return issubclass(kind, (int, np.integer, np.ndarray)) and not issubclass(kind, bool)


def _whole(values: Any, floats: np.ndarray) -> np.ndarray:
    numbers = np.asarray(values, object)
    if not all(isinstance(n, (int, np.integer)) for n in numbers.flat):
        return floats  # of arrays of floats
    for dtype in ("i8", "u8"):
        try:
            return numbers.astype(dtype)
        except OverflowError:
            pass
    return floats if all(int(a) == int(b) for a, b in zip(numbers.flat, floats.flat, strict=True)) else numbers

# SPDX-License-Identifier: BSD-3-Clause
"""Values as elements of an array's type, where they are not changed by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrec.arrays import array_of
from mrec.errors import InvalidValue

#: Kinds of numpy types whose values an array of a kind takes. Floats are rounded to the width of the array.
_TAKEN = {"b": "b", "i": "biu", "u": "biu", "f": "biuf", "c": "biufc"}


def cast(values: Any, dtype: np.dtype, where: str) -> np.ndarray:
    """Values as an array of `dtype`. InvalidValue when one would be cut off, wrapped round, infinite, or a text."""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        raise InvalidValue(f"{where}: masked values, for which an array has no place; fill them")
    if dtype.kind == "T":
        return _strings(values, dtype, where)
    found = as_array(values, where)
    if found.size and found.dtype.kind not in _TAKEN[dtype.kind]:
        raise InvalidValue(f"{where}: {found.dtype} would be changed to be stored as {dtype}; convert it before")
    if found.size and found.dtype.kind in "iu" and dtype.kind in "iu":
        info = np.iinfo(dtype)
        for value in (int(found.min()), int(found.max())):
            if not info.min <= value <= info.max:
                raise InvalidValue(f"{where}: {value} is outside the range of {dtype}")
    try:
        with np.errstate(over="raise"):
            return found.astype(dtype, copy=False)
    except FloatingPointError:
        raise InvalidValue(f"{where}: a value is beyond the range of {dtype}") from None


def as_array(values: Any, where: str) -> np.ndarray:
    """Values as an array of the type that they have."""
    try:
        return np.asarray(array_of(values))
    except ValueError as e:
        raise InvalidValue(f"{where}: {e}") from None


def fit(values: np.ndarray, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Values, repeated as numpy would, in a shape. InvalidValue when they are of another."""
    extra = values.ndim - len(shape)
    try:
        if extra > 0 and values.shape[:extra] == (1,) * extra:
            values = values.reshape(values.shape[extra:])
        return np.broadcast_to(values, shape)
    except ValueError:
        raise InvalidValue(f"{where}: values of shape {list(values.shape)} do not fit into {list(shape)}") from None


def _strings(values: Any, dtype: np.dtype, where: str) -> np.ndarray:
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "TU" or hasattr(values.dtype, "na_object"):
        values = np.asarray(values, object)  # which keeps what is in a list apart, and NULs at the ends of strings
        odd = [value for value in values.flat if not isinstance(value, str)]
        if odd:
            raise InvalidValue(f"{where}: {odd[0]!r} is no string")
    try:
        return np.asarray(values, dtype)
    except UnicodeEncodeError as e:
        raise InvalidValue(f"{where}: a lone surrogate can not be stored as UTF-8: {e.object!r}") from None

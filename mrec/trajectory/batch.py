# SPDX-License-Identifier: BSD-3-Clause
"""Checks of many frames at once, before the first of them is taken."""

from __future__ import annotations

from typing import Any

import numpy as np

from mrec.box import Box
from mrec.errors import InvalidValue


def check_steps(steps: Any, last: int | None) -> np.ndarray:
    """i64[F], ascending and above `last`."""
    array = np.asarray(steps)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidValue(f"steps is one whole number a frame, not {array.dtype.name}{list(array.shape)}")
    if array.dtype.kind == "u" and array.size and array.max() >= 2**63:
        raise InvalidValue("a step is a whole number of 64 bits")
    array = np.ascontiguousarray(array, np.int64)
    low = np.flatnonzero(array[1:] <= array[:-1])
    if len(low):
        raise InvalidValue(f"steps have to increase: steps[{low[0] + 1}] is {array[low[0] + 1]} after {array[low[0]]}")
    if len(array) and last is not None and array[0] <= last:
        raise InvalidValue(f"steps[0] is {array[0]}, which is not above the last step, {last}")
    return array


def check_times(times: Any, frames: int, before: int, had: bool | None) -> np.ndarray | None:
    """f64[F] or None; as the frames before, of which there are `before`, had them."""
    if before and (times is not None) != had:
        raise InvalidValue(
            "no times are given, but the frames before have them; pass times="
            if had
            else "times are given, but the frames before have none; all frames have one or none has"
        )
    if times is None:
        return None
    array = np.asarray(times)
    if array.shape != (frames,) or array.dtype.kind not in "fiu":
        raise InvalidValue(f"times is one number a frame ({frames},), not {array.dtype.name}{list(array.shape)}")
    return np.ascontiguousarray(array, np.float64)


def cells(box: Any, frames: int) -> list[Box] | None:
    """One cell a frame: the same for all, or each its own."""
    if box is None:
        return None
    if isinstance(box, Box) or np.ndim(box) == 1 and not isinstance(box[0], Box):
        return [Box.coerce(box)] * frames
    listed = [Box.coerce(b) for b in box]
    if len(listed) != frames:
        raise InvalidValue(f"box has {len(listed)} cells for {frames} frames; give one for all, or one each")
    return listed

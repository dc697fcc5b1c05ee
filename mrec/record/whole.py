# SPDX-License-Identifier: BSD-3-Clause
"""Reading all of an array of a section, unless it claims more than there is."""

from __future__ import annotations

import numpy as np

from mrec.errors import CorruptData
from mrec.zarr.array import Array

#: Bytes that an array may have whatever is stored of it, and how many more for each byte that is.
ALLOWED, RATIO = 1 << 30, 1 << 17


def read_whole(array: Array) -> np.ndarray:
    """All elements. CorruptData when the files of the array can not stand for so many; nothing is allocated before."""
    nbytes = array.size * array.dtype.itemsize
    if nbytes > ALLOWED:
        stored = sum(map(array.store.size, array.store.walk(array.path)))
        if nbytes > ALLOWED + RATIO * stored:
            raise CorruptData(f"{array.store.path(array.path)}: {stored} bytes can not hold an array of {nbytes}")
    return array.read()

# SPDX-License-Identifier: BSD-3-Clause
"""One array, for reading."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from mrec.errors import CorruptData, InvalidValue
from mrec.zarr.metadata import ArrayMeta, parse_array
from mrec.zarr.store import Store


class Array:
    """An array of a hierarchy. Every checksum is verified on every read from the store. Thread-safe.

    shape, dtype, attrs: as `zarr.json` says. absent_is_loss: a chunk that is not there is an error, not fill. tail:
    where the last chunk is, when the index may not be believed (a durable file's shard, chunk, offset, nbytes, crc32c).
    """

    def __init__(
        self,
        store: Store,
        path: str,
        meta: ArrayMeta,
        *,
        absent_is_loss: bool = False,
        tail: tuple[int, ...] | None = None,
    ) -> None:
        self.store = store
        self.path = path
        self.meta = meta
        self._source = store.source(path, meta, absent_is_loss=absent_is_loss, tail=tail)

    @classmethod
    def open(cls, store: Store, path: str) -> Array:
        """The array at a path. CorruptData when there is none."""
        key = f"{path}/zarr.json" if path else "zarr.json"
        raw = store.get(key)
        if raw is None:
            raise CorruptData(f"{store.path(path)}: there is no array")
        return cls(store, path, parse_array(raw, store.path(key)))

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._source.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype:
        """The numpy type of an element; StringDType for strings."""
        return self.meta.dtype

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, as stored."""
        return self.meta.attributes

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Array {self.path or '/'} {self.meta.data_type}{list(self.shape)}>"

    def read(self, start: int = 0, stop: int | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Rows [start, stop) of the first axis, all of the others.

        `out` takes them instead of a new array: same type and shape, rows at any stride, the other axes in C order.
        """
        if not self.shape:
            raise InvalidValue(f"{self.path}: an array without axes is read by array[()]")
        return self._source.read(start, len(self) if stop is None else stop, out)

    def __getitem__(self, key: Any) -> Any:
        """Basic indexing: integers, slices, an ellipsis. The first axis decides what is read."""
        keys = key if isinstance(key, tuple) else (key,)
        if not self.shape:
            return self._source.read(0, 1).reshape(())[keys]
        if not keys or keys[0] is Ellipsis:
            return self.read()[keys]
        first, rest = keys[0], keys[1:]
        if not isinstance(first, slice):
            row = _row(first, len(self))
            return self.read(row, row + 1)[(0, *rest)]
        start, stop, step = first.indices(len(self))
        if step < 0:
            rows = range(start, stop, step)
            start, stop = (rows[-1], rows[0] + 1) if rows else (0, 0)
        found = self.read(start, max(start, stop))
        return found[(slice(None, None, step), *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("reading an array always makes a copy")
        return np.asarray(self[()], dtype)

    def refresh(self, length: int) -> None:
        """The first axis now has `length` entries; what could still change is read again."""
        self._source.refresh(length)


def _row(index: Any, n: int) -> int:
    try:
        row = operator.index(index)
    except TypeError:
        raise TypeError(f"an array is indexed by integers, slices and an ellipsis, not by {index!r}") from None
    if not -n <= row < n:
        raise IndexError(f"row {row} of {n}")
    return row % n

# SPDX-License-Identifier: BSD-3-Clause
"""One array."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mrec import _core
from mrec.errors import CorruptData, InvalidValue
from mrec.zarr.attributes import Attributes
from mrec.zarr.cast import cast, fit
from mrec.zarr.create import lengths
from mrec.zarr.encoding import GenericEncoder, file_encoder
from mrec.zarr.json import checked
from mrec.zarr.metadata import ArrayMeta, parse_array
from mrec.zarr.selection import expand, take
from mrec.zarr.store import AnySource, Store


class Array:
    """An array of a hierarchy. Every checksum is verified on every read from the store. Reading is thread-safe.

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
        self._how: dict[str, Any] = {"absent_is_loss": absent_is_loss, "tail": tail}
        self._encoder: _core.Encoder | GenericEncoder | None = None
        self._lock = threading.Lock()
        self._changes = store.changes.count(path)
        self._reader = store.source(path, meta, **self._how)

    @classmethod
    def open(cls, store: Store, path: str = "") -> Array:
        """The array at a path. CorruptData when there is none."""
        key = f"{path}/zarr.json" if path else "zarr.json"
        raw = store.get(key)
        if raw is None:
            raise CorruptData(f"{store.path(path)}: there is no array")
        return cls(store, path, parse_array(raw, store.path(key)))

    @property
    def _source(self) -> AnySource:
        """What reads; anew after the array was changed through this store."""
        changes = self.store.changes.count(self.path)
        if changes != self._changes:
            self._changes, self._reader = changes, self.store.source(self.path, self.meta, **self._how)
        return self._reader

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._reader.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=object))

    @property
    def dtype(self) -> np.dtype:
        """The numpy type of an element; StringDType for strings."""
        return self.meta.dtype

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of a chunk: of the inner one where the array is sharded."""
        shard = self.meta.chain.shard
        if shard is None:
            return self.meta.grid
        chunk = dict(zip(self.meta.chain.order, shard.chunk_shape, strict=True))
        return tuple(chunk[i] for i in range(self.ndim))

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The names of the axes, None where there are none."""
        return self.meta.dimension_names

    @property
    def attrs(self) -> Attributes:
        """The attributes, as a dict that stores what is assigned."""
        return Attributes(self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<Array {self.path or '/'} {self.meta.data_type}{list(self.shape)}>"

    # ---- reading -------------------------------------------------------------------------------------------------

    def read(self, selection: Any = Ellipsis, out: np.ndarray | None = None) -> np.ndarray:
        """What `selection` selects, as numpy would, in a new array or in `out` (same type and shape).

        Integers, slices, an ellipsis, arrays of integers and of booleans; only the chunks that they need are read.
        Rows of the first axis go to `out` without another copy when its other axes are in C order.
        """
        if out is not None and not (isinstance(out, np.ndarray) and out.flags.writeable):
            raise InvalidValue(f"out is no array that can be written to: {type(out).__name__}")
        rows = self._rows(selection)
        if rows is not None and out is not None:
            self._check_out(out, (len(rows), *self.shape[1:]))
        if rows is not None and (out is None or out[:1].flags.c_contiguous):
            return self._source.read(rows.start, rows.stop, out)
        found = self[selection]
        if out is None:
            return np.asarray(found, self.dtype)
        self._check_out(out, np.shape(found))
        out[...] = found
        return out

    def _check_out(self, out: np.ndarray, shape: tuple[int, ...]) -> None:
        if out.dtype != self.dtype or out.shape != shape:
            where = self.path or "/"
            raise InvalidValue(f"{where}: out is {out.dtype}{list(out.shape)}, not {self.dtype}{list(shape)}")

    def _rows(self, selection: Any) -> range | None:
        """The rows, where nothing but whole ones in a row are selected."""
        if not self.shape or not (selection is Ellipsis or isinstance(selection, slice)):
            return None
        start, stop, step = (slice(None) if selection is Ellipsis else selection).indices(len(self))
        return range(start, max(start, stop)) if step == 1 else None

    def __getitem__(self, selection: Any) -> Any:
        """What `selection` selects, as numpy would; see `read`."""
        rows = self._rows(selection)
        if rows is not None:
            return self._source.read(rows.start, rows.stop)
        return take(selection, self.shape, self.chunks, self._source.read_box)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("reading an array always makes a copy")
        return np.asarray(self[()], dtype)

    def refresh(self, length: int) -> None:
        """The first axis now has `length` entries; what could still change is read again."""
        self._reader.refresh(length)

    # ---- writing -------------------------------------------------------------------------------------------------

    def __setitem__(self, selection: Any, values: Any) -> None:
        """Store values, broadcast to what integers, slices and an ellipsis select.

        Files that are covered in part are read before; each file is replaced whole. One writer at a time. A chunk that
        is all fill is not stored. InvalidValue for values of a type that would be changed.
        """
        keys = expand(selection, self.ndim)
        if not all(isinstance(key, (int, slice)) for key in keys):
            raise InvalidValue("values are stored by integers, slices and an ellipsis")
        chosen = [_range(key, n) for key, n in zip(keys, self.shape, strict=True)]
        shape = tuple(len(r) for r, key in zip(chosen, keys, strict=True) if isinstance(key, slice))
        where = self.path or "/"
        whole = fit(cast(values, self.dtype, where), shape, where).reshape([len(r) for r in chosen])
        turned: Any = (*(slice(None, None, -1 if r.step < 0 else 1) for r in chosen), Ellipsis)
        whole = whole[turned]
        self._put([r if r.step > 0 else r[::-1] for r in chosen], whole)

    def _put(self, chosen: list[range], values: np.ndarray) -> None:
        """Store values at the elements of each axis, file by file."""
        if any(len(r) == 0 for r in chosen):
            return
        grid = self.meta.grid
        source = self._source
        for at in itertools.product(*(_files(r, g) for r, g in zip(chosen, grid, strict=True))):
            low = [i * g for i, g in zip(at, grid, strict=True)]
            high = [min(a + g, n) for a, g, n in zip(low, grid, self.shape, strict=True)]
            inside, picked = [], []
            for r, a, b in zip(chosen, low, high, strict=True):
                first, last = max(0, -(-(a - r.start) // r.step)), min(len(r), -(-(b - r.start) // r.step))
                inside.append(slice(r[first] - a, r[last - 1] + 1 - a, r.step))
                picked.append(slice(first, last))
            place: Any = (*picked, Ellipsis)
            part = values[place]
            if any(s.start or n != b - a for s, n, a, b in zip(inside, part.shape, low, high, strict=True)):
                old = source.read_box(low, high)
                old[tuple(inside)] = part
                part = old
            self._put_file(at, part)

    def _put_file(self, at: Iterable[int], values: np.ndarray) -> None:
        with self._lock:
            if self._encoder is None:
                self._encoder = file_encoder(self.meta, skip_fill=True)
        key = self._key(self.meta.chunk_key(at))
        made = self._encoder.encode(values)
        if made is None:
            self.store.delete(key)
        else:
            self.store.set(key, made)
        self.store.changes.add(self.path)

    def _key(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name

    # ---- the document --------------------------------------------------------------------------------------------

    def set_attrs(self, attributes: Mapping[str, Any]) -> None:
        """Replace the attributes."""
        attributes = checked(attributes, f"attributes of {self.path or '/'}")
        self._replace(replace(self.meta, attributes=attributes, shape=self.shape))

    def resize(self, shape: int | tuple[int, ...]) -> None:
        """Give the array another shape. What is cut off is gone: it does not come back when the array grows again."""
        new = lengths(shape, "shape", 0)
        if len(new) != self.ndim:
            raise InvalidValue(f"{self.path or '/'}: {list(new)} is no shape of {self.ndim} axes")
        meta = replace(self.meta, shape=new)
        try:
            parse_array(meta.document(), meta.where)
        except CorruptData as e:
            raise InvalidValue(str(e)) from None
        self._cut(tuple(map(min, new, self.shape)))
        self._replace(meta)

    def _cut(self, shape: tuple[int, ...]) -> None:
        """Remove what is stored outside a shape, in the files that reach over its edge too."""
        if shape == self.shape:
            return
        prefix = f"{self.path}/" if self.path else ""
        for key in list(self.store.walk(self.path)):
            at = self.meta.chunk_at(key.removeprefix(prefix))
            if at is None:
                continue
            low = [i * g for i, g in zip(at, self.meta.grid, strict=True)]
            if any(a >= n for a, n in zip(low, shape, strict=True)):
                self.store.delete(key)
            elif any(n < min(a + g, m) for a, g, n, m in zip(low, self.meta.grid, shape, self.shape, strict=True)):
                high = [min(a + g, n) for a, g, n in zip(low, self.meta.grid, shape, strict=True)]
                self._put_file(at, self._source.read_box(low, high))

    def _replace(self, meta: ArrayMeta) -> None:
        self.store.set(self._key("zarr.json"), meta.document().encode())
        self.store.changes.add(self.path)
        self.meta = meta
        self._changes, self._reader = -1, self.store.source(self.path, meta, **self._how)


def _range(key: Any, n: int) -> range:
    if isinstance(key, slice):
        return range(*key.indices(n))
    if not -n <= key < n:
        raise IndexError(f"index {key} in an axis of {n}")
    return range(key % n, key % n + 1)


def _files(chosen: range, g: int) -> Iterable[int]:
    """The files along an axis that hold what is chosen."""
    if chosen.step <= g:
        return range(chosen[0] // g, chosen[-1] // g + 1)
    return [i // g for i in chosen]

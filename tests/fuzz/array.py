# SPDX-License-Identifier: BSD-3-Clause
"""Plain arrays in memory: any document over any chunks, read by the core and without it, written and resized.

The input is JSON, {"document": ..., "chunks": {key: text of latin-1}}; the first byte says what is done.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

import mrec.zarr
from mrec.errors import CorruptData, InvalidValue, MrecError, UnsupportedCodec
from mrec.zarr.generic import GenericSource
from mrec.zarr.metadata import ArrayMeta
from tests.flips.stores import ERRORS

IS_JSON = True
#: Elements of an array, and of a file, that is read whole and written.
MOST = 1 << 14


def check(data: bytes) -> None:
    """What reads at all is the same each way; what is written comes back; what was cut off does not."""
    how, values = data[0] if data else 0, _values(data[1:])
    if values is None:
        return
    store = mrec.zarr.MemoryStore(values)
    try:
        array = mrec.zarr.open(store)
    except MrecError:
        return
    if not isinstance(array, mrec.zarr.Array):
        return
    _look(array, (0,) * array.ndim)
    if max(array.size, math.prod(array.meta.grid)) > MOST:
        return
    found, plain = _look(array, ...), _generic(array.meta, store)
    if found is not None and plain is not None:
        assert _same(found, plain)
    if found is not None and array.ndim and len(array):
        assert _same(array[:: how % 5 + 1], found[:: how % 5 + 1])
    if how & 1:
        _write(array, how)


def _values(text: bytes) -> dict[str, bytes] | None:
    try:
        given = json.loads(text)
        chunks = {key: value.encode("latin-1") for key, value in given["chunks"].items()}
        return chunks | {"zarr.json": json.dumps(given["document"]).encode()}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None


def _look(array: mrec.zarr.Array, key: Any) -> Any:
    try:
        return array[key]
    except (*ERRORS, MemoryError, IndexError):
        return None


def _generic(meta: ArrayMeta, store: mrec.zarr.MemoryStore) -> Any:
    """The array without the core's way to a chunk."""
    try:
        return GenericSource(meta, store.get).read_box([0] * len(meta.shape), list(meta.shape))
    except (CorruptData, MemoryError):
        return None


def _write(array: mrec.zarr.Array, seed: int) -> None:
    rng = np.random.default_rng(seed)
    if array.meta.data_type == "string":
        words = np.array(["", "a", "é\0", "水" * 9, str(array.meta.fill)], np.dtypes.StringDType())
        given = words[rng.integers(0, len(words), array.size)].reshape(array.shape)
    elif array.meta.data_type == "bool":
        given = rng.random(array.shape) < 0.5
    else:
        given = np.frombuffer(rng.bytes(array.size * array.dtype.itemsize), array.dtype).reshape(array.shape)
    try:
        array[...] = given
    except (InvalidValue, UnsupportedCodec):  # too many chunks in a file; elements that are shuffled in parts
        return
    again = mrec.zarr.open(array.store.again())
    assert isinstance(again, mrec.zarr.Array) and _same(again[...], given)
    smaller = tuple(int(rng.integers(0, n + 1)) for n in array.shape)
    array.resize(smaller)
    array.resize(given.shape)
    wanted = np.full(given.shape, array.meta.fill, array.dtype)
    kept = tuple(slice(n) for n in smaller)
    wanted[kept] = given[kept]
    assert _same(array[...], wanted)


def _same(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    if "T" in (a.dtype.kind, b.dtype.kind):
        return a.shape == b.shape and bool(a.tolist() == b.tolist())
    return a.shape == b.shape and a.tobytes() == b.tobytes()

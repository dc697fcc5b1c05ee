# SPDX-License-Identifier: BSD-3-Clause
"""One data set while it is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from mrec._core import ArrayForm, pack_plain
from mrec.collection import attributes, grid
from mrec.collection.elements import Extent, as_elements, decode_chunk, encode_chunk, join, room
from mrec.collection.footer import check_name
from mrec.collection.kinds import Kind, kind_of, pack_fill, unpack_fill, utf8
from mrec.errors import ClosedError, InvalidValue, SchemaError, UnknownName

if TYPE_CHECKING:
    from mrec.collection.packing import VariableWriter
    from mrec.collection.writer import CollectionWriter

#: A chunk that is kept: its coordinate, its block, where in the block it begins, and its bytes.
Chunk = tuple[grid.Shape, int, int, int]

#: Elements and axes of an array: numpy has no more.
MOST, AXES = 1 << 62, 64


class Declaration:
    """What an array is declared to be; data sets that declare the same share one."""

    __slots__ = ("chunk", "dims", "fill", "form", "kind", "packed", "rows", "shape", "stored")

    def __init__(self, name: str, dtype: Any, dims: Any, shape: Any, chunk_shape: Any, fill_value: Any) -> None:
        check_name(name, "an array")
        try:
            self.kind: Kind = kind_of(dtype)
            self.packed = pack_fill(self.kind, fill_value)
        except SchemaError as e:
            raise SchemaError(f"{name!r}: {e}") from None
        self.stored = self.kind.stored
        self.shape = _lengths(shape, "shape", 0)
        self.chunk = grid.default_chunk(self.shape) if chunk_shape is None else _lengths(chunk_shape, "chunk_shape", 1)
        self.dims = _axes(dims)
        if len(self.chunk) != len(self.shape) or len(self.dims) != len(self.shape):
            raise SchemaError(
                f"{name!r} has {len(self.shape)} axes, {len(self.dims)} dims and a chunk of {len(self.chunk)}"
            )
        self.fill = None if self.packed is None else self.packed[1]
        self.rows = math.prod(self.shape)
        if self.rows > MOST or len(self.shape) > AXES:
            raise SchemaError(f"{name!r}: an array has at most 2^62 elements and {AXES} axes")
        kind = self.kind
        plain = kind.numpy if kind.width else None
        self.form = ArrayForm(
            kind.code, kind.bound, self.shape, self.chunk, self.dims, self.packed, self.rows, plain, kind.number
        )


class Declarations:
    """Declarations met so far, the last thousand or so."""

    MOST = 1024

    def __init__(self) -> None:
        self._known: dict[Any, Declaration] = {}

    def get(self, name: str, dtype: Any, dims: Any, shape: Any, chunk_shape: Any, fill_value: Any) -> Declaration:
        """That of an array. SchemaError, InvalidValue."""
        dims = tuple(dims) if type(dims) is list else _once(dims)
        shape = tuple(shape) if type(shape) is list else _once(shape)
        chunk_shape = _once(chunk_shape)
        try:
            # as fills, -0.0 is not 0.0, and NaN is NaN; an array is not asked, since its repr is rounded
            kind = type(fill_value)
            fill = repr(fill_value) if kind is float or isinstance(fill_value, np.floating) else fill_value
            key = (name, dtype, dims, shape, chunk_shape, kind, fill)
            found = self._known.get(key)
        except TypeError:
            return Declaration(name, dtype, dims, shape, chunk_shape, fill_value)
        if found is None:
            if len(self._known) >= self.MOST:
                self._known.clear()
            found = self._known[key] = Declaration(name, dtype, dims, shape, chunk_shape, fill_value)
        return found


def _once(given: Any) -> Any:
    """Axes as they are, but for what can be looked at only once."""
    kind = type(given)
    if kind is list:
        return tuple(given)
    if kind is tuple or kind is str or given is None:
        return given
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else given


class _Array:
    """An array that was defined. chunks: by their coordinates."""

    __slots__ = ("attributes", "chunks", "declared", "order", "variable")

    def __init__(self, variable: VariableWriter, declared: Declaration) -> None:
        self.variable = variable
        self.order = variable.next_order()
        self.declared = declared
        self.chunks: dict[grid.Shape, tuple[Chunk, Extent]] = {}
        self.attributes: dict[str, tuple[Any, bytes]] = {}

    def pack(self, coordinate: grid.Shape, values: np.ndarray[Any, Any]) -> tuple[Chunk, Extent]:
        """Keep the values of a chunk in a block."""
        declared = self.declared
        data, extent = encode_chunk(declared.kind, values, declared.fill, self.variable.name)
        return (coordinate, *self.variable.append(data)), extent


class DatasetWriter:
    """Writes one data set of a collection; `finish`, or the end of its `with` block, enters it.

    For one thread at a time; several may be open in several threads. Without `finish` it leaves no trace but its name,
    which stays taken.
    """

    __slots__ = ("_collection", "arrays", "attributes", "name", "ordinal")

    def __init__(self, collection: CollectionWriter, name: str, ordinal: int) -> None:
        self._collection: CollectionWriter | None = collection
        self.name = name
        self.ordinal = ordinal
        self.arrays: dict[str, _Array] = {}
        self.attributes: dict[str, tuple[Any, bytes]] = {}

    def __enter__(self) -> DatasetWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if self._collection is None:
            return
        if kind is None:
            self.finish()
        else:
            self.abort()

    def __del__(self) -> None:
        self.abort()

    def _ended(self) -> ClosedError:
        return ClosedError(f"the data set {self.name!r} is finished or aborted")

    def define_array(
        self,
        name: str,
        dtype: Any,
        dims: Sequence[str],
        shape: Sequence[int],
        chunk_shape: Sequence[int] | None = None,
        fill_value: Any = None,
    ) -> None:
        """Declare an array.

        dtype: int8 to int64, uint8 to uint64, float32, float64, timestamp_nanoseconds, string or binary. chunk_shape:
        None for one chunk. fill_value: what a reader sees where nothing is written; values equal to it count as null.
        SchemaError, InvalidValue.
        """
        collection = self._collection
        if collection is None:
            raise self._ended()
        declared = collection.declarations.get(name, dtype, dims, shape, chunk_shape, fill_value)
        if name in self.arrays:
            raise SchemaError(f"the array {name!r} is defined already")
        self.arrays[name] = _Array(collection.variable(name), declared)

    def write_array(self, name: str, start: Sequence[int], values: Any) -> None:
        """Write values of any shape that fits, with their first element at `start`; chunks need not be met."""
        if self._collection is None:
            raise self._ended()
        self._collection.check()
        array = self._array(name)
        declared = array.declared
        whole = array.variable.append_whole(declared.form, start, values)
        if whole is not None:
            array.chunks[whole[0][0]] = whole
            return
        elements = as_elements(declared.kind, values, name)
        first = _origin(start, name)
        shape = declared.shape
        if len(first) != len(shape) or elements.ndim != len(shape):
            raise InvalidValue(f"{name!r} has {len(shape)} axes; start has {len(first)}, the values {elements.ndim}")
        stop = tuple(a + n for a, n in zip(first, elements.shape, strict=True))
        if any(a < 0 or b > n for a, b, n in zip(first, stop, shape, strict=True)):
            raise InvalidValue(f"{name!r} has the shape {list(shape)}; {list(first)} to {list(stop)} lies outside")
        written = {
            coordinate: array.pack(
                coordinate, self._merged(array, coordinate, inside, elements[outside] if outside else elements)
            )
            for coordinate, inside, outside in grid.pieces(first, stop, declared.chunk)
        }
        array.chunks.update(written)  # all of them, or none when one cannot be stored

    def _merged(
        self, array: _Array, coordinate: grid.Shape, inside: grid.Region, values: np.ndarray[Any, Any]
    ) -> np.ndarray[Any, Any]:
        """A chunk with new values in a region."""
        declared = array.declared
        clipped = grid.clipped(coordinate, declared.chunk, declared.shape)
        if values.shape == clipped:
            return values
        where = f"{self.name!r}, {array.variable.name!r}"
        before = array.chunks.get(coordinate)
        if before is None:
            whole = room(declared.kind, clipped, unpack_fill(declared.kind, declared.packed), where)
        else:
            data = array.variable.read(*before[0][1:])
            whole = decode_chunk(declared.kind, data, clipped, where)
        whole = whole.astype(declared.kind.numpy)
        whole[inside] = values
        return whole

    def _array(self, name: str) -> _Array:
        found = self.arrays.get(name)
        if found is None:
            raise UnknownName(f"the data set {self.name!r} has no array {name!r}; define it first")
        return found

    def set_attribute(self, key: str, value: Any, dtype: str | None = None) -> None:
        """An attribute of the data set: bool, number, text, bytes, time, or a list of one; SchemaError for others.

        dtype: to store it as.
        """
        if self._collection is None:
            raise self._ended()
        self.attributes[_key(key)] = _packed(key, value, dtype)

    def set_array_attribute(self, name: str, key: str, value: Any, dtype: str | None = None) -> None:
        """An attribute of an array, which is defined."""
        if self._collection is None:
            raise self._ended()
        self._array(name).attributes[_key(key)] = _packed(key, value, dtype)

    def finish(self) -> None:
        """Enter the data set into the collection."""
        if self._collection is None:
            raise self._ended()
        self._collection.enter(self)
        self._collection = None

    def abort(self) -> None:
        """Leave nothing of it; its name stays taken."""
        collection = getattr(self, "_collection", None)
        if collection is not None:
            collection.leave(self)
            self._collection = None


def add_to(array: _Array, dataset: bytes) -> None:
    """Put an array of a data set into the table of its variable."""
    declared = array.declared
    chunks = [chunk for chunk, _ in array.chunks.values()]
    if len(chunks) == 1:
        ((_, (low, high, nulls, count)),) = array.chunks.values()
    else:
        low, high, nulls, count = join(declared.kind, [extent for _, extent in array.chunks.values()])
        chunks.sort()
    pairs = sorted_pairs(array.attributes) if array.attributes else []
    extent = (low, high, nulls + declared.rows - count)
    array.variable.builder.add_array(array.order, dataset, declared.form, chunks, pairs, extent)


def sorted_pairs(found: dict[str, tuple[Any, bytes]]) -> list[tuple[bytes, bytes]]:
    """Attributes as segments have them."""
    return sorted([(key.encode(), piece) for key, (_, piece) in found.items()])


def _key(key: Any) -> str:
    if type(key) is str and key.isascii():
        return key
    if not isinstance(key, str):
        raise SchemaError(f"the key of an attribute is a string, not {key!r}")
    utf8(key)
    return key


def _packed(key: str, value: Any, dtype: str | None) -> tuple[Any, bytes]:
    plain = pack_plain(value) if dtype is None else None
    if plain is not None:
        return plain
    try:
        return attributes.pack(value, dtype)
    except SchemaError as e:
        raise SchemaError(f"{key!r}: {e}") from None


def _axes(dims: Any) -> tuple[bytes, ...]:
    try:
        return tuple(map(utf8, (dims,) if isinstance(dims, str) else dims))
    except (TypeError, AttributeError):
        raise SchemaError(f"dims are strings, not {dims!r}") from None


def _origin(start: Any, name: str) -> grid.Shape:
    try:
        return tuple(map(index, (start,) if isinstance(start, int) else start))
    except TypeError:
        raise InvalidValue(f"{start!r} is no place in {name!r}: it has an integer for each axis") from None


def _lengths(given: Any, what: str, least: int) -> grid.Shape:
    items: Any = (given,) if isinstance(given, (int, np.integer)) else given
    if not isinstance(items, Iterable):
        raise SchemaError(f"{what} has integers, not {given!r}")
    items = tuple(items)
    for item in items:
        if isinstance(item, bool) or not isinstance(item, (int, np.integer)) or not least <= item < 1 << 32:
            raise SchemaError(f"{what} has integers from {least} to 2^32 - 1, not {item!r}")
    return tuple(map(int, items))

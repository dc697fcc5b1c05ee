# SPDX-License-Identifier: BSD-3-Clause
"""An open collection: its data sets, and what lies across them."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mrec._core import Lock
from mrec.collection import attributes, footer
from mrec.collection.checksums import Checksums, unpack_checksums
from mrec.collection.elements import dtype_of
from mrec.collection.mask import pack_mask, unpack_mask
from mrec.collection.place import CHECKSUMS, CONTAINER, MASK, Directory, Place, place_of
from mrec.collection.segment import BlockCache, Segment
from mrec.collection.statistics import Statistics, merge, statistics_of
from mrec.collection.variable import Variable
from mrec.errors import CorruptData, NotARecord, RecordNotFound, UnknownName

if TYPE_CHECKING:
    import pandas
    import xarray

    from mrec.collection.footer import Footer, Schema


_ABSENT: Any = object()


def open_collection(path: Any, *, cache: int = 64 << 20, verify: bool | None = None, **options: Any) -> Collection:
    """Open a collection: a directory with `data.atlas`, a URL of fsspec, or a store of obstore.

    cache: bytes of decoded blocks that are kept. verify: whether each variable is checked as a whole, where there is a
    `data.atlas.crc`, before it is first used; by default for directories. options: for fsspec. RecordNotFound,
    CorruptData, UnsupportedVersion.

    >>> c = mrec.open_collection("set")
    >>> c.names, c["jan"]["temperature"][...].tolist()
    (['jan', 'feb'], [1.5, 2.5, 4.0])
    """
    return Collection(place_of(path, **options), cache, verify)


class Collection(Mapping[str, "Dataset"]):
    """The data sets of a container that are not deleted, by name, in the order in which they were added.

    Thread-safe. In a directory it is what it was when it was opened, whatever is put in its place; on an object store,
    open it again when it was replaced.
    """

    def __init__(self, place: Place, cache: int = 64 << 20, verify: bool | None = None) -> None:
        self.place = place
        self.path = place.root
        self._verify = place.near if verify is None else verify
        self._cache = BlockCache(cache)
        self._segments: dict[str, Segment] = {}
        self._lock = threading.Lock()
        self._checksums: Checksums | None | bool = False
        where = place.path(CONTAINER)
        try:
            end, self.nbytes = place.tail(CONTAINER, footer.FIRST_READ)
        except (FileNotFoundError, NotADirectoryError):
            raise RecordNotFound(f"{place.root}: there is no {CONTAINER}") from None
        n = footer.tail_of(end, self.nbytes, where)
        begin = self.nbytes - footer.TAIL - n
        if n + footer.TAIL <= len(end):
            self._stored = end[-footer.TAIL - n : -footer.TAIL]
        else:
            self._stored = place.read(CONTAINER, begin, n)
        self.footer: Footer = footer.unpack_footer(self._stored, begin, where)[0]
        mask = place.get(MASK)
        self.deleted = unpack_mask(mask, len(self.footer.names), place.path(MASK))
        self._names: list[str] | None = None

    def __repr__(self) -> str:
        return f"<Collection {self.path}: {len(self)} data sets, {len(self.variables)} variables>"

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        self.place.close()

    # ---- the catalogue -----------------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """The data sets, in the order in which they were added."""
        if self._names is None:
            found = self.footer.names
            self._names = (
                [name for i, name in enumerate(found) if i not in self.deleted] if self.deleted else list(found)
            )
        return list(self._names)

    @property
    def codec(self) -> str:
        """How the writer said that it compresses: none, zstd, lz4."""
        return {stored: name for name, stored in footer.STORED_CODECS.items()}.get(self.footer.codec, self.footer.codec)

    @property
    def created(self) -> np.datetime64:
        """When the container was finished."""
        return np.datetime64(self.footer.created, "ms")

    @property
    def variables(self) -> list[str]:
        """The variables that some data set has, in the order of the file."""
        return [name for name in self.footer.segments if name != footer.DATASETS]

    def __len__(self) -> int:
        return len(self.footer.names) - len(self.deleted)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        ordinal = self.footer.ordinals.get(name) if isinstance(name, str) else None
        return ordinal is not None and ordinal not in self.deleted

    def __getitem__(self, name: str) -> Dataset:
        ordinal = self.footer.ordinals.get(name)
        if ordinal is None or ordinal in self.deleted:
            gone = ": it was deleted" if ordinal is not None else ""
            raise UnknownName(f"{self.path} has no data set {name!r}{gone}")
        return Dataset(self, name, ordinal)

    # ---- across data sets --------------------------------------------------------------------------------------

    def segment(self, name: str) -> Segment:
        """A variable's part of the container; UnknownName."""
        with self._lock:
            found = self._segments.get(name)
            if found is None:
                if name not in self.footer.segments:
                    raise UnknownName(f"{self.path} has no variable {name!r}; it has {', '.join(self.variables)}")
                offset, size = self.footer.segments[name]
                found = Segment(self.place, name, offset, size, self._cache, self._crc(name, offset, size))
                self._segments[name] = found
            return found

    def _live(self, name: str) -> Iterator[tuple[str, int]]:
        """(data set, number in the segment) of those that have a variable, in their order."""
        ordinals = self.footer.ordinals
        has = [any(array == name for array, _ in schema.arrays) for schema in self.footer.schemas]
        found = []
        for dataset, number in self.segment(name).numbers.items():
            ordinal = ordinals.get(dataset)
            if ordinal is not None and ordinal not in self.deleted:
                if has[self.footer.schema_numbers[ordinal]]:
                    found.append((ordinal, dataset, number))
        found.sort()
        self._check_complete(name, has, [ordinal for ordinal, _, _ in found])
        return ((dataset, number) for _, dataset, number in found)

    def _check_complete(self, name: str, has: list[bool], ordinals: Sequence[int]) -> None:
        """That a segment has the data sets whose schemas, by number, say so. CorruptData."""
        numbers = self.footer.schema_numbers
        expected = sum(map(has.__getitem__, numbers)) - sum(has[numbers[i]] for i in self.deleted)
        if len(ordinals) == expected:
            return
        there = {*ordinals, *self.deleted}
        missing = next(i for i, number in enumerate(numbers) if has[number] and i not in there)
        raise CorruptData(f"{self.segment(name).where}: it lacks what the data set {self.footer.names[missing]!r} has")

    def variable(self, name: str) -> Variable:
        """One variable over all data sets that have it. UnknownName.

        >>> values, offsets = mrec.open_collection("set").variable("temperature").read()
        >>> values.tolist(), offsets.tolist()
        ([1.5, 2.5, 4.0, 8.0], [0, 3, 4])
        """
        self._check_variable(name)
        live = list(self._live(name))
        return Variable(self.segment(name), [dataset for dataset, _ in live], [number for _, number in live])

    def _check_variable(self, name: str) -> None:
        if name == footer.DATASETS:
            raise UnknownName(f"{name!r} is no variable")

    def stats(self, name: str) -> Statistics | None:
        """The statistics of a variable over all data sets; None when none has them. UnknownName."""
        return merge(self.stats_by_dataset(name).values())

    def stats_by_dataset(self, name: str) -> dict[str, Statistics]:
        """The statistics of a variable in each data set. UnknownName."""
        self._check_variable(name)
        segment = self.segment(name)
        found = (
            (dataset, statistics_of(segment.info(i).kind, segment.footer.statistics(i)))
            for dataset, i in self._live(name)
        )
        return {dataset: one for dataset, one in found if one is not None}

    def attribute(self, key: str, variable: str | None = None) -> dict[str, Any]:
        """One attribute over all data sets that have it, or that of one of their variables. UnknownName.

        >>> mrec.open_collection("set").attribute("month")
        {'jan': 1, 'feb': 2}
        """
        if variable is None and footer.DATASETS not in self.footer.segments:
            return {}
        if variable is not None:
            self._check_variable(variable)
        segment = self.segment(footer.DATASETS if variable is None else variable)
        types = self._types(key, variable)
        numbers, ordinals = self.footer.schema_numbers, self.footer.ordinals
        names, deleted = segment.names, self.deleted
        found = [_ABSENT] * len(self.footer.names)
        for number, tag, value in zip(*segment.footer.values_of(key), strict=True):
            ordinal = ordinals.get(names[number], -1)
            kind = types[numbers[ordinal]] if ordinal >= 0 and ordinal not in deleted else None
            if kind is None:
                continue
            if tag > attributes.STRING or kind != attributes.SCALARS[tag]:
                value = attributes.unpack(_piece(tag, value), kind)
            found[ordinal] = value
        there = [i for i, value in enumerate(found) if value is not _ABSENT]
        self._check_complete(segment.name, [kind is not None for kind in types], there)
        all_names = self.footer.names
        return {all_names[i]: found[i] for i in there}

    def _types(self, key: str, variable: str | None) -> list[Any]:
        return [_typed(schema, variable).get(key) for schema in self.footer.schemas]

    def select(self, condition: Callable[[Mapping[str, Any]], bool]) -> list[str]:
        """The data sets whose `Statistics`, by variable, meet the condition.

        One that lacks a variable that is asked for, or has no value in it whose min or max is asked for, does not.

        >>> mrec.open_collection("set").select(lambda s: s["temperature"].max > 5)
        ['feb']
        """
        found = []
        for name in self.names:
            try:
                if condition(_StatisticsOf(self[name])):
                    found.append(name)
            except _Missing:
                continue
        return found

    # ---- elsewhere ---------------------------------------------------------------------------------------------

    def to_xarray(self, name: str) -> xarray.Dataset:
        """A data set as an `xarray.Dataset`."""
        from mrec.collection.convert import to_xarray

        return to_xarray(self[name])

    def to_pandas(self) -> pandas.DataFrame:
        """One row per data set, with its attributes and the statistics of its variables."""
        from mrec.collection.convert import to_pandas

        return to_pandas(self)

    def delete(self, names: str | Iterable[str]) -> None:
        """Hide data sets for good: their ordinals go into `deleted.mask`, their bytes stay. UnknownName.

        A collection that was opened before still has them. `mrec.collection.compact` gets the space back.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        lock = Lock(self.place.root) if isinstance(self.place, Directory) else None
        try:
            self._check_unchanged()
            now = unpack_mask(self.place.get(MASK), len(self.footer.names), self.place.path(MASK))
            ordinals = {self[name].ordinal for name in wanted}
            self.place.put(MASK, pack_mask(now | self.deleted | ordinals))
            self.deleted = now | self.deleted | ordinals
            self._names = None
        finally:
            if lock is not None:
                lock.release()

    def _check_unchanged(self) -> None:
        """That the container at the path is the one that was opened: a mask is for one container."""
        other = place_of(self.place.root) if isinstance(self.place, Directory) else self.place
        end, size = other.tail(CONTAINER, footer.FIRST_READ)
        n = min(len(end), len(self._stored) + footer.TAIL)
        if size != self.nbytes or end[-n : -footer.TAIL] != self._stored[-(n - footer.TAIL) :]:
            raise NotARecord(f"{self.path}: there is another container now; open it again")
        if other is not self.place:
            other.close()

    # ---- checksums ---------------------------------------------------------------------------------------------

    @property
    def checksums(self) -> Checksums | None:
        """What `data.atlas.crc` says; None when it is missing, or of another container, which is warned of once."""
        if isinstance(self._checksums, bool):
            data = self.place.get(CHECKSUMS)
            found = None if data is None else unpack_checksums(data, self.nbytes, self.footer.created, self._stored)
            if isinstance(found, str):
                warnings.warn(f"{self.place.path(CHECKSUMS)} is not used: {found}", stacklevel=4)
                found = None
            self._checksums = found
        return self._checksums

    def _crc(self, name: str, offset: int, size: int) -> int | None:
        if not self._verify or self.checksums is None:
            return None
        found = self.checksums.segments.get(name)
        if found is None or found[:2] != (offset, size):
            raise CorruptData(f"{self.place.path(CHECKSUMS)} does not name the variable {name!r}")
        return found[2]


class Dataset(Mapping[str, "ArrayView"]):
    """One data set: its arrays by name, in the order in which they were defined."""

    def __init__(self, collection: Collection, name: str, ordinal: int) -> None:
        self.collection = collection
        self.name = name
        self.ordinal = ordinal
        self.schema: Schema = collection.footer.schema(ordinal)

    def __repr__(self) -> str:
        return f"<Dataset {self.name}: {', '.join(self) or 'no arrays'}>"

    def __len__(self) -> int:
        return len(self.schema.arrays)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.schema.arrays)

    def __getitem__(self, name: str) -> ArrayView:
        for array, dtype in self.schema.arrays:
            if array == name:
                return ArrayView(self, name, dtype)
        raise UnknownName(f"data set {self.name!r} has no array {name!r}; it has {', '.join(self)}")

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes, in the order in which they were set."""
        if not self.schema.attributes:
            return {}
        segment = self.collection.segment(footer.DATASETS)
        return _attributes(segment, self.name, self.schema.attributes)

    @property
    def stats(self) -> Mapping[str, Statistics]:
        """The statistics of its arrays."""
        return {name: one for name in self if (one := self[name].stats) is not None}


class ArrayView:
    """One array of one data set; index it with integers, slices and `...` to read."""

    def __init__(self, dataset: Dataset, name: str, dtype: Any) -> None:
        self.dataset = dataset
        self.name = name
        self._segment = dataset.collection.segment(name)
        number = self._segment.numbers.get(dataset.name)
        if number is None:
            raise CorruptData(f"{self._segment.where}: the data set {dataset.name!r} is missing")
        self._number = number
        self._info = self._segment.info(number)
        if self._info.kind.stored != dtype:
            raise CorruptData(f"{self._segment.where}: {dataset.name!r} is {self._info.kind}, its schema says {dtype}")

    def __repr__(self) -> str:
        return f"<{self.name}: {self.type} {list(self.shape)}>"

    @property
    def type(self) -> str:
        """Its element type: "float32", "string", "timestamp_nanoseconds" ..."""
        return self._info.kind.name

    @property
    def dtype(self) -> Any:
        """That of the arrays which reading gives."""
        return dtype_of(self._info.kind)

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self._info.shape

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the axes."""
        return self._info.dims

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """Elements of a chunk along each axis."""
        return self._info.chunk_shape

    @property
    def fill_value(self) -> Any:
        """What stands where nothing was written; None when that is 0 or "". Time stamps as nanoseconds."""
        return self._info.fill

    @property
    def attributes(self) -> dict[str, Any]:
        """Its attributes, in the order in which they were set."""
        typed = _typed(self.dataset.schema, self.name)
        return _attributes(self._segment, self.dataset.name, tuple(typed.items())) if typed else {}

    @property
    def stats(self) -> Statistics | None:
        """Its statistics; None when the writer recorded none."""
        return statistics_of(self._info.kind, self._segment.footer.statistics(self._number))

    def __getitem__(self, index: Any) -> np.ndarray[Any, Any]:
        return self._segment.read(self._number, self._info, index)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        values = self[...]
        return values if dtype is None else values.astype(dtype)


class _Missing(KeyError):
    """A condition asked for what the data set has not."""


class _Known:
    """Statistics; to ask for a minimum or maximum that is not there ends the condition."""

    def __init__(self, found: Statistics) -> None:
        self._found = found

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._found, name)
        if value is None:
            raise _Missing(name)
        return value


class _StatisticsOf(Mapping[str, Any]):
    """The statistics of a data set, looked up when they are asked for."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset

    def __getitem__(self, name: str) -> _Known:
        found = self.dataset[name].stats if name in self.dataset else None
        if found is None:
            raise _Missing(name)
        return _Known(found)

    def __iter__(self) -> Iterator[str]:
        return iter(self.dataset)

    def __len__(self) -> int:
        return len(self.dataset)


def _piece(tag: int, value: Any) -> bytes:
    """A value of `values_of` in one piece."""
    return value if tag > attributes.STRING else attributes.pack(value, attributes.SCALARS[tag])[1]


def _typed(schema: Schema, variable: str | None) -> dict[str, Any]:
    """key -> type of the attributes of a data set, or of one of its arrays."""
    if variable is None:
        return dict(schema.attributes)
    for i, typed in schema.array_attributes:
        if schema.arrays[i][0] == variable:
            return dict(typed)
    return {}


def _attributes(segment: Segment, dataset: str, typed: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    number = segment.numbers.get(dataset)
    if number is None:
        raise CorruptData(f"{segment.where}: the data set {dataset!r} is missing")
    pieces = dict(segment.footer.pairs(number))
    missing = [key for key, _ in typed if key not in pieces]
    if missing:
        raise CorruptData(f"{segment.where}: {dataset!r} has no attribute {missing[0]!r}")
    return {key: attributes.unpack(pieces[key], kind) for key, kind in typed}

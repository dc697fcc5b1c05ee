# SPDX-License-Identifier: BSD-3-Clause
"""Writes a collection: one container, which is there as a whole when the writer finishes, or not at all."""

from __future__ import annotations

import os
import threading
import time
import warnings
from array import array as numbers_of
from collections.abc import Iterable, Mapping
from typing import Any

from mrec._core import ArrayForm, Lock, SegmentBuilder, crc32c
from mrec.collection import footer
from mrec.collection.checksums import Checksums
from mrec.collection.dataset import DatasetWriter, Declarations, add_to, sorted_pairs
from mrec.collection.encoder import Encoder
from mrec.collection.objects import upload_to
from mrec.collection.packing import Output, Packing, VariableWriter, write_footer
from mrec.collection.place import CHECKSUMS, CONTAINER, MASK, no_options
from mrec.errors import ClosedError, DatasetExists, ForkedHandle, InvalidValue, RecordExists
from mrec.files import POSIX, Files, opened, remove, sync_names, try_to_remove, write_all
from mrec.trajectory.options import flag_option

#: Names until all is written.
TEMPORARY, BESIDE = f".{CONTAINER}.tmp", f".{CHECKSUMS}.tmp"
SPILL = ".spill-{}.tmp"
BLOCK = 8 << 20
#: What holds the attributes of a data set: an array without axes of uint8, never written.
_NO_ARRAY = ArrayForm(5, 0, (), (), (), None, 1)


class CollectionWriter:
    """Writes a collection. Use it in a `with` block: it finishes at the end, or aborts at an exception.

    path: a directory; or a URL of fsspec, to which a temporary directory is uploaded at the end. codec: "zstd", "lz4"
    or "none". level: of zstd. threads: that encode; 1 is the caller's own. overwrite: replace a collection that is
    there, whole, when this one finishes. block_size: raw bytes after which a block is full. options: for fsspec.

    Until `finish` nothing of it can be opened, and an older collection stays. Thread-safe. RecordExists, RecordLocked,
    InvalidValue.

    >>> with mrec.CollectionWriter("wind") as w:
    ...     with w.add_dataset("monday") as d:
    ...         d.define_array("speed", "float32", dims=("time",), shape=(3,))
    ...         d.write_array("speed", (0,), [3.5, 4.0, 2.5])
    ...         d.set_attribute("station", "north")
    >>> mrec.open_collection("wind")["monday"]["speed"].stats.max
    4.0
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        codec: str = "zstd",
        level: int = 3,
        threads: int = 1,
        overwrite: bool = False,
        block_size: int = BLOCK,
        files: Files = POSIX,
        **options: Any,
    ) -> None:
        self._closed = True
        if not isinstance(codec, str) or codec not in footer.CODECS:
            raise InvalidValue(f"{codec!r} is no codec of a collection; choose one of {', '.join(footer.CODECS)}")
        if not (_among(threads, 1, 1 << 16) and _among(block_size, 1, 1 << 31) and _among(level, -7, 23)):
            raise InvalidValue("threads is 1 or more, block_size from 1 to 2^31 - 1, level from -7 to 22")
        self.path = os.fsdecode(path)
        if not self.path:
            raise InvalidValue("the path of a collection is empty")
        self._overwrite = flag_option("overwrite", overwrite)
        self._upload = upload_to(self.path, self._overwrite, options) if "://" in self.path else None
        if self._upload is None:
            no_options(options)
            self.path = os.path.abspath(self.path)
        self._root = self.path if self._upload is None else self._upload.folder
        self._process = os.getpid()
        self.codec = codec
        self._packing = Packing(footer.CODECS[codec], level, block_size)
        self._files = files
        self._mutex = threading.RLock()
        self._names: dict[str, int] = {}  # name -> ordinal
        self._schema_of = numbers_of("i")  # by ordinal; -1: not entered
        self._open: dict[int, str] = {}  # data sets that are neither finished nor gone
        self._variables: dict[str, VariableWriter] = {}
        self._used: dict[str, Any] = {}  # in the order of the file
        self._strings: dict[str, int] = {}
        self._dtypes: dict[Any, int] = {}
        self._known: dict[Any, int] = {}  # schema -> its number
        self.declarations = Declarations()
        self._schemas: dict[Any, int] = {}
        self._spills = 0
        self._made = self._prepare()
        self._encoder = Encoder(threads)
        self._closed = False

    def _prepare(self) -> bool:
        """Take the directory, made when it is missing; whether it was."""
        try:
            self._files.mkdir(self._root)
            made = True
        except FileExistsError:
            made = False
        try:
            self._lock = Lock(self._root)
            try:
                self._sweep(os.listdir(self._root))
            except BaseException:
                self._lock.release()
                raise
        except BaseException:
            if made:
                self._files.rmdir(self._root)
            raise
        return made

    def _sweep(self, there: list[str]) -> None:
        """Remove what a writer that was killed left. RecordExists."""
        if CONTAINER in there and not self._overwrite:
            raise RecordExists(f"{self.path} is a collection already; pass --overwrite (overwrite=True) to replace it")
        if "zarr.json" in there:
            raise RecordExists(f"{self.path} is a record, or a Zarr store; choose another path")
        for name in there:
            if name in (TEMPORARY, BESIDE) or (name.startswith(".spill-") and name.endswith(".tmp")):
                remove(self._files, os.path.join(self._root, name))

    def __enter__(self) -> CollectionWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        if kind is not None:
            self.abort()
        elif not self._closed:
            try:
                self.finish()
            except BaseException:
                self.abort()
                raise

    def __del__(self) -> None:
        if not self._closed and self._process == os.getpid():
            warnings.warn(
                f"the collection {self.path} was never finished: nothing of it is kept", ResourceWarning, stacklevel=2
            )
            self.abort()

    def __len__(self) -> int:
        """The data sets that are entered."""
        return len(self._schema_of) - self._schema_of.count(-1)

    @property
    def closed(self) -> bool:
        """Whether it was finished or aborted."""
        return self._closed

    # ---- data sets ---------------------------------------------------------------------------------------------

    def add_dataset(self, name: str) -> DatasetWriter:
        """Begin a data set; its place is that of this call. DatasetExists, InvalidValue."""
        footer.check_name(name, "a data set")
        self.check()  # also before the lock, which a fork may have left taken
        with self._mutex:
            self.check()
            ordinal = self._reserve(name)
            self._open[ordinal] = name
            return DatasetWriter(self, name, ordinal)

    def _reserve(self, name: str) -> int:
        if name in self._names:
            raise DatasetExists(f"{self.path} has a data set {name!r} already")
        if len(self._names) >= (1 << 31) - 1:
            raise InvalidValue("a collection has at most 2^31 - 1 data sets")
        ordinal = self._names[name] = len(self._names)
        self._schema_of.append(-1)
        return ordinal

    def check(self) -> None:
        """Raise what went wrong in another thread, or ClosedError."""
        if self._closed:
            raise ClosedError(f"the collection {self.path} is finished or aborted")
        if self._process != os.getpid():
            raise ForkedHandle(f"the collection {self.path} is written by the parent process")
        if self._encoder.error is not None:
            raise self._encoder.error

    def variable(self, name: str) -> VariableWriter:
        """What packs a variable."""
        known = self._variables.get(name)
        if known is not None:
            return known
        self.check()
        with self._mutex:
            found = self._variables.get(name)
            if found is None:
                spill = os.path.join(self._root, SPILL.format(self._spills))
                self._spills += 1
                found = VariableWriter(name, spill, self._packing, self._files, self._encoder)
                self._variables[name] = found
            return found

    def enter(self, dataset: DatasetWriter) -> None:
        """Take in a data set that is complete."""
        self.check()  # also before the lock, which a fork may have left taken
        with self._mutex:
            self.check()
            try:
                schema = self._intern(dataset)
                self._take(dataset)
            except BaseException as e:
                self._encoder.fail(e)  # a part of it may be in the tables
                raise
            self._schema_of[dataset.ordinal] = schema
            self._open.pop(dataset.ordinal, None)

    def _take(self, dataset: DatasetWriter) -> None:
        own = dataset.name.encode()
        for name, array in dataset.arrays.items():
            add_to(array, own)
            self._used[name] = array.variable
        if dataset.attributes:
            builder = self._used.get(footer.DATASETS)
            if builder is None:
                builder = self._used[footer.DATASETS] = SegmentBuilder()
            pairs = sorted_pairs(dataset.attributes)
            builder.add_array(dataset.ordinal, own, _NO_ARRAY, [], pairs, (None, None, 1))

    def leave(self, dataset: DatasetWriter) -> None:
        """Forget a data set. Called by the collector of garbage too, so that it waits for nothing."""
        self._open.pop(dataset.ordinal, None)

    def _intern(self, dataset: DatasetWriter) -> int:
        """The number of the data set's schema."""
        arrays = dataset.arrays
        own = tuple([(key, kind) for key, (kind, _) in dataset.attributes.items()])
        inner = tuple(
            [
                (i, tuple([(key, kind) for key, (kind, _) in array.attributes.items()]))
                for i, array in enumerate(arrays.values())
                if array.attributes
            ]
        )
        key = (tuple([(name, array.declared.stored) for name, array in arrays.items()]), own, inner)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._schema(footer.Schema(*key))
        return found

    def _schema(self, schema: footer.Schema) -> int:
        arrays = self._pool(schema.arrays)
        own = self._pool(schema.attributes)
        inner = tuple([(i, self._pool(typed)) for i, typed in schema.array_attributes])
        return self._schemas.setdefault((arrays, own, inner), len(self._schemas))

    def adopt_dataset(self, name: str, schema: footer.Schema) -> int:
        """Enter a data set whose arrays `adopt` brings; its ordinal. DatasetExists."""
        with self._mutex:
            ordinal = self._reserve(name)
            self._schema_of[ordinal] = self._schema(schema)
            return ordinal

    def adopt(self, segments: Mapping[str, Any]) -> None:
        """Take segments that write themselves: name -> something with `write_to`."""
        self._used.update(segments)

    def _pool(self, typed: Iterable[tuple[str, Any]]) -> tuple[tuple[int, int], ...]:
        return tuple([(self._string(name), self._dtype(kind)) for name, kind in typed])

    def _string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def _dtype(self, kind: Any) -> int:
        return self._dtypes.setdefault(kind, len(self._dtypes))

    # ---- finishing ---------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Write the container and put it in its place. InvalidValue while a data set is open. A failure aborts."""
        self.check()  # also before the lock, which a fork may have left taken
        with self._mutex:
            self.check()
            still = next(iter(self._open.values()), None)
            if still is not None:
                raise InvalidValue(f"the data set {still!r} is open: finish or abort it before the collection")
            try:
                self._write()
                self._publish()
                if self._upload is not None:
                    self._upload.send()
            except BaseException:
                self.abort()
                raise
            self._close()

    def _write(self) -> None:
        """Container and checksums under their temporary names, for good."""
        path, beside = os.path.join(self._root, TEMPORARY), os.path.join(self._root, BESIDE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with opened(self._files, path, flags) as fd, opened(self._files, beside, flags) as other:
            checksums = self._fill(Output(self._files, fd, path))
            write_all(self._files, other, checksums.pack(), 0, beside)
            self._files.sync_all([fd, other])

    def _fill(self, out: Output) -> Checksums:
        """Write the container."""
        created = time.time_ns() // 1_000_000
        segments: dict[str, tuple[int, int]] = {}
        crcs: dict[str, tuple[int, int, int]] = {}
        out.write(footer.HEAD)
        waiting = list(self._used)
        for name, variable in self._variables.items():
            if name not in self._used:  # only data sets that were dropped had it
                variable.drop()
        for i, name in enumerate(waiting):
            for ahead in waiting[i : i + 3]:
                if isinstance(variable := self._used[ahead], VariableWriter):
                    variable.finish()
            begin = out.begin()
            _write_segment(self._used[name], out)
            self._used[name] = None  # its memory is not needed any more
            segments[name] = (begin, out.size - begin)
            crcs[name] = (begin, out.size - begin, out.crc)
        stored = footer.pack_footer(self._footer(created, segments))
        place = (out.size, len(stored), crc32c(stored))
        out.write(stored + footer.end_of(stored))
        return Checksums(out.size, created, place, crcs)

    def _footer(self, created: int, segments: dict[str, tuple[int, int]]) -> footer.Footer:
        if footer.DATASETS in segments:
            self._string(footer.DATASETS)
        dtypes = list(self._dtypes)
        schemas = [
            [[list(p) for p in a], [list(p) for p in b], [[i, [list(p) for p in t]] for i, t in c]]
            for a, b, c in self._schemas
        ]
        entered = [(name, self._schema_of[i]) for name, i in self._names.items() if self._schema_of[i] >= 0]
        names, numbers = [name for name, _ in entered], [number for _, number in entered]
        return footer.Footer(self.codec, created, list(self._strings), dtypes, schemas, [], segments, names, numbers)

    def _publish(self) -> None:
        """The mask and the checksums of an older container go first: they would be taken for this one's."""
        self._lock.check()
        gone = [remove(self._files, os.path.join(self._root, name)) for name in (MASK, CHECKSUMS)]
        if any(gone):
            sync_names(self._files, self._root)
        self._files.rename(os.path.join(self._root, TEMPORARY), os.path.join(self._root, CONTAINER))
        self._closed = True  # from here on there is nothing to abort
        beside = os.path.join(self._root, BESIDE)
        try:
            self._files.rename(beside, os.path.join(self._root, CHECKSUMS))
        except BaseException:
            try_to_remove(self._files, beside)
            raise
        parents = [os.path.dirname(self._root)] if self._made else []
        sync_names(self._files, self._root, *parents)

    def abort(self) -> None:
        """Leave nothing of it; an older collection stays."""
        if self._process != os.getpid():  # the files are the parent's
            self._closed = True
            return
        with self._mutex:
            if self._closed:
                self._close()
                return
            self._closed = True
            self._encoder.close()
            try:
                self._clean()
            finally:
                self._close()

    def _clean(self) -> None:
        try:
            for variable in self._variables.values():
                variable.remove()
            for name in (TEMPORARY, BESIDE):
                remove(self._files, os.path.join(self._root, name))
            if self._made:
                self._files.rmdir(self._root)
        except OSError:
            pass  # what is left is removed by the next writer

    def _close(self) -> None:
        self._closed = True
        self._encoder.close()
        self._variables.clear()
        self._used.clear()
        self._lock.release()
        if self._upload is not None:
            self._upload.close()


def _among(value: Any, least: int, end: int) -> bool:
    return isinstance(value, int) and least <= value < end


def _write_segment(segment: Any, out: Output) -> None:
    if isinstance(segment, SegmentBuilder):  # attributes of data sets, which have no blocks
        write_footer(segment, out.write)
    else:
        segment.write_to(out.write)

# SPDX-License-Identifier: BSD-3-Clause
"""Stores over fsspec or obstore: what is behind http, s3, gs, az, read by byte ranges. Each is imported when used."""

from __future__ import annotations

import io
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from mrec._core import Cache, Objects
from mrec.errors import MissingLibrary, MrecError
from mrec.zarr import zipdir
from mrec.zarr import zipformat as z
from mrec.zarr.store import DEFAULT, Reading, Store
from mrec.zarr.zip import ZipStore

#: A request brings whole pages of a file: what is read next is often beside what was read.
PAGE = 64 << 10
#: Pages of all files of a store that are kept.
KEPT_PAGES = 256
#: Larger reads are not kept.
MOST_PAGES = 32
#: Places that are read on from, by several threads, are known.
STREAMS = 16
#: The end of a packed record, which its directory should fit in, comes in one request.
TAIL = 256 << 10


class Bucket(ABC):
    """Where objects are, whatever fetches them."""

    @abstractmethod
    def size(self, key: str) -> int | None:
        """The bytes of an object; None when there is none. One request."""

    @abstractmethod
    def read(self, key: str, start: int, stop: int) -> bytes:
        """A range of an object, in one request."""

    @abstractmethod
    def whole(self, key: str) -> bytes | None:
        """An object; None when there is none. One request."""

    @abstractmethod
    def put(self, key: str, data: bytes) -> None:
        """Replace an object, in one request."""

    @abstractmethod
    def find(self, key: str) -> dict[str, int | None]:
        """All objects below a key, with their sizes where the listing tells.

        OSError or NotImplementedError where nothing can be listed.
        """


#: What file systems of fsspec that have directories say of them, too.
_NO_OBJECT = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class FsspecBucket(Bucket):
    """An fsspec file system."""

    def __init__(self, fs: Any) -> None:
        self.fs = fs

    def size(self, key: str) -> int | None:
        """The bytes of an object; None when there is none."""
        self._forget(key)
        try:
            info = self.fs.info(key)
        except _NO_OBJECT:
            return None
        if info.get("type") == "directory":
            return None
        if info["size"] is None:
            raise OSError(f"{key}: the server does not say how large this is, so it can not be read by ranges")
        return int(info["size"])

    def read(self, key: str, start: int, stop: int) -> bytes:
        """A range of an object."""
        return bytes(self.fs.cat_file(key, start=start, end=stop))

    def whole(self, key: str) -> bytes | None:
        """An object; None when there is none."""
        try:
            return bytes(self.fs.cat_file(key))
        except _NO_OBJECT:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Replace an object."""
        self.fs.pipe_file(key, data)

    def find(self, key: str) -> dict[str, int | None]:
        """All objects below a key, with their sizes where the listing tells."""
        self._forget(key)
        found = self.fs.find(key, detail=True)
        strip = self.fs._strip_protocol
        return {strip(name): info.get("size") for name, info in found.items()}

    def _forget(self, key: str) -> None:
        """File systems keep listings as long as they live, also of what others have written anew meanwhile."""
        self.fs.invalidate_cache(key)


class ObstoreBucket(Bucket):
    """A store of obstore."""

    def __init__(self, store: Any) -> None:
        self.store = store

    def size(self, key: str) -> int | None:
        """The bytes of an object; None when there is none."""
        import obstore

        try:
            return int(obstore.head(self.store, key)["size"])
        except FileNotFoundError:
            return None

    def read(self, key: str, start: int, stop: int) -> bytes:
        """A range of an object."""
        import obstore

        return bytes(obstore.get_range(self.store, key, start=start, end=stop))

    def whole(self, key: str) -> bytes | None:
        """An object; None when there is none."""
        import obstore

        try:
            return bytes(obstore.get(self.store, key).bytes())
        except FileNotFoundError:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Replace an object."""
        import obstore

        obstore.put(self.store, key, data)

    def find(self, key: str) -> dict[str, int | None]:
        """All objects below a key with their sizes."""
        import obstore

        batches = obstore.list(self.store, prefix=key or None)
        return {entry["path"]: int(entry["size"]) for batch in batches for entry in batch}


class Pages:
    """Parts of the objects of a bucket, fetched in whole pages and kept until others were used more recently."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._pinned: dict[str, tuple[int, bytes]] = {}
        self._ahead: OrderedDict[tuple[str, int], int] = OrderedDict()  # the page after a request -> how many came

    def read(self, key: str, start: int, stop: int, size: int) -> bytes:
        """The bytes [start, stop) of an object of `size` bytes."""
        at, tail = self._pinned.get(key, (size, b""))
        if start >= at:
            return tail[start - at : stop - at]
        first, last = start // PAGE, (stop - 1) // PAGE
        if stop <= start:
            return b""
        if last - first >= MOST_PAGES:
            return self._fetch(key, start, stop)
        pages = self._held(key, first, last)
        missing = [number for number, page in pages.items() if page is None]
        if missing:
            pages |= self._fetch_pages(key, missing[0], missing[-1], size)
        whole = b"".join(pages[number] or b"" for number in range(first, last + 1))
        return whole[start - first * PAGE : stop - first * PAGE]

    def pin(self, key: str, start: int, size: int) -> None:
        """Fetch an object from `start` on, and keep that."""
        self._pinned[key] = (start, self._fetch(key, start, size))

    def _held(self, key: str, first: int, last: int) -> dict[int, bytes | None]:
        with self._lock:
            pages = {number: self._kept.get((key, number)) for number in range(first, last + 1)}
            for number, page in pages.items():
                if page is not None:
                    self._kept.move_to_end((key, number))
        return pages

    def _fetch_pages(self, key: str, first: int, last: int, size: int) -> dict[int, bytes | None]:
        with self._lock:
            came = self._ahead.pop((key, first), 0)  # one after the other: twice as much each time
            last = min(max(last, first + min(2 * came, MOST_PAGES) - 1), (size - 1) // PAGE)
            self._ahead[key, last + 1] = last + 1 - first
            while len(self._ahead) > STREAMS:
                self._ahead.popitem(last=False)
        start = first * PAGE
        raw = self._fetch(key, start, min((last + 1) * PAGE, size))
        pages: dict[int, bytes | None] = {}
        with self._lock:
            for number in range(first, last + 1):
                page = raw[number * PAGE - start : (number + 1) * PAGE - start]
                pages[number] = self._kept[key, number] = page
            while len(self._kept) > KEPT_PAGES:
                self._kept.popitem(last=False)
        return pages

    def _fetch(self, key: str, start: int, stop: int) -> bytes:
        raw = self.bucket.read(key, start, stop)
        if len(raw) > stop - start:
            raise OSError(f"{key}: {len(raw)} bytes came for a range of {stop - start}: no ranges are served there")
        return raw


class RemoteFile:
    """One object, read by ranges."""

    def __init__(self, pages: Pages, key: str, size: int) -> None:
        self._pages, self._key, self.size = pages, key, size

    def read(self, offset: int, n: int) -> bytes:
        """The bytes from `offset` on, fewer where the object ends."""
        return self._pages.read(self._key, offset, min(offset + n, self.size), self.size)


class RemoteZipStore(ZipStore):
    """A packed record behind a network, read in place by byte ranges.

    Two requests open it: for its size, and for its end with the directory. Where the bytes of an entry begin follows
    from where the next one does, so that no local header has to be fetched; only behind an entry that was streamed
    (zip flag 3) it does not. So local headers are not compared with the directory; entries that are read whole are
    checked against their CRC-32, chunks against their own checksums.
    """

    def __init__(self, bucket: Bucket, key: str, root: str, reading: Reading = DEFAULT) -> None:
        self.root = root
        self.reading = reading
        size = bucket.size(key)
        if size is None:
            raise FileNotFoundError(2, "there is no such object", root)
        pages = Pages(bucket)
        self._file = RemoteFile(pages, key, size)
        pages.pin(key, max(0, size - TAIL), size)
        entries = _directory(self._file, root)
        file = self._file
        objects = Objects(root, lambda _: file)
        self._fill(entries, objects.hold(key), objects)

    def _read(self, entry: zipdir.Entry, start: int, stop: int) -> bytes:
        return zipdir.read(self._file, stop - start, entry.offset + start)


def _directory(file: RemoteFile, where: str) -> list[zipdir.Entry]:
    try:
        end = zipdir.find_end(file, file.size)
        raw = io.BytesIO(zipdir.read(file, end.size, end.start))
        found = list(zipdir.central_entries(raw, end._replace(start=0)))
        zipdir.check_names([entry.name for entry in found])

        def start_of(entry: zipdir.Central, behind: int) -> int:
            gap = behind - entry.size - entry.header - z.LOCAL.size - len(entry.raw_name)
            if entry.flags & zipdir.STREAMED or not 0 <= gap <= z.MASK16:
                return zipdir.data_start(file, entry, end)
            return behind - entry.size

        files = zipdir.locate(found, start_of, end)
    except MrecError as e:
        raise type(e)(f"{where}: {e}") from None
    return sorted(files, key=lambda entry: entry.name.encode())


class RemoteStore(Store):
    """A hierarchy of objects behind a network. What is there must not change while it is read.

    The objects are listed once, where that is possible; where it is not, arrays and groups open by their paths, and
    what needs a listing raises OSError.
    """

    fixed = True

    def __init__(self, bucket: Bucket, key: str, root: str, reading: Reading = DEFAULT) -> None:
        self.root = root
        self.reading = reading
        self._prefix = f"{key.rstrip('/')}/" if key else ""
        self._bucket = bucket
        self._pages = Pages(bucket)
        self.cache = self._new_cache()

    def _new_cache(self) -> Cache:
        return Cache(nbytes=max(self.reading.cache, 1), objects=Objects(self.root, self._open))

    def again(self) -> RemoteStore:
        """The same place, with memory of its own for decoded chunks."""
        other = object.__new__(RemoteStore)
        other.__dict__ |= self.__dict__
        other.cache = other._new_cache()
        return other

    @cached_property
    def _sizes(self) -> dict[str, int | None] | None:
        """Every object by its key, with its size where that is known; None where nothing is listed."""
        try:
            found = self._bucket.find(self._prefix.rstrip("/"))
        except (OSError, NotImplementedError):
            return None
        sizes = {k.removeprefix(self._prefix): n for k, n in found.items() if k.startswith(self._prefix)}
        return sizes or None

    def _listed(self) -> dict[str, int | None]:
        if self._sizes is None:
            raise OSError(f"{self.root} can not be listed; pack the record, or open arrays by their paths")
        return self._sizes

    def _open(self, key: str) -> RemoteFile | None:
        sizes = self.__dict__.get("_sizes")
        if sizes is not None and key not in sizes:
            return None
        size = None if sizes is None else sizes[key]
        if size is None:
            size = self._bucket.size(self._prefix + key)
        if size is not None and sizes is not None:
            sizes[key] = size
        return None if size is None else RemoteFile(self._pages, self._prefix + key, size)

    def get(self, key: str) -> bytes | None:
        """The whole value of a key; None when there is none."""
        sizes = self.__dict__.get("_sizes")
        if sizes is not None and key not in sizes:
            return None
        return self._bucket.whole(self._prefix + key)

    def get_range(self, key: str, start: int, stop: int | None = None) -> bytes | None:
        """The bytes from start up to stop of a value, fewer where it ends. What is negative counts from the end."""
        file = self._open(key)
        if file is None:
            return None
        start, stop, _ = slice(start, stop).indices(file.size)
        return file.read(start, max(stop - start, 0))

    def exists(self, key: str) -> bool:
        """Whether there is a value or a directory."""
        if self._sizes is None:
            return self.get(f"{key}/zarr.json") is not None or self._bucket.size(self._prefix + key) is not None
        return not key or key in self._sizes or any(k.startswith(f"{key}/") for k in self._sizes)

    def names(self, key: str = "") -> list[str]:
        """The names of the directories below a directory, sorted. OSError where nothing can be listed."""
        prefix = f"{key}/" if key else ""
        below = (k[len(prefix) :] for k in self._listed() if k.startswith(prefix))
        return sorted({rest.partition("/")[0] for rest in below if "/" in rest})

    def walk(self, key: str = "") -> Iterator[str]:
        """The keys of all values at and below a directory. OSError where nothing can be listed."""
        prefix = f"{key}/" if key else ""
        return (k for k in self._listed() if k.startswith(prefix))

    def size(self, key: str) -> int:
        """The bytes of a value."""
        file = self._open(key)
        if file is None:
            raise FileNotFoundError(2, "there is no such object", self.path(key))
        return file.size


def remote_store(objects: Any, path: str = "", reading: Reading = DEFAULT) -> Store:
    """The store over a file system of fsspec, or a store of obstore: packed when `path` ends in .zip.

    path: of the record in it, as the file system names it ("bucket/run.mrec.zip", or a whole URL for http).
    """
    bucket: Bucket = FsspecBucket(objects) if hasattr(objects, "cat_file") else ObstoreBucket(objects)
    return _store(bucket, path, path or repr(objects), reading)


def open_url(url: str, reading: Reading = DEFAULT) -> Store:
    """The store that a URL names, through fsspec, or where that has no such protocol through obstore.

    MissingLibrary names what is to be installed. Credentials come from where these libraries look for them.
    """
    try:
        from fsspec.core import url_to_fs

        fs, key = url_to_fs(url)
        return _store(FsspecBucket(fs), key, url, reading)
    except (ImportError, ValueError) as e:
        found = _through_obstore(url, reading)
        if found is None:
            scheme = url.partition("://")[0]
            raise MissingLibrary(f"to open {scheme}:// install mrec[remote], or what fsspec names: {e}") from None
        return found


def _through_obstore(url: str, reading: Reading) -> Store | None:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        return None
    scheme, _, rest = url.partition("://")
    place, _, key = rest.partition("/")
    try:
        return _store(ObstoreBucket(from_url(f"{scheme}://{place}")), key, url, reading)
    except BaseError as e:
        if not isinstance(e, OSError):  # it knows no such scheme
            return None
        raise


def _store(bucket: Bucket, key: str, root: str, reading: Reading) -> Store:
    packed = root.partition("?")[0].endswith(".zip")
    return (RemoteZipStore if packed else RemoteStore)(bucket, key, root, reading)

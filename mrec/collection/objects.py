# SPDX-License-Identifier: BSD-3-Clause
"""Collections on object stores: read by ranges, uploaded as one object or in parts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from mrec.collection.place import CHECKSUMS, CONTAINER, MASK, Place
from mrec.errors import CorruptData, InvalidValue, RecordExists
from mrec.extras import extra
from mrec.trajectory.options import flag_option
from mrec.zarr.remote import Bucket, FsspecBucket, ObstoreBucket

#: Bytes of a part of an upload; what is smaller goes in one.
PART = 16 << 20


class Objects(Place):
    """The objects under a prefix, which may be empty."""

    near = False

    def __init__(self, bucket: Bucket, root: str) -> None:
        self.bucket = bucket
        self.root = root

    def path(self, name: str) -> str:
        return super().path(name) if self.root else name

    def tail(self, name: str, n: int) -> tuple[bytes, int]:
        size = self.bucket.size(self.path(name))
        if size is None:
            raise FileNotFoundError(self.path(name))
        return self.read(name, size - min(n, size), min(n, size)), size

    def read(self, name: str, offset: int, n: int) -> bytes:
        self.check()
        data = self.bucket.read(self.path(name), offset, offset + n) if n else b""
        if len(data) != n:
            raise CorruptData(f"{self.path(name)} ends before byte {offset + n}")
        return data

    def get(self, name: str) -> bytes | None:
        self.check()
        return self.bucket.whole(self.path(name))

    def put(self, name: str, data: bytes) -> None:
        self.check()
        self.bucket.put(self.path(name), data)


def objects_of(where: Any, options: dict[str, Any]) -> Objects:
    """The objects that a URL of fsspec names, or all of a store of obstore. InvalidValue."""
    if isinstance(where, (str, os.PathLike)):
        with extra("collection", f"opening {where}"):
            import fsspec

        files, root = fsspec.core.url_to_fs(os.fspath(where), **options)
        return Objects(FsspecBucket(files), root)
    if type(where).__module__ == "obstore.store":
        return Objects(ObstoreBucket(where), "")
    raise InvalidValue(f"{where!r} is no path, no URL and no store of obstore")


# ---- uploading ----------------------------------------------------------------------------------------------------


class Upload:
    """A temporary directory that becomes a collection under a URL."""

    def __init__(self, url: str, overwrite: bool, options: dict[str, Any]) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="mrec-")
        self.folder = os.path.join(self._kept.name, "collection")
        self._url, self._overwrite, self._options = url, overwrite, options

    def send(self) -> None:
        """Put it there."""
        upload(self.folder, self._url, overwrite=self._overwrite, **self._options)

    def close(self) -> None:
        """Remove the directory."""
        self._kept.cleanup()


def upload_to(url: str, overwrite: bool, options: dict[str, Any]) -> Upload:
    """Prepare an upload. RecordExists."""
    _check_free(*_files_of(url, options), url, overwrite)
    return Upload(url, overwrite, options)


def _files_of(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    with extra("collection", f"writing to {url}"):
        import fsspec

    files, root = fsspec.core.url_to_fs(url, **options)
    return files, root.rstrip("/")


def _check_free(files: Any, root: str, url: str, overwrite: bool) -> None:
    if not overwrite and FsspecBucket(files).size(f"{root}/{CONTAINER}") is not None:
        raise RecordExists(f"{url} is a collection already; pass --overwrite (overwrite=True) to replace it")


def upload(source: str | os.PathLike[str], url: str, *, overwrite: bool = False, **options: Any) -> None:
    """Put a collection of a local directory under a URL; an object appears whole or not at all.

    The container goes in one request up to 16 MiB, in parts beyond; an upload that fails is aborted. What a killed
    process leaves of one is for a life-cycle rule of the bucket. options: for fsspec. RecordExists.
    """
    files, root = _files_of(url, options)
    folder = os.fspath(source)
    _check_free(files, root, url, flag_option("overwrite", overwrite))

    def remove_others() -> None:
        for name in (MASK, CHECKSUMS):  # they would be taken for the new container's
            if FsspecBucket(files).size(f"{root}/{name}") is not None:
                files.rm_file(f"{root}/{name}")

    _send(files, os.path.join(folder, CONTAINER), f"{root}/{CONTAINER}", remove_others)
    for name in (CHECKSUMS, MASK):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            _send(files, path, f"{root}/{name}", lambda: None)


def _send(files: Any, path: str, key: str, ready: Callable[[], None]) -> None:
    """ready: called when the object is about to appear."""
    with open(path, "rb") as source:
        if os.path.getsize(path) <= PART:
            ready()
            files.pipe_file(key, source.read())
            return
        out = files.open(key, "wb", block_size=PART, autocommit=False)
        try:
            while piece := source.read(PART):
                out.write(piece)
            out.close()
            ready()
            out.commit()
        except BaseException:
            out.discard()
            raise

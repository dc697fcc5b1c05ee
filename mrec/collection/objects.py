# SPDX-License-Identifier: BSD-3-Clause
"""Collections on object stores: read by ranges, uploaded as one object or in parts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

from mrec.collection.place import CHECKSUMS, CONTAINER, MASK, Place
from mrec.errors import CorruptData, InvalidValue, RecordExists

#: Bytes of a part of an upload; what is smaller goes in one.
PART = 16 << 20


class Objects(Place):
    """The objects under a prefix, by fsspec."""

    near = False

    def __init__(self, files: Any, root: str) -> None:
        self.files = files
        self.root = root

    def tail(self, name: str, n: int) -> tuple[bytes, int]:
        size = int(self.files.info(self.path(name))["size"])
        return self.read(name, size - min(n, size), min(n, size)), size

    def read(self, name: str, offset: int, n: int) -> bytes:
        self.check()
        data = self.files.cat_file(self.path(name), start=offset, end=offset + n) if n else b""
        if len(data) != n:
            raise CorruptData(f"{self.path(name)} ends before byte {offset + n}")
        return bytes(data)

    def get(self, name: str) -> bytes | None:
        self.check()
        try:
            return bytes(self.files.cat_file(self.path(name)))
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        self.check()
        self.files.pipe_file(self.path(name), data)

    def remove_others(self) -> None:
        """Remove what stands beside a container that is about to be replaced: it would be taken for the new one's."""
        for name in (MASK, CHECKSUMS):
            if self.files.exists(self.path(name)):
                self.files.rm_file(self.path(name))


def objects_of(url: Any, options: dict[str, Any]) -> Objects:
    """The objects that a URL of fsspec names."""
    if not isinstance(url, (str, os.PathLike)):
        raise InvalidValue(f"{url!r} is no path and no URL")
    import fsspec

    files, root = fsspec.core.url_to_fs(os.fspath(url), **options)
    return Objects(files, root)


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
    _check_free(objects_of(url, options), url, overwrite)
    return Upload(url, overwrite, options)


def _check_free(target: Objects, url: str, overwrite: bool) -> None:
    if not overwrite and target.files.exists(target.path(CONTAINER)):
        raise RecordExists(f"{url} is a collection already; pass overwrite=True to replace it")


def upload(source: str | os.PathLike[str], url: str, *, overwrite: bool = False, **options: Any) -> None:
    """Put a collection of a local directory under a URL; an object appears whole or not at all.

    The container goes in one request up to 16 MiB, in parts beyond; an upload that fails is aborted. What a killed
    process leaves of one is for a life-cycle rule of the bucket. options: for fsspec. RecordExists.
    """
    target = objects_of(url, options)
    folder = os.fspath(source)
    _check_free(target, url, overwrite)
    _upload(target, os.path.join(folder, CONTAINER), CONTAINER, target.remove_others)
    for name in (CHECKSUMS, MASK):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            _upload(target, path, name, lambda: None)


def _upload(target: Objects, path: str, name: str, ready: Callable[[], None]) -> None:
    """ready: called when the object is about to appear."""
    with open(path, "rb") as source:
        if os.path.getsize(path) <= PART:
            ready()
            target.put(name, source.read())
            return
        out = target.files.open(target.path(name), "wb", block_size=PART, autocommit=False)
        try:
            while piece := source.read(PART):
                out.write(piece)
            out.close()
            ready()
            out.commit()
        except BaseException:
            out.discard()
            raise

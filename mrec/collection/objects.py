# SPDX-License-Identifier: BSD-3-Clause
"""Collections on object stores: read by ranges, uploaded as one object or in parts."""

from __future__ import annotations

import os
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
        data = self.files.cat_file(self.path(name), start=offset, end=offset + n) if n else b""
        if len(data) != n:
            raise CorruptData(f"{self.path(name)} ends before byte {offset + n}")
        return bytes(data)

    def get(self, name: str) -> bytes | None:
        try:
            return bytes(self.files.cat_file(self.path(name)))
        except FileNotFoundError:
            return None

    def put(self, name: str, data: bytes) -> None:
        self.files.pipe_file(self.path(name), data)


def objects_of(url: Any, options: dict[str, Any]) -> Objects:
    """The objects that a URL of fsspec names."""
    if not isinstance(url, (str, os.PathLike)):
        raise InvalidValue(f"{url!r} is no path and no URL")
    import fsspec

    files, root = fsspec.core.url_to_fs(os.fspath(url), **options)
    return Objects(files, root)


def upload(source: str | os.PathLike[str], url: str, *, overwrite: bool = False, **options: Any) -> None:
    """Put a collection of a local directory under a URL; an object appears whole or not at all.

    The container goes in one request up to 16 MiB, in parts beyond; an upload that fails is aborted. What a killed
    process leaves of one is for a life-cycle rule of the bucket. options: for fsspec. RecordExists.
    """
    target = objects_of(url, options)
    folder = os.fspath(source)
    if not overwrite and target.files.exists(target.path(CONTAINER)):
        raise RecordExists(f"{url} is a collection already; pass overwrite=True to replace it")
    for name in (MASK, CHECKSUMS):
        if target.files.exists(target.path(name)):
            target.files.rm_file(target.path(name))
    _upload(target, os.path.join(folder, CONTAINER), CONTAINER)
    for name in (CHECKSUMS, MASK):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            _upload(target, path, name)


def _upload(target: Objects, path: str, name: str) -> None:
    with open(path, "rb") as source:
        if os.path.getsize(path) <= PART:
            target.put(name, source.read())
            return
        out = target.files.open(target.path(name), "wb", block_size=PART, autocommit=False)
        try:
            while piece := source.read(PART):
                out.write(piece)
            out.close()
            out.commit()
        except BaseException:
            out.discard()
            raise

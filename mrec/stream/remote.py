# SPDX-License-Identifier: BSD-3-Clause
"""A stream on an object store, through obstore: one PUT or a completed multipart upload an object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mrec.errors import CommitError
from mrec.extras import extra
from mrec.stream.place import Guard, Place, no_guard


class ObjectStore(Place):
    """A place on any obstore store: `ObjectStore(obstore.store.S3Store("bucket", prefix="run", ...))`.

    The manifest is replaced on condition that it is the one that was read, where the store has that. A PUT that is on
    its way while the stream is resumed cannot be stopped: end the old writers before.
    """

    verifies = False

    def __init__(self, store: Any, prefix: str = "") -> None:
        with extra("remote", type(self).__name__):
            import obstore

        self._obstore = obstore
        self.store, self.prefix = store, prefix.strip("/")
        self.name = f"{type(store).__name__}({self.prefix or getattr(store, 'prefix', None) or ''})"
        self._tags: dict[str, Any] = {}

    @classmethod
    def from_url(cls, url: str, **options: Any) -> ObjectStore:
        """The place that a URL names: s3://, gs://, az://, http:// ... options: those of obstore.store.from_url."""
        with extra("remote", f"opening {url}"):
            from obstore.store import from_url

        made = cls(from_url(url, **options))
        made.name = url
        return made

    def session(self, durable: bool) -> ObjectStore:
        """The same store, for one writer or reader."""
        made = ObjectStore(self.store, self.prefix)
        made.name = self.name
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectStore, (self.store, self.prefix)

    def _path(self, key: str) -> str:
        return f"{self.prefix}/{key}" if self.prefix else key

    def get(self, key: str) -> bytes | None:
        """A whole value; None when there is none."""
        try:
            found = self._obstore.get(self.store, self._path(key))
        except FileNotFoundError:
            return None
        self._tags[key] = _tag(found.meta)
        return bytes(found.bytes())

    def head(self, key: str, n: int) -> bytes | None:
        """The first n bytes of a value."""
        try:
            return bytes(self._obstore.get_range(self.store, self._path(key), start=0, end=n))
        except FileNotFoundError:
            return None

    def view(self, key: str) -> Any:
        """A value that is read in parts."""
        size = self.size(key)
        return None if size is None else Parts(self, key, size)

    def size(self, key: str) -> int | None:
        """The length of a value; None when there is none."""
        try:
            return int(self._obstore.head(self.store, self._path(key))["size"])
        except FileNotFoundError:
            return None

    def part(self, key: str, start: int, stop: int) -> bytes:
        """Bytes of a value."""
        if start >= stop:
            return b""
        return bytes(self._obstore.get_range(self.store, self._path(key), start=start, end=stop))

    def put(self, key: str, data: Any, guard: Guard = no_guard) -> None:
        """One PUT, or a multipart upload that is completed."""
        guard()
        self._obstore.put(self.store, self._path(key), bytes(data))

    def replace(self, key: str, data: Any, guard: Guard = no_guard) -> None:
        """A PUT on condition that the value is the one that this session read or wrote last."""
        guard()
        tag = self._tags.get(key)
        mode: Any = "create" if tag is None else tag
        try:
            made = self._obstore.put(self.store, self._path(key), data, mode=mode)
        except self._obstore.exceptions.NotSupportedError:
            made = self._obstore.put(self.store, self._path(key), data)
        except (self._obstore.exceptions.PreconditionError, self._obstore.exceptions.AlreadyExistsError):
            raise CommitError(f"{self.name}: another writer replaced {key}; resume", retry=False) from None
        self._tags[key] = _tag(made)

    def claim(self, key: str, data: bytes) -> bool:
        """A PUT on condition that there is no value."""
        try:
            self._obstore.put(self.store, self._path(key), data, mode="create")
        except self._obstore.exceptions.AlreadyExistsError:
            return False
        return True

    def delete(self, key: str) -> None:
        """Remove a value; nothing when there is none."""
        self._tags.pop(key, None)
        try:
            self._obstore.delete(self.store, self._path(key))
        except FileNotFoundError:
            pass

    def keys(self, prefix: str = "") -> Iterator[str]:
        """The keys below a directory."""
        for batch in self._obstore.list(self.store, prefix=self._path(prefix) if prefix or self.prefix else None):
            for entry in batch:
                yield entry["path"].removeprefix(f"{self.prefix}/" if self.prefix else "")

    def names(self) -> list[str]:
        """The first names of all keys."""
        found = self._obstore.list_with_delimiter(self.store, prefix=self.prefix or None)
        paths = [*found["common_prefixes"], *(entry["path"] for entry in found["objects"])]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in paths)


def _tag(meta: Any) -> dict[str, str]:
    """What a conditional PUT compares."""
    return {name: meta[name] for name in ("e_tag", "version") if meta.get(name) is not None}


class Parts:
    """A value of which slices are read."""

    def __init__(self, place: ObjectStore, key: str, size: int) -> None:
        self.place, self.key, self.size = place, key, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:
        start, stop, _ = part.indices(self.size)
        return self.place.part(self.key, start, stop)

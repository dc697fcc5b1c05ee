# SPDX-License-Identifier: BSD-3-Clause
"""The damaged record, for reading only: files that cannot be had whole are noted, and read as empty."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from functools import cache

from mrec.errors import MrecError
from mrec.trajectory.standing import ROOT
from mrec.verify.files import Files, Value
from mrec.zarr.metadata import ArrayMeta, parse_node
from mrec.zarr.store import Store

_STEP = 1 << 24


class BadValue(Value):
    """An entry of a zip file whose bytes nothing vouches for."""

    def __init__(self, size: int) -> None:
        self._size = size

    @property
    def size(self) -> int:
        """Bytes in the entry."""
        return self._size

    def read(self, start: int, nbytes: int) -> bytes:
        """OSError, always."""
        raise OSError(errno.EIO, "nothing vouches for the bytes of the entry")


class Source(Files):
    """The files of a record.

    bad: key -> why what was read of it is not what was written. incomplete: there may have been more files.
    """

    def __init__(self, store: Store, bad: Mapping[str, str], incomplete: bool) -> None:
        super().__init__(store)
        self.store, self.incomplete = store, incomplete
        self.bad = dict(bad)
        self._has_checksums = cache(self._chunks_have_checksums)

    def get(self, key: str) -> bytes | None:
        """The whole value of a key; empty where it is bad, None where there is none."""
        self.check(key)
        return b"" if key in self.bad else super().get(key)

    def open(self, key: str) -> Value | None:
        """The value of a key, to be read in parts; None when there is none."""
        value = super().open(key)
        if value is not None and key in self.bad and key in self.entries:
            return BadValue(value.size)
        array, slash, _ = key.partition("/c/")
        if value is None or not slash or key not in self.entries or self._has_checksums(array):
            return value
        return value if self.crc32(key) == self.entries[key].crc32 else BadValue(value.size)

    def _chunks_have_checksums(self, array: str) -> bool:
        try:
            node = parse_node(self.get(f"{array}/zarr.json") or b"", array)
            chain = node.chain if isinstance(node, ArrayMeta) else None
        except MrecError:
            return False
        shard = chain.shard if chain is not None else None
        pipeline = () if chain is None else chain.pipeline if shard is None else shard.inner.pipeline
        return bool(pipeline) and pipeline[-1][0] == "crc32c"

    def check(self, key: str) -> None:
        """Read a file, and note when that fails or its CRC-32 does not match."""
        if key in self.bad:
            return
        try:
            if key in self.entries:
                if self.crc32(key) != self.entries[key].crc32:
                    self.bad[key] = "the CRC-32 of the entry does not match"
            elif (value := self.open(key)) is not None:
                for start in range(0, max(value.size, 1), _STEP):
                    value.read(start, _STEP)
        except OSError as e:
            self.bad[key] = f"it cannot be read: {e.strerror or e}"

    def check_documents(self, key: str = "") -> None:
        """Check every file but the chunks of the trajectory, which have checksums of their own."""
        for found in self.store.walk(key):
            if not found.startswith(f"{ROOT}/") or "/c/" not in found:
                self.check(found)

# SPDX-License-Identifier: BSD-3-Clause
"""Changes to a record on disk: documents, index entries, bytes and elements of chunks."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mrec import _core
from mrec.zarr.metadata import ArrayMeta, parse_array

NOWHERE = 2**64 - 1


def document(node: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the document of a node, in the form that mrec writes."""
    file = node / "zarr.json"
    found = json.loads(file.read_text())
    change(found)
    file.write_text(json.dumps(found, separators=(",", ":")))


def attributes(node: Path, **values: Any) -> None:
    """Set attributes of a node; None takes one away."""

    def change(found: dict[str, Any]) -> None:
        there = {**found.get("attributes", {}), **values}
        found["attributes"] = {key: value for key, value in there.items() if value is not None}

    document(node, change)


def schema(record: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the declaration."""
    document(record / "trajectory", lambda found: change(found["attributes"]["sequence_schema"]))


def shape(array: Path, length: int) -> None:
    """Set the length of an array."""
    document(array, lambda found: found["shape"].__setitem__(0, length))


class Shard:
    """One shard file of an array, its index at the start."""

    def __init__(self, array: Path, number: int = 0) -> None:
        self.meta: ArrayMeta = parse_array((array / "zarr.json").read_bytes(), "zarr.json")
        form = self.meta.chain.shard
        assert form is not None
        self.extent = form.chunk_shape
        self.pipeline = form.inner.pipeline
        self.count = self.meta.grid[0] // self.extent[0]
        self.path = array / "c" / str(number)
        for _ in self.meta.shape[1:]:
            self.path /= "0"
        self.data = bytearray(self.path.read_bytes())

    def entry(self, chunk: int) -> tuple[int, int]:
        return struct.unpack_from("<QQ", self.data, 16 * chunk)

    def set_entry(self, chunk: int, offset: int, nbytes: int) -> None:
        struct.pack_into("<QQ", self.data, 16 * chunk, offset, nbytes)
        size = 16 * self.count
        struct.pack_into("<I", self.data, size, _core.crc32c(bytes(self.data[:size])))
        self.save()

    def save(self) -> None:
        self.path.write_bytes(self.data)

    def flip(self, at: int) -> None:
        self.data[at] ^= 0x10
        self.save()

    def chunk(self, chunk: int) -> bytes:
        offset, nbytes = self.entry(chunk)
        return bytes(self.data[offset : offset + nbytes])

    def replace(self, chunk: int, raw: bytes) -> None:
        """Other bytes for a chunk, at the end of the file."""
        at = len(self.data)
        self.data += raw
        self.set_entry(chunk, at, len(raw))

    def edit(self, chunk: int, change: Callable[[np.ndarray], Any]) -> None:
        """Change the elements of a chunk."""
        size = int(np.prod(self.extent)) * self.meta.dtype.itemsize
        values = np.frombuffer(bytearray(_core.decode(self.pipeline, self.chunk(chunk), size)), self.meta.dtype)
        values = values.reshape(self.extent)
        change(values)
        self.replace(chunk, _core.encode(self.pipeline, values.tobytes()))

    def edit_text(self, chunk: int, old: bytes, new: bytes) -> None:
        """Put other bytes of the same length into the strings of a chunk."""
        text = _core.decode(self.pipeline, self.chunk(chunk))
        assert old in text and len(old) == len(new)
        self.replace(chunk, _core.encode(self.pipeline, text.replace(old, new, 1)))

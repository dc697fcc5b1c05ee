# SPDX-License-Identifier: BSD-3-Clause
"""Writing a fixed-size array, whole, by the extents of docs (storage.md, "Extents")."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mrec.zarr.encoding import file_encoder
from mrec.zarr.metadata import ArrayMeta, GroupMeta

CHUNK_BYTES = 512 * 1024
#: So many chunks are files of their own; more share one shard.
MOST_FILES = 4

CRC32C = {"name": "crc32c"}
BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
GZIP = {"name": "gzip", "configuration": {"level": 1}}


def codecs_of(dtype: np.dtype, rounded: bool = False, plain: bool = False) -> list[Any]:
    """The codecs that the format's table names for a type; rounded: an f64 column with a precision; plain: a cell."""
    if rounded:
        shuffle = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 8}}
        return [BYTES, shuffle, {"name": "zstd", "configuration": {"level": 3, "checksum": False}}, CRC32C]
    if dtype.kind == "T":
        return [{"name": "vlen-utf8"}, GZIP, CRC32C]
    return [BYTES, CRC32C] if plain or dtype.kind in "fc" else [BYTES, GZIP, CRC32C]


def write_group(path: str, attributes: dict[str, Any] | None = None) -> None:
    """A new group in a new directory."""
    os.mkdir(path)
    _write(os.path.join(path, "zarr.json"), GroupMeta(attributes or {}).document().encode())


def write_array(
    path: str, values: np.ndarray, data_type: str, codecs: list[Any], attributes: dict[str, Any] | None = None
) -> None:
    """A new array in a new directory; strings as an array of objects or StringDType. Every file is synced."""
    rows, nchunks = _extents(values, data_type)
    chunk = (rows, *(max(n, 1) for n in values.shape[1:])) if values.ndim else ()
    sharded = nchunks > MOST_FILES
    stored = [sharding(chunk, codecs)] if sharded else codecs
    grid = (rows * nchunks, *chunk[1:]) if sharded else chunk
    fill: Any = "" if data_type == "string" else np.zeros((), values.dtype)[()]
    meta = ArrayMeta(values.shape, data_type, grid, stored, fill, attributes=attributes or {})
    encoder = file_encoder(meta)
    os.mkdir(path)
    _write(os.path.join(path, "zarr.json"), meta.document().encode())
    for i in range(min(nchunks, 1) if sharded else nchunks):
        part = values[i * grid[0] : (i + 1) * grid[0]] if values.ndim else values
        name = "/".join(["c", *([str(i)] if values.ndim else []), *["0"] * (values.ndim - 1)])
        os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
        _write(os.path.join(path, name), encoder.encode(part))


def _extents(values: np.ndarray, data_type: str) -> tuple[int, int]:
    """Rows of a chunk, and chunks."""
    if values.ndim == 0:
        return 1, 1
    n = len(values)
    if n == 0 or values.size == 0:
        return max(n, 1), 0
    if data_type == "string":
        return n, 1
    row_bytes = values.itemsize * (values.size // n)
    rows = min(n, max(1, CHUNK_BYTES // row_bytes))
    return rows, -(-n // rows)


def sharding(chunk: tuple[int, ...], codecs: list[Any]) -> dict[str, Any]:
    """The codec of shards with chunks of this shape, the index at the end."""
    conf = {"chunk_shape": list(chunk), "codecs": codecs, "index_codecs": [BYTES, CRC32C], "index_location": "end"}
    return {"name": "sharding_indexed", "configuration": conf}


def _write(path: str, content: bytes | None) -> None:
    assert content is not None  # without skip_fill every chunk is there
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_file(path: str) -> None:
    """Sync the bytes of one file."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def sync_directories(path: str) -> None:
    """Sync every directory at and below a path, so that the names in them last."""
    for directory, _, _ in os.walk(path, topdown=False):
        sync_directory(directory)


def sync_directory(path: str) -> None:
    """Sync one directory."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

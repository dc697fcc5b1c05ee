# SPDX-License-Identifier: BSD-3-Clause
"""The metadata of a new array, from what one wants of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mrec.errors import InvalidValue, MrecError
from mrec.zarr.cast import cast
from mrec.zarr.codecs import parse_chain
from mrec.zarr.json import checked
from mrec.zarr.metadata import DATA_TYPES, ArrayMeta, element, parse_array, parse_fill
from mrec.zarr.write import BYTES, CHUNK_BYTES, CRC32C, sharding

_SHORT = {"i": "int", "u": "uint", "f": "float", "c": "complex"}


def data_type_of(dtype: Any) -> str:
    """The Zarr data type that "f64", "float64", np.float64 ... or str mean. InvalidValue for another."""
    if isinstance(dtype, str):
        kind, bits = dtype[:1], dtype[1:]
        name = f"{_SHORT[kind]}{bits}" if kind in _SHORT and bits.isdecimal() else dtype
        if name in DATA_TYPES:
            return name
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = np.dtype(object)
    name = "string" if found.kind in "UT" else found.name
    if name not in DATA_TYPES:
        raise InvalidValue(f"{dtype!r} is no type of an array; there are: {', '.join(sorted(DATA_TYPES))}")
    return name


def array_meta(
    shape: int | Sequence[int],
    dtype: Any,
    *,
    chunks: int | Sequence[int] | None = None,
    shards: int | Sequence[int] | None = None,
    fill: Any = None,
    compression: str = "zstd:3",
    codecs: list[Any] | None = None,
    attributes: Mapping[str, Any] | None = None,
    dimension_names: Sequence[str | None] | None = None,
    separator: str = "/",
    where: str = "zarr.json",
) -> ArrayMeta:
    """The document of an array.

    chunks: the shape of a chunk; by default whole rows of about 512 KiB. shards: of a file with many chunks, a multiple
    of it. fill: what was never written (0, False, ""; of floats also "NaN", "-Infinity", or bits as "0x7e01").
    compression: "zstd:n", "gzip:n", "none", after "shuffle+" with
    the bytes of numbers shuffled; a crc32c stands behind. codecs: instead, of a chunk (without shards: of a file), as
    `zarr.json` has them. InvalidValue for what is no array, UnsupportedCodec for a codec that mrec does not know.
    """
    extents = lengths(shape, "shape", 0)
    name = data_type_of(dtype)
    chunk = _chunk(extents, name) if chunks is None else lengths(chunks, "chunks", 1)
    inner = _codecs(name, compression) if codecs is None else _listed(codecs, "codecs")
    grid = chunk if shards is None else lengths(shards, "shards", 1)
    if not len(chunk) == len(grid) == len(extents):
        raise InvalidValue(f"{where}: chunks {list(chunk)} in files {list(grid)} are none of the shape {list(extents)}")
    try:
        meta = ArrayMeta(
            shape=extents,
            data_type=name,
            grid=grid,
            codecs=inner if shards is None else [sharding(chunk, inner)],
            fill=_fill(fill, name, where),
            separator=separator,
            attributes=checked(attributes or {}, f"{where}: attributes"),
            dimension_names=None if dimension_names is None else tuple(_listed(dimension_names, "dimension_names")),
            where=where,
        )
        parse_chain(meta.codecs, grid, element(name), where)
        return parse_array(meta.document(), where)
    except NotImplementedError:
        raise
    except (MrecError, ValueError, TypeError, OverflowError) as e:
        raise InvalidValue(str(e) if isinstance(e, MrecError) else f"{where}: {e}") from None


def lengths(value: int | Sequence[int], what: str, low: int) -> tuple[int, ...]:
    """One length, or one of each axis, as a tuple. InvalidValue, which says `what` they are, below `low`."""
    try:
        found = (value,) if isinstance(value, (int, np.integer)) else tuple(value)
        if any(isinstance(n, (bool, np.bool_)) for n in found):
            raise TypeError
        found = tuple(n.__index__() for n in found)
    except (TypeError, AttributeError):
        raise InvalidValue(f"{what} is {value!r}, no lengths") from None
    if any(n < low for n in found):
        raise InvalidValue(f"{what} is {list(found)}; a length is at least {low}")
    return found


def _listed(value: Any, what: str) -> list[Any]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise InvalidValue(f"{what} is a list, not {value!r}")
    return list(value)


def _chunk(shape: tuple[int, ...], data_type: str) -> tuple[int, ...]:
    """Whole rows of about CHUNK_BYTES together."""
    if not shape:
        return ()
    size = 16 if data_type == "string" else DATA_TYPES[data_type].itemsize
    row = size * max(1, math.prod(shape[1:]))
    return (max(1, min(shape[0], CHUNK_BYTES // row)), *(max(1, n) for n in shape[1:]))


def _codecs(data_type: str, compression: str) -> list[Any]:
    if not isinstance(compression, str):
        raise _no_compression(compression)
    name, _, level = compression.removeprefix("shuffle+").partition(":")
    found: list[Any] = [{"name": "vlen-utf8"} if data_type == "string" else BYTES]
    size = DATA_TYPES[data_type].itemsize
    if compression.startswith("shuffle+") and data_type != "string" and size > 1:
        found.append({"name": "numcodecs.shuffle", "configuration": {"elementsize": size}})
    if name in ("zstd", "gzip") and re.fullmatch("(-?[0-9]{1,9})?", level):
        conf: dict[str, Any] = {"level": int(level or (3 if name == "zstd" else 5))}
        found.append({"name": name, "configuration": {**conf, "checksum": False} if name == "zstd" else conf})
    elif compression != "none":
        raise _no_compression(compression)
    return [*found, CRC32C]


def _no_compression(given: Any) -> InvalidValue:
    return InvalidValue(f"compression is {given!r}; choose zstd:n, gzip:n, none, or shuffle+ before one")


def _fill(fill: Any, data_type: str, where: str) -> Any:
    dtype = DATA_TYPES[data_type]
    if fill is None:
        return "" if data_type == "string" else np.zeros((), dtype)[()]
    if isinstance(fill, str) and dtype.kind == "f":  # "NaN", or bits in hexadecimal
        return parse_fill(fill, data_type, where)
    found = cast(fill, dtype, f"{where}: the fill {fill!r}")
    if found.ndim:
        raise InvalidValue(f"{where}: the fill {fill!r} is no single value")
    return found[()]

# SPDX-License-Identifier: BSD-3-Clause
"""How a trajectory is stored, in the words of a writer's options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from mrec.errors import InvalidValue
from mrec.trajectory.options import compression_option
from mrec.trajectory.schema import Schema
from mrec.zarr.metadata import ArrayMeta

#: The document of an array by its path below `trajectory/`; None where there is none.
MetaOf = Callable[[str], ArrayMeta | None]


def options_of(schema: Schema, meta_of: MetaOf, counts: Mapping[str, Collection[int]]) -> tuple[str | None, int | None]:
    """The compression and the frames in a chunk of a trajectory, None where the options cannot say it.

    counts: block -> the numbers of rows that its updates have.
    """
    lossless: list[str] = []
    rounded: list[str] = []
    for name, block in schema.blocks.items():
        for column in block.columns.values():
            meta = meta_of(f"{name}/{column.name}") if column.dtype.numpy.kind in "fc" else None
            if meta is not None:
                (lossless if column.precision is None else rounded).append(codec_names(_inner(meta)[0]))
    found = lossless or [text.removeprefix("shuffle+") for text in rounded]
    compression = None if not found or (not lossless and found[0] == "zstd:3") else found[0]
    return (compression if _can_say(compression) else None), _per_chunk(schema, meta_of, counts)


def codec_names(codecs: list[Any]) -> str:
    """The compressors of a pipeline as the options name them: "shuffle+zstd:3", "gzip:1", "none"."""
    names = []
    for codec in codecs:
        name, configuration = (codec, {}) if isinstance(codec, str) else (codec["name"], codec.get("configuration", {}))
        if name not in ("bytes", "crc32c", "vlen-utf8"):
            level = f":{configuration['level']}" if "level" in configuration else ""
            names.append(name.removeprefix("numcodecs.") + level)
    return "+".join(names) or "none"


def _can_say(compression: str | None) -> bool:
    try:
        compression_option(compression)
    except InvalidValue:
        return False
    return True


def _per_chunk(schema: Schema, meta_of: MetaOf, counts: Mapping[str, Collection[int]]) -> int | None:
    if len(schema.blocks) != 1:
        return None  # the option is one for all blocks
    name, block = next(iter(schema.blocks.items()))
    rows = set(counts[name])
    meta = meta_of(f"{name}/{next(iter(block.columns), '')}")
    if len(rows) != 1 or rows == {0} or meta is None:
        return None
    frames, left = divmod(_inner(meta)[1], rows.pop())
    return frames if frames and not left else None


def _inner(meta: ArrayMeta) -> tuple[list[Any], int]:
    """The codecs of a chunk, and its rows."""
    outer = meta.codecs[-1]
    if isinstance(outer, dict) and outer.get("name") == "sharding_indexed":
        return outer["configuration"]["codecs"], int(outer["configuration"]["chunk_shape"][0])
    return meta.codecs, int(meta.grid[0])

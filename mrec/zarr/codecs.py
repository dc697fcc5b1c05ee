# SPDX-License-Identifier: BSD-3-Clause
"""The codec list of an array, checked and put in the form that the core takes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeGuard

from mrec.errors import CorruptData, UnsupportedCodec

#: A codec as the core takes it: its name and its options.
Codec = tuple[str, dict[str, Any]]

#: Codecs in one pipeline, and shards inside shards.
MAX_CODECS = 8
MAX_NESTING = 4

HINT = "open this array with zarr-python"


@dataclass(frozen=True, slots=True)
class Shard:
    """`sharding_indexed`: inner chunks behind an index."""

    chunk_shape: tuple[int, ...]
    inner: Chain
    index_at_end: bool
    index_checked: bool
    index_big: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """What a codec list does to a chunk of the array, in the order of encoding.

    order: axis order[i] of the chunk is axis i of what is stored. shard: the chunk is a shard. pipeline: the codecs of
    the bytes; without a shard the first is bytes or vlen-utf8, with one they are what the whole shard went through.
    """

    order: tuple[int, ...]
    shard: Shard | None
    pipeline: tuple[Codec, ...]


@dataclass(frozen=True, slots=True)
class Element:
    """What codecs have to know of a data type."""

    unit: int  # the run of bytes that a byte order reverses: half of a complex number
    is_string: bool


def parse_chain(codecs: Any, shape: tuple[int, ...], element: Element, where: str, depth: int = 0) -> Chain:
    """The chain of a codec list for chunks of `shape`. UnsupportedCodec names what mrec does not know."""
    if not isinstance(codecs, list):
        raise CorruptData(f"{where}: codecs is no list")
    order = tuple(range(len(shape)))
    shard: Shard | None = None
    pipeline: list[Codec] = []
    serial = False
    for codec in codecs:
        name, conf = named(codec, f"{where}: a codec")
        if name == "transpose":
            if serial:
                raise _misplaced(where, name)
            order = _transposed(order, conf, where)
        elif name in ("bytes", "vlen-utf8", "sharding_indexed"):
            if serial:
                raise _misplaced(where, name)
            serial = True
            if name == "sharding_indexed":
                shard = _shard(conf, tuple(shape[i] for i in order), element, where, depth)
            else:
                pipeline.append(_serializer(name, conf, element, where))
        else:
            pipeline.append(_filter(name, conf, where))
            if not serial:
                raise _misplaced(where, name)
    if not serial:
        raise CorruptData(f"{where}: codecs name none that makes bytes of the elements")
    if len(pipeline) > MAX_CODECS:
        raise UnsupportedCodec(f"{where}: {len(pipeline)} codecs in a row; {HINT}")
    return Chain(order, shard, tuple(pipeline))


def named(value: Any, what: str) -> tuple[str, dict[str, Any]]:
    """Name and configuration of an extension point: {"name": ..., "configuration": {...}} or the name alone."""
    if isinstance(value, str):
        return value, {}
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        conf = value.get("configuration", {})
        unknown = set(value) - {"name", "configuration", "must_understand"}
        if isinstance(conf, dict) and not unknown:
            return value["name"], conf
    raise CorruptData(f"{what} is no name with a configuration: {value!r}")


def check_keys(conf: dict[str, Any], known: set[str], what: str) -> None:
    """Refuse configuration keys that are not known: they may change what the bytes mean."""
    unknown = sorted(set(conf) - known)
    if unknown:
        raise UnsupportedCodec(f"{what} has the unknown option {unknown[0]!r}; {HINT}")


def positive_ints(value: Any, n: int, what: str) -> tuple[int, ...]:
    """A list of n integers from 1 to 2^63 - 1."""
    if not isinstance(value, list) or len(value) != n or not all(is_int(v, 1, 2**63 - 1) for v in value):
        raise CorruptData(f"{what} is no list of {n} positive integers: {value!r}")
    return tuple(value)


def is_int(value: Any, low: int, high: int) -> TypeGuard[int]:
    """An integer (no bool) from low to high."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _misplaced(where: str, name: str) -> CorruptData:
    return CorruptData(f"{where}: the codec {name!r} stands at a place where it means nothing")


def _transposed(order: tuple[int, ...], conf: dict[str, Any], where: str) -> tuple[int, ...]:
    check_keys(conf, {"order"}, f"{where}: transpose")
    again = conf.get("order")
    if not isinstance(again, list) or not all(is_int(i, 0, len(order)) for i in again):
        raise CorruptData(f"{where}: the order of transpose is no list of axes: {again!r}")
    if sorted(again) != list(range(len(order))):
        raise CorruptData(f"{where}: the order of transpose is no permutation of {len(order)} axes: {again!r}")
    return tuple(order[i] for i in again)


def _serializer(name: str, conf: dict[str, Any], element: Element, where: str) -> Codec:
    if element.is_string != (name == "vlen-utf8"):
        raise CorruptData(f"{where}: the codec {name!r} does not fit the data type")
    if name == "vlen-utf8":
        check_keys(conf, set(), f"{where}: vlen-utf8")
        return name, {}
    check_keys(conf, {"endian"}, f"{where}: bytes")
    endian = conf.get("endian", "little" if element.unit == 1 else None)
    if endian not in ("little", "big"):
        raise CorruptData(f"{where}: the byte order of bytes is {endian!r}, neither 'little' nor 'big'")
    return name, {"endian": endian, "elementsize": element.unit}


def _filter(name: str, conf: dict[str, Any], where: str) -> Codec:
    what = f"{where}: {name}"
    if name == "crc32c":
        check_keys(conf, set(), what)
        return name, {}
    if name == "gzip":
        check_keys(conf, {"level"}, what)
        return name, {"level": _option(conf, "level", 0, 9, 5, what)}
    if name == "zstd":
        check_keys(conf, {"level", "checksum"}, what)
        checksum = conf.get("checksum", False)
        if not isinstance(checksum, bool):
            raise CorruptData(f"{what}: checksum is {checksum!r}, no bool")
        return name, {"level": _option(conf, "level", -131072, 22, 3, what), "checksum": checksum}
    if name == "numcodecs.shuffle":
        check_keys(conf, {"elementsize"}, what)
        return name, {"elementsize": _option(conf, "elementsize", 1, 2**31 - 1, 4, what)}
    raise UnsupportedCodec(f"{where}: the codec {name!r} is not known; {HINT}")


def _option(conf: dict[str, Any], key: str, low: int, high: int, default: int, what: str) -> int:
    value = conf.get(key, default)
    if not is_int(value, low, high):
        raise CorruptData(f"{what}: {key} is {value!r}")
    return int(value)


def _shard(conf: dict[str, Any], shape: tuple[int, ...], element: Element, where: str, depth: int) -> Shard:
    what = f"{where}: sharding_indexed"
    if depth == MAX_NESTING:
        raise UnsupportedCodec(f"{what}: shards {depth} deep in shards; {HINT}")
    check_keys(conf, {"chunk_shape", "codecs", "index_codecs", "index_location"}, what)
    chunk = positive_ints(conf.get("chunk_shape"), len(shape), f"{what}: chunk_shape")
    if any(s % c for s, c in zip(shape, chunk, strict=True)):
        raise CorruptData(f"{what}: chunks {chunk} do not divide the shard {shape}")
    if math.prod(s // c for s, c in zip(shape, chunk, strict=True)) >= 2**59:
        raise CorruptData(f"{what}: too many chunks in a shard")
    location = conf.get("index_location", "end")
    if location not in ("start", "end"):
        raise CorruptData(f"{what}: index_location is {location!r}")
    index = parse_chain(conf.get("index_codecs"), (1, 2), Element(8, False), f"{what}: index", MAX_NESTING)
    names = [name for name, _ in index.pipeline]
    if index.order != (0, 1) or names not in (["bytes"], ["bytes", "crc32c"]):
        raise UnsupportedCodec(f"{what}: index codecs other than bytes and crc32c; {HINT}")
    inner = parse_chain(conf.get("codecs"), chunk, element, where, depth + 1)
    return Shard(chunk, inner, location == "end", len(names) == 2, index.pipeline[0][1]["endian"] == "big")

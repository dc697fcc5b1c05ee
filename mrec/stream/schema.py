# SPDX-License-Identifier: BSD-3-Clause
"""What a stream holds: dimensions, coordinates, variables, statics, how they are cut and packed."""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mrec.errors import CorruptData, SchemaError
from mrec.names import check_name
from mrec.zarr.codecs import Codec
from mrec.zarr.json import parse
from mrec.zarr.metadata import ArrayMeta

#: Our name, the name in zarr.json.
TYPES = {
    **{"f64": "float64", "f32": "float32", "bool": "bool"},
    **{f"{kind[0]}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
RESERVED = frozenset({"blobs", "tmp", "locks", "c", "zarr.json", "output_manifest.json"})
#: MREC_MAX_AXES of the core.
MOST_AXES = 8
PROFILES = ("diagnostic", "checkpoint", "none", "wasm")
_LEVELS = {"diagnostic": 3, "checkpoint": 1, "wasm": 5}
_BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
_CRC32C = {"name": "crc32c"}
BLOB_KEY = re.compile(r"(?!\.)[A-Za-z0-9._-]{1,128}", re.A)


def data_type(spec: Any, what: str = "a variable") -> str:
    """The zarr name of a type that a stream can hold; SchemaError for another."""
    if isinstance(spec, str) and spec in TYPES:
        return TYPES[spec]
    try:
        name = "" if spec is None else np.dtype(spec).newbyteorder("=").name
    except (TypeError, ValueError):
        name = ""
    if name not in TYPES.values():
        raise SchemaError(f"{what} has the type {spec!r}; a stream holds {', '.join(TYPES)}")
    return name


@dataclass(frozen=True)
class Variable:
    """dims: names, the time dimension first (a static has none). dtype: "f32", "float32", np.float32 ... attrs: CF."""

    dims: tuple[str, ...]
    dtype: str
    attrs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.dims, str):
            raise SchemaError(f"dims is a list of names, not the string {self.dims!r}")
        object.__setattr__(self, "dims", tuple(self.dims))
        object.__setattr__(self, "dtype", data_type(self.dtype))

    @property
    def numpy(self) -> np.dtype:
        """The type of an element."""
        return np.dtype(self.dtype)


@dataclass(frozen=True)
class TimeMode:
    """How records get their index: `append()` or `indexed(n, times)`."""

    n: int | None = None
    times: tuple[Any, ...] | None = None
    rotate: bool = False

    @property
    def indexed(self) -> bool:
        """Whether the axis is fixed."""
        return self.n is not None


def append() -> TimeMode:
    """Records are numbered as they come; their times increase."""
    return TimeMode()


def indexed(n: int, times: Any = None, rewrite: str | None = None) -> TimeMode:
    """An axis of n records that are written in any order. times: all of them, or None when each comes with its record.
    rewrite: "rotate" for restart slots, of which all but the last written may be written again."""
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise SchemaError(f"an indexed stream has a number of records from 1, not {n!r}")
    if rewrite not in (None, "rotate"):
        raise SchemaError(f'rewrite is "rotate" or None, not {rewrite!r}')
    if times is not None and np.shape(times) != (n,):
        raise SchemaError(f"times of the shape {list(np.shape(times))} for {n} records")
    return TimeMode(int(n), None if times is None else tuple(np.asarray(times).tolist()), rewrite == "rotate")


@dataclass(frozen=True)
class StreamSchema:
    """The declaration of a stream.

    dims: name -> length, without the time dimension or with any length for it. variables: name -> Variable, the time
    dimension first. statics: those without time. coords: name -> values or (values, attributes); of the time dimension
    attributes alone. chunk, shard: elements along each dimension, shard a multiple of chunk. profile: "diagnostic"
    (shuffle, zstd 3, crc32c), "checkpoint" (the same at level 1), "none" (crc32c), "wasm" (zstd 5, as earthsciio
    has it). mode: append() or indexed(n, times). SchemaError says what does not fit.
    """

    dims: Mapping[str, int]
    variables: Mapping[str, Variable]
    chunk: Mapping[str, int]
    shard: Mapping[str, int]
    coords: Mapping[str, Any] = field(default_factory=dict)
    statics: Mapping[str, Variable] = field(default_factory=dict)
    profile: str = "diagnostic"
    time_dim: str = "time"
    time_dtype: str = "f64"
    mode: TimeMode = field(default_factory=append)
    attrs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        for what in ("dims", "variables", "statics", "coords", "chunk", "shard"):
            if not isinstance(getattr(self, what), Mapping):
                raise SchemaError(f"{what} is a mapping by name, not {getattr(self, what)!r}")
        if not isinstance(self.mode, TimeMode):
            raise SchemaError(f"the mode is append() or indexed(n), not {self.mode!r}")
        dims = {str(k): v for k, v in self.dims.items()}
        if self.time_dim not in dims:
            dims = {self.time_dim: 0, **dims}
        put(self, "dims", {k: 0 if k == self.time_dim else _length(v, f"the length of {k!r}") for k, v in dims.items()})
        put(self, "time_dtype", data_type(self.time_dtype, "the time"))
        for kind in ("variables", "statics"):
            found = {k: _variable(k, v) for k, v in getattr(self, kind).items()}
            put(self, kind, found)
        put(self, "coords", {k: _coordinate(k, v) for k, v in self.coords.items()})
        for what in ("chunk", "shard"):
            put(self, what, {k: _length(v, f"the {what} of {k!r}") for k, v in getattr(self, what).items()})
        self._check_axes()
        self._check_nodes()
        self._check_times()
        strict_attrs(self.attrs, "the stream")

    # ---- checks ------------------------------------------------------------------------------------------------

    def _check_axes(self) -> None:
        if self.profile not in PROFILES:
            raise SchemaError(f"the profile {self.profile!r} is none of {', '.join(PROFILES)}")
        if self.time_dtype == "bool":
            raise SchemaError("the time is a number, not bool")
        for what, given in (("chunk", self.chunk), ("shard", self.shard)):
            missing = [d for d in self.dims if d not in given]
            unknown = [d for d in given if d not in self.dims]
            if missing or unknown:
                word = "has no" if missing else "has the unknown"
                raise SchemaError(f"{what} {word} dimension {(missing or unknown)[0]!r}")
        for dim in self.dims:
            if self.shard[dim] % self.chunk[dim]:
                raise SchemaError(f"along {dim!r} a shard of {self.shard[dim]} is no multiple of {self.chunk[dim]}")

    def _check_nodes(self) -> None:
        if not self.variables and not self.statics:
            raise SchemaError("a stream has at least one variable or static")
        seen = {self.time_dim}
        for what, nodes in (("variable", self.variables), ("static", self.statics), ("coordinate", self.coords)):
            for name in nodes:
                check_name(name, what, RESERVED)
                if name in seen and name != self.time_dim:
                    raise SchemaError(f"the name {name!r} is given twice")
                if what != "coordinate" and name in self.dims:
                    raise SchemaError(f"{name!r} is a dimension; its values are a coordinate")
                seen.add(name)
        for dim in self.dims:
            check_name(dim, "dimension", RESERVED)
        for name, variable in {**self.variables, **self.statics}.items():
            for dim in variable.dims:
                if dim not in self.dims:
                    raise SchemaError(f"{name!r} has the unknown dimension {dim!r}")
            if len(set(variable.dims)) != len(variable.dims):
                raise SchemaError(f"{name!r} has a dimension twice: {', '.join(variable.dims)}")
            if not variable.dims:
                raise SchemaError(f"the static {name!r} has no dimension; a single value is an attribute")
            if name in self.statics and self.time_dim in variable.dims:
                raise SchemaError(f"the static {name!r} has the time dimension {self.time_dim!r}")
            if name in self.variables and variable.dims[:1] != (self.time_dim,):
                raise SchemaError(f"{name!r}: the time dimension {self.time_dim!r} comes first")
            if len(variable.dims) > MOST_AXES:
                raise SchemaError(f"{name!r} has {len(variable.dims)} dimensions; {MOST_AXES} is the most")
            strict_attrs(variable.attrs, repr(name))
            shape = [self.shard[d] for d in variable.dims]
            if math.prod(shape) * variable.numpy.itemsize >= 2**62:
                raise SchemaError(f"{name!r}: a shard of {shape} is too large")
        for name, (values, attrs) in self.coords.items():
            strict_attrs(attrs, repr(name))
            if name == self.time_dim:
                continue
            if name not in self.dims:
                raise SchemaError(f"the coordinate {name!r} is no dimension")
            if values is None or values.shape != (self.dims[name],):
                given = "nothing" if values is None else list(values.shape)
                raise SchemaError(f"the coordinate {name!r} has {self.dims[name]} values, not {given}")

    def _check_times(self) -> None:
        mode = self.mode
        if not mode.indexed:
            return
        if mode.rotate and self.shard[self.time_dim] != 1:
            raise SchemaError(f'rewrite="rotate" needs a time shard of 1, not {self.shard[self.time_dim]}')
        if mode.times is not None:
            times = np.asarray([self.time_value(t) for t in mode.times], self.time_dtype)
            if np.any(times[1:] <= times[:-1]):
                at = int(np.argmax(times[1:] <= times[:-1])) + 1
                raise SchemaError(f"times increase; time {at} is {times[at]}, after {times[at - 1]}")

    # ---- values ------------------------------------------------------------------------------------------------

    def time_value(self, t: Any) -> Any:
        """A time in its type: a finite number; a type of integers holds it exactly, one of floats may round it."""
        try:
            if not isinstance(t, (float, int)) and (np.ndim(t) or np.asarray(t).dtype.kind not in "iuf"):
                raise ValueError
            if isinstance(t, bool):
                raise ValueError
            value = np.asarray(t, self.time_dtype)[()]
        except (OverflowError, ValueError, TypeError):
            raise SchemaError(f"{t!r} is no time of type {self.time_dtype}") from None
        if not np.isfinite(value):
            raise SchemaError(f"a time is finite, not {t!r}")
        if value.dtype.kind in "iu" and value != t:
            raise SchemaError(f"{t!r} is no time of type {self.time_dtype}")
        return value

    # ---- arrays ------------------------------------------------------------------------------------------------

    @property
    def shard_time(self) -> int:
        """Records of a shard."""
        return self.shard[self.time_dim]

    @property
    def time_attrs(self) -> dict[str, Any]:
        """The attributes of the time coordinate."""
        found: dict[str, Any] = self.coords.get(self.time_dim, (None, {}))[1]
        return found

    def node(self, name: str) -> Variable:
        """A variable, static, coordinate or the time."""
        found = self.variables.get(name) or self.statics.get(name)
        if found is not None:
            return found
        if name == self.time_dim:
            return Variable((name,), self.time_dtype, self.time_attrs)
        values, attrs = self.coords[name]
        return Variable((name,), values.dtype, attrs)

    def nodes(self) -> list[str]:
        """The names of all arrays, coordinates first."""
        return [*(c for c in self.coords if c != self.time_dim), self.time_dim, *self.variables, *self.statics]

    def shape(self, variable: Variable, records: int) -> tuple[int, ...]:
        """The shape of an array when there are so many records."""
        return tuple(records if d == self.time_dim else self.dims[d] for d in variable.dims)

    def array_meta(self, name: str, records: int) -> ArrayMeta:
        """The document of an array; its attributes have _ARRAY_DIMENSIONS added."""
        variable = self.node(name)
        attrs = {**variable.attrs, "_ARRAY_DIMENSIONS": list(variable.dims)}
        chunk = [self.chunk[d] for d in variable.dims]
        conf = {
            "chunk_shape": chunk,
            "codecs": inner_codecs(self.profile, variable.numpy.itemsize),
            "index_codecs": [_BYTES, _CRC32C],
            "index_location": "end",
        }
        grid = tuple(self.shard[d] for d in variable.dims)
        return ArrayMeta(
            shape=self.shape(variable, records),
            data_type=variable.dtype,
            grid=grid,
            codecs=[{"name": "sharding_indexed", "configuration": conf}],
            fill=np.zeros((), variable.numpy)[()],
            attributes=attrs,
            dimension_names=variable.dims,
        )

    def pipeline(self, variable: Variable) -> tuple[Codec, ...]:
        """The codecs of an inner chunk, as the core takes them."""
        return tuple(
            (c["name"], {**c.get("configuration", {}), **({"elementsize": size} if c["name"] == "bytes" else {})})
            for size in (variable.numpy.itemsize,)
            for c in inner_codecs(self.profile, size)
        )

    # ---- identity ----------------------------------------------------------------------------------------------

    def codec(self) -> dict[str, Any]:
        """The member `codec` of the manifest."""
        if self.profile == "wasm":
            return {"id": "zstd", "level": 5, "checksum": False}
        if self.profile == "none":
            return {"id": "none", "crc32c": True}
        return {"id": "zstd", "level": _LEVELS[self.profile], "shuffle": True, "crc32c": True}

    def mode_json(self) -> dict[str, Any]:
        """The member `time_mode` of the manifest, times as 16 hexadecimal digits."""
        if not self.mode.indexed:
            return {"kind": "append"}
        times = None if self.mode.times is None else [time_hex(t, self.time_dtype) for t in self.mode.times]
        rewrite = "rotate" if self.mode.rotate else None
        return {"kind": "indexed", "n": self.mode.n, "times": times, "rewrite": rewrite}

    def vars_json(self, nodes: Mapping[str, Variable]) -> list[dict[str, Any]]:
        """Variables or statics as the manifest has them."""
        return [{"name": n, "dims": list(v.dims), "dtype": v.dtype} for n, v in nodes.items()]

    def fingerprint(self, partition_dims: Sequence[str]) -> str:
        """SHA-256 of the canonical JSON of what all writers have to agree on."""
        what = {
            "chunk_shape": dict(self.chunk),
            "codec": self.codec(),
            "dims": [{"name": d, "length": n} for d, n in self.dims.items() if d != self.time_dim],
            "partition_dims": list(partition_dims),
            "profile": self.profile,
            "shard_shape": dict(self.shard),
            "statics": self.vars_json(self.statics),
            "time_dim": self.time_dim,
            "time_dtype": self.time_dtype,
            "time_mode": self.mode_json(),
            "vars": self.vars_json(self.variables),
        }
        text = json.dumps(what, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


def inner_codecs(profile: str, itemsize: int) -> list[Any]:
    """The codecs of an inner chunk in `zarr.json`."""
    zstd = {"name": "zstd", "configuration": {"level": _LEVELS.get(profile), "checksum": False}}
    if profile == "none":
        return [_BYTES, _CRC32C]
    if profile == "wasm":
        return [_BYTES, zstd]
    shuffle = {"name": "numcodecs.shuffle", "configuration": {"elementsize": itemsize}}
    return [_BYTES, *([shuffle] if itemsize > 1 else []), zstd, _CRC32C]


def time_hex(t: Any, dtype: str) -> str:
    """The 64 bits of a time, of f32 and narrow integers widened, as 16 hexadecimal digits."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        return struct.pack(">d", float(t)).hex()
    return struct.pack(">q" if kind == "i" else ">Q", int(t)).hex()


def time_from_hex(text: Any, dtype: str) -> Any:
    """The inverse of `time_hex`. ValueError when it is none of that type."""
    if not isinstance(text, str) or not re.fullmatch(r"[0-9a-f]{16}", text):
        raise ValueError(f"{text!r} is no time of 16 hexadecimal digits")
    kind = np.dtype(dtype).kind
    value = struct.unpack({"f": ">d", "i": ">q"}.get(kind, ">Q"), bytes.fromhex(text))[0]
    found = np.asarray(value, dtype)[()]
    if time_hex(found, dtype) != text or not np.isfinite(found):
        raise ValueError(f"{text!r} is no finite time of type {dtype}")
    return found


def strict_attrs(attrs: Mapping[str, Any], what: str) -> None:
    """SchemaError unless the attributes are strict JSON that reads back the same."""
    try:
        if parse(json.dumps(dict(attrs), allow_nan=False), what) != attrs:
            raise ValueError("they do not read back the same")
    except (TypeError, ValueError, RecursionError, CorruptData) as e:
        raise SchemaError(f"the attributes of {what} are no JSON: {e}") from None


def _length(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value < 2**48:
        raise SchemaError(f"{what} is a number from 1 to 2^48, not {value!r}")
    return int(value)


def _variable(name: Any, given: Any) -> Variable:
    try:
        return given if isinstance(given, Variable) else Variable(*given)
    except TypeError:
        raise SchemaError(f"{name!r} is a Variable(dims, dtype, attrs), not {given!r}") from None


def _coordinate(name: str, given: Any) -> tuple[np.ndarray | None, dict[str, Any]]:
    values, attrs = (
        given if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping) else (given, {})
    )
    if isinstance(values, Mapping):
        values, attrs = None, values
    if values is not None:
        try:
            values = np.array(values)
        except ValueError as e:
            raise SchemaError(f"the coordinate {name!r} is no array: {e}") from None
        values = values.astype(data_type(values.dtype, f"the coordinate {name!r}"))
    return values, dict(attrs)

# SPDX-License-Identifier: BSD-3-Clause
"""`zarr.json`: documents of arrays and groups, parsed strictly and written in one form."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mrec.errors import CorruptData, UnsupportedCodec, UnsupportedVersion
from mrec.zarr.codecs import HINT, Chain, Element, check_keys, is_int, named, parse_chain, positive_ints
from mrec.zarr.json import dump, parse_object

MAX_BYTES = 2**63 - 1

#: MREC_MAX_AXES of csrc/strided.h; axes of an array of numpy.
MOST_AXES, NUMPY_AXES = 8, 64

_NUMPY: dict[str, Any] = {
    "bool": np.bool_,
    **{f"{kind}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    "float64": np.float64,
    "complex64": np.complex64,
    "complex128": np.complex128,
    "string": np.dtypes.StringDType(),
    "float32": np.float32,
    "float16": np.float16,
}

#: How the document of an array begins that the core wrote; no other program is known to write it so.
_COMPACT = b'{"zarr_format":3,"node_type":"array","shape":['

#: Zarr data type -> numpy, in the order of `enum mrec_dtype` (mrec.h).
DATA_TYPES: dict[str, np.dtype] = {name: np.dtype(dtype) for name, dtype in _NUMPY.items()}
_CODES = {name: code for code, name in enumerate(DATA_TYPES)}

_GROUP_KEYS = {"zarr_format", "node_type", "attributes", "consolidated_metadata"}
_ARRAY_KEYS = {
    *("zarr_format", "node_type", "attributes", "shape", "data_type", "chunk_grid", "chunk_key_encoding"),
    *("fill_value", "codecs", "dimension_names", "storage_transformers"),
}


def element(data_type: str) -> Element:
    """What codecs have to know of a data type."""
    dtype = DATA_TYPES[data_type]
    unit = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
    return Element(unit, data_type == "string")


@dataclass(frozen=True, slots=True)
class GroupMeta:
    """The document of a group. foreign: keys of other programs, which stay as they are."""

    attributes: dict[str, Any] = field(default_factory=dict)
    foreign: dict[str, Any] = field(default_factory=dict, compare=False)

    def document(self) -> str:
        """The text of `zarr.json`."""
        return dump(_with_attributes({"zarr_format": 3, "node_type": "group", **self.foreign}, self.attributes))


@dataclass(frozen=True, slots=True)
class ArrayMeta:
    """The document of an array.

    grid: the shape of a chunk of the grid, one file each. fill: one element as Python has it (floats that are not
    finite too). codecs: as the document has them; `chain` is what they mean. compact: the text is one that the core
    wrote, and stays so; mrec.verify knows by it that nothing of the array may be missing. foreign: as of a group.
    """

    shape: tuple[int, ...]
    data_type: str
    grid: tuple[int, ...]
    codecs: list[Any]
    fill: Any
    separator: str = "/"
    v2_keys: bool = False
    attributes: dict[str, Any] = field(default_factory=dict)
    dimension_names: tuple[str | None, ...] | None = None
    where: str = "zarr.json"
    compact: bool = field(default=False, compare=False)
    foreign: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def dtype(self) -> np.dtype:
        """The numpy type of an element."""
        return DATA_TYPES[self.data_type]

    @property
    def code(self) -> int:
        """The type's number in `enum mrec_dtype`."""
        return _CODES[self.data_type]

    @property
    def chain(self) -> Chain:
        """The codecs, checked. UnsupportedCodec names one that mrec does not know."""
        return parse_chain(self.codecs, self.grid, element(self.data_type), self.where)

    def fill_bytes(self) -> bytes:
        """One element of the fill as memory has it; the text of a string."""
        return self.fill.encode() if self.data_type == "string" else np.array(self.fill, self.dtype).tobytes()

    def chunk_key(self, at: Iterable[int]) -> str:
        """The key of a chunk of the grid, below the array's own."""
        parts = [*([] if self.v2_keys else ["c"]), *map(str, at)]
        return self.separator.join(parts) or "0"

    def chunk_at(self, key: str) -> tuple[int, ...] | None:
        """The place in the grid of a chunk's key; None when the key is no chunk's."""
        parts = key.split(self.separator)
        if not self.v2_keys and parts.pop(0) != "c":
            return None
        if self.v2_keys and not self.shape:
            parts = [] if parts == ["0"] else ["none"]
        if len(parts) != len(self.shape) or not all(part.isdecimal() and part.isascii() for part in parts):
            return None
        at = tuple(map(int, parts))
        return at if self.chunk_key(at) == key else None

    def document(self, length: int | None = None) -> str:
        """The text of `zarr.json`, with another length of the first axis when one is given."""
        shape = list(self.shape)
        if length is not None:
            shape[0] = length
        return dump(self._document(shape), self.compact)

    def split_leading(self) -> tuple[str, str]:
        """The text around the first entry of the shape: prefix + str(n) + suffix == document(n)."""
        text = self.document(0)
        start = '"shape":[' if self.compact else '"shape": [\n    '
        at = text.index(start) + len(start)
        return text[:at], text[at + 1 :]

    def _document(self, shape: list[int]) -> dict[str, Any]:
        key_encoding = "v2" if self.v2_keys else "default"
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": self.data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(self.grid)}},
            "chunk_key_encoding": {"name": key_encoding, "configuration": {"separator": self.separator}},
            "fill_value": fill_json(self.fill, self.data_type),
            "codecs": self.codecs,
        }
        if self.dimension_names is not None:
            document["dimension_names"] = list(self.dimension_names)
        return _with_attributes({**document, **self.foreign}, self.attributes)


def parse_node(raw: bytes | str, where: str) -> ArrayMeta | GroupMeta:
    """The node that the text of a `zarr.json` describes. `where` names it in errors."""
    document = parse_object(raw, where)
    if document.get("zarr_format") != 3 or isinstance(document["zarr_format"], bool):
        raise UnsupportedVersion(f"{where}: zarr_format is {document.get('zarr_format')!r}; mrec reads 3")
    kind = document.get("node_type")
    if kind not in ("array", "group"):
        raise CorruptData(f"{where}: node_type is {kind!r}, neither 'array' nor 'group'")
    foreign = _foreign(document, _ARRAY_KEYS if kind == "array" else _GROUP_KEYS, where)
    attributes = document.get("attributes", {})
    if not isinstance(attributes, dict):
        raise CorruptData(f"{where}: attributes is no object")
    if kind == "group":
        if "consolidated_metadata" in document:
            foreign["consolidated_metadata"] = document["consolidated_metadata"]
        return GroupMeta(attributes, foreign)
    return replace(_parse_array(document, attributes, where), compact=is_compact(raw), foreign=foreign)


def is_compact(raw: bytes | str) -> bool:
    """Whether the text of an array's `zarr.json` begins as the core writes it."""
    return raw.startswith(_COMPACT) if isinstance(raw, bytes) else raw.startswith(_COMPACT.decode())


def parse_array(raw: bytes | str, where: str) -> ArrayMeta:
    """The same for what has to be an array."""
    node = parse_node(raw, where)
    if not isinstance(node, ArrayMeta):
        raise CorruptData(f"{where}: a group stands where an array has to be")
    return node


def parse_group(raw: bytes | str, where: str) -> GroupMeta:
    """The same for what has to be a group."""
    node = parse_node(raw, where)
    if not isinstance(node, GroupMeta):
        raise CorruptData(f"{where}: an array stands where a group has to be")
    return node


def fill_of(meta: ArrayMeta) -> np.ndarray:
    """The fill as an array without axes."""
    return np.array(meta.fill, meta.dtype)


def _with_attributes(document: dict[str, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    return {**document, "attributes": attributes} if attributes else document


def _foreign(document: dict[str, Any], known: set[str], where: str) -> dict[str, Any]:
    """What nobody has to understand; UnsupportedVersion names a key that one has to."""
    found = {key: value for key, value in document.items() if key not in known}
    for key, value in found.items():
        if not (isinstance(value, dict) and value.get("must_understand") is False):
            raise UnsupportedVersion(f"{where}: the key {key!r} is not known, and may change what the node means")
    return found


def _parse_array(document: dict[str, Any], attributes: dict[str, Any], where: str) -> ArrayMeta:
    missing = {"shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"} - set(document)
    if missing:
        raise CorruptData(f"{where}: {min(missing)} is missing")
    if document.get("storage_transformers"):
        raise UnsupportedCodec(f"{where}: storage transformers are not known; {HINT}")
    shape = document["shape"]
    if not isinstance(shape, list) or not all(is_int(n, 0, MAX_BYTES) for n in shape):
        raise CorruptData(f"{where}: the shape is no list of lengths: {shape!r}")
    if len(shape) > NUMPY_AXES:
        raise UnsupportedCodec(f"{where}: an array of {len(shape)} axes; numpy has {NUMPY_AXES} at most")
    data_type = _data_type(document["data_type"], where)
    grid = _grid(document["chunk_grid"], len(shape), where)
    itemsize = DATA_TYPES[data_type].itemsize
    for what, extents in (("shape", shape), ("chunk shape", grid)):
        if math.prod(max(n, 1) for n in extents) * itemsize > MAX_BYTES:
            raise CorruptData(f"{where}: the {what} {list(extents)} is too large")
    v2_keys, separator = _keys(document["chunk_key_encoding"], where)
    return ArrayMeta(
        shape=tuple(shape),
        data_type=data_type,
        grid=grid,
        codecs=document["codecs"],
        fill=parse_fill(document["fill_value"], data_type, where),
        separator=separator,
        v2_keys=v2_keys,
        attributes=attributes,
        dimension_names=_dimension_names(document.get("dimension_names"), len(shape), where),
        where=where,
    )


def _data_type(value: Any, where: str) -> str:
    name, conf = named(value, f"{where}: data_type")
    if name not in DATA_TYPES or conf:
        raise UnsupportedCodec(f"{where}: the data type {name!r} is not known; {HINT}")
    return name


def _grid(value: Any, ndim: int, where: str) -> tuple[int, ...]:
    name, conf = named(value, f"{where}: chunk_grid")
    if name != "regular":
        raise UnsupportedCodec(f"{where}: the chunk grid {name!r} is not known; {HINT}")
    check_keys(conf, {"chunk_shape"}, f"{where}: chunk_grid")
    return positive_ints(conf.get("chunk_shape"), ndim, f"{where}: chunk_shape")


def _keys(value: Any, where: str) -> tuple[bool, str]:
    name, conf = named(value, f"{where}: chunk_key_encoding")
    if name not in ("default", "v2"):
        raise UnsupportedCodec(f"{where}: the chunk key encoding {name!r} is not known; {HINT}")
    check_keys(conf, {"separator"}, f"{where}: chunk_key_encoding")
    separator = conf.get("separator", "." if name == "v2" else "/")
    if separator not in ("/", "."):
        raise CorruptData(f"{where}: the separator of chunk keys is {separator!r}")
    return name == "v2", separator


def _dimension_names(value: Any, ndim: int, where: str) -> tuple[str | None, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != ndim or not all(n is None or isinstance(n, str) for n in value):
        raise CorruptData(f"{where}: dimension_names is no list of {ndim} names: {value!r}")
    return tuple(value)


def source_spec(meta: ArrayMeta) -> dict[str, Any] | None:
    """What `mrec._core.Source` and `Encoder` have to know of an array; None when they have no form for its codecs."""
    chain = meta.chain
    shard, inner = chain.shard, chain
    if shard is not None:
        inner = shard.inner
        if chain.pipeline or chain.order != tuple(range(len(chain.order))) or inner.shard is not None:
            return None
    if len(meta.shape) > MOST_AXES:
        return None
    return {
        "code": meta.code,
        "shape": meta.shape,
        "grid": meta.grid,
        "chunk": shard.chunk_shape if shard else meta.grid,
        "sharded": shard is not None,
        "index_at_end": shard is not None and shard.index_at_end,
        "index_checked": shard is not None and shard.index_checked,
        "index_big": shard is not None and shard.index_big,
        "order": inner.order,
        "separator": meta.separator,
        "v2_keys": meta.v2_keys,
        "pipeline": inner.pipeline,
        "fill": meta.fill_bytes(),
    }


# ---- fill values -------------------------------------------------------------------------------------------------

_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def parse_fill(value: Any, data_type: str, where: str = "zarr.json") -> Any:
    """The element that a `fill_value` stands for; CorruptData when it is none of the data type."""
    dtype = DATA_TYPES[data_type]
    if dtype.kind == "b" and isinstance(value, bool):
        return value
    if dtype.kind == "T" and isinstance(value, str):
        return value
    if dtype.kind in "iu" and is_int(value, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)):
        return value
    if dtype.kind == "f":
        number = _float_fill(value, dtype)
        if number is not None:
            return number
    if dtype.kind == "c" and isinstance(value, list) and len(value) == 2:
        half = np.dtype(f"f{dtype.itemsize // 2}")
        parts = [_float_fill(v, half) for v in value]
        if parts[0] is not None and parts[1] is not None:
            return np.array(parts, half).view(dtype)[0]
    raise CorruptData(f"{where}: the fill value {value!r} is no {data_type}")


def _float_fill(value: Any, dtype: np.dtype) -> Any:
    """A float from a number (the nearest), a name, or its bits in hexadecimal; None when it is none of them."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            with np.errstate(over="ignore"):
                return dtype.type(value)
        except OverflowError:
            return None
    if isinstance(value, str) and value in _NOT_FINITE:
        return dtype.type(_NOT_FINITE[value])
    if isinstance(value, str) and re.fullmatch(f"0x[0-9a-fA-F]{{{2 * dtype.itemsize}}}", value):
        return np.array(int(value[2:], 16), f"u{dtype.itemsize}").view(dtype)[()]
    return None


def fill_json(value: Any, data_type: str) -> Any:
    """The form of a fill value in `zarr.json`."""
    dtype = DATA_TYPES[data_type]
    if dtype.kind == "c":
        return [_float_json(part) for part in np.array([value], dtype).view(f"f{dtype.itemsize // 2}")]
    if dtype.kind == "f":
        return _float_json(dtype.type(value))
    return value.item() if isinstance(value, np.generic) else value


def _float_json(value: Any) -> Any:
    if math.isfinite(value):
        return float(value)
    bits = value.view(f"u{value.dtype.itemsize}")
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    quiet = value.dtype.type(math.nan).view(bits.dtype)
    return "NaN" if bits == quiet else f"0x{int(bits):0{2 * value.dtype.itemsize}x}"

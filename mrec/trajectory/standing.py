# SPDX-License-Identifier: BSD-3-Clause
"""Which state of a trajectory stands: that of the marker on disk, or that of the durable file after a power loss.

The marker is `trajectory/zarr.json`; a record that is being written, or was not closed, has `trajectory/.durable`
beside it. docs/order-of-writes.md says what can be on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from mrec._core import boot_id
from mrec.errors import CorruptData, NotARecord, SchemaError, UnsupportedVersion
from mrec.trajectory.schema import Schema
from mrec.zarr.codecs import is_int
from mrec.zarr.group import is_path
from mrec.zarr.json import parse_object
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_group, parse_node
from mrec.zarr.store import Store

ROOT = "trajectory"
MARKER = "trajectory/zarr.json"
DURABLE = "trajectory/.durable"
DURABLE_FORMAT = 1

Node = ArrayMeta | GroupMeta
Tail = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a power loss cost: `nstep` frames stand, of `published` that readers had seen (None: not known)."""

    nstep: int
    published: int | None

    @property
    def cut(self) -> int | None:
        """The number of frames that are gone; None when it is not known."""
        return None if self.published is None else self.published - self.nstep

    def __str__(self) -> str:
        cut = "frames" if self.cut is None else f"{self.cut} frames"
        return f"the machine stopped: {self.nstep} frames stand, {cut} after the last durable flush were cut"


@dataclass(frozen=True, slots=True)
class Durable:
    """A parsed durable file. complete: our writer stored every chunk, so that a missing one is damage."""

    boot_id: str
    nstep: int
    complete: bool
    documents: dict[str, str]
    tails: dict[str, Tail]


@dataclass(frozen=True)
class Standing:
    """The state that stands.

    nodes: path below `trajectory/` -> document, for what the schema declares and is there. tails: path -> where the
    last chunk is, where the index may not be believed. absent_is_loss: our writer stores every chunk, so a missing one
    is damage. token: changes when the state on disk does.
    """

    attributes: dict[str, Any]
    schema: Schema
    nstep: int | None
    nodes: dict[str, Node]
    tails: dict[str, Tail]
    absent_is_loss: bool
    recovered: Recovered | None
    token: tuple[bytes | None, bytes | None]
    durable: Durable | None = None

    def array(self, path: str) -> ArrayMeta | None:
        """The document of an array below `trajectory/`; None when there is none."""
        node = self.nodes.get(path)
        if isinstance(node, GroupMeta):
            raise CorruptData(f"{ROOT}/{path}: a group stands where an array has to be")
        return node

    def group(self, path: str) -> GroupMeta | None:
        """The same for a group."""
        node = self.nodes.get(path)
        if isinstance(node, ArrayMeta):
            raise CorruptData(f"{ROOT}/{path}: an array stands where a group has to be")
        return node


def read_token(store: Store) -> tuple[bytes | None, bytes | None]:
    """The durable file, then the marker: in this order a marker that is older than the durable file was really so."""
    durable = store.get(DURABLE)
    return durable, store.get(MARKER)


def read_standing(store: Store) -> Standing | None:
    """The state of the trajectory that stands; None when there is none in this record."""
    token = read_token(store)
    durable = parse_durable(token[0], store.path(DURABLE)) if token[0] is not None else None
    marker = _parse_marker(token[1], durable, store)
    if marker is None and durable is None:
        return None
    if durable is None or (marker is not None and _marker_stands(marker, durable)):
        assert marker is not None
        ours = durable is not None and durable.complete and marker.get("nstep", 0) == marker.get("mrec_nstep")
        return _standing(marker, store.get, store, {}, ours, None, token)
    published = None if marker is None else marker.get("nstep", 0)
    cut = Recovered(durable.nstep, published) if published is None or published > durable.nstep else None
    own = parse_group(durable.documents[MARKER], f"{store.path(DURABLE)}: {MARKER}").attributes
    if not is_int(own.get("nstep"), durable.nstep, durable.nstep):
        raise CorruptData(f"{store.path(DURABLE)}: nstep is {durable.nstep}, in the document {own.get('nstep')!r}")
    standing = _standing(own, durable.documents.get, None, durable.tails, durable.complete, cut, token)
    return replace(standing, durable=durable)


# ---- marker or durable file --------------------------------------------------------------------------------------


def _parse_marker(raw: bytes | None, durable: Durable | None, store: Store) -> dict[str, Any] | None:
    """The marker's attributes. None: it is not there, or a power loss left a name without the bytes."""
    where = store.path(MARKER)
    foreign_boot = durable is not None and not _is_this_boot(durable)
    if raw is None:
        if durable is not None and not foreign_boot:
            raise NotARecord(f"{where} is not there: the record is still being created, or its creation failed")
        return None
    try:
        attributes = parse_group(raw, where).attributes
        for key in ("nstep", "mrec_nstep"):
            if key in attributes and not is_int(attributes[key], 0, 2**63 - 1):
                raise CorruptData(f"{where}: {key} is {attributes[key]!r}")
    except CorruptData:
        if not foreign_boot:
            raise
        return None
    return attributes


def _marker_stands(marker: dict[str, Any], durable: Durable) -> bool:
    """The rules of storage.md, "Which state stands", for a record with a durable file."""
    nstep = marker.get("nstep", 0)
    if durable.nstep > nstep:
        return False
    if _is_this_boot(durable):
        return True
    return bool(nstep > durable.nstep and nstep != marker.get("mrec_nstep"))


def _is_this_boot(durable: Durable) -> bool:
    """Whether the machine surely runs since the durable file was written; no identity is none to trust."""
    return durable.boot_id != "" and durable.boot_id == boot_id()


def parse_durable(raw: bytes, where: str) -> Durable:
    """A durable file; it is synced before it is renamed, so anything but a whole one is damage."""
    document = parse_object(raw, where)
    if document.get("format") != DURABLE_FORMAT:
        raise UnsupportedVersion(f"{where}: format is {document.get('format')!r}; mrec knows {DURABLE_FORMAT}")
    boot, nstep = document.get("boot_id"), document.get("nstep")
    documents, tails = document.get("documents"), document.get("tails")
    if not isinstance(boot, str) or not is_int(nstep, 0, 2**63 - 1):
        raise CorruptData(f"{where}: boot_id is {boot!r}, nstep {nstep!r}")
    if not isinstance(documents, dict) or not all(isinstance(text, str) for text in documents.values()):
        raise CorruptData(f"{where}: documents is no object of texts")
    wrong = [key for key in documents if not (_is_inside(key) and key.endswith("/zarr.json"))]
    if wrong:
        raise CorruptData(f"{where}: {wrong[0]!r} is no document of the trajectory")
    if MARKER not in documents:
        raise CorruptData(f"{where}: {MARKER} is missing in it")
    if not isinstance(tails, dict) or not all(_is_tail(tail) for tail in tails.values()):
        raise CorruptData(f"{where}: tails is no object of five numbers each")
    wrong = [path for path in tails if not _is_inside(path)]
    if wrong:
        raise CorruptData(f"{where}: {wrong[0]!r} is no array of the trajectory")
    if not isinstance(document.get("complete"), bool):
        raise CorruptData(f"{where}: complete is {document.get('complete')!r}")
    return Durable(
        boot, int(nstep or 0), document["complete"], documents, {path: tuple(tail) for path, tail in tails.items()}
    )


def _is_inside(path: str) -> bool:
    """Whether a path leads below `trajectory/`: packing and recovery take these from the file."""
    return path.startswith(f"{ROOT}/") and is_path(path)


def _is_tail(tail: Any) -> bool:
    if not isinstance(tail, list) or len(tail) != 5:
        return False
    *place, crc = tail
    return all(is_int(n, 0, 2**63 - 1) for n in place) and is_int(crc, 0, 2**32 - 1)


# ---- documents ---------------------------------------------------------------------------------------------------


def _standing(
    attributes: dict[str, Any],
    get: Callable[[str], bytes | str | None],
    store: Store | None,
    tails: dict[str, Tail],
    absent_is_loss: bool,
    recovered: Recovered | None,
    token: tuple[bytes | None, bytes | None],
) -> Standing:
    nodes: dict[str, Node] = {}

    def read(path: str) -> Node | None:
        raw = get(f"{ROOT}/{path}/zarr.json")
        if raw is None:
            return None
        nodes[path] = parse_node(raw, f"{ROOT}/{path}/zarr.json")
        return nodes[path]

    if "sequence_schema" in attributes:
        schema = Schema.from_json(attributes["sequence_schema"])
    else:
        schema = derive_schema(store, read)
    for path in document_order(schema):
        read(path)
    nstep = attributes.get("nstep")
    below = {path.removeprefix(f"{ROOT}/"): tail for path, tail in tails.items()}
    return Standing(attributes, schema, nstep, nodes, below, absent_is_loss, recovered, token)


def document_order(schema: Schema) -> Iterable[str]:
    """The paths of all documents below `trajectory/`, in the order in which a live record may be read."""
    for name, block in schema.blocks.items():
        for column in block.columns.values():
            yield f"{name}/{column.name}"
            if column.nullable:
                yield f"{name}/_validity/{column.name}"
    yield from schema.blocks
    yield from ("box", "box/vectors")
    for name in schema.blocks:
        yield from (f"{name}/offset", f"{name}/step_index")
    yield from ("box/step_index", "box/origin", "box/boundary", "step", "time")
    for value in schema.values:
        yield f"meta/{value}"


_COLUMN_TYPES = {
    "bool": "bool",
    **{f"{kind}{bits}": f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{"float64": "f64", "complex64": "c64", "complex128": "c128", "string": "string"},
}


def column_type(meta: ArrayMeta) -> str:
    """The column type of an array; SchemaError for float32 and float16, which are none."""
    try:
        return _COLUMN_TYPES[meta.data_type]
    except KeyError:
        raise SchemaError(f"{meta.where}: {meta.data_type} is no column type") from None


def derive_schema(store: Store | None, read: Callable[[str], Node | None]) -> Schema:
    """The declaration of a store that has none: its groups are blocks, their arrays columns."""
    blocks: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name in store.names(ROOT) if store is not None else ():
        if name in ("step", "time", "box", "meta", "c") or not isinstance(read(name), GroupMeta):
            continue
        columns: dict[str, Any] = {}
        for column in store.names(f"{ROOT}/{name}"):  # type: ignore[union-attr]
            if column in ("offset", "step_index", "_validity"):
                continue
            meta = read(f"{name}/{column}")
            if isinstance(meta, ArrayMeta):
                columns[column] = {"dtype": column_type(meta), "trailing": list(meta.shape[1:])}
                if read(f"{name}/_validity/{column}") is not None:
                    columns[column]["nullable"] = True
        blocks[name] = {"columns": columns}
    for name in store.names(f"{ROOT}/meta") if store is not None else ():
        meta = read(f"meta/{name}")
        if isinstance(meta, ArrayMeta):
            values[name] = {"dtype": meta.attributes.get("meta_dtype") or _tag(meta)}
    return Schema.from_json({"blocks": blocks, "meta": values})


def _tag(meta: ArrayMeta) -> str:
    width = "" if len(meta.shape) == 1 else "x" + "x".join(map(str, meta.shape[1:]))
    return (column_type(meta) + width).replace("boolx", "bool")

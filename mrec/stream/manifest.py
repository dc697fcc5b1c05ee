# SPDX-License-Identifier: BSD-3-Clause
"""`output_manifest.json`: what is committed. Version 1 as earthsciio has it, version 2 for everything else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any

import numpy as np

from mrec.errors import CorruptData, MrecError, UnsupportedVersion
from mrec.stream.region import Region
from mrec.stream.schema import BLOB_KEY, StreamSchema, TimeMode, Variable, time_from_hex
from mrec.zarr.codecs import is_int
from mrec.zarr.json import dump, parse_object

KEY = "output_manifest.json"
V1 = "earthsciio/output-manifest/v1"
V2 = "earthsciio/output-manifest/v2"
#: So many bytes at the start of a manifest hold the members of HEAD.
HEAD_BYTES = 400
_HEAD = re.compile(
    rb'\{\n  "schema": "earthsciio/output-manifest/v2",\n  "stream_id": "([0-9a-f]{32})",\n'
    rb'  "epoch": (\d{1,18}),\n  "commit_seq": (\d{1,18}),\n'
)
MOST = 2**53

#: As json.dumps does, which makes an encoder for each call.
_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

#: The scope of a blob: the index of its record, or None for "static".
Scope = int | None


@dataclass(frozen=True, order=True, slots=True)
class Sealed:
    """Size and CRC-32C of an object."""

    size: int
    crc32c: int


class Objects(dict[str, Sealed]):
    """Key -> size and checksum; each entry's text is made once, for a manifest is written at every commit."""

    def __init__(self, entries: Iterable[tuple[str, Sealed]] = ()) -> None:
        super().__init__()
        self._texts: dict[str, str] = {}
        for key, sealed in entries:
            self[key] = sealed

    def __setitem__(self, key: str, sealed: Sealed) -> None:
        super().__setitem__(key, sealed)
        name = _json(key)
        self._texts[key] = f'    {{"key": {name}, "size": {sealed.size}, "crc32c": {sealed.crc32c}}}'

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        del self._texts[key]

    def copy(self) -> Objects:
        """Another table with the same entries."""
        made = Objects()
        dict.update(made, self)
        made._texts = dict(self._texts)
        return made

    def text(self) -> str:
        """The JSON array."""
        return "[\n" + ",\n".join(self._texts.values()) + "\n  ]" if self else "[]"


@dataclass
class Manifest:
    """What a stream is and what of it is committed.

    times, generation: of committed records, where the stream is indexed. count: committed records, where it is not.
    writers: id -> region, None while it is not known. blosc: a version 1 store of another program that packs so.
    """

    schema: StreamSchema
    base_url: str
    version: int = 2
    created_at: str = ""
    stream_id: str = ""
    epoch: int = 0
    commit_seq: int = 0
    partition: tuple[str, ...] = ()
    writers: dict[int, Region | None] = field(default_factory=dict)
    count: int = 0
    times: dict[int, Any] = field(default_factory=dict)
    generation: dict[int, int] = field(default_factory=dict)
    time_shards: list[dict[str, Any]] = field(default_factory=list)
    last_t: Any = None
    statics: set[str] = field(default_factory=set)
    blobs: dict[tuple[Scope, int, str], Sealed] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    objects: Objects = field(default_factory=Objects)
    v1_records: int = 0
    blosc: bool = False

    @property
    def indexed(self) -> bool:
        """Whether records have a fixed axis."""
        return self.schema.mode.indexed

    @property
    def n_records(self) -> int:
        """How many records are committed."""
        return len(self.times) if self.indexed else self.count

    def has(self, i: int) -> bool:
        """Whether a record is committed, whatever may be read of it."""
        return i in self.times if self.indexed else 0 <= i < self.count

    def highest(self) -> int | None:
        """The record written last, by generation and index."""
        return max(self.generation, key=lambda i: (self.generation[i], i), default=None)

    def readable(self) -> list[int]:
        """The records that a reader may have, in their order."""
        if not self.indexed:
            return list(range(self.count))
        if self.schema.mode.rotate:
            best = self.highest()
            return [] if best is None else [best]
        return sorted(self.times)

    def copy(self) -> Manifest:
        """A manifest to be changed."""
        fresh: dict[str, Any] = {
            name: value.copy() for name, value in vars(self).items() if isinstance(value, (dict, set, list))
        }
        return replace(self, **fresh)

    # ---- text --------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The document."""
        return self._text_v1() if self.version == 1 else self._text_v2()

    def _common(self) -> dict[str, Any]:
        s = self.schema
        return {
            "base_url": self.base_url,
            "format": "zarr",
            "zarr_format": 3,
            "profile": s.profile,
            "codec": s.codec(),
            "time_dim": s.time_dim,
            "dims": [{"name": d, "length": n} for d, n in s.dims.items()],
            "vars": s.vars_json(s.variables),
            "chunk_shape": dict(s.chunk),
            "shard_shape": dict(s.shard),
            "time_shards": self._time_shards(),
            "last_t": self.last_t,
            "n_records": self.n_records,
            "created_at": self.created_at,
        }

    def _text_v1(self) -> str:
        return dump({"schema": V1, **self._common()}) + "\n"

    def _text_v2(self) -> str:
        s = self.schema
        head = {"schema": V2, "stream_id": self.stream_id, "epoch": self.epoch, "commit_seq": self.commit_seq}
        body = {
            **head,
            **self._common(),
            "time_dtype": s.time_dtype,
            "time_mode": s.mode_json(),
            "partition_dims": list(self.partition),
            "writers": [
                {"id": i, "region": None if r is None else {d: list(b) for d, b in r.items()}}
                for i, r in sorted(self.writers.items())
            ],
            "records": self._records(),
            "statics": [{**v, "committed": v["name"] in self.statics} for v in s.vars_json(s.statics)],
            "blobs": [
                {
                    "scope": "static" if scope is None else scope,
                    "writer": w,
                    "key": k,
                    "size": b.size,
                    "crc32c": b.crc32c,
                }
                for (scope, w, k), b in sorted(self.blobs.items(), key=lambda e: (e[0][0] is not None, e[0]))
            ],
            "attrs": self.attrs,
            "v1_records": self.v1_records,
        }
        lines = [f'  "{name}": {_json(value)}' for name, value in body.items()]
        return "{\n" + ",\n".join([*lines, f'  "objects": {self.objects.text()}']) + "\n}\n"

    def _records(self) -> list[dict[str, Any]]:
        if not self.indexed:
            return [{"start": 0, "stop": self.count}] if self.count else []
        return [
            {
                **{"start": start, "stop": stop, "t": [self.times[i] for i in range(start, stop)]},
                "generation": [self.generation[i] for i in range(start, stop)],
            }
            for start, stop in ranges(self.times)
        ]

    def _time_shards(self) -> list[dict[str, Any]]:
        if not self.indexed:
            return self.time_shards
        found: dict[int, list[Any]] = {}
        for i in sorted(self.times):
            found.setdefault(i // self.schema.shard_time, []).append(self.times[i])
        return [{"index": k, "t_start": min(v), "t_end": max(v), "n": len(v)} for k, v in found.items()]

    # ---- change ------------------------------------------------------------------------------------------------

    def add_times(self, start: int, times: list[Any]) -> None:
        """Append mode: records from `start` on are committed, with these times."""
        shards = self.time_shards
        for i, t in enumerate(times, start):
            index = i // self.schema.shard_time
            if not shards or shards[-1]["index"] != index:
                shards.append({"index": index, "t_start": t, "t_end": t, "n": 0})
            shards[-1] = {**shards[-1], "t_end": t, "n": shards[-1]["n"] + 1}
            self.last_t = t
        self.count = start + len(times)

    def settle_last(self) -> None:
        """Indexed mode: the time of the last record on the axis."""
        self.last_t = self.times[max(self.times)] if self.times else None


def ranges(indices: Iterable[int]) -> list[tuple[int, int]]:
    """Indices as ranges."""
    found: list[tuple[int, int]] = []
    for i in sorted(indices):
        if found and found[-1][1] == i:
            found[-1] = (found[-1][0], i + 1)
        else:
            found.append((i, i + 1))
    return found


def now() -> str:
    """The time of a manifest."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_head(raw: bytes) -> tuple[str, int, int] | None:
    """stream_id, epoch and commit_seq from the first bytes of a manifest; None when they are not as we write them."""
    found = _HEAD.match(raw)
    return None if found is None else (found[1].decode(), int(found[2]), int(found[3]))


def json_schema(version: int) -> dict[str, Any]:
    """The JSON Schema of a manifest of version 1 (as it is written here) or 2."""
    found: dict[str, Any] = json.loads(files("mrec.stream").joinpath(f"schemas/manifest-v{version}.json").read_text())
    return found


# ---- reading -----------------------------------------------------------------------------------------------------


def parse_manifest(raw: bytes, where: str) -> Manifest:
    """The manifest that a document is. CorruptData, UnsupportedVersion."""
    doc = parse_object(raw, where)
    if doc.get("schema") not in (V1, V2):
        raise UnsupportedVersion(f"{where}: schema is {doc.get('schema')!r}; mrec reads {V1} and {V2}")
    if doc.get("format") != "zarr" or doc.get("zarr_format") != 3:
        raise CorruptData(f"{where}: the format is {doc.get('format')!r} {doc.get('zarr_format')!r}, not 'zarr' 3")
    try:
        return _parse_v1(doc) if doc["schema"] == V1 else _parse_v2(doc)
    except KeyError as e:
        raise CorruptData(f"{where}: the member {e.args[0]!r} is missing") from None
    except (MrecError, ValueError, TypeError, AttributeError, OverflowError) as e:
        raise CorruptData(f"{where}: {e}") from None


def _int(value: Any, what: str, low: int = 0) -> int:
    if not is_int(value, low, MOST):
        raise ValueError(f"{what} is {value!r}, no number from {low}")
    return value


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is no list: {value!r}")
    return value


def _object(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object: {value!r}")
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what} is no string: {value!r}")
    return value


def _variables(found: Any, what: str) -> dict[str, Variable]:
    made = {}
    for entry in _list(found, what):
        dims = tuple(_text(d, "a dimension") for d in _list(entry["dims"], "dims"))
        made[_text(entry["name"], "a name")] = Variable(dims, _text(entry["dtype"], "dtype"), entry.get("attrs", {}))
    if len(made) != len(found):
        raise ValueError(f"{what} has a name twice")
    return made


def _dims(found: Any) -> dict[str, int]:
    pairs = [(e["name"], e["length"]) if isinstance(e, dict) else tuple(e) for e in _list(found, "dims")]
    dims = {_text(name, "a dimension"): _int(length, "a length") for name, length in pairs}
    if len(dims) != len(pairs):
        raise ValueError("dims has a name twice")
    return dims


def _schema(doc: dict[str, Any], **more: Any) -> StreamSchema:
    return StreamSchema(
        dims=_dims(doc["dims"]),
        variables=_variables(doc["vars"], "vars"),
        chunk=_object(doc["chunk_shape"], "chunk_shape"),
        shard=_object(doc["shard_shape"], "shard_shape"),
        profile=_text(doc["profile"], "profile"),
        time_dim=_text(doc["time_dim"], "time_dim"),
        **more,
    )


def _time(value: Any, schema: StreamSchema) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{value!r} is no time")
    return schema.time_value(value).item()


def _parse_v1(doc: dict[str, Any]) -> Manifest:
    schema = _schema(doc)
    codec = _object(doc["codec"], "codec")
    count = _int(doc["n_records"] if "n_records" in doc else doc["total_records"], "n_records")
    shards = [
        {
            "index": _int(s["index"], "index"),
            "t_start": _time(s["t_start"], schema),
            "t_end": _time(s["t_end"], schema),
            "n": _int(s["n"] if "n" in s else s["n_records"], "n"),
        }
        for s in _list(doc["time_shards"], "time_shards")
    ]
    blosc = codec.get("id") == "blosc"
    if not blosc and codec != {"id": "zstd", "level": 5, "checksum": False}:
        raise ValueError(f"the codec {codec!r} is not known")
    return Manifest(
        schema,
        _text(doc["base_url"], "base_url"),
        version=1,
        created_at=_text(doc["created_at"] if "created_at" in doc else doc["written_at"], "created_at"),
        count=count,
        time_shards=shards,
        last_t=doc.get("last_t"),
        writers={0: {}},
        v1_records=count,
        blosc=blosc,
    )


def _parse_v2(doc: dict[str, Any]) -> Manifest:
    mode = _mode(_object(doc["time_mode"], "time_mode"), _text(doc["time_dtype"], "time_dtype"))
    statics = _variables(doc["statics"], "statics")
    schema = _schema(doc, statics=statics, time_dtype=doc["time_dtype"], mode=mode)
    if doc["codec"] != schema.codec():
        raise ValueError(f"the codec {doc['codec']!r} is not that of the profile {schema.profile!r}")
    stream_id = _text(doc["stream_id"], "stream_id")
    if not re.fullmatch("[0-9a-f]{32}", stream_id):
        raise ValueError(f"stream_id is {stream_id!r}")
    made = Manifest(
        schema,
        _text(doc["base_url"], "base_url"),
        created_at=_text(doc["created_at"], "created_at"),
        stream_id=stream_id,
        epoch=_int(doc["epoch"], "epoch"),
        commit_seq=_int(doc["commit_seq"], "commit_seq"),
        partition=tuple(_text(d, "a dimension") for d in _list(doc["partition_dims"], "partition_dims")),
        statics={s["name"] for s in doc["statics"] if s["committed"] is True},
        attrs=_object(doc["attrs"], "attrs"),
        last_t=doc["last_t"],
        objects=Objects(parse_objects(doc["objects"])),
        v1_records=_int(doc.get("v1_records", 0), "v1_records"),
    )
    if any(d not in schema.dims or d == schema.time_dim for d in made.partition):
        raise ValueError(f"partition_dims is {list(made.partition)}")
    for writer in _list(doc["writers"], "writers"):
        region = writer["region"]
        made.writers[_int(writer["id"], "a writer")] = None if region is None else parse_region(region)
    _parse_records(made, _list(doc["records"], "records"), _list(doc["time_shards"], "time_shards"))
    for blob in _list(doc["blobs"], "blobs"):
        scope = parse_scope(blob["scope"])
        made.blobs[(scope, _int(blob["writer"], "a writer"), parse_blob_key(blob["key"]))] = _sealed(blob)
    if made.n_records != doc["n_records"]:
        raise ValueError(f"n_records is {doc['n_records']!r}, records name {made.n_records}")
    return made


def _mode(found: dict[str, Any], dtype: str) -> TimeMode:
    if found == {"kind": "append"}:
        return TimeMode()
    if found.get("kind") != "indexed" or found.get("rewrite") not in (None, "rotate"):
        raise ValueError(f"the time mode {found!r} is not known")
    n = _int(found["n"], "n", 1)
    times = found["times"]
    if times is not None:
        times = tuple(time_from_hex(t, dtype).item() for t in _list(times, "times"))
        if len(times) != n:
            raise ValueError(f"{len(times)} times for {n} records")
    return TimeMode(n, times, found.get("rewrite") == "rotate")


def _parse_records(made: Manifest, records: list[Any], shards: list[Any]) -> None:
    at = 0
    for entry in records:
        start, stop = _int(entry["start"], "start"), _int(entry["stop"], "stop")
        if not at <= start < stop or (made.indexed and stop > (made.schema.mode.n or 0)):
            raise ValueError(f"records [{start}, {stop}) are out of order or out of range")
        at = stop
        if made.indexed:
            times, generation = _list(entry["t"], "t"), _list(entry["generation"], "generation")
            if not len(times) == len(generation) == stop - start:
                raise ValueError(f"records [{start}, {stop}) have {len(times)} times, {len(generation)} generations")
            made.times.update(zip(range(start, stop), (_time(t, made.schema) for t in times), strict=True))
            made.generation.update(zip(range(start, stop), (_int(g, "generation") for g in generation), strict=True))
    if not made.indexed:
        if len(records) > 1 or (records and records[0]["start"]):
            raise ValueError("the records of an append stream are one range from 0")
        made.count = at
        for s in shards:
            (
                _int(s["index"], "index"),
                _int(s["n"], "n", 1),
                _time(s["t_start"], made.schema),
                _time(s["t_end"], made.schema),
            )
        made.time_shards = [{name: s[name] for name in ("index", "t_start", "t_end", "n")} for s in shards]


def parse_region(found: Any) -> Region:
    """A region of a document."""
    made = {}
    for dim, bounds in _object(found, "a region").items():
        start, stop = _list(bounds, "bounds")
        made[dim] = (_int(start, "start"), _int(stop, "stop"))
    return made


def parse_scope(found: Any) -> Scope:
    """The scope of a blob."""
    return None if found == "static" else _int(found, "a scope")


def parse_blob_key(found: Any) -> str:
    """The key of a blob, one that stays where it belongs."""
    if not isinstance(found, str) or not BLOB_KEY.fullmatch(found):
        raise ValueError(
            f"{found!r} is no key of a blob: 1 to 128 of A-Z a-z 0-9 . _ -, none of them a dot at the start"
        )
    return found


def _sealed(entry: Any) -> Sealed:
    crc = entry["crc32c"]
    if not is_int(crc, 0, 2**32 - 1):
        raise ValueError(f"a checksum is {crc!r}")
    return Sealed(_int(entry["size"], "a size"), crc)


def parse_objects(found: Any) -> Iterator[tuple[str, Sealed]]:
    """Keys with size and checksum; ValueError when one stands twice."""
    seen: set[str] = set()
    for entry in _list(found, "objects"):
        key = _text(entry["key"], "a key")
        if key in seen:
            raise ValueError(f"the object {key!r} stands twice")
        seen.add(key)
        yield key, _sealed(entry)


def blob_key(scope: Scope, writer: int, key: str) -> str:
    """Where a blob lies."""
    return f"blobs/{'static' if scope is None else scope}/{writer}/{key}"


def numpy_times(schema: StreamSchema, times: Iterable[Any]) -> np.ndarray:
    """Times in their type."""
    return np.array(list(times), schema.time_dtype)

# SPDX-License-Identifier: BSD-3-Clause
"""How writers come to a stream: create, join, resume."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mrec.errors import (
    CorruptData,
    InvalidValue,
    RecordExists,
    RegionError,
    SchemaError,
    StaleWriter,
    UnsupportedCodec,
)
from mrec.stream import region as regions
from mrec.stream.buffer import Part, read_part
from mrec.stream.commit import drop_objects, holds_committed
from mrec.stream.fence import require_manifest
from mrec.stream.manifest import HEAD_BYTES, KEY, Manifest, Objects, Sealed, blob_key, now, numpy_times, parse_head
from mrec.stream.place import LocalPlace, Place, place_of
from mrec.stream.roles import Contributor, Owner, Role, Single
from mrec.stream.schema import StreamSchema
from mrec.stream.shard import encoder
from mrec.stream.writer import Life, StreamWriter
from mrec.trajectory.options import flag_option
from mrec.zarr.codecs import is_int
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_array, parse_node

SINGLE = Single()
DURABILITIES = (None, "fsync")


def create(
    base: Any,
    schema: StreamSchema,
    role: Role = SINGLE,
    region: Mapping[str, Any] | None = None,
    *,
    partition_dims: Iterable[str] | None = None,
    overwrite: bool = False,
    durability: str | None = None,
    checks: bool | None = None,
    threads: int = 1,
) -> StreamWriter:
    """A new stream, by its single writer or owner.

    base: a path, a MemoryStore, a URL or an obstore store. region: the owner's part, {dim: (start, stop)}; what is not
    named is whole. partition_dims: the dimensions that regions cut; those of `region` when not given. overwrite:
    replace a stream, or what an unfinished creation left. durability: "fsync" survives a power loss. checks: a commit
    reads the objects of tokens and checks their checksums; None: where that is cheap. threads: so many encode and
    write at the same time. SchemaError, RegionError, RegionNotShardAligned, RecordExists, RecordLocked.
    """
    place = _session(base, durability, threads)
    if not isinstance(schema, StreamSchema):
        raise SchemaError(f"a stream is made from a StreamSchema, not {schema!r}")
    _check_owner(role)
    partition = regions.check_partition(schema, (region or {}) if partition_dims is None else partition_dims)
    if isinstance(role, Single) and (region or partition):
        raise RegionError("a single writer writes everything; it has no region")
    own = regions.check_region(schema, partition, region, str(role))
    _check_writers(schema, partition, role)
    release = _take_new(place, flag_option("overwrite", overwrite))
    try:
        single_v1 = (
            isinstance(role, Single) and schema.profile == "wasm" and not schema.statics and not schema.mode.indexed
        )
        manifest = Manifest(
            schema,
            place.name,
            version=1 if single_v1 else 2,
            stream_id=secrets.token_hex(16),
            partition=partition,
            writers={i: own if i == 0 else None for i in range(role.writers)},
            attrs=dict(schema.attrs),
        )
        claim = _claim(place, 0, 0)
        metas = _put_arrays(place, schema, manifest.objects)
        place.sync()
        manifest.created_at = now()
        place.replace(KEY, manifest.text().encode())
        place.sync()
        life = Life(place, role, own, manifest, metas, release, _checks(place, checks), threads, [], claim)
        return StreamWriter(life)
    except BaseException:
        release()
        raise


def join(
    base: Any,
    role: Contributor,
    region: Mapping[str, Any] | None = None,
    *,
    durability: str | None = None,
    threads: int = 1,
) -> StreamWriter:
    """A contributor of a stream that was just created. After the first commit, or a resume: `resume`."""
    return _contribute(_session(base, durability, threads), role, region, threads, joins=True)


def resume(
    base: Any,
    role: Role = SINGLE,
    region: Mapping[str, Any] | None = None,
    at: Any = None,
    *,
    partition_dims: Iterable[str] | None = None,
    durability: str | None = None,
    checks: bool | None = None,
    threads: int = 1,
) -> StreamWriter:
    """Go on from the last commit: the owner (or single writer) first, and when it has returned the contributors.

    at: of an append stream, keep the records with t <= at and remove the rest. partition_dims: another cut.
    """
    place = _session(base, durability, threads)
    if isinstance(role, Contributor):
        if at is not None or partition_dims is not None:
            raise InvalidValue("`at` and partition_dims are for the owner")
        return _contribute(place, role, region, threads, joins=False)
    _check_owner(role)
    require_manifest(place)
    release = place.lock()
    try:
        place.still_there()
        if durability == "fsync":
            place.sync_found()
        found = require_manifest(place)
        if found.blosc:
            raise UnsupportedCodec(f"{place.name}: the stream uses blosc, which mrec only reads")
        metas = _read_metas(place, found)
        manifest, times = _next_life(place, found, metas, role, region, partition_dims, at)
        place.prepare()
        place.replace(KEY, manifest.text().encode(), place.still_there)
        place.sync()
        claim = _take_over(place, manifest)
        _cut(place, manifest, metas)
        place.sync()
        left = manifest.count % manifest.schema.shard_time
        open_times = times[len(times) - left :] if left and not manifest.indexed else []
        own = manifest.writers[0] or {}
        life = Life(place, role, own, manifest, metas, release, _checks(place, checks), threads, open_times, claim)
        return StreamWriter(life)
    except BaseException:
        release()
        raise


def _session(base: Any, durability: str | None, threads: int) -> Place:
    if not is_int(threads, 1, 1024):
        raise InvalidValue(f"threads is a number from 1 to 1024, not {threads!r}")
    if durability not in DURABILITIES:
        raise InvalidValue(f'durability is None or "fsync", not {durability!r}')
    return place_of(base).session(durability == "fsync")


def _check_owner(role: Any) -> None:
    if not isinstance(role, (Single, Owner)):
        raise InvalidValue(f"this is for Single() or Owner(n), not for {role!r}; a contributor joins")


def _check_writers(schema: StreamSchema, partition: tuple[str, ...], role: Role) -> None:
    """Each writer has at least a shard."""
    parts = math.prod(-(-schema.dims[d] // schema.shard[d]) for d in partition)
    if partition and role.writers > parts:
        raise RegionError(
            f"{role.writers} writers for {parts} shards along {', '.join(partition)}; who has no work does not join"
        )


def _checks(place: Place, checks: bool | None) -> bool:
    return place.verifies if checks is None else checks


# ---- creating ----------------------------------------------------------------------------------------------------


def _take_new(place: Place, overwrite: bool) -> Callable[[], None]:
    """Hold an empty place."""
    if place.names() and not overwrite:
        raise RecordExists(f"{place.name} is not empty; overwrite=True replaces a stream, or an unfinished one")
    _refuse_strange(place)
    place.prepare()
    release = place.lock()
    try:
        place.sync()  # by these names what follows is known for an unfinished stream
        if overwrite:
            place.delete(KEY)
            place.sync()
            for name in place.names():
                if name in ("tmp", "locks"):
                    place.empty(name)
                elif isinstance(place, LocalPlace) and not place.is_file(name):
                    place.remove(name)
                else:
                    place.empty(name)
                    place.delete(name)
            place.sync()
        elif [name for name in place.names() if name not in ("tmp", "locks")]:
            raise RecordExists(f"{place.name}: another writer creates the stream")
        return release
    except BaseException:
        release()
        raise


def _refuse_strange(place: Place) -> None:
    """Overwriting removes all that is there, so it has to be a stream."""
    names, own = set(place.names()), {"tmp", "locks"}
    if not ({KEY, "zarr.json"} & names or own <= names or names <= own):
        raise RecordExists(f"{place.name} holds {min(names - own)!r} and no stream; it is not overwritten")


def _put_arrays(place: Place, schema: StreamSchema, objects: Objects) -> dict[str, ArrayMeta]:
    """Documents of all arrays, coordinates whole; the documents that a writer needs again."""
    n = schema.mode.n or 0
    place.put("zarr.json", GroupMeta(dict(schema.attrs)).document().encode())
    metas = {name: schema.array_meta(name, n) for name in schema.nodes()}
    for name, meta in metas.items():
        place.put(f"{name}/zarr.json", meta.document().encode())
    for name, (values, _) in schema.coords.items():
        if values is not None:
            for key, data, _ in Part(schema, name, schema.node(name), {}, encoder(metas[name])).objects(values):
                place.put(key, data)
    if schema.mode.times is not None:
        times, size = numpy_times(schema, schema.mode.times), schema.shard_time
        part = Part(schema, schema.time_dim, schema.node(schema.time_dim), {}, encoder(metas[schema.time_dim]))
        for shard in range(-(-n // size)):
            for key, data, _ in part.objects(times[shard * size : (shard + 1) * size], shard):
                place.put(key, data)
    return metas


def _claim(place: Place, epoch: int, writer: int) -> bytes:
    """This writer's place in this life."""
    content = secrets.token_hex(16).encode()
    if not place.claim(f"locks/{epoch}-{writer}", content):
        raise StaleWriter(
            f"{place.name}: writer {writer} is there already in epoch {epoch}; one that died comes back by a resume of "
            "all, the owner first"
        )
    return content


# ---- joining -----------------------------------------------------------------------------------------------------


def _contribute(
    place: Place, role: Contributor, region: Mapping[str, Any] | None, threads: int, joins: bool
) -> StreamWriter:
    if not isinstance(role, Contributor):
        raise InvalidValue("join is for a Contributor")
    m = require_manifest(place)
    if m.version == 1:
        raise RegionError(f"{place.name} has a single writer; its owner resumes it by Owner(n) first")
    if joins and (m.epoch or m.commit_seq):
        raise StaleWriter(f"{place.name} is at epoch {m.epoch}, commit {m.commit_seq}: resume, instead of join")
    if role.id not in m.writers:
        raise RegionError(f"{role}: the stream has the writers 0 to {len(m.writers) - 1}")
    own = regions.check_region(m.schema, m.partition, region, str(role))
    metas = _read_metas(place, m)
    claim = _claim(place, m.epoch, role.id)
    head = parse_head(place.head(KEY, HEAD_BYTES) or b"")
    if head is None or head[:2] != (m.stream_id, m.epoch):
        raise StaleWriter(f"{place.name}: the stream was resumed meanwhile; resume once more")
    return StreamWriter(Life(place, role, own, m, metas, lambda: None, False, threads, [], claim))


def _read_metas(place: Place, m: Manifest) -> dict[str, ArrayMeta]:
    """The documents of time and variables, which agree with the manifest. CorruptData when one does not."""
    metas = {}
    s = m.schema
    for name in (s.time_dim, *s.variables, *s.statics):
        raw = place.get(f"{name}/zarr.json")
        if raw is None:
            raise CorruptData(f"{place.name}: the array {name!r} of the manifest is missing")
        meta = metas[name] = parse_array(raw, f"{place.name}/{name}/zarr.json")
        if name == s.time_dim and m.version == 1:
            s = m.schema = replace(s, time_dtype=meta.data_type)
        wanted = s.array_meta(name, meta.shape[0] if meta.shape and name not in s.statics else 0)
        for what in ("shape", "data_type", "grid", "dimension_names", "chain"):
            if getattr(meta, what) != getattr(wanted, what):
                raise CorruptData(
                    f"{meta.where}: {what} is {getattr(meta, what)}, the manifest says {getattr(wanted, what)}"
                )
    return metas


# ---- resuming ----------------------------------------------------------------------------------------------------


def _next_life(
    place: Place,
    found: Manifest,
    metas: dict[str, ArrayMeta],
    role: Single | Owner,
    region: Mapping[str, Any] | None,
    partition_dims: Iterable[str] | None,
    at: Any,
) -> tuple[Manifest, list[Any]]:
    """The manifest of the life that begins, and the committed times of an append stream."""
    made = found.copy()
    schema = made.schema
    if isinstance(role, Single) and (region or partition_dims):
        raise RegionError("a single writer writes everything; it has no region")
    if isinstance(role, Single):
        made.partition = ()
    else:
        dims = partition_dims if partition_dims is not None else found.partition or tuple(region or ())
        made.partition = regions.check_partition(schema, dims)
    own = regions.check_region(schema, made.partition, region, str(role))
    _check_writers(schema, made.partition, role)
    made.writers = {i: own if i == 0 else None for i in range(role.writers)}
    if at is not None and made.indexed:
        raise InvalidValue("`at` is for append streams; invalidate records of an indexed one")
    times = [] if made.indexed else read_times(place, found).tolist()
    if not made.indexed:
        keep = len(times)
        if at is not None:
            keep = next((i for i, t in enumerate(times) if not t <= at), len(times))
        times = times[:keep]
        made.time_shards, made.last_t, made.v1_records = [], None, min(made.v1_records, keep)
        made.add_times(0, times)
        made.blobs = {b: s for b, s in made.blobs.items() if b[0] is None or b[0] < keep}
        drop_objects(made)
    if made.version == 1 and isinstance(role, Owner):
        _to_version_2(place, made)
    made.stream_id = made.stream_id or secrets.token_hex(16)
    made.epoch, made.commit_seq, made.created_at = found.epoch + 1, found.commit_seq + 1, now()
    return made, times


def read_times(place: Place, m: Manifest) -> np.ndarray:
    """The committed times of an append stream."""
    s, size = m.schema, m.schema.shard_time
    parts = [np.zeros(0, s.time_dtype)]
    for start in range(0, m.count, size):
        stop = min(start + size, m.count)
        fill = stop <= m.v1_records
        parts.append(read_part(place, s, s.time_dim, s.node(s.time_dim), [], (start, stop), stop - start, fill))
    return np.concatenate(parts)


def _to_version_2(place: Place, made: Manifest) -> None:
    """A version 1 stream gets more writers: from now on objects have checksums. What its other program left out stays
    left out."""
    made.version = 2
    made.stream_id = secrets.token_hex(16)
    touched = set(range(-(-made.count // made.schema.shard_time)))
    for name in (made.schema.time_dim, *made.schema.variables):
        for key in sorted(place.keys(name)):
            if holds_committed(made, key, touched):
                sealed = place.checksum(key)
                if sealed is not None:
                    made.objects[key] = Sealed(*sealed)
    group = place.get("zarr.json")
    if group is not None:
        made.attrs = dict(parse_node(group, f"{place.name}/zarr.json").attributes)


def _take_over(place: Place, m: Manifest) -> bytes:
    """Claims of earlier lives go, so do their unfinished files: a writer that slept finds nothing to rename."""
    claim = _claim(place, m.epoch, 0)
    for key in list(place.keys("locks")):
        if key != f"locks/{m.epoch}-0":
            place.delete(key)
    place.empty("tmp")
    return claim


def _cut(place: Place, m: Manifest, metas: dict[str, ArrayMeta]) -> None:
    """Shapes as the manifest says, then no object that holds nothing committed."""
    s = m.schema
    if not m.indexed:
        for name in (s.time_dim, *s.variables):
            if metas[name].shape[0] != m.count:
                metas[name] = replace(metas[name], shape=(m.count, *metas[name].shape[1:]))
                place.put(f"{name}/zarr.json", metas[name].document().encode(), place.still_there)
        place.sync()
        touched = set(range(-(-m.count // s.shard_time)))
    else:
        touched = {i // s.shard_time for i in m.times}
    names = [*s.variables, *s.statics, *([] if s.mode.times is not None else [s.time_dim])]
    for name in names:
        for key in list(place.keys(f"{name}/c")):
            if not holds_committed(m, key, touched):
                place.delete(key)
    if m.version == 2:
        blobs = {blob_key(*blob) for blob in m.blobs}
        for key in list(place.keys("blobs")):
            if key not in blobs:
                place.delete(key)

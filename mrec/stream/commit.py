# SPDX-License-Identifier: BSD-3-Clause
"""A commit: what the owner asks of the tokens, and the order in which it publishes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mrec.errors import CommitError, RegionError
from mrec.stream import region as regions
from mrec.stream.manifest import KEY, Manifest, Scope, blob_key, now, numpy_times, parse_head
from mrec.stream.schema import StreamSchema, time_from_hex
from mrec.stream.token import Receipt, Token
from mrec.zarr.metadata import GroupMeta

if TYPE_CHECKING:
    from mrec.stream.writer import StreamWriter


@dataclass(frozen=True)
class Plan:
    """A commit that was checked: the manifest that it makes, and its receipt."""

    manifest: Manifest
    receipt: Receipt


def derived_keys(schema: StreamSchema, partition: Sequence[str], token: Token) -> list[str]:
    """The objects that a token has to name: variables of its writer x touched time shards x shards of its region, its
    statics, its blobs."""
    touched = sorted({i // schema.shard_time for i in token.records})
    keys = []
    for name, variable in schema.variables.items():
        if regions.writes(variable, partition, token.region, token.writer):
            keys += regions.object_keys(schema, name, variable, token.region, touched)
    for name in token.statics:
        keys += regions.object_keys(schema, name, schema.statics[name], token.region)
    return keys + [blob_key(scope, token.writer, key) for scope, key in token.blobs]


# ---- checks ------------------------------------------------------------------------------------------------------


def check(writer: StreamWriter, given: list[Any], invalid: set[int | str], attrs: dict[str, Any] | None) -> Plan | None:
    """The plan of a commit; None when there is nothing new in it. CommitError, and nothing was touched."""
    m = writer.manifest
    assert m is not None
    tokens = _identified(writer, m, given)
    regions.check_cover(m.schema, m.partition, {i: token.region for i, token in tokens.items()})
    first = tokens[0]
    for i, token in tokens.items():
        _check_records(m, first, token, i)
    times = _check_times(m, first)
    _check_statics(m, tokens)
    for token in tokens.values():
        _check_blobs(m, token)
        _check_keys(m, token)
    for token in tokens.values():
        _check_objects(writer, token)
    changed_attrs = attrs is not None and attrs != m.attrs
    if not (first.records or invalid or changed_attrs or any(t.statics or t.blobs for t in tokens.values())):
        return None
    return _plan(m, tokens, times, invalid, attrs)


def _identified(writer: StreamWriter, m: Manifest, given: list[Any]) -> dict[int, Token]:
    """One token of each writer of this stream, life and base."""
    n = len(m.writers)
    if len(given) > n:
        raise CommitError(f"{len(given)} tokens for {n} writers")
    tokens: dict[int, Token] = {}
    for raw in given:
        if isinstance(raw, Token):
            token = raw if raw is writer.token else raw.copy()
        else:
            token = Token.from_json(raw)
        who = f"the token of writer {token.writer}"
        if token.stream_id != writer.stream_id:
            raise CommitError(f"{who} is foreign: of stream {token.stream_id!r}, this is {writer.stream_id}")
        if token.epoch != writer.epoch:
            raise CommitError(f"{who} is of epoch {token.epoch}, the stream is in epoch {writer.epoch}")
        if token.fingerprint != writer.fingerprint:
            raise CommitError(f"{who} has the fingerprint {token.fingerprint!r}, the stream {writer.fingerprint}")
        if token.writer >= n:
            raise CommitError(f"{who}: the stream has the writers 0 to {n - 1}")
        if token.writer in tokens:
            raise CommitError(f"writer {token.writer} gave two tokens")
        if token.base_commit_seq != writer.base:
            raise CommitError(
                f"{who} is stale: made after commit {token.base_commit_seq}, the stream is at commit {writer.base}"
            )
        try:
            region = regions.check_region(m.schema, m.partition, token.region, f"writer {token.writer}")
        except RegionError as e:
            raise CommitError(str(e), retry=False) from None
        tokens[token.writer] = replace(token, region=region)
    missing = [str(i) for i in range(n) if i not in tokens]
    if missing:
        raise CommitError(f"no token of writer {', '.join(missing)}")
    return dict(sorted(tokens.items()))


def _check_records(m: Manifest, first: Token, token: Token, i: int) -> None:
    if token.records != first.records:
        only = sorted(set(token.records) ^ set(first.records))
        raise CommitError(f"writers 0 and {i} have different records; {only[0]} is of one alone ({len(only)} in all)")
    for k, index in enumerate(token.records):
        if token.t_hex[k] != first.t_hex[k]:
            raise CommitError(
                f"the time of record {index} differs: {first.t[k]!r} of writer 0, {token.t[k]!r} of writer {i}; "
                "no retry can mend that: all writers resume",
                retry=False,
            )
        try:
            t = time_from_hex(token.t_hex[k], m.schema.time_dtype).item()
        except ValueError as e:
            raise CommitError(f"the token of writer {i}: {e}") from None
        if isinstance(token.t[k], bool) or not isinstance(token.t[k], (int, float)) or token.t[k] != t:
            raise CommitError(f"the token of writer {i} is forged: record {index} is at {token.t[k]!r} and at {t!r}")


def _check_times(m: Manifest, token: Token) -> list[Any]:
    """The times of the records, which may be committed."""
    schema, records = m.schema, token.records
    times = [time_from_hex(text, schema.time_dtype).item() for text in token.t_hex]
    if not m.indexed:
        expected = tuple(range(m.count, m.count + len(records)))
        if records != expected:
            raise CommitError(f"the tokens have the records {_say(records)}, next are {_say(expected)}")
        for before, after in itertools.pairwise([*([] if m.last_t is None else [m.last_t]), *times]):
            if not before < after:
                raise CommitError(f"times increase: {after!r} comes after {before!r}", retry=False)
        return times
    for i, t in zip(records, times, strict=True):
        if i >= (schema.mode.n or 0):
            raise CommitError(f"record {i} lies not in [0, {schema.mode.n})")
        if (
            schema.mode.times is not None
            and schema.time_value(schema.mode.times[i]).tobytes() != schema.time_value(t).tobytes()
        ):
            raise CommitError(f"record {i} has the time {schema.mode.times[i]!r}, not {t!r}", retry=False)
        if m.has(i) and not (schema.mode.rotate and i != m.highest()):
            raise CommitError(f"record {i} is committed already")
    return times


def _say(records: Sequence[int]) -> str:
    return f"{records[0]} to {records[-1]}" if records else "none"


def _check_statics(m: Manifest, tokens: Mapping[int, Token]) -> None:
    for name in sorted({name for token in tokens.values() for name in token.statics}):
        variable = m.schema.statics.get(name)
        if variable is None:
            raise CommitError(f"a token names the static {name!r}, which the stream has not")
        if name in m.statics:
            raise CommitError(f"the static {name!r} is committed already")
        for i, token in tokens.items():
            names = token.statics.count(name)
            wanted = int(regions.writes(variable, m.partition, token.region, i))
            if names != wanted:
                word = "lacks" if wanted else "names"
                raise CommitError(
                    f"the token of writer {i} {word} the static {name!r}, which is{'' if wanted else ' not'} its own"
                )


def _check_blobs(m: Manifest, token: Token) -> None:
    if len(set(token.blobs)) != len(token.blobs):
        raise CommitError(f"the token of writer {token.writer} names a blob twice")
    records = set(token.records)
    for scope, key in token.blobs:
        if scope is not None and scope not in records:
            raise CommitError(
                f"the blob {key!r} of writer {token.writer} is of record {scope}, which the token has not"
            )
        if scope is None and (None, token.writer, key) in m.blobs:
            raise CommitError(f"the blob {key!r} of writer {token.writer} is committed already")


def _check_keys(m: Manifest, token: Token) -> None:
    """The keys are those that follow from the token: none is opened before."""
    derived = set(derived_keys(m.schema, m.partition, token))
    missing, foreign = derived - token.objects.keys(), token.objects.keys() - derived
    if foreign:
        raise CommitError(f"the token of writer {token.writer} names {min(foreign)!r}, which is not its own")
    if missing:
        raise CommitError(f"the token of writer {token.writer} lacks the object {min(missing)!r}")


def _check_objects(writer: StreamWriter, token: Token) -> None:
    """Sizes, and checksums where they are asked for."""
    if type(writer.role).__name__ == "Single":
        return  # it published them in this very call
    for key, sealed in token.objects.items():
        if writer.checks:
            found = writer.place.checksum(key)
            same = found == (sealed.size, sealed.crc32c)
        else:
            size = writer.place.size(key)
            found, same = (None if size is None else (size, 0)), size == sealed.size
        if found is None:
            raise CommitError(f"the object {key!r} of writer {token.writer} is not there")
        if not same:
            raise CommitError(
                f"the object {key!r} of writer {token.writer} has {found[0]} bytes (crc32c {found[1]:08x}), its "
                f"token says {sealed.size} ({sealed.crc32c:08x}): superseded by a later flush, or damaged; gather anew"
            )


def _plan(
    m: Manifest,
    tokens: Mapping[int, Token],
    times: list[Any],
    invalid: set[int | str],
    attrs: dict[str, Any] | None,
) -> Plan:
    made = m.copy()
    made.commit_seq, made.created_at = m.commit_seq + 1, now()
    made.writers = {i: token.region for i, token in tokens.items()}
    _invalidate(made, invalid)
    records = tokens[0].records
    if made.indexed:
        made.times.update(zip(records, times, strict=True))
        made.generation.update(dict.fromkeys(records, made.commit_seq))
        made.settle_last()
    elif records:
        made.add_times(records[0], times)
    replaced = set(records)
    if replaced:
        made.blobs = {blob: sealed for blob, sealed in made.blobs.items() if blob[0] not in replaced}
    for i, token in tokens.items():
        made.statics.update(token.statics)
        blobs = {blob_key(scope, i, key): (scope, i, key) for scope, key in token.blobs}
        for key, sealed in token.objects.items():
            if key in blobs:
                made.blobs[blobs[key]] = sealed
            else:
                made.objects[key] = sealed
    if attrs is not None:
        made.attrs = dict(attrs)
    receipt = Receipt(
        made.stream_id,
        made.epoch,
        made.commit_seq,
        records,
        tuple(sorted({name for token in tokens.values() for name in token.statics})),
        tuple((scope, i, key) for i, token in tokens.items() for scope, key in token.blobs),
        tuple(sorted(invalid, key=lambda what: (isinstance(what, str), what))),
    )
    return Plan(made, receipt)


def _invalidate(made: Manifest, invalid: Iterable[int | str]) -> None:
    gone = set(invalid)
    if not gone:
        return
    for what in gone:
        if isinstance(what, int):
            made.times.pop(what, None)
            made.generation.pop(what, None)
    made.statics -= {what for what in gone if isinstance(what, str)}
    made.blobs = {b: s for b, s in made.blobs.items() if b[0] not in gone and blob_key(*b) not in gone}
    drop_objects(made)


def drop_objects(made: Manifest) -> None:
    """Leave out of the manifest the objects that hold nothing committed."""
    size = made.schema.shard_time
    if made.indexed:
        touched = {i // size for i in made.times}
    else:
        touched = set(range(-(-made.count // size)))
    for key in [k for k in made.objects if not holds_committed(made, k, touched)]:
        del made.objects[key]


def holds_committed(m: Manifest, key: str, touched: set[int]) -> bool:
    """Whether an object holds something of what is committed. touched: time shards that do."""
    name, _, rest = key.partition("/c/")
    if name in m.schema.statics:
        return name in m.statics
    if name in m.schema.variables or name == m.schema.time_dim:
        lead = rest.partition("/")[0]
        return lead.isdigit() and int(lead) in touched
    return False


# ---- publication -------------------------------------------------------------------------------------------------


def publish(writer: StreamWriter, plan: Plan) -> None:
    """The times, the shapes, the manifest, in this order; then the copy of the attributes."""
    m, place = plan.manifest, writer.place
    writer.publish(_times_and_shapes(writer, plan))
    place.sync()

    def same() -> None:
        writer._alive()
        head = None if m.version == 1 else parse_head(place.head(KEY, 400) or b"")
        if head is not None and head[2] != writer.base:
            raise CommitError(f"another owner made commit {head[2]}", retry=False)

    place.replace(KEY, m.text().encode(), same)
    place.sync()
    if writer.group_stale or (writer._attrs is not None):
        writer.publish([("zarr.json", GroupMeta(m.attrs).document().encode())])
        place.sync()
        writer.group_stale = False


def _times_and_shapes(writer: StreamWriter, plan: Plan) -> Iterator[tuple[str, bytes]]:
    """The objects of the time coordinate that have new times, then the documents that grow."""
    m, records = plan.manifest, plan.receipt.records
    if not records:
        return
    if not (m.indexed and m.schema.mode.times is not None):
        for shard, times in _new_times(writer, plan):
            for key, data, sealed in writer.time_part.objects(numpy_times(m.schema, times), shard):
                m.objects[key] = sealed
                yield key, data
    for name, (before, behind) in writer.growing.items():
        yield f"{name}/zarr.json", f"{before}{m.count}{behind}".encode()


def _new_times(writer: StreamWriter, plan: Plan) -> Iterator[tuple[int, list[Any]]]:
    """The time shards that have new times, with all their times."""
    m, records, size = plan.manifest, plan.receipt.records, plan.manifest.schema.shard_time
    if m.indexed:
        for shard in sorted({i // size for i in records}):
            rows = range(shard * size, min((shard + 1) * size, m.schema.mode.n or 0))
            yield shard, [m.times.get(i, 0) for i in rows]
        return
    first, times = records[0] // size, [*writer.open_times, *_times_of(writer, plan.receipt)]
    for shard in range(first, -(-m.count // size)):
        yield shard, times[(shard - first) * size :][:size]


def _times_of(writer: StreamWriter, receipt: Receipt) -> list[Any]:
    return [writer._pending[i] for i in receipt.records]


def open_times(writer: StreamWriter, m: Manifest, receipt: Receipt) -> list[Any]:
    """The times of the time shard that is not full, once the receipt's records are in it."""
    if m.indexed or not receipt.records:
        return writer.open_times
    times = [*writer.open_times, *_times_of(writer, receipt)]
    left = m.count % m.schema.shard_time
    return times[len(times) - left :] if left else []


# ---- learning ----------------------------------------------------------------------------------------------------


def check_covered(token: Token, m: Manifest, writer: int) -> None:
    """CommitError unless a newer manifest has all that a token names."""
    base = token.base_commit_seq
    if m.indexed:
        lost: list[Any] = [i for i in token.records if m.generation.get(i, -1) <= base]
    else:
        lost = [i for i in token.records if i >= m.count]
    lost += [name for name in token.statics if name not in m.statics]
    lost += [blob_key(s, writer, k) for s, k in token.blobs if (s, writer, k) not in m.blobs]
    if lost:
        raise CommitError(
            f"commit {m.commit_seq} does not cover the token of writer {writer}: it lacks {lost[0]!r} ({len(lost)} in "
            "all); acknowledge its receipt, or resume",
            retry=False,
        )


def receipt_between(
    known: Manifest,
    found: Manifest,
    pending: Mapping[int, Any],
    statics: Iterable[str],
    blobs: Iterable[tuple[Scope, str]],
) -> Receipt:
    """What a manifest has that a writer did not know, as a receipt would say it."""
    if found.indexed:
        records = [i for i in sorted(pending) if found.generation.get(i, -1) > known.commit_seq]
        gone: list[int | str] = [i for i in known.times if i not in found.times]
    else:
        records = [i for i in sorted(pending) if i < found.count]
        gone = []
        if found.count > known.count + len(records):
            raise CommitError(f"the manifest has {found.count} records, this writer wrote {known.count + len(records)}")
    gone += sorted(known.statics - found.statics)
    gone += [blob_key(*b) for b in known.blobs if b[0] is None and b not in found.blobs]
    return Receipt(
        found.stream_id,
        found.epoch,
        found.commit_seq,
        tuple(records),
        tuple(sorted(found.statics - known.statics)),
        tuple(b for b in found.blobs if b not in known.blobs or b[0] in records),
        tuple(gone),
    )

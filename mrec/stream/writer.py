# SPDX-License-Identifier: BSD-3-Clause
"""One writer of a stream: takes records, publishes shards, makes tokens, and learns what was committed."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

from mrec import _core
from mrec.errors import (
    CommitError,
    CommitPending,
    InvalidValue,
    RecordCommitted,
    RegionError,
    SchemaError,
    StaleWriter,
)
from mrec.stream import commit as commits
from mrec.stream import region as regions
from mrec.stream.buffer import OpenShard, Part, open_shard, read_part
from mrec.stream.fence import Fence
from mrec.stream.manifest import (
    Manifest,
    Scope,
    Sealed,
    blob_key,
    parse_blob_key,
)
from mrec.stream.place import Place
from mrec.stream.pool import ALONE, Pool
from mrec.stream.region import Region
from mrec.stream.roles import Role, Single
from mrec.stream.schema import Variable, strict_attrs, time_hex
from mrec.stream.shard import encoder
from mrec.stream.token import Receipt, Token
from mrec.zarr.metadata import ArrayMeta


@dataclass
class Life:
    """What a writer is made of: `create`, `join` and `resume` put it together."""

    place: Place
    role: Role
    region: Region
    manifest: Manifest
    metas: dict[str, ArrayMeta]
    release: Callable[[], None]
    checks: bool
    threads: int
    open_times: list[Any]
    claim: bytes = b""


class StreamWriter:
    """Made by `create`, `join` and `resume`. One thread at a time.

    After an OSError of `write_record` the record is kept: do not write it again, `flush()` tries again. An error of
    a sync ends the writer; resume.
    """

    def __init__(self, life: Life) -> None:
        manifest = life.manifest
        self.place, self.role, self.region, self.schema = life.place, life.role, life.region, manifest.schema
        self.manifest = manifest if life.role.owns else None
        self.checks, self.open_times = life.checks, life.open_times
        self.partition, self.version = manifest.partition, manifest.version
        self.stream_id, self.epoch, self.base = manifest.stream_id, manifest.epoch, manifest.commit_seq
        self.fingerprint = self.schema.fingerprint(self.partition)
        self.mine = self._responsible(self.schema.variables)
        self.my_statics = self._responsible(self.schema.statics)
        self.fence = Fence(life.place, life.role, manifest, life.claim, life.release)
        self._pool = Pool(life.threads)
        files = sum(len(regions.shards(self.schema, v, self.region)) for v in self.mine.values())
        by_file = not manifest.indexed and files >= life.threads  # a thread takes a file, or all the chunks of one
        self._parts = {n: self._part(n, v, 1 if by_file else life.threads) for n, v in self.mine.items()}
        self._encoders = self._pool if by_file else ALONE
        self.time_part = self._part(self.schema.time_dim, self.schema.node(self.schema.time_dim), 1)
        grow = () if manifest.indexed else (self.schema.time_dim, *self.schema.variables)
        self.growing = {n: life.metas[n].split_leading() for n in grow}  # documents, around the number of records
        self._static_parts = {n: self._part(n, v, life.threads) for n, v in self.my_statics.items()}
        self._known = manifest.copy()  # what of the stream this writer knows to be committed
        self._known.objects.clear()
        self._v1 = manifest.v1_records
        self._pending: dict[int, Any] = {}
        self._next, self._last_t = manifest.count, manifest.last_t
        self._shards: dict[int, OpenShard] = {}
        self._spare: list[OpenShard] = []
        self._objects: dict[str, Sealed] = {}
        self._statics: dict[str, np.ndarray | None] = {}  # pending; None when they are published
        self._blobs: dict[tuple[Scope, str], bytes | None] = {}
        self.token: Token | None = None
        self._invalid: set[int | str] = set()
        self._attrs: dict[str, Any] | None = None
        self._receipt = Receipt(self.stream_id, self.epoch, self.base)
        self._unsettled = False
        self.group_stale = False
        if not manifest.indexed and manifest.count % self.schema.shard_time:
            self._load(manifest.count // self.schema.shard_time)

    def _responsible(self, variables: Mapping[str, Variable]) -> dict[str, Variable]:
        return {n: v for n, v in variables.items() if regions.writes(v, self.partition, self.region, self.role.id)}

    def _part(self, name: str, variable: Variable, threads: int) -> Part:
        return Part(self.schema, name, variable, self.region, encoder(self.schema.array_meta(name, 0), threads))

    def __repr__(self) -> str:
        return f"<StreamWriter {self.place.name!r}, {self.role}, epoch {self.epoch}, commit {self.base}>"

    # ---- records -----------------------------------------------------------------------------------------------

    def write_record(self, t: Any, arrays: Mapping[str, Any] | None = None) -> int:
        """The next record of an append stream; its index. arrays: every variable that this writer is responsible for,
        each as large as its part of the region. SchemaError, CommitPending; StaleWriter when another life began."""
        self.fence.usable()
        if self.schema.mode.indexed:
            raise InvalidValue("the stream is indexed: write_record_at(i, t, arrays)")
        value = self.schema.time_value(t)
        if self._last_t is not None and not value > self._last_t:
            raise InvalidValue(f"times increase: {value} comes after {self._last_t}")
        given = self._checked({} if arrays is None else arrays)
        i = self._next
        self._shard_for_append(i // self.schema.shard_time).set(i, given)
        self._pending[i] = value.item()
        self._next, self._last_t = i + 1, value.item()
        self._after_record(i)
        return i

    def write_record_at(self, i: int, t: Any, arrays: Mapping[str, Any] | None = None) -> int:
        """The record i of an indexed stream, in any order; written again before its commit, the last one counts.
        t: times[i], bit for bit, where the times are fixed. RecordCommitted, CommitPending."""
        self.fence.usable()
        n = self.schema.mode.n
        if n is None:
            raise InvalidValue("the stream appends: write_record(t, arrays)")
        if isinstance(i, bool) or not isinstance(i, (int, np.integer)) or not 0 <= i < n:
            raise InvalidValue(f"record {i!r} lies not in [0, {n})")
        i, value, dtype = int(i), self.schema.time_value(t), self.schema.time_dtype
        times = self.schema.mode.times
        if times is not None and time_hex(value, dtype) != time_hex(times[i], dtype):
            raise InvalidValue(f"record {i} has the time {times[i]!r}, not {value.item()!r}")
        if self.token is not None and i in self.token.records:
            raise CommitPending(f"record {i} is named in a token that is not committed yet")
        if self._known.has(i) and not (self.schema.mode.rotate and i != self._known.highest()):
            raise RecordCommitted(f"record {i} is committed; invalidate it first, and commit that")
        given = self._checked({} if arrays is None else arrays)
        shard = self._shard_for(i // self.schema.shard_time)
        filled = not shard.full
        shard.set(i, given)
        self._pending[i] = value.item()
        if filled:
            self._after_record(i)
        return i

    def _checked(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The arrays of a record, each of its type and shape."""
        if not isinstance(arrays, Mapping):
            raise SchemaError(f"a record is a mapping from variables to arrays, not {type(arrays).__name__}")
        for name in arrays:
            if name not in self.mine:
                if name not in self.schema.variables:
                    raise SchemaError(f"the stream has no variable {name!r} that a record carries")
                raise RegionError(f"{self.role} is not responsible for {name!r}")
        missing = [name for name in self.mine if name not in arrays]
        if missing:
            raise SchemaError(f"the record lacks {', '.join(map(repr, missing))}, which {self.role} is responsible for")
        return {name: part.taken(arrays[name]) for name, part in self._parts.items()}

    def _shard_for_append(self, index: int) -> OpenShard:
        found = self._shards.get(index)
        if found is None:
            kept = [s for s in self._shards.values() if s.full and self._named(s.index)]
            if kept and index > kept[0].index + 1:
                raise CommitPending(
                    f"time shard {kept[0].index} is full and named in a token that is not committed; flush, or "
                    "acknowledge the receipt"
                )
            found = self._shards[index] = self._new_shard(index)
        return found

    def _new_shard(self, index: int) -> OpenShard:
        shard = self._spare.pop() if self._spare else open_shard(self.schema, self._parts, self._encoders)
        return shard.begin(index)

    def _release_shard(self, index: int) -> None:
        self._spare = [self._shards.pop(index)]

    def _shard_for(self, index: int) -> OpenShard:
        """An open shard of an indexed stream; loaded when it holds records that are to stay."""
        return self._shards.get(index) or self._load(index)

    def _load(self, index: int) -> OpenShard:
        """A shard with its committed rows, and with those that this writer published and that are not committed."""
        shard = self._new_shard(index)
        rows = range(shard.first, shard.first + shard.capacity)
        rotates = self.schema.mode.rotate
        keep = [i for i in rows if (self._known.has(i) and not rotates) or i in self._pending]
        if keep:
            stored = max(keep) + 1 - shard.first
            span, fill, blocks = (shard.first, shard.first + stored), shard.first < self._v1, {}
            for name, variable in self.mine.items():
                part = regions.part(self.schema, variable, self.region)
                blocks[name] = read_part(self.place, self.schema, name, variable, part, span, stored, fill)
            for i in keep:
                shard.set(i, {name: block[i - shard.first] for name, block in blocks.items()})
            shard.dirty = False
        self._shards[index] = shard
        return shard

    def _named(self, index: int) -> bool:
        """Whether objects of a time shard are named in the outstanding token."""
        size = self.schema.shard_time
        return self.token is not None and any(i // size == index for i in self.token.records)

    def _after_record(self, i: int) -> None:
        """Publish the shard that the record filled, unless a token names it."""
        shard = self._shards[i // self.schema.shard_time]
        if not shard.full or self._named(shard.index):
            return
        if isinstance(self.role, Single):
            self.flush()
        else:
            self._publish(shard)
            self._release_shard(shard.index)

    def _publish(self, shard: OpenShard) -> None:
        """Every object of a shard, whole."""
        self._put_all(shard.objects())
        shard.dirty = False

    def _put_all(self, objects: Iterable[tuple[str, Any, Sealed]]) -> None:
        made: dict[str, Sealed] = {}

        def values() -> Iterator[tuple[str, Any]]:
            for key, data, sealed in objects:
                made[key] = sealed
                yield key, data

        self.publish(values())
        self._objects.update(made)

    def publish(self, values: Iterable[tuple[str, Any]]) -> None:
        """Put values where they belong. StaleWriter when another life of the stream began meanwhile."""
        try:
            self.place.publish(values, self._alive, self._pool)
        except FileNotFoundError:
            self._alive()  # the temporary files go when another life begins
            raise

    # ---- statics, blobs, attributes ------------------------------------------------------------------------------

    def write_static(self, name: str, array: Any) -> None:
        """This writer's part of a variable without time. All that are responsible for it name it in one commit."""
        self.fence.usable()
        if name not in self.schema.statics:
            raise SchemaError(f"the stream has no static {name!r}")
        if name not in self.my_statics:
            raise RegionError(f"{self.role} is not responsible for {name!r}")
        if self.token is not None and name in self.token.statics:
            raise CommitPending(f"the static {name!r} is named in a token that is not committed yet")
        if name in self._known.statics:
            raise RecordCommitted(f"the static {name!r} is committed; invalidate it first, and commit that")
        self._statics[name] = self._static_parts[name].taken(array).copy()

    def write_blob(self, scope: int | str, key: str, data: bytes) -> None:
        """A small payload. scope: "static", or the index of a record that is not committed; it waits for that one."""
        self.fence.usable()
        if self.version == 1:
            raise SchemaError(
                "a version 1 manifest has no blobs; create the stream by Owner(1), or with another profile"
            )
        try:
            parse_blob_key(key)
        except ValueError as e:
            raise InvalidValue(str(e)) from None
        where: Scope = None if scope == "static" else self._record_scope(scope)
        if self.token is not None and (where, key) in self.token.blobs:
            raise CommitPending(f"the blob {key!r} is named in a token that is not committed yet")
        if where is None and (None, self.role.id, key) in self._known.blobs:
            raise RecordCommitted(
                f"the blob {key!r} is committed; invalidate {blob_key(None, self.role.id, key)!r} first"
            )
        try:
            self._blobs[where, key] = memoryview(data).tobytes()
        except TypeError:
            raise InvalidValue(f"a blob is bytes, not {type(data).__name__}") from None

    def _record_scope(self, scope: Any) -> int:
        if isinstance(scope, bool) or not isinstance(scope, (int, np.integer)):
            raise InvalidValue(f'the scope of a blob is "static" or the index of a record, not {scope!r}')
        i = int(scope)
        if self.token is not None and i in self.token.records:
            raise CommitPending(f"record {i} is named in a token that is not committed yet")
        rotates = self.schema.mode.rotate and i != self._known.highest()
        if i not in self._pending and self._known.has(i) and not rotates:
            raise RecordCommitted(f"record {i} is committed; its blobs are written with it")
        n = self.schema.mode.n
        if i < 0 or (n is not None and i >= n):
            raise InvalidValue(f"record {i} lies not in [0, {'...' if n is None else n})")
        return i

    def set_attrs(self, attrs: Mapping[str, Any]) -> None:
        """The attributes of the stream, whole, from the next commit on. Owner."""
        self._owner("set_attrs")
        strict_attrs(attrs, "the stream")
        self._attrs = copy.deepcopy(dict(attrs))

    def invalidate(self, what: Any) -> None:
        """Records by index (indexed streams), statics by name, static blobs by object key: from the next commit on they
        are not committed any more, and after it may be written again. Owner."""
        self._owner("invalidate")
        names = list(what) if isinstance(what, Iterable) and not isinstance(what, str) else [what]
        for name in names:
            if isinstance(name, bool) or not isinstance(name, (str, int, np.integer)):
                raise InvalidValue(f"what is invalidated is the index of a record or a name, not {name!r}")
            if isinstance(name, str):
                blobs = {blob_key(*blob) for blob in self._known.blobs if blob[0] is None}
                if name not in self._known.statics and name not in blobs:
                    raise InvalidValue(f"no static or static blob {name!r} is committed")
                continue
            if not self.schema.mode.indexed:
                raise InvalidValue("a record of an append stream cannot be invalidated: it would leave a hole")
            if self.schema.mode.rotate:
                raise InvalidValue("restart slots are written again without invalidating them")
            if not self._known.has(int(name)):
                raise InvalidValue(f"record {name} is not committed")
        self._invalid.update(name if isinstance(name, str) else int(name) for name in names)

    def next_slot(self) -> int:
        """The restart slot to write: one that was never written, or that with the oldest commit."""
        if not self.schema.mode.rotate:
            raise InvalidValue('next_slot is for indexed streams with rewrite="rotate"')
        slots = range(self.schema.mode.n or 0)
        return min(slots, key=lambda i: (self._known.generation.get(i, -1), i))

    # ---- tokens and receipts -------------------------------------------------------------------------------------

    def flush(self) -> Any:
        """Publish all that was written. The token for the owner; a single writer commits it, and gets the receipt."""
        self.fence.usable()
        self._settle()
        if self._alive() > self.base:
            self.refresh()
        for index in sorted(self._shards):
            shard = self._shards[index]
            if shard.dirty:
                self._publish(shard)
        for name, values in self._statics.items():
            if values is not None:
                self._put_all(self._static_parts[name].objects(values))
                self._statics[name] = None
        for (scope, key), data in self._blobs.items():
            if data is not None and (scope is None or scope in self._pending):
                sealed = Sealed(len(data), _core.crc32c(data))
                self._put_all([(blob_key(scope, self.role.id, key), data, sealed)])
                self._blobs[scope, key] = None
        self.place.sync()
        self.token = self._made_token()
        self._drop_full()
        return self.commit([self.token]) if isinstance(self.role, Single) else self.token

    def _drop_full(self) -> None:
        for index in [k for k, s in self._shards.items() if s.full and not s.dirty]:
            self._release_shard(index)

    def _made_token(self) -> Token:
        records = tuple(sorted(self._pending))
        times = tuple(self._pending[i] for i in records)
        token = Token(
            stream_id=self.stream_id,
            epoch=self.epoch,
            writer=self.role.id,
            region=self.region,
            fingerprint=self.fingerprint,
            base_commit_seq=self.base,
            records=records,
            t=times,
            t_hex=tuple(time_hex(t, self.schema.time_dtype) for t in times),
            statics=tuple(sorted(self._statics)),
            blobs=tuple(
                sorted((b for b, data in self._blobs.items() if data is None), key=lambda b: (b[0] is not None, b))
            ),
        )
        keys = commits.derived_keys(self.schema, self.partition, token)
        token.objects.update((key, self._objects[key]) for key in keys)
        return token

    def commit(self, tokens: Iterable[Any]) -> Receipt:
        """Check the tokens of all writers, and publish what they name. CommitError says what does not fit, and then
        nothing on disk has changed; OSError that publishing failed. Owner."""
        self._owner("commit")
        self._settle()
        if self._alive() != self.base:
            raise StaleWriter(f"{self.place.name}: another writer committed; this one resumes")
        assert self.manifest is not None
        if isinstance(tokens, (str, bytes, Mapping, Token)) or not isinstance(tokens, Iterable):
            raise CommitError(f"a commit takes the tokens of all writers, not one {type(tokens).__name__}")
        plan = commits.check(self, list(tokens), self._invalid, self._attrs)
        if plan is None:
            return self._receipt
        try:
            commits.publish(self, plan)
        except OSError:
            self._unsettled = True
            raise
        self._adopt(plan.manifest, plan.receipt)
        return plan.receipt

    def _adopt(self, manifest: Manifest, receipt: Receipt) -> None:
        """Owner: this is what the stream is now."""
        self.manifest, self._receipt, self._attrs = manifest, receipt, None
        self._invalid.clear()
        self.open_times = commits.open_times(self, manifest, receipt)
        self._rebase(receipt)

    def _settle(self) -> None:
        """After a publication that failed: what does the stream say?"""
        if self._unsettled:
            found = self._read()
            if found.commit_seq > self.base:
                receipt = commits.receipt_between(self._known, found, self._pending, self._statics, self._blobs)
                self._adopt(found, receipt)
                self.group_stale = True
            self._unsettled = False

    def acknowledge(self, receipt: Any) -> None:
        """Take note of a commit. Of one that is known already, nothing happens; a receipt of another stream or life, or
        one that is not the next, is refused by CommitError."""
        self.fence.usable()
        found = receipt if isinstance(receipt, Receipt) else Receipt.from_json(receipt)
        if (found.stream_id, found.epoch) != (self.stream_id, self.epoch):
            raise CommitError(
                f"the receipt is of stream {found.stream_id} epoch {found.epoch}, this writer of {self.stream_id} "
                f"epoch {self.epoch}",
                retry=False,
            )
        if found.commit_seq <= self.base:
            return
        if found.commit_seq != self.base + 1:
            raise CommitError(f"the receipt is of commit {found.commit_seq}, this writer knows {self.base}: refresh()")
        strange = sorted(set(found.records) - self._pending.keys())
        if strange:
            raise CommitError(
                f"the receipt is forged: it has record {strange[0]}, which this writer did not write", retry=False
            )
        self._rebase(found)

    def refresh(self) -> None:
        """Take note of what the manifest says. CommitError when it has a commit that does not cover the token."""
        self.fence.usable()
        found = self._read()
        if found.commit_seq <= self.base:
            return
        if self.token is not None:
            commits.check_covered(self.token, found, self.role.id)
        receipt = commits.receipt_between(self._known, found, self._pending, self._statics, self._blobs)
        if self.manifest is not None:
            self._adopt(found, receipt)
        else:
            self._rebase(receipt)

    def _rebase(self, receipt: Receipt) -> None:
        """What was committed leaves this writer, the rest stays for the next flush."""
        self.base, self.token, known = receipt.commit_seq, None, self._known
        known.commit_seq = receipt.commit_seq
        for i in receipt.records:
            t = self._pending.pop(i, None)
            if known.indexed:
                known.times[i], known.generation[i] = t, receipt.commit_seq
        if not known.indexed and receipt.records:
            known.count = receipt.records[-1] + 1
        known.statics.update(receipt.statics)
        for scope, writer, key in receipt.blobs:
            if scope is None:
                known.blobs[None, writer, key] = Sealed(0, 0)
            if writer == self.role.id:
                self._blobs.pop((scope, key), None)
        for name in receipt.statics:
            self._statics.pop(name, None)
        for what in receipt.invalidated:
            self._forget(what)
        self._after_rebase()

    def _forget(self, what: int | str) -> None:
        known = self._known
        if isinstance(what, str):
            known.statics.discard(what)
            known.blobs = {blob: s for blob, s in known.blobs.items() if blob_key(*blob) != what}
            return
        known.times.pop(what, None)
        known.generation.pop(what, None)
        shard = self._shards.get(what // self.schema.shard_time)
        if shard is not None:
            shard.drop(what)

    def _after_rebase(self) -> None:
        left = Token("", 0, self.role.id, self.region, "", 0, tuple(self._pending), statics=tuple(self._statics))
        keep = set(commits.derived_keys(self.schema, self.partition, left))
        keep.update(blob_key(scope, self.role.id, key) for scope, key in self._blobs)
        self._objects = {key: sealed for key, sealed in self._objects.items() if key in keep}
        for shard in [s for s in self._shards.values() if s.full]:
            if shard.dirty and not self._named(shard.index):
                self._publish(shard)
        self._drop_full()

    # ---- life ----------------------------------------------------------------------------------------------------

    def _alive(self) -> int:
        """The commit that the manifest has. StaleWriter."""
        return self.fence.commit_seq(self.base)

    def _read(self) -> Manifest:
        """The manifest. StaleWriter."""
        return self.fence.read(self.base, self._known.count)

    def _owner(self, what: str) -> None:
        self.fence.usable()
        if not self.role.owns:
            raise InvalidValue(f"{what} is for the owner, not for {self.role}")

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self.fence.closed

    @property
    def n_committed(self) -> int:
        """How many records this writer knows to be committed."""
        return self._known.n_records

    @property
    def is_committed(self) -> Callable[[int], bool]:
        """Whether a record is committed, as far as this writer knows."""
        return self._known.has

    def close(self, tokens: Iterable[Any] = ()) -> None:
        """Let go of lock and claim. With tokens the owner commits them first; without, nothing is committed.
        CommitPending when a contributor or single writer holds records that were never flushed."""
        if self.fence.closed:
            return
        try:
            given = list(tokens)
            if given:
                self.commit(given)
        finally:
            self._let_go()
        named = set(self.token.records) if self.token is not None else set()
        lost = sorted(set(self._pending) - named)
        if lost and (isinstance(self.role, Single) or not self.role.owns):
            raise CommitPending(f"{self.role} closed with {len(lost)} records, from {lost[0]}, that were never flushed")

    def _let_go(self) -> None:
        self._shards.clear()
        self._spare.clear()
        self._pool.end()
        self.fence.let_go()

    def __enter__(self) -> StreamWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """A single writer flushes first, unless an exception is on its way."""
        if kind is not None:
            self._let_go()
            return
        try:
            if isinstance(self.role, Single) and not self.fence.closed:
                self.flush()
        finally:
            self.close()

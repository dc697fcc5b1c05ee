# SPDX-License-Identifier: BSD-3-Clause
"""Whether a writer may still write: its process, its claim, its stream and the life of that."""

from __future__ import annotations

import os
from collections.abc import Callable

from mrec.errors import ClosedError, NotARecord, StaleWriter
from mrec.stream.manifest import HEAD_BYTES, KEY, Manifest, parse_head, parse_manifest
from mrec.stream.place import Place
from mrec.stream.roles import Role, Single


class Fence:
    """What keeps a writer out once another life of its stream has begun. release: lets go of the lock."""

    def __init__(self, place: Place, role: Role, manifest: Manifest, claim: bytes, release: Callable[[], None]) -> None:
        self.place, self.role, self.release = place, role, release
        self.version, self.stream_id, self.epoch = manifest.version, manifest.stream_id, manifest.epoch
        self.closed = False
        self._claim, self._pid = claim, os.getpid()
        self._seen = b"", -1  # the head of a manifest that was right, and its commit

    def usable(self) -> None:
        """ClosedError, or StaleWriter in a process that was forked from the writer's."""
        if self.closed:
            raise ClosedError(f"{self.place.name}: the writer is closed")
        if os.getpid() != self._pid:
            raise StaleWriter(f"{self.place.name}: the writer belongs to the parent process; join or resume")

    def commit_seq(self, base: int) -> int:
        """The commit that the manifest has; `base` where it does not say. StaleWriter when it is of another stream or
        life, or is gone."""
        self.place.still_there()
        raw = self.place.head(KEY, HEAD_BYTES)
        if raw is None:
            raise self._gone()
        if self.version == 1:
            return base
        if raw == self._seen[0]:
            return self._seen[1]
        head = parse_head(raw)
        if head is None or head[:2] != (self.stream_id, self.epoch):
            found = "another stream" if head is None or head[0] != self.stream_id else f"epoch {head[1]}"
            raise StaleWriter(
                f"{self.place.name}: the stream is {found} now, this writer is of epoch {self.epoch}; resume"
            )
        self._seen = raw, head[2]
        return head[2]

    def read(self, base: int, count: int) -> Manifest:
        """The manifest; under fsync it is there for good before anything follows from it. base, count: commit and
        records that the writer knows of, where it does not say."""
        self.place.sync_key(KEY)
        raw = self.place.get(KEY)
        if raw is None:
            raise self._gone()
        found = parse_manifest(raw, f"{self.place.name}/{KEY}")
        if self.version == 1 and found.version == 1:
            found.stream_id, found.epoch = self.stream_id, self.epoch
            found.commit_seq = base + (found.count > count)
        if (found.stream_id, found.epoch) != (self.stream_id, self.epoch):
            raise StaleWriter(f"{self.place.name}: the stream was resumed or replaced; this writer writes nothing more")
        return found

    def _gone(self) -> StaleWriter:
        return StaleWriter(f"{self.place.name}: the manifest is gone; this writer writes nothing more")

    def let_go(self) -> None:
        """Give back the claim and the lock."""
        self.closed = True
        try:
            key = f"locks/{self.epoch}-{self.role.id}"
            if os.getpid() == self._pid and self.place.get(key) == self._claim:
                self.place.delete(key)
                if isinstance(self.role, Single):
                    self.place.tidy()
        finally:
            self.release()


def require_manifest(place: Place, raw: bytes | None = None) -> Manifest:
    """The manifest of a stream, from its bytes when they were read already. NotARecord when there is none."""
    raw = place.get(KEY) if raw is None else raw
    if raw is None:
        raise NotARecord(f"{place.name}: there is no {KEY}: no stream, or one whose creation was not finished")
    return parse_manifest(raw, f"{place.name}/{KEY}")

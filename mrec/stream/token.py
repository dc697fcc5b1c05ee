# SPDX-License-Identifier: BSD-3-Clause
"""What travels between writers: tokens to the owner, receipts back. Both are JSON, and nothing in them is trusted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mrec.errors import CommitError, MrecError
from mrec.stream.manifest import (
    MOST,
    Scope,
    Sealed,
    parse_blob_key,
    parse_objects,
    parse_region,
    parse_scope,
    ranges,
)
from mrec.stream.region import Region
from mrec.zarr.codecs import is_int
from mrec.zarr.json import parse_object

TOKEN = "mrec/stream-token/v1"
RECEIPT = "mrec/stream-receipt/v1"
#: Bytes of a token; more than any stream that fits a manifest needs.
MOST_BYTES = 256 << 20
_MOST_RECORDS = 1 << 24


@dataclass(frozen=True)
class Token:
    """What a writer has published since its last commit. records: index -> time, as 16 hexadecimal digits in t_hex."""

    stream_id: str
    epoch: int
    writer: int
    region: Region
    fingerprint: str
    base_commit_seq: int
    records: tuple[int, ...] = ()
    t: tuple[Any, ...] = ()
    t_hex: tuple[str, ...] = ()
    statics: tuple[str, ...] = ()
    blobs: tuple[tuple[Scope, str], ...] = ()
    objects: dict[str, Sealed] = field(default_factory=dict)

    def to_json(self) -> str:
        """The text."""
        return json.dumps(
            {
                "schema": TOKEN,
                "stream_id": self.stream_id,
                "epoch": self.epoch,
                "writer": self.writer,
                "region": {d: list(b) for d, b in self.region.items()},
                "fingerprint": self.fingerprint,
                "base_commit_seq": self.base_commit_seq,
                "records": [list(r) for r in ranges(self.records)],
                "t": list(self.t),
                "t_hex": list(self.t_hex),
                "statics": list(self.statics),
                "blobs": [{"scope": "static" if s is None else s, "key": k} for s, k in self.blobs],
                "objects": [{"key": k, "size": o.size, "crc32c": o.crc32c} for k, o in self.objects.items()],
            },
            allow_nan=False,
        )

    def copy(self) -> Token:
        """The token that its text is. CommitError when it has none."""
        try:
            text = self.to_json()
        except (AttributeError, TypeError, ValueError) as e:
            raise CommitError(f"this is no token of a writer: {e}") from None
        return Token.from_json(text)

    @classmethod
    def from_json(cls, text: Any) -> Token:
        """The token of a text, bytes or object. CommitError when it is none."""
        doc = _document(text, TOKEN, "token")
        try:
            t, t_hex = _tuple(doc["t"]), _tuple(doc["t_hex"])
            records = tuple(_unrolled(doc["records"], len(t)))
            if not len(t) == len(t_hex) == len(records):
                raise ValueError(f"{len(records)} records have {len(t)} times and {len(t_hex)} in hexadecimal")
            return cls(
                stream_id=_string(doc["stream_id"]),
                epoch=_number(doc["epoch"]),
                writer=_number(doc["writer"]),
                region=parse_region(doc["region"]),
                fingerprint=_string(doc["fingerprint"]),
                base_commit_seq=_number(doc["base_commit_seq"]),
                records=records,
                t=t,
                t_hex=tuple(map(_string, t_hex)),
                statics=tuple(map(_string, _tuple(doc["statics"]))),
                blobs=tuple((parse_scope(b["scope"]), parse_blob_key(b["key"])) for b in _tuple(doc["blobs"])),
                objects=dict(parse_objects(doc["objects"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            what = f"{e} is missing" if isinstance(e, KeyError) else str(e)
            raise CommitError(f"this is no token of a writer: {what}") from None


@dataclass(frozen=True)
class Receipt:
    """What one commit did: records with their times, statics, blobs (scope, writer, key); invalidated: indices and
    names that may be written again."""

    stream_id: str
    epoch: int
    commit_seq: int
    records: tuple[int, ...] = ()
    statics: tuple[str, ...] = ()
    blobs: tuple[tuple[Scope, int, str], ...] = ()
    invalidated: tuple[int | str, ...] = ()

    def to_json(self) -> str:
        """The text."""
        return json.dumps(
            {
                "schema": RECEIPT,
                "stream_id": self.stream_id,
                "epoch": self.epoch,
                "commit_seq": self.commit_seq,
                "records": [list(r) for r in ranges(self.records)],
                "statics": list(self.statics),
                "blobs": [{"scope": "static" if s is None else s, "writer": w, "key": k} for s, w, k in self.blobs],
                "invalidated": list(self.invalidated),
            }
        )

    @classmethod
    def from_json(cls, text: Any) -> Receipt:
        """The receipt of a text, bytes or object. CommitError when it is none."""
        doc = _document(text, RECEIPT, "receipt")
        try:
            return cls(
                stream_id=_string(doc["stream_id"]),
                epoch=_number(doc["epoch"]),
                commit_seq=_number(doc["commit_seq"]),
                records=tuple(_unrolled(doc["records"])),
                statics=tuple(map(_string, _tuple(doc["statics"]))),
                blobs=tuple(
                    (parse_scope(b["scope"]), _number(b["writer"]), parse_blob_key(b["key"])) for b in doc["blobs"]
                ),
                invalidated=tuple(v if isinstance(v, str) else _number(v) for v in _tuple(doc["invalidated"])),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as e:
            what = f"{e} is missing" if isinstance(e, KeyError) else str(e)
            raise CommitError(f"this is no receipt of a commit: {what}") from None


def _document(text: Any, schema: str, what: str) -> dict[str, Any]:
    if isinstance(text, dict):
        try:
            text = json.dumps(text)
        except (TypeError, ValueError, RecursionError) as e:
            raise CommitError(f"this is no {what}: {e}") from None
    if not isinstance(text, (str, bytes, bytearray)):
        raise CommitError(f"a {what} is a text, not {type(text).__name__}")
    if len(text) > MOST_BYTES:
        raise CommitError(f"a {what} of {len(text)} bytes is larger than any writer makes")
    try:
        doc = parse_object(bytes(text) if isinstance(text, bytearray) else text, what)
    except MrecError as e:
        raise CommitError(f"this is no {what}: {e}") from None
    if doc.get("schema") != schema:
        raise CommitError(f"this is no {what}: its schema is {doc.get('schema')!r}, not {schema!r}")
    return doc


def _number(value: Any) -> int:
    if not is_int(value, 0, MOST):
        raise ValueError(f"{value!r} is no number from 0")
    return value


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is no string")
    return value


def _tuple(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is no list")
    return tuple(value)


def _unrolled(found: Any, most: int = _MOST_RECORDS) -> Iterable[int]:
    at, total = 0, 0
    for start, stop in _tuple(found):
        if _number(start) < at or _number(stop) <= start:
            raise ValueError(f"the records [{start}, {stop}) are out of order")
        at = stop
        total += stop - start
        if total > most:
            raise ValueError(f"more than {most} records")
        yield from range(start, stop)

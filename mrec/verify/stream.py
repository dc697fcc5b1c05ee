# SPDX-License-Identifier: BSD-3-Clause
"""One stream: its manifest, its documents, and every object that holds something committed."""

from __future__ import annotations

import os

from mrec.errors import CommitError, CorruptData, MrecError, UnsupportedVersion
from mrec.stream import region as regions
from mrec.stream.commit import holds_committed
from mrec.stream.manifest import Manifest, blob_key
from mrec.stream.read import Stream
from mrec.verify.report import Log, Progress, Report


def check_stream(path: str | os.PathLike[str], progress: Progress | None) -> Report:
    """See `mrec.verify`; the frames of the report are committed records."""
    report = Report(os.fspath(path))
    log = Log(report, progress)
    found = Stream(path)
    try:
        m = found.manifest
    except (CorruptData, UnsupportedVersion) as e:
        log.add("manifest", None, str(e))
        return report
    report.frames = len(m.readable())
    _check_documents(log, found, m)
    if report.ok:
        _check_coverage(log, m)
        _check_objects(log, found, m)
        _check_values(log, found, m)
    return report


def _check_documents(log: Log, found: Stream, m: Manifest) -> None:
    s = m.schema
    for name in (s.time_dim, *s.variables, *s.statics):
        try:
            meta = found.meta(name)
            wanted = s.array_meta(name, s.mode.n or m.count)
            names = ["data_type", "grid", "dimension_names", *([] if m.blosc else ["chain"])]
            for what in names:
                if getattr(meta, what) != getattr(wanted, what):
                    log.add("stream-document", name, f"{what} is {getattr(meta, what)}, not {getattr(wanted, what)}")
            least = wanted.shape[0] if name not in s.statics else meta.shape[0]
            if meta.shape[1:] != wanted.shape[1:] or meta.shape[0] < least:
                log.add(
                    "stream-shape", name, f"the shape is {list(meta.shape)}, the manifest needs {list(wanted.shape)}"
                )
        except MrecError as e:
            log.add("stream-document", name, str(e))


def _check_coverage(log: Log, m: Manifest) -> None:
    if m.version == 2 and all(region is not None for region in m.writers.values()):
        try:
            regions.check_cover(m.schema, m.partition, {i: r for i, r in m.writers.items() if r is not None})
        except CommitError as e:
            log.add("stream-coverage", None, str(e))


def _check_objects(log: Log, found: Stream, m: Manifest) -> None:
    """Sizes and checksums, where the manifest binds: every record of the object is committed and no slot rotates."""
    size, s = m.schema.shard_time, m.schema
    touched = {i // size for i in m.readable()}
    for key, sealed in m.objects.items():
        name, _, rest = key.partition("/c/")
        if not holds_committed(m, key, touched):
            continue
        if name not in s.statics:
            first = int(rest.partition("/")[0]) * size
            if not all(m.has(i) for i in range(first, min(first + size, s.mode.n or first + size))):
                continue
        seen = found.place.checksum(key)
        if seen is None:
            log.add("stream-object", name, f"{key} is missing")
        elif seen != (sealed.size, sealed.crc32c):
            log.add("stream-object", name, f"{key} has {seen[0]} bytes and the crc32c {seen[1]:08x}, not {sealed}")
    for blob, sealed in m.blobs.items():
        if blob[0] is None or blob[0] in set(m.readable()):
            seen = found.place.checksum(blob_key(*blob))
            if seen != (sealed.size, sealed.crc32c):
                log.add("stream-object", "blobs", f"{blob_key(*blob)} is {seen}, not {sealed}")


def _check_values(log: Log, found: Stream, m: Manifest) -> None:
    """Every chunk that holds something committed can be read."""
    s, records = m.schema, m.readable()
    log.expected = len(records) * len(s.variables)
    for name in s.variables:
        for i in records:
            try:
                log.read(found.read_record(name, i).nbytes)
            except MrecError as e:
                log.add("stream-read", name, str(e), frame=i)
    for name in m.statics:
        try:
            found.read_static(name)
        except MrecError as e:
            log.add("stream-read", name, str(e))
    try:
        times = found.times()
        if not m.indexed and (times[1:] <= times[:-1]).any():
            log.add("stream-read", s.time_dim, "the times do not increase")
    except MrecError as e:
        log.add("stream-read", s.time_dim, str(e))

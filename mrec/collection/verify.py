# SPDX-License-Identifier: BSD-3-Clause
"""Check a collection: every checksum, every block and chunk, and the statistics against the values."""

from __future__ import annotations

import os
import warnings
from typing import Any

from mrec.collection.elements import encode_chunk, join
from mrec.collection.footer import HEAD
from mrec.collection.kinds import pack_fill, unpack_bound
from mrec.collection.place import CHECKSUMS, CONTAINER
from mrec.collection.reader import ArrayView, Collection, open_collection
from mrec.errors import CorruptData, MrecError, UnsupportedVersion


def verify_collection(path: str | os.PathLike[str]) -> list[str]:
    """What is wrong, a line each, beginning with "error" or "warning"; nothing is changed. RecordNotFound."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = open_collection(path)
            _ = found.checksums
    except (CorruptData, UnsupportedVersion) as e:
        return [f"error {e}"]
    lines = [f"warning {warning.message}" for warning in caught]
    if found.checksums is None and not caught:
        lines.append(f"warning there is no {CHECKSUMS}: damage of values may pass unseen")
    with found:
        if found.place.read(CONTAINER, 0, len(HEAD)) != HEAD:
            lines.append(f"error {found.place.path(CONTAINER)}: the first {len(HEAD)} bytes are no head of a container")
        for name in found.names:
            lines += _check_dataset(found, name)
    return list(dict.fromkeys(lines))


def _check_dataset(found: Collection, name: str) -> list[str]:
    lines = []
    try:
        dataset = found[name]
        _ = dataset.attributes
    except MrecError as e:
        return [f"error {name}: {e}"]
    for array in dataset:
        try:
            view = dataset[array]
            _ = view.attributes
            wrong = _wrong_statistics(view)
            lines += [f"error {name}/{array}: {wrong}"] if wrong else []
        except (MrecError, MemoryError) as e:
            lines.append(f"error {name}/{array}: {e}")
    return lines


def _wrong_statistics(view: ArrayView) -> str:
    segment, info = view._segment, view._info
    recorded = segment.footer.statistics(view._number)
    if recorded is None:
        return ""
    kind = info.kind
    packed = pack_fill(kind, info.fill)
    fill = None if packed is None else packed[1]
    chunks = segment.footer.chunks(view._number)
    extents = [encode_chunk(kind, segment.decoded(info, chunk), fill, segment.where)[1] for chunk in chunks]
    low, high, nulls, count = join(kind, extents)
    nulls += recorded[3] - count  # what was never written
    if recorded[2] != nulls:
        return f"the statistics count {recorded[2]} null elements, there are {nulls}"
    for what, found, kept in (("smallest", low, recorded[0]), ("largest", high, recorded[1])):
        bound = unpack_bound(kind, None if found is None else (kind.bound, found))
        if not _same(bound, unpack_bound(kind, kept)):
            return f"the statistics have another {what} element: {unpack_bound(kind, kept)!r} for {bound!r}"
    return ""


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))

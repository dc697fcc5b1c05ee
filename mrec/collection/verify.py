# SPDX-License-Identifier: BSD-3-Clause
"""Check a collection: every checksum, every block and chunk, and the statistics against the values."""

from __future__ import annotations

import os
import warnings
from typing import Any

from mrec.collection.elements import as_elements, encode_chunk
from mrec.collection.kinds import pack_fill, unpack_bound
from mrec.collection.place import CHECKSUMS
from mrec.collection.reader import ArrayView, Collection, open_collection
from mrec.errors import CorruptData, MrecError


def verify_collection(path: str | os.PathLike[str]) -> list[str]:
    """What is wrong, a line each, beginning with "error" or "warning"; nothing is changed. RecordNotFound."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = open_collection(path)
            _ = found.checksums
    except CorruptData as e:
        return [f"error {e}"]
    lines = [f"warning {warning.message}" for warning in caught]
    if found.checksums is None and not caught:
        lines.append(f"warning there is no {CHECKSUMS}: damage of values may pass unseen")
    with found:
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
    stats = view.stats
    if stats is None:
        return ""
    kind = view._info.kind
    packed = pack_fill(kind, view.fill_value)
    values = as_elements(kind, view[...], view.name)
    _, (low, high, nulls, rows) = encode_chunk(kind, values, None if packed is None else packed[1])
    complete = view._info.nchunks >= _chunks(view)
    if stats.row_count != rows:
        return f"the statistics count {stats.row_count} elements, there are {rows}"
    if complete and packed is not None and stats.null_count != nulls:
        return f"the statistics count {stats.null_count} null elements, there are {nulls}"
    recorded: Any = view._segment.footer.statistics(view._number)
    for what, bits, kept in (("smallest", low, recorded[0]), ("largest", high, recorded[1])):
        if complete and bits is not None and kept is not None and not _same(kind, bits, kept):
            return f"the statistics have another {what} element: {unpack_bound(kind, kept)!r}"
    return ""


def _same(kind: Any, bits: Any, kept: Any) -> bool:
    one, other = unpack_bound(kind, (kind.bound, bits)), unpack_bound(kind, kept)
    return bool(one == other or (one != one and other != other))


def _chunks(view: ArrayView) -> int:
    n = 1
    for length, chunk in zip(view.shape, view.chunk_shape, strict=True):
        n *= -(-length // chunk)
    return n

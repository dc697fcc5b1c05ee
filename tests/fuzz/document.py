# SPDX-License-Identifier: BSD-3-Clause
"""`zarr.json`: any text as a document, and in the place of each document of a record.

The first byte says which document, and how far to go: parsing, reading the record, verifying it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from mrec.errors import MrecError
from mrec.trajectory.schema import Schema
from mrec.zarr import metadata
from mrec.zarr.metadata import source_spec
from tests.flips import stores
from tests.fuzz.place import folder, look

IS_JSON = True


@cache
def documents() -> list[tuple[Path, Path]]:
    """Every document of two records, and the record it is in."""
    root = folder()
    found = []
    for kind in ("ragged", "strings"):
        record = root / f"{kind}.mrec"
        stores.KINDS[kind](record, 2)
        found += [(file, record) for file in sorted(record.rglob("zarr.json"))]
    return found


def check(data: bytes) -> None:
    """Parse, write and parse again; then read the record."""
    place, text = data[0] if data else 0, data[1:]
    try:
        node = metadata.parse_node(text, "zarr.json")
        if isinstance(node, metadata.ArrayMeta):
            source_spec(node)
        elif "sequence_schema" in node.attributes:
            Schema.from_json(node.attributes["sequence_schema"])
    except MrecError:
        pass
    else:
        again = metadata.parse_node(node.document(), "zarr.json")
        assert again.document() == node.document()
    if place < 64:
        return
    file, record = documents()[place % len(documents())]
    whole = file.read_bytes()
    file.write_bytes(text)
    try:
        look(record, place // 64)
    finally:
        file.write_bytes(whole)

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec ls`: the groups and arrays of a record, as they stand on disk."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from mrec.cli import collections
from mrec.cli.sizes import human
from mrec.errors import NotARecord, RecordNotFound
from mrec.trajectory.storage import codec_names
from mrec.zarr.array import Array
from mrec.zarr.group import Group
from mrec.zarr.store import open_store


@dataclass
class Node:
    """A group (only path, bytes, files) or an array. shards: the extents of one file; null when chunks are files."""

    path: str
    kind: str
    bytes: int
    files: int
    type: str | None = None
    shape: list[int] | None = None
    chunks: list[int] | None = None
    shards: list[int] | None = None
    codecs: str | None = None


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("ls", help="list groups and arrays: types, shapes, codecs, sizes", description=__doc__)
    parser.add_argument("path", metavar="PATH", help="a record, or a group in one, or a collection")
    parser.add_argument("--json", action="store_true", help="print a list of nodes as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the tree."""
    if collections.is_collection(arguments.path):
        collections.ls(arguments)
        return
    nodes = list(walk(arguments.path))
    if arguments.json:
        print(json.dumps([asdict(node) for node in nodes], indent=1))
    else:
        print("\n".join(_tree(arguments.path, nodes)))


def walk(path: str) -> Iterator[Node]:
    """The nodes at and below a directory or in a zip file, parents first. RecordNotFound, NotARecord."""
    if not os.path.lexists(path):
        raise RecordNotFound(f"{path}: there is nothing")
    store = open_store(path)
    if not store.exists("zarr.json"):
        raise NotARecord(f"{path} is no record: it has no zarr.json")
    yield from _walk(Group(store))


def _walk(node: Group | Array) -> Iterator[Node]:
    sizes = [node.store.size(key) for key in node.store.walk(node.path)]
    size, files = sum(sizes), len(sizes)
    if isinstance(node, Array):
        yield _array(node, size, files)
        return
    yield Node(node.path, "group", size, files)
    for name in node:
        yield from _walk(node[name])


def _array(array: Array, size: int, files: int) -> Node:
    meta = array.meta
    codecs: list[Any] = meta.codecs
    chunks, shards = meta.grid, None
    outer = codecs[-1] if codecs else {}
    if isinstance(outer, dict) and outer.get("name") == "sharding_indexed":
        chunks, shards = outer["configuration"]["chunk_shape"], list(meta.grid)
        codecs = outer["configuration"]["codecs"]
    shape = list(array.shape)
    return Node(array.path, "array", size, files, meta.data_type, shape, list(chunks), shards, codec_names(codecs))


def _tree(path: str, nodes: list[Node]) -> Iterator[str]:
    rows = []
    for node in nodes:
        depth = node.path.count("/") + 1 if node.path else 0
        name = node.path.rpartition("/")[2] or path.rstrip("/")
        if node.kind == "group":
            rows.append(("  " * depth + name + "/", "", "", "", human(node.bytes)))
        else:
            shape = "x".join(map(str, node.shape or [])) or "1"
            rows.append(("  " * depth + name, node.type or "", shape, node.codecs or "", human(node.bytes)))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths, strict=False)]
        yield "  ".join([*cells, row[4].rjust(widths[4])])

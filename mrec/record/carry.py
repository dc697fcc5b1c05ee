# SPDX-License-Identifier: BSD-3-Clause
"""What a rewritten record takes over byte for byte: all but the trajectory, and in it whatever is not of the format."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator

from mrec.errors import MrecError
from mrec.names import in_place, is_temporary
from mrec.trajectory.schema import Schema
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_node
from mrec.zarr.store import FilesystemStore, Store
from mrec.zarr.write import sync_directories, sync_file

_FORMAT = {
    "sequence_schema", "nstep", "mrec_nstep", "step_progression", "time_progression", "meta_dtype", "vectors", "origin",
    "boundary", "cell_defined", "uniform_rows", "dense_updates", "structural_shape",
}  # fmt: skip
_BOX = ("step_index", "vectors", "origin", "boundary")


def carry(store: Store, target: str, schema: Schema, kept: Schema, leave: Collection[str] = ()) -> None:
    """Copy into a closed record what its trajectory does not replace, without the files whose keys are in `leave`.

    schema, kept: of the source, of the target.
    """
    carry_beside(store, target, leave)
    dropped = tuple(f"trajectory/{name}" for name in schema.blocks if name not in kept.blocks)
    for key, group in extras(store, schema):
        if key in leave or group.removesuffix("/_validity") in dropped:
            continue
        _copy(store, key, target)
        own = f"{group}/zarr.json"
        if own not in leave and store.exists(own) and not os.path.exists(os.path.join(target, own)):
            _copy(store, own, target)
    for path, _ in _nodes(schema):
        key = f"trajectory/{path}".rstrip("/") + "/zarr.json"
        if key not in leave:
            _carry_attributes(store, FilesystemStore(target), key)
    sync_directories(target)


def extras(store: Store, schema: Schema) -> Iterator[tuple[str, str]]:
    """The files below `trajectory/` that are not of the format, each with the group of the format it lies in."""
    nodes = {f"trajectory/{path}".rstrip("/"): kind for path, kind in _nodes(schema)}
    for key in store.walk("trajectory"):
        group = _group_of(key, nodes)
        if group is not None and not is_temporary(key):
            yield key, group


def carry_beside(store: Store, target: str, leave: Collection[str] = ()) -> None:
    """Copy everything but the trajectory into a record, without the files whose keys are in `leave`."""
    for key in store.walk():
        if not key.startswith("trajectory/") and key not in leave and not is_temporary(key) and in_place(key) == key:
            _copy(store, key, target)


def _nodes(schema: Schema) -> Iterator[tuple[str, str]]:
    """The nodes that a trajectory of this schema may have, below `trajectory/`."""
    yield from (("", "group"), ("meta", "group"), ("box", "group"), ("step", "array"), ("time", "array"))
    yield from ((f"box/{name}", "array") for name in _BOX)
    yield from ((f"meta/{name}", "array") for name in schema.values)
    for name, block in schema.blocks.items():
        yield from ((name, "group"), (f"{name}/_validity", "group"))
        yield from ((f"{name}/{array}", "array") for array in ("step_index", "offset", *block.columns))
        yield from ((f"{name}/_validity/{column}", "array") for column in block.columns)


def _group_of(key: str, nodes: dict[str, str]) -> str | None:
    """The group of the format in which a file lies that is not of the format; None for a file that is."""
    parent, _, name = key.rpartition("/")
    if name == "zarr.json" and parent in nodes:
        return None
    while parent not in nodes:
        parent = parent.rpartition("/")[0]
    return parent if nodes[parent] == "group" else None


def _copy(store: Store, key: str, target: str) -> None:
    path = os.path.join(target, key)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if isinstance(store, FilesystemStore):
        shutil.copyfile(store.path(key), path)
    else:
        with open(path, "wb") as file:
            file.write(store.get(key) or b"")
    sync_file(path)


def _carry_attributes(source: Store, target: Store, key: str) -> None:
    """Add the attributes and keys that are not of the format to a node that was written anew."""
    old, new = source.get(key), target.get(key)
    if old is None or new is None:
        return
    try:
        found = parse_node(old, source.path(key))
    except MrecError:
        return  # of a record that was not closed, documents on disk need not be those in force
    extra = {name: value for name, value in found.attributes.items() if name not in _FORMAT}
    if extra or found.foreign:
        node: GroupMeta | ArrayMeta = parse_node(new, target.path(key))
        node.attributes.update(extra)
        node.foreign.update(found.foreign)
        replace_document(target.path(key), node)


def replace_document(path: str, node: GroupMeta | ArrayMeta) -> None:
    """Write a node's document anew."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(node.document())
    sync_file(path)

# SPDX-License-Identifier: BSD-3-Clause
"""One group, for reading."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mrec.errors import CorruptData, UnknownName
from mrec.zarr.array import Array
from mrec.zarr.metadata import GroupMeta, parse_node
from mrec.zarr.store import Store


class Group:
    """A group of a hierarchy: attributes, and arrays and groups by name. What is neither is passed over.

    attrs: the attributes, as stored. `group["a/b"]`, iteration over the names, `name in group`.
    """

    def __init__(self, store: Store, path: str = "", meta: GroupMeta | None = None) -> None:
        self.store = store
        self.path = path
        if meta is None:
            node = read_node(store, path)
            if not isinstance(node, GroupMeta):
                raise CorruptData(f"{store.path(path)}: there is no group")
            meta = node
        self.meta = meta

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes, as stored."""
        return self.meta.attributes

    def __getitem__(self, name: str) -> Group | Array:
        path = child(self.path, name)
        node = read_node(self.store, path) if is_path(name) else None
        if node is None:
            raise UnknownName(f"there is no {name!r} in {self.path or '/'}")
        return Group(self.store, path, node) if isinstance(node, GroupMeta) else Array(self.store, path, node)

    def __iter__(self) -> Iterator[str]:
        for name in self.store.names(self.path):
            if self.store.exists(f"{child(self.path, name)}/zarr.json"):
                yield name

    def __contains__(self, name: str) -> bool:
        return is_path(name) and self.store.exists(f"{child(self.path, name)}/zarr.json")

    def __repr__(self) -> str:
        return f"<Group {self.path or '/'}: {', '.join(self) or 'empty'}>"


def is_path(name: str) -> bool:
    """Whether a name stays inside the group: no empty part, no `.` or `..`."""
    return all(part not in ("", ".", "..") and "\0" not in part for part in name.split("/"))


def child(path: str, name: str) -> str:
    """The path of a child."""
    return f"{path}/{name}" if path else name


def read_node(store: Store, path: str) -> Any:
    """The document of a node, parsed (ArrayMeta or GroupMeta); None when there is none."""
    key = child(path, "zarr.json")
    raw = store.get(key)
    return None if raw is None else parse_node(raw, store.path(key))

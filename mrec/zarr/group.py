# SPDX-License-Identifier: BSD-3-Clause
"""One group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from mrec.errors import CorruptData, InvalidValue, UnknownName
from mrec.names import fault
from mrec.zarr.array import Array
from mrec.zarr.attributes import Attributes
from mrec.zarr.cast import as_array, cast, fit
from mrec.zarr.create import array_meta
from mrec.zarr.json import checked
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_node
from mrec.zarr.store import Store

#: Levels that a tree shows.
DEEPEST = 100


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
    def attrs(self) -> Attributes:
        """The attributes, as a dict that stores what is assigned."""
        return Attributes(self)

    def __getitem__(self, name: str) -> Group | Array:
        path = child(self.path, name) if is_path(name) else ""
        node = read_node(self.store, path) if path else None
        if node is None:
            raise UnknownName(f"there is no {name!r} in {self.path or '/'}")
        return Group(self.store, path, node) if isinstance(node, GroupMeta) else Array(self.store, path, node)

    def __iter__(self) -> Iterator[str]:
        for name in self.store.names(self.path):
            if self.store.exists(f"{child(self.path, name)}/zarr.json"):
                yield name

    def __contains__(self, name: object) -> bool:
        return is_path(name) and self.store.exists(f"{child(self.path, name)}/zarr.json")

    # ---- writing -------------------------------------------------------------------------------------------------

    def set_attrs(self, attributes: Mapping[str, Any]) -> None:
        """Replace the attributes."""
        meta = replace(self.meta, attributes=checked(attributes, f"attributes of {self.path or '/'}"))
        self.store.set(child(self.path, "zarr.json"), meta.document().encode())
        self.meta = meta

    def create_group(self, name: str, attributes: Mapping[str, Any] | None = None) -> Group:
        """A new group, with those on the way to it. InvalidValue when there is something of that name."""
        meta = GroupMeta(checked(attributes or {}, f"attributes of {name!r}"))
        path = self._new(name)
        self.store.set(child(path, "zarr.json"), meta.document().encode())
        return Group(self.store, path, meta)

    def create_array(
        self, name: str, shape: int | tuple[int, ...] | None = None, dtype: Any = None, *, data: Any = None, **how: Any
    ) -> Array:
        """A new array, with the groups on the way to it. Its metadata is stored before any value.

        data: what it holds at first, whose shape and type it takes where none is given. how: chunks, shards, fill,
        compression, codecs, attributes, dimension_names, separator, as `mrec.zarr.create.array_meta` takes them.
        """
        if data is not None:
            found = as_array(data, repr(name))
            shape = found.shape if shape is None else shape
            if dtype is None:  # pandas, and many readers, hold strings as objects
                texts = found.dtype.kind == "O" and found.size and all(isinstance(text, str) for text in found.flat)
                dtype = str if texts else found.dtype
        if shape is None or dtype is None:
            raise InvalidValue("an array needs a shape and a type, or data that has them")
        self._check_new(name)
        path = child(self.path, name)
        key = child(path, "zarr.json")
        meta = array_meta(shape, dtype, where=self.store.path(key), **how)
        values = None if data is None else fit(cast(data, meta.dtype, repr(name)), meta.shape, repr(name))
        if not self.store.exists(key):
            self._refuse_left(path, meta)
        self._new(name)
        self.store.set(key, meta.document().encode())
        self.store.changes.add(path)
        array = Array(self.store, path, meta)
        if values is not None:
            array[...] = values
        return array

    def _check_new(self, name: object) -> None:
        wrong = next(filter(None, map(fault, name.split("/"))), "") if isinstance(name, str) else "it is no string"
        if wrong:
            raise InvalidValue(f"{name!r} is no name of a group or an array: {wrong}")

    def _new(self, name: str) -> str:
        """The path of a child that is not there yet, with groups on the way to it."""
        self._check_new(name)
        path = child(self.path, name)
        if self.store.exists(child(path, "zarr.json")):
            raise InvalidValue(f"there is a {name!r} in {self.path or '/'} already; delete({name!r}) first")
        parent = self
        for part in name.split("/")[:-1]:
            found = parent[part] if part in parent else parent.create_group(part)
            if not isinstance(found, Group):
                raise InvalidValue(f"{found.path} is an array, and nothing is put below one")
            parent = found
        return path

    def _refuse_left(self, path: str, meta: ArrayMeta) -> None:
        """Refuse an array where chunks lie already, as of one whose deletion was killed: they would be its values."""
        for key in self.store.walk(path):
            if meta.chunk_at(key.removeprefix(f"{path}/")) is not None:
                raise InvalidValue(
                    f"{self.store.path(key)} was left by another array, and would be a chunk of this one; "
                    f"remove it first: store.delete_below({path!r})"
                )

    def delete(self, name: str) -> None:
        """Remove a group or an array, and all below it. UnknownName when there is none."""
        if name not in self:
            raise UnknownName(f"there is no {name!r} in {self.path or '/'}")
        path = child(self.path, name)
        self.store.delete(child(path, "zarr.json"))
        self.store.delete_below(path)
        self.store.changes.add(path)

    # ---- looking -------------------------------------------------------------------------------------------------

    def tree(self, depth: int | None = None) -> str:
        """The groups and arrays below this one as text, a line each; depth: of how many levels, 100 at most."""
        levels = DEEPEST if depth is None else min(depth, DEEPEST)
        return "\n".join([self.path.rpartition("/")[2] or "/", *_branches(self, "", levels)])

    def __repr__(self) -> str:
        return f"<Group {self.path or '/'}: {', '.join(self) or 'empty'}>"


def is_path(name: object) -> TypeGuard[str]:
    """Whether it is a name that stays inside the group: no empty part, no `.` or `..`."""
    if not isinstance(name, str):
        return False
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return all(part not in ("", ".", "..") and "\0" not in part for part in name.split("/"))


def child(path: str, name: str) -> str:
    """The path of a child."""
    return f"{path}/{name}" if path else name


def read_node(store: Store, path: str) -> Any:
    """The document of a node, parsed (ArrayMeta or GroupMeta); None when there is none."""
    key = child(path, "zarr.json")
    raw = store.get(key)
    return None if raw is None else parse_node(raw, store.path(key))


def _branches(group: Group, indent: str, depth: int) -> Iterator[str]:
    names = list(group) if depth > 0 else []
    for name in names:
        last = name == names[-1]
        node = group[name]
        if isinstance(node, Array):
            yield f"{indent}{'└' if last else '├'}── {name} {list(node.shape)} {node.meta.data_type}"
            continue
        yield f"{indent}{'└' if last else '├'}── {name}"
        yield from _branches(node, indent + ("    " if last else "│   "), depth - 1)


def open_node(store: Store, path: str = "") -> Group | Array:
    """The group or array at a path. UnknownName when there is none."""
    path = path.strip("/")
    node = read_node(store, path) if not path or is_path(path) else None
    if node is None:
        raise UnknownName(f"{store.path(path)}: there is no group and no array")
    return Array(store, path, node) if isinstance(node, ArrayMeta) else Group(store, path, node)


def create_root(store: Store, attributes: Mapping[str, Any] | None = None) -> Group:
    """The group at the root of a store where there is nothing yet."""
    if store.get("zarr.json") is not None:
        raise InvalidValue(f"{store.root}: there is a group or an array already; open it, or remove it first")
    meta = GroupMeta(checked(attributes or {}, "attributes"))
    store.set("zarr.json", meta.document().encode())
    return Group(store, "", meta)

# SPDX-License-Identifier: BSD-3-Clause
"""Zarr V3: stores, groups and arrays, read and written by the same core as records.

>>> root = mrec.zarr.create("index.zarr", attributes={"rows": 4})
>>> array = root.create_array("lvl_1/ids", data=np.arange(4))
>>> mrec.zarr.open("index.zarr")["lvl_1/ids"][[0, 3]]
array([0, 3])
"""

from __future__ import annotations

import os as _os
from collections.abc import Mapping as _Mapping
from typing import Any as _Any

from mrec.zarr.array import Array
from mrec.zarr.group import Group, create_root, open_node
from mrec.zarr.remote import remote_store
from mrec.zarr.store import FilesystemStore, MemoryStore, Store, open_store
from mrec.zarr.zip import ZipStore

__all__ = [
    "Array",
    "FilesystemStore",
    "Group",
    "MemoryStore",
    "Store",
    "ZipStore",
    "create",
    "open",
    "remote_store",
]


def open(place: str | _os.PathLike[str] | Store, path: str = "") -> Group | Array:
    """The group or array at `path` of a directory, a zip file, a URL or a store. UnknownName when there is none."""
    return open_node(open_store(place), path)


def create(place: str | _os.PathLike[str] | Store, attributes: _Mapping[str, _Any] | None = None) -> Group:
    """A new hierarchy: its root group. InvalidValue where there is a group or an array already."""
    return create_root(open_store(place), attributes)

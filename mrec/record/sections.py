# SPDX-License-Identifier: BSD-3-Clause
"""Frame-shaped sections, `frame/`, `system/` and `forcefield/`: reading. (Writing: write.py.)"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mrec.box import Box
from mrec.dtypes import CANONICAL, TAGS, from_json, untagged
from mrec.errors import CorruptData, SchemaError
from mrec.frame import Block, Frame
from mrec.record.references import check_targets, read_targets
from mrec.record.whole import read_whole
from mrec.record.write import PLAIN, write_frame_section
from mrec.trajectory.select import masked
from mrec.trajectory.standing import column_type
from mrec.zarr.array import Array
from mrec.zarr.codecs import is_int
from mrec.zarr.group import Group
from mrec.zarr.store import Store

__all__ = ["read_frame_section", "write_frame_section"]


def read_frame_section(store: Store, section: str) -> Frame:
    """The frame that a section holds: its blocks, cell, and document, as `meta` (of a forcefield plain JSON)."""
    group = Group(store, section)
    blocks: dict[str, Block] = {}
    for name in group:
        if name == "box":
            continue
        child = group[name]
        if isinstance(child, Group):
            blocks[name] = _read_block(child)
    check_targets(store, section, blocks, CorruptData)
    frame = Frame(blocks)
    frame.box = _read_box(group)
    if section == PLAIN:
        frame.meta = dict(group.attrs)
    else:
        frame.meta, frame.meta_types = read_meta(group.attrs, section)
    return frame


# ---- blocks ------------------------------------------------------------------------------------------------------


def _read_block(group: Group) -> Block:
    count = group.attrs.get("count")
    if not is_int(count, 0, 2**63 - 1):
        raise CorruptData(f"{group.path}: count is {count!r}")
    shape = _structural_shape(group, count)
    columns: dict[str, np.ndarray] = {}
    precision: dict[str, float] = {}
    arrays = {name: child for name in group if isinstance(child := group[name], Array)}
    masks = _read_masks(group, arrays, count)
    for name, array in arrays.items():
        _check_column(array, name, count)
        columns[name] = masked(read_whole(array), masks.get(name))
        if "precision" in array.attrs:
            precision[name] = _precision(array)
    return Block(columns, nrows=count, structural_shape=shape, precision=precision, targets=read_targets(group))


def _check_column(array: Array, name: str, count: int) -> None:
    stored = column_type(array.meta)
    declared = CANONICAL.get(name)
    if declared is not None and declared.name == "u64" and stored != "u64":
        raise SchemaError(f"{array.path}: {name!r} is u64 wherever it appears, not {stored}")
    if array.shape[:1] != (count,):
        raise CorruptData(f"{array.path}: the shape is {list(array.shape)}, the block has {count} rows")


def _precision(array: Array) -> float:
    value = array.attrs["precision"]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or array.meta.data_type != "float64" or not 2.0**-1000 <= value <= 2.0**1000:
        raise CorruptData(
            f"{array.path}: precision is {value!r}; it is a number from 2^-1000 to 2^1000, of an f64 column"
        )
    return float(value)


def _structural_shape(group: Group, count: int) -> tuple[int, ...] | None:
    shape = group.attrs.get("structural_shape")
    if shape is None:
        return None
    if not isinstance(shape, list) or not all(is_int(n, 0, 2**63 - 1) for n in shape) or math.prod(shape) != count:
        raise CorruptData(f"{group.path}: structural_shape {shape!r} has not the {count} rows of the block")
    return tuple(shape)


def _read_masks(group: Group, columns: dict[str, Array], count: int) -> dict[str, np.ndarray]:
    if "_validity" not in group:
        return {}
    masks: dict[str, np.ndarray] = {}
    validity = group["_validity"]
    for name in validity if isinstance(validity, Group) else ():
        mask = validity[name]
        if not isinstance(mask, Array):
            continue
        if name not in columns:
            raise CorruptData(f"{mask.path}: the mask names no column")
        if mask.meta.data_type != "bool" or mask.shape != (count,):
            raise CorruptData(f"{mask.path}: {mask.meta.data_type}{list(mask.shape)} is no mask of {count} rows")
        masks[name] = read_whole(mask)
    return masks


# ---- cell --------------------------------------------------------------------------------------------------------


def _read_box(section: Group) -> Box | None:
    if "box" not in section:
        return None
    group = section["box"]
    if not isinstance(group, Group):
        raise CorruptData(f"{section.path}/box: an array stands where a group has to be")
    defined = group.attrs.get("cell_defined", True)
    if not isinstance(defined, bool):
        raise CorruptData(f"{group.path}: cell_defined is {defined!r}")
    vectors = _box_array(group, "vectors", "float64", (3, 3))
    origin = _box_array(group, "origin", "float64", (3,))
    boundary = _box_array(group, "boundary", "bool", (3,))
    if vectors is None:
        raise CorruptData(f"{group.path}: the vectors are missing")
    if defined:
        return Box(vectors=vectors, origin=origin, periodic=True if boundary is None else boundary)
    if boundary is not None and boundary.any():
        raise CorruptData(f"{group.path}: an undefined cell has a periodic axis")
    return Box(vectors=np.eye(3), origin=origin, periodic=False, defined=False)


def _box_array(group: Group, name: str, data_type: str, shape: tuple[int, ...]) -> np.ndarray | None:
    if name not in group:
        return None
    array = group[name]
    if not isinstance(array, Array) or array.meta.data_type != data_type or array.shape != shape:
        raise CorruptData(f"{group.path}/{name}: no {data_type}{list(shape)}")
    return array.read()


# ---- document ----------------------------------------------------------------------------------------------------


def read_meta(attributes: Mapping[str, Any], section: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The typed document in a group's attributes, and the tags: each key under its own, without one as it looks."""
    types = attributes.get("_meta_types", {})
    if not isinstance(types, dict):
        raise CorruptData(f"{section}: _meta_types is {types!r}")
    meta: dict[str, Any] = {}
    tags: dict[str, str] = {}
    for key, value in attributes.items():
        if key != "_meta_types":
            tags[key] = types[key] if key in types else untagged(value)
            meta[key] = _value(value, key, tags[key], section)
    return meta, tags


def _value(value: Any, key: str, name: Any, section: str) -> Any:
    tag = TAGS.get(name) if isinstance(name, str) else None
    if tag is None:
        raise CorruptData(f"{section}: the key {key!r} has the unknown type {name!r}")
    try:
        return from_json(tag, value)
    except ValueError as e:
        raise CorruptData(f"{section}: the key {key!r}: {e}") from None

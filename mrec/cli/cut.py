# SPDX-License-Identifier: BSD-3-Clause
"""Taking rows out of the blocks of `system/`, with the bonds between them, in a record that is being made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mrec.errors import CorruptData, MrecError
from mrec.record.carry import replace_document
from mrec.zarr.array import Array
from mrec.zarr.group import Group
from mrec.zarr.store import FilesystemStore
from mrec.zarr.write import codecs_of, write_array

#: Columns that name rows of atoms without being declared to.
BY_CONVENTION = ("atomi", "atomj", "atomk", "atoml")


def cut_system(root: str, chosen: Mapping[str, np.ndarray]) -> None:
    """Keep the chosen rows of these blocks, and of the others the rows that refer to nothing else, counted anew.

    A block that is chosen from need not stand in the system for others to refer to its rows. MrecError where a
    reference would be left without its row.
    """
    system = _system(root)
    if system is None:
        return
    blocks = {name: block for name in system if name != "box" and isinstance(block := system[name], Group)}
    kept: dict[str, np.ndarray] = {name: chosen[name] for name in chosen if name in blocks}
    for name, block in blocks.items():
        references = {column: target for column, target in _references(block).items() if target in chosen}
        if references:
            kept[name] = _standing(block, references, chosen, kept.get(name))
    _refuse_others(root, kept, chosen)
    for name, rows in kept.items():
        references = {column: target for column, target in _references(blocks[name]).items() if target in chosen}
        _cut_block(blocks[name], rows, references, chosen)


def _system(root: str) -> Group | None:
    store = FilesystemStore(root)
    return Group(store, "system") if store.exists("system/zarr.json") else None


def _references(block: Group) -> dict[str, str]:
    """Column -> block of the system whose rows it names: as declared, or atomi ... atoml by convention."""
    declared = block.attrs.get("targets", {})
    found = {column: str(target).removeprefix("/system/") for column, target in declared.items()}
    return {**{column: "atoms" for column in BY_CONVENTION if column in block}, **found}


def _standing(
    block: Group, references: Mapping[str, str], chosen: Mapping[str, np.ndarray], rows: np.ndarray | None
) -> np.ndarray:
    """The rows whose references all stay. MrecError when rows that were chosen are not among them."""
    keep = np.ones(int(block.attrs["count"]), bool)
    for column, target in references.items():
        values = _array(block, column).read()
        keep &= np.isin(values, chosen[target]) | ~_valid(block, column, len(values))
    if rows is None:
        return np.flatnonzero(keep)
    if not keep[rows].all():
        raise MrecError(f"{block.path}: row {int(rows[~keep[rows]][0])} refers to a row that is not chosen")
    return rows


def _valid(block: Group, column: str, n: int) -> np.ndarray:
    path = f"_validity/{column}"
    return _array(block, path).read() if path in block else np.ones(n, bool)


def _array(group: Group, name: str) -> Array:
    found = group[name]
    if not isinstance(found, Array):
        raise CorruptData(f"{group.path}/{name}: a group stands where an array has to be")
    return found


def _refuse_others(root: str, kept: Mapping[str, np.ndarray], chosen: Mapping[str, np.ndarray]) -> None:
    """MrecError when rows that are cut are named from outside the system, or by a block that is not followed."""
    store = FilesystemStore(root)
    for section in store.names():
        for name in store.names(section) if section != "trajectory" else ():
            key = f"{section}/{name}"
            node = Group(store)[key] if store.exists(f"{key}/zarr.json") else None
            declared = node.attrs.get("targets", {}) if isinstance(node, Group) else {}
            for target in declared.values() if isinstance(declared, dict) else ():
                own = section == "system" and not str(target).startswith("/")
                cut = str(target) if own else str(target).removeprefix("/system/")
                if cut in kept and not (section == "system" and cut in chosen):
                    raise MrecError(f"{key} refers to rows of system/{cut}, some of which would go; choose no rows")


def _cut_block(block: Group, rows: np.ndarray, references: Mapping[str, str], chosen: Mapping[str, np.ndarray]) -> None:
    if "structural_shape" in block.attrs:
        raise MrecError(f"{block.path} is a grid (structural_shape); its rows stay together")
    for name in list(block):
        child = block[name]
        if isinstance(child, Group):
            for mask in list(child) if name == "_validity" else ():
                _cut_array(_array(child, mask), rows)
        else:
            target = references.get(name)
            valid = _valid(block, name, len(child)) if target else None
            _cut_array(child, rows, chosen[target] if target else None, valid)
    meta = replace(block.meta, attributes={**block.attrs, "count": len(rows)})
    replace_document(block.store.path(f"{block.path}/zarr.json"), meta)


def _cut_array(array: Array, rows: np.ndarray, target: np.ndarray | None = None, valid: Any = None) -> None:
    values = array.read()
    if target is not None:
        order = np.argsort(target)
        at = np.searchsorted(target, values, sorter=order)
        values = np.where(valid, order[np.minimum(at, len(order) - 1)] if len(order) else 0, values)
        values = values.astype(array.dtype)
    path = array.store.path(array.path)
    codecs = codecs_of(array.dtype, rounded="precision" in array.attrs)
    shutil.rmtree(path)
    write_array(path, values[rows], array.meta.data_type, codecs, dict(array.attrs))

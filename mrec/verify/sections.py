# SPDX-License-Identifier: BSD-3-Clause
"""The sections beside the trajectory: frames (`frame/`, `system/`, `forcefield/`), documents, observables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mrec.dtypes import CANONICAL, TAGS, from_json, untagged
from mrec.errors import MrecError
from mrec.names import FRAME_BLOCKS, check_name
from mrec.verify.arrays import Stored, Trust
from mrec.verify.cell import check_defined
from mrec.verify.columns import off_grid
from mrec.verify.files import Files
from mrec.verify.metrics import check_metrics
from mrec.verify.references import CONVENTION, section_rows
from mrec.verify.report import Log
from mrec.verify.tree import COLUMN_TYPES
from mrec.zarr.codecs import is_int
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_node

FRAMES = ("frame", "system", "forcefield")
VERSIONS = (1, 2)


class Sections:
    """The checks of one record."""

    def __init__(self, log: Log, files: Files) -> None:
        self.log, self.files = log, files

    def check(self) -> None:
        """Every section but the trajectory."""
        self._document("")
        version = self._document("meta").get("molrec_version", 1)
        if not is_int(version, *VERSIONS):
            self.log.add("version", "meta", f"molrec_version is {version!r}; 1 and 2 are known")
        present = self.files.names()
        for section in FRAMES:
            if section in present:
                self._frame(section)
        if "status" in present:
            self._require("status", ["state"])
        if "method" in present:
            self._require("method", ["type", "description", "engine.name"])
        if "observables" in present:
            self._observables()
        if "metrics" in present:
            check_metrics(self.log, self.files, self, self._document("metrics"))

    # ---- nodes ---------------------------------------------------------------------------------------------------

    def _node(self, path: str) -> ArrayMeta | GroupMeta | None:
        """A node; None when there is none, or when its document is wrong, which is told."""
        raw = self.files.get(f"{path}/zarr.json" if path else "zarr.json")
        try:
            node = None if raw is None else parse_node(raw, "zarr.json")
            if isinstance(node, ArrayMeta):
                _ = node.chain
            return node
        except MrecError as e:
            self.log.add("document", path or "zarr.json", str(e))
            return None

    def _children(self, path: str) -> dict[str, ArrayMeta | GroupMeta]:
        found = {name: self._node(f"{path}/{name}") for name in self.files.names(path)}
        return {name: node for name, node in found.items() if node is not None}

    def _document(self, path: str) -> dict[str, Any]:
        node = self._node(path)
        if isinstance(node, ArrayMeta):
            self.log.add("document", path, "an array stands where a group has to be")
        return node.attributes if isinstance(node, GroupMeta) else {}

    def _require(self, section: str, keys: list[str]) -> None:
        document = self._document(section)
        for key in keys:
            value: Any = document
            for part in key.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            if value is None:
                self.log.add("incomplete", section, f"{key} is missing")

    def _read(self, path: str, meta: ArrayMeta) -> np.ndarray | None:
        """All of an array; None when a chunk of it is wrong."""
        rows = meta.shape[0] if meta.shape else 1
        stored = Stored(self.log, self.files, path, meta, rows, Trust())
        values = stored.read(0, stored.rows)
        return None if stored.faults else values

    # ---- frames --------------------------------------------------------------------------------------------------

    def _frame(self, section: str) -> None:
        attributes = self._document(section)
        if section == "forcefield":
            if "_meta_types" in attributes:
                self.log.add("meta-types", section, "the document of a forcefield is plain, without _meta_types")
        else:
            self._check_types(section, attributes)
        children = self._children(section)
        blocks = {name: n for name, n in children.items() if isinstance(n, GroupMeta) and name not in FRAME_BLOCKS}
        for name, group in blocks.items():
            self._name(name, "block", f"{section}/{name}")
            self._block(section, name, group)
        if "box" in children:
            self._box(f"{section}/box", children["box"])

    def _name(self, name: str, what: str, where: str) -> None:
        try:
            check_name(name, what)
        except MrecError as e:
            self.log.add("name", where, str(e))

    def _block(self, section: str, name: str, group: GroupMeta) -> None:
        path, attributes = f"{section}/{name}", group.attributes
        count = attributes.get("count")
        if not is_int(count, 0, 2**63 - 1):
            self.log.add("count", path, f"count is {count!r}, no number of rows")
            return
        shape = attributes.get("structural_shape")
        if shape is not None and not (_is_extents(shape) and math.prod(shape) == count):
            self.log.add("structural-shape", path, f"structural_shape is {shape!r} and count {count}")
        children = self._children(path)
        columns = {name: meta for name, meta in children.items() if isinstance(meta, ArrayMeta)}
        masks = self._masks(path, columns, count)
        values = {column: self._column(path, column, meta, count, masks) for column, meta in columns.items()}
        self._references(section, path, attributes.get("targets", {}), values, masks)

    def _column(
        self, path: str, name: str, meta: ArrayMeta, count: int, masks: dict[str, np.ndarray]
    ) -> np.ndarray | None:
        where = f"{path}/{name}"
        self._name(name, "column", where)
        dtype = COLUMN_TYPES.get(meta.data_type)
        if dtype is None:
            self.log.add("type", where, f"{meta.data_type} is no column type")
        elif name in CANONICAL and dtype != CANONICAL[name].name:
            self.log.add("canonical", where, f"the column is {dtype}; it is {CANONICAL[name]} wherever it appears")
        if meta.shape[:1] != (count,):
            self.log.add("length", where, f"its shape is {list(meta.shape)}, the block has {count} rows")
            return None
        values = self._read(where, meta)
        if "precision" in meta.attributes and values is not None:
            self._precision(where, meta.attributes["precision"], dtype, values, masks.get(name))
        return values

    def _precision(self, where: str, precision: Any, dtype: Any, values: np.ndarray, mask: np.ndarray | None) -> None:
        number = isinstance(precision, (int, float)) and not isinstance(precision, bool)
        if dtype != "f64" or not number or not 2.0**-1000 <= precision <= 2.0**1000:
            self.log.add("precision", where, f"the precision of a column of {dtype} is {precision!r}")
            return
        for row in off_grid(values, mask, float(precision))[:1]:
            self.log.add("precision", where, f"row {row} is no multiple of the grid of its precision {precision!r}")

    def _masks(self, path: str, columns: dict[str, ArrayMeta], count: int) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = {}
        for name, meta in self._children(f"{path}/_validity").items():
            where = f"{path}/_validity/{name}"
            if name not in columns:
                self.log.add("mask", where, "it is the mask of no column")
            elif not isinstance(meta, ArrayMeta) or meta.data_type != "bool" or meta.shape != (count,):
                self.log.add("mask", where, f"it is not bool with one flag for each of {count} rows")
            elif (flags := self._read(where, meta)) is not None:
                found[name] = flags
        return found

    def _references(
        self, section: str, path: str, targets: Any, values: dict[str, np.ndarray | None], masks: dict[str, np.ndarray]
    ) -> None:
        if not isinstance(targets, dict) or not all(isinstance(target, str) for target in targets.values()):
            self.log.add("targets", path, f"targets is {targets!r}, no object of names")
            targets = {}
        for column, target in targets.items():
            rows = section_rows(self.files, target if target.startswith("/") else f"/{section}/{target}")
            if rows is None or column not in values:
                self.log.add("targets", f"{path}/{column}", f"targets says {target!r}; column or block is not there")
            else:
                self._refers("targets", f"{path}/{column}", target, rows, values[column], masks.get(column))
        atoms = section_rows(self.files, f"/{section}/atoms")
        for column in CONVENTION if atoms is not None else ():
            if column in values and column not in targets:
                assert atoms is not None
                self._refers("reference", f"{path}/{column}", "atoms", atoms, values[column], masks.get(column))

    def _refers(
        self, rule: str, where: str, target: str, rows: int, values: np.ndarray | None, mask: np.ndarray | None
    ) -> None:
        if values is None:
            return
        if values.dtype != np.uint64:
            self.log.add(rule, where, f"it refers to rows of {target!r} and is {values.dtype}, not u64")
            return
        wrong = values >= rows
        if mask is not None:
            wrong = wrong & mask.reshape(-1, *[1] * (values.ndim - 1))
        if wrong.any():
            at = int(np.argwhere(wrong)[0][0])
            self.log.add(rule, where, f"row {at} refers to row {values[wrong][0]} of {target!r}, which has {rows}")

    def _box(self, path: str, node: ArrayMeta | GroupMeta) -> None:
        if isinstance(node, ArrayMeta):
            self.log.add("document", path, "an array stands where a group has to be")
            return
        defined = check_defined(self.log, path, node.attributes)
        children = self._children(path)
        if "vectors" not in children:
            self.log.add("box", path, "it has no vectors")
        for name, data_type, shape in (
            ("vectors", "float64", (3, 3)),
            ("origin", "float64", (3,)),
            ("boundary", "bool", (3,)),
        ):
            meta = children.get(name)
            if meta is None:
                continue
            if not isinstance(meta, ArrayMeta) or meta.data_type != data_type or meta.shape != shape:
                self.log.add("box", f"{path}/{name}", f"it is not {data_type}{list(shape)}")
                continue
            values = self._read(f"{path}/{name}", meta)
            if name == "boundary" and not defined and values is not None and values.any():
                self.log.add("box", f"{path}/{name}", "the cell is not defined and has a periodic axis")

    # ---- documents -----------------------------------------------------------------------------------------------

    def _check_types(self, section: str, attributes: dict[str, Any]) -> None:
        """The typed document of a frame: each value under its tag."""
        types = attributes.get("_meta_types", {})
        if not isinstance(types, dict):
            self.log.add("meta-types", section, f"_meta_types is {types!r}")
            return
        for key, name in {**{key: untagged(value) for key, value in attributes.items()}, **types}.items():
            tag = TAGS.get(name) if isinstance(name, str) else None
            if tag is None:
                self.log.add("meta-types", section, f"the key {key!r} has the type {name!r}, which there is not")
            elif key in attributes and key != "_meta_types":
                try:
                    from_json(tag, attributes[key])
                except ValueError as e:
                    self.log.add("meta-types", section, f"the key {key!r}: {e}")

    def _observables(self) -> None:
        arrays = {name: n for name, n in self._children("observables").items() if name != "meta"}
        documents = self._children("observables/meta")
        for name in arrays.keys() ^ documents.keys():
            self.log.add("observable", f"observables/{name}", "an array and a document in meta belong together")
        for name, node in documents.items():
            if isinstance(node, ArrayMeta):
                self.log.add("document", f"observables/meta/{name}", "an array stands where a group has to be")
            for key, kind in (("kind", str), ("description", str), ("time_dependent", bool)):
                if not isinstance(node.attributes.get(key), kind):
                    self.log.add("observable", f"observables/meta/{name}", f"{key} is {node.attributes.get(key)!r}")
        for name, node in arrays.items():
            if not isinstance(node, ArrayMeta):
                self.log.add("observable", f"observables/{name}", "a group stands where an array has to be")
            else:
                self._name(name, "observable", f"observables/{name}")
                if node.data_type not in COLUMN_TYPES:
                    self.log.add("type", f"observables/{name}", f"{node.data_type} is no column type")
                self._read(f"observables/{name}", node)


def _is_extents(shape: Any) -> bool:
    return isinstance(shape, list) and all(is_int(n, 0, 2**63 - 1) for n in shape)

# SPDX-License-Identifier: BSD-3-Clause
"""The documents of the state that stands, and the arrays they describe."""

from __future__ import annotations

from collections.abc import Iterable

from mrec.dtypes import DTYPES
from mrec.errors import MrecError
from mrec.trajectory.schema import Schema
from mrec.verify.arrays import Stored, Trust
from mrec.verify.files import Files
from mrec.verify.report import Log
from mrec.verify.state import Node, State
from mrec.zarr.metadata import ArrayMeta, GroupMeta, is_compact, parse_node

ROOT = "trajectory"
#: Zarr data type -> ours.
COLUMN_TYPES = {dtype.zarr: name for name, dtype in DTYPES.items()}


class Tree:
    """The nodes below `trajectory/`, by their paths there; each document is read once. broken: what says nothing.

    still: nobody is writing, so that what is wrong at the first look is wrong. incomplete: files may be missing, so
    that what is not there does not stand for fill.
    """

    def __init__(self, log: Log, files: Files, state: State, still: bool = False, incomplete: bool = False) -> None:
        self.log, self.files, self.state, self._still, self._incomplete = log, files, state, still, incomplete
        self.nodes: dict[str, Node] = {}
        self.broken: set[str] = set()
        self._ours: set[str] = set()

    def load(self, paths: Iterable[str]) -> None:
        """Read the documents of these nodes."""
        for path in paths:
            self.node(path)

    def node(self, path: str) -> Node | None:
        """The node at a path; None when there is none, or its document says nothing."""
        if path in self.nodes:
            return self.nodes[path]
        raw = self.state.get(f"{ROOT}/{path}/zarr.json")
        if raw is None:
            return None
        try:
            node = parse_node(raw, "zarr.json")
            if isinstance(node, ArrayMeta):
                _ = node.chain  # its codecs may be unknown
        except MrecError as e:
            self.log.add("document", f"{ROOT}/{path}", str(e))
            self.broken.add(path)
            return None
        if is_compact(raw):
            self._ours.add(path)
        self.nodes[path] = node
        return node

    def group(self, path: str) -> GroupMeta | None:
        """The group at a path."""
        node = self.node(path)
        if isinstance(node, ArrayMeta):
            self.log.add("document", f"{ROOT}/{path}", "an array stands where a group has to be")
            return None
        return node

    def meta(self, path: str) -> ArrayMeta | None:
        """The document of the array at a path."""
        node = self.node(path)
        if isinstance(node, GroupMeta):
            self.log.add("document", f"{ROOT}/{path}", "a group stands where an array has to be")
            return None
        return node

    def array(self, path: str, dtype: str, trailing: tuple[int, ...], rows: int) -> Stored | None:
        """An array of a type, of which `rows` rows are claimed. None: it is not there, or is another."""
        meta = self.meta(path)
        where = f"{ROOT}/{path}"
        if meta is None:
            if rows and path not in self.nodes and path not in self.broken:
                self.log.add("missing-array", where, f"it is not there; {rows} rows of it are claimed")
            return None
        if COLUMN_TYPES.get(meta.data_type) != dtype or len(meta.shape) < 1 or meta.shape[1:] != trailing:
            declared = dtype + "".join(f"[{n}]" for n in ("rows", *trailing))
            self.log.add("type", where, f"{meta.data_type}{list(meta.shape)} is stored and {declared} declared")
            return None
        self._check_form(where, meta)
        if meta.shape[0] < rows:
            self.log.add("length", where, f"it has {meta.shape[0]} rows, fewer than the {rows} claimed")
        elif meta.shape[0] > rows and self.is_exact(path):
            message = f"it has {meta.shape[0]} rows, more than the {rows} there are"
            self.log.add("length", where, message, severity=self.doubt())
        tail = self.state.tails.get(where)
        return Stored(self.log, self.files, where, meta, min(rows, meta.shape[0]), self._trust(path), tail)

    def _check_form(self, where: str, meta: ArrayMeta) -> None:
        if meta.chain.shard is None:
            self.log.add("sharding", where, "it is not sharded, as every array of a trajectory is")
        dtype = DTYPES[COLUMN_TYPES[meta.data_type]]
        fill = dtype.fill if meta.data_type == "string" else dtype.numpy.type(dtype.fill).tobytes()
        if (meta.fill if meta.data_type == "string" else meta.fill_bytes()) != fill:
            self.log.add("fill", where, f"the fill value is {meta.fill}; that of {dtype} is {dtype.fill}")

    def is_gone(self, path: str) -> bool:
        """Whether a node was there once: its document says nothing, or, in a closed record, only its directory is left.

        (A record that was not closed may have directories whose documents are not written yet.)
        """
        parent, _, name = f"{ROOT}/{path}".rpartition("/")
        left = self.state.closed and self.node(path) is None and name in self.files.names(parent)
        return path in self.broken or left

    def is_ours(self, path: str) -> bool:
        """Whether mrec wrote an array last, as far as can be told."""
        return self.state.complete or path in self._ours

    def is_exact(self, path: str) -> bool:
        """Whether an array has to be exactly as long as it is claimed to be."""
        return self.state.durable or (self.state.closed and path in self._ours)

    def doubt(self) -> str:
        """The severity of what only mrec never does: another program may have."""
        return "error" if self.state.durable or self.state.complete else "warning"

    def _trust(self, path: str) -> Trust:
        if self._incomplete:
            return Trust(absence="error")
        if self.state.closed:
            return Trust(absence="warning" if path in self._ours else None)
        return Trust(changing=not self._still, absence="error" if self.state.complete else None)


def live_order(schema: Schema) -> Iterable[str]:
    """The paths of all documents in the order in which they may be read while a writer is at work."""
    for name, block in schema.blocks.items():
        for column in block.columns:
            yield f"{name}/{column}"
            yield f"{name}/_validity/{column}"
    yield from schema.blocks
    yield from ("box", "box/vectors")
    for name in schema.blocks:
        yield from (f"{name}/offset", f"{name}/step_index")
    yield from ("box/step_index", "box/origin", "box/boundary", "step", "time")
    yield from (f"meta/{name}" for name in schema.values)

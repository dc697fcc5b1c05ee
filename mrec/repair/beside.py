# SPDX-License-Identifier: BSD-3-Clause
"""What is beside the trajectory: carried over, and then what does not verify taken out of the copy."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator, Mapping

from mrec.errors import MrecError
from mrec.record.carry import replace_document
from mrec.verify.files import Files
from mrec.verify.report import Log, Report
from mrec.verify.sections import FRAMES, Sections
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_node
from mrec.zarr.store import FilesystemStore, Store

#: What another program may have meant so: nothing is lost by it, and it is kept as it is.
KEPT = frozenset({"canonical", "incomplete", "name", "version"})
_DOCUMENTS = ("status", "method")


class Beside:
    """The sections of the copy at `root`. lost: path -> why it was taken out."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.lost: dict[str, str] = {}

    def settle(self) -> None:
        """Take out what does not verify, until all does."""
        taken = True
        while taken:
            report = Report(self.root)
            Sections(Log(report, None), Files(FilesystemStore(self.root))).check()
            taken = False
            for finding in report.findings:
                if finding.array and finding.severity == "error" and finding.rule not in KEPT:
                    taken |= self.take_out(finding.array, finding.message)

    def take_out(self, path: str, why: str) -> bool:
        """Take a node out of the copy, with what means nothing without it. False when there is nothing to take."""
        taken = [part for part in self._whole(path) if self._remove(part)]
        for part in taken:
            own = "/" in part or part in _DOCUMENTS or part == "zarr.json"
            self.lost[part if own else f"{part}/zarr.json"] = " ".join(why.split())
        return bool(taken)

    def _whole(self, path: str) -> Iterator[str]:
        """The nodes that go when one does."""
        section, *rest = path.removesuffix("/zarr.json").split("/")
        if section == "observables" and len(rest) > (rest[:1] == ["meta"]):
            yield f"observables/{rest[-1]}"
            yield f"observables/meta/{rest[-1]}"
        elif section in FRAMES and rest[:1] == ["box"]:
            yield f"{section}/box"
        elif section in FRAMES and len(rest) > 1:
            block = f"{section}/{rest[0]}"
            validity = os.path.join(self.root, block, "_validity")
            columns = os.listdir(validity) if rest[1:] == ["_validity"] and os.path.isdir(validity) else rest[-1:]
            for column in columns:
                self._drop_target(block, column)
                yield f"{block}/{column}"
                yield f"{block}/_validity/{column}"
        else:
            yield path

    def _remove(self, path: str) -> bool:
        where = os.path.join(self.root, path)
        if path == "zarr.json":
            return self._empty(where)
        if not os.path.isdir(where):
            return False
        if "/" in path or path in _DOCUMENTS:
            known = path.split("/")[0] in (*FRAMES, *_DOCUMENTS, "observables")
            if known or not any("zarr.json" in files for _, _, files in os.walk(where)):
                shutil.rmtree(where)
            return True
        return self._empty(os.path.join(where, "zarr.json"))

    def _empty(self, document: str) -> bool:
        """Of a section its own document goes, and what is below it stays."""
        if os.path.isfile(document):
            with open(document, "rb") as file:
                if file.read() == GroupMeta().document().encode():
                    return False
        replace_document(document, GroupMeta())
        return True

    def _drop_target(self, block: str, column: str) -> None:
        """Let a block no longer declare what a column of it refers to."""
        document = os.path.join(self.root, block, "zarr.json")
        try:
            with open(document, "rb") as file:
                node = parse_node(file.read(), document)
        except (OSError, MrecError):
            return
        targets = node.attributes.get("targets")
        if isinstance(targets, dict) and column in targets:
            del targets[column]
            replace_document(document, node)


# ---- what is not to be carried over ------------------------------------------------------------------------------


def bad_nodes(store: Store, bad: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """(path, why) of what bad files belong to: an array goes whole, of a group its document, else the file alone."""
    for key, why in bad.items():
        parent = key.rpartition("/")[0]
        while parent and not store.exists(f"{parent}/zarr.json"):
            parent = parent.rpartition("/")[0]
        if key == f"{parent}/zarr.json" or _array(store, parent) is not None:
            yield parent, why
        else:
            yield key, why


def keys_of(store: Store, bad: Mapping[str, str]) -> set[str]:
    """The keys of all that does not go into a copy when these files are bad: of an array all its files."""
    found = set(bad)
    for path, _ in bad_nodes(store, bad):
        if path and _array(store, path) is not None:
            found |= set(store.walk(path))
    return found


def gone_nodes(store: Store) -> Iterator[str]:
    """The directories in sections that were arrays or groups, and have no document any more."""
    for path in _nodes(store):
        if not store.exists(f"{path}/zarr.json"):
            below = (key.removeprefix(f"{path}/") for key in store.walk(path))
            if any(key.split("/")[0] == "c" or key.endswith("/zarr.json") for key in below):
                yield path


def incomplete_arrays(store: Store) -> Iterator[str]:
    """The arrays in sections that lack a chunk."""
    for path in _nodes(store):
        meta = _array(store, path)
        if meta is not None:
            chunks = math.prod(-(-n // chunk) for n, chunk in zip(meta.shape, meta.grid, strict=True))
            if sum(not key.endswith("/zarr.json") for key in store.walk(path)) < chunks:
                yield path


def _nodes(store: Store) -> Iterator[str]:
    """The directories in sections down to arrays."""
    stack = [section for section in (*FRAMES, "observables") if store.exists(section)]
    while stack:
        path = stack.pop()
        yield path
        if store.exists(f"{path}/zarr.json") and _array(store, path) is None:
            stack += [f"{path}/{name}" for name in store.names(path)]


def _array(store: Store, path: str) -> ArrayMeta | None:
    """The document of an array; None when it says nothing, or there is none."""
    try:
        node = parse_node(store.get(f"{path}/zarr.json") or b"", path)
    except (MrecError, OSError):
        return None
    return node if isinstance(node, ArrayMeta) else None

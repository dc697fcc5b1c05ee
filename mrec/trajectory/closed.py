# SPDX-License-Identifier: BSD-3-Clause
"""The files of a record as a closing would leave them; nothing on disk is touched.

Of a closed record these are its files. One that was not closed gets exact shapes, whole indexes and a marker without
`mrec_nstep`, and loses what is not in force: the durable file, later shards, arrays that a transition left.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

import numpy as np

from mrec._core import crc32c
from mrec.errors import CorruptData, InvalidValue
from mrec.names import in_place, is_temporary
from mrec.trajectory.forms import progression
from mrec.trajectory.frames import State
from mrec.trajectory.reopen import OWN, appendable_shard
from mrec.trajectory.standing import DURABLE, MARKER, ROOT, document_order, read_standing
from mrec.zarr.metadata import ArrayMeta, GroupMeta, parse_group
from mrec.zarr.store import FilesystemStore

_ABSENT = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Piece:
    """A file to be: `head`, then the bytes [start, stop) of the file at `path`; stop None: to its end."""

    key: str
    path: str
    head: bytes = b""
    start: int = 0
    stop: int | None = None

    @classmethod
    def text(cls, key: str, text: str) -> Piece:
        """One that holds a text and nothing of a file."""
        return cls(key, "", text.encode(), 0, 0)


def closed_files(root: str) -> Iterator[Piece]:
    """The files of the record at `root`, which nobody may be writing. Temporary files are passed over."""
    store = FilesystemStore(root)
    standing = read_standing(store) if store.exists(DURABLE) else None
    found = (key for key in regular_files(root) if not is_temporary(key))
    pieces = (Piece(in_place(key), store.path(key)) for key in found if in_place(key) == key or not _stands(root, key))
    if standing is None:
        yield from pieces
    else:
        yield from _Closing(State(standing, store), store).files(pieces)


def _stands(root: str, key: str) -> bool:
    """Whether there is the section that the directory of a key was moved aside for."""
    return os.path.lexists(os.path.join(root, in_place(key).partition("/")[0]))


def regular_files(root: str) -> Iterator[str]:
    """The keys of all files below `root`. InvalidValue for what is neither a file nor a directory."""
    stack = [""]
    while stack:
        directory = stack.pop()
        with os.scandir(os.path.join(root, directory)) as entries:
            for entry in entries:
                key = f"{directory}/{entry.name}" if directory else entry.name
                if entry.is_dir(follow_symlinks=False):
                    stack.append(key)
                elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                    yield key
                else:
                    raise InvalidValue(f"{entry.path} is neither a file nor a directory (a link?), and is not packed")


class _Closing:
    """The trajectory of a record that was not closed, in the state that stands."""

    def __init__(self, state: State, store: FilesystemStore) -> None:
        self.state = state
        self.standing = state.standing
        self.store = store
        self.lengths = _lengths(state)
        blocks = state.schema.blocks
        self.groups = ["", "box", "meta", *blocks, *(f"{name}/_validity" for name in blocks)]
        self.own = {f"{ROOT}/{path}" for path in document_order(state.schema) if path not in self.groups}

    def files(self, found: Iterator[Piece]) -> Iterator[Piece]:
        """The files that take the place of those `found` on disk."""
        documents = dict(self._documents())
        yield from (Piece.text(key, text) for key, text in documents.items())
        for path in self.lengths:
            yield from self._shards(path)
        for piece in found:
            if piece.key != DURABLE and piece.key not in documents and not self._in_own_array(piece.key):
                yield piece

    def _in_own_array(self, key: str) -> bool:
        """Whether it lies in an array that is the writer's to make, in force or not."""
        return any(key[:i] in self.own for i, c in enumerate(key) if c == "/")

    # ---- documents -----------------------------------------------------------------------------------------------

    def _documents(self) -> Iterator[tuple[str, str]]:
        durable = self.standing.durable
        if durable is not None:  # those of other programs among them
            yield from ((key, text) for key, text in durable.documents.items() if not self._in_own_array(key))
        for path in self.groups:
            key = f"{ROOT}/{path}/zarr.json" if path else MARKER
            if path == "":
                group = GroupMeta(self.standing.attributes)
            else:
                raw = self.store.get(key) if durable is None else durable.documents.get(key)
                if raw is None:
                    continue
                group = parse_group(raw, key)
            kept = {name: value for name, value in group.attributes.items() if name not in self._settled(path)}
            yield key, replace(group, attributes=kept).document()
        for path, length in self.lengths.items():
            yield f"{ROOT}/{path}/zarr.json", self._meta(path).document(length)

    def _settled(self, path: str) -> set[str]:
        """The attributes of a group in whose place others, or arrays, are in force."""
        if path == "":
            return {"mrec_nstep"}
        if path == "box" and "box/vectors" in self.lengths:
            return OWN["box"] - {"cell_defined"}
        if path in self.state.blocks:
            form = self.state.blocks[path]
            return OWN["block"] if form.uniform is None or form.n == 0 else set()
        return set()

    # ---- arrays --------------------------------------------------------------------------------------------------

    def _meta(self, path: str) -> ArrayMeta:
        meta = self.standing.array(path)
        assert meta is not None
        return meta

    def _shards(self, path: str) -> Iterator[Piece]:
        meta = self._meta(path)
        shard = appendable_shard(f"{ROOT}/{path}", meta)
        rows, per_shard = shard.chunk_shape[0], meta.grid[0] // shard.chunk_shape[0]
        nchunks = -(-self.lengths[path] // rows)
        checked = shard.inner.pipeline[-1][0] == "crc32c"
        tail = self.standing.tails.get(path)
        for number in range(-(-nchunks // per_shard)):
            key = f"{ROOT}/{path}/c/{number}" + "/0" * (len(meta.shape) - 1)
            if self.store.exists(key):
                there = min(per_shard, nchunks - number * per_shard)
                known = tail[1:4] if tail is not None and tail[0] == number else None
                where = self.store.path(key)
                index, stop = whole_index(where, per_shard, there, known, checked)
                yield Piece(key, where, index, len(index), stop)


def _lengths(state: State) -> dict[str, int]:
    """The arrays in force, and their rows."""
    nodes, n = state.standing.nodes, state.nstep
    wanted: dict[str, int] = {f"meta/{name}": n for name in state.schema.values}
    for name, there in (("step", n > 0), ("time", n > 0 and state.times is not None)):
        if there and progression(state.standing.attributes, f"{name}_progression", n) is None:
            wanted[name] = n
    for name, form in state.blocks.items():
        rows = int(form.first_row(form.n))
        for column in form.schema.columns:
            wanted |= {f"{name}/{column}": rows, f"{name}/_validity/{column}": rows}
        if form.uniform is None and form.n:
            wanted |= {f"{name}/step_index": form.n, f"{name}/offset": form.n + 1}
    if state.box.n:
        wanted |= {f"box/{name}": state.box.n for name in ("step_index", "vectors", "origin", "boundary")}
    return {path: length for path, length in wanted.items() if path in nodes}


# ---- shard files -------------------------------------------------------------------------------------------------


def whole_index(
    where: str, per_shard: int, there: int, tail: tuple[int, ...] | None, checked: bool
) -> tuple[bytes, int]:
    """The index of a shard file whose first `there` chunks are in force, and where the last of these ends.

    tail: chunk, offset, nbytes, where the index may not be believed. checked: chunks end in their crc32c. Of an index
    that fails its own, entries whose chunk verifies are taken; CorruptData for the others.
    """
    size = 16 * per_shard + 4
    with open(where, "rb") as file:
        raw = file.read(size)
        if len(raw) < size:
            raise CorruptData(f"{where}: the file has {len(raw)} bytes, less than its index")
        torn = crc32c(raw[:-4]) != int.from_bytes(raw[-4:], "little")
        entries = np.frombuffer(raw[:-4], "<u8").reshape(per_shard, 2).copy()
        entries[there:] = _ABSENT
        if tail is not None and tail[0] < there:
            entries[tail[0]] = tail[1:]
        end, stop = os.fstat(file.fileno()).st_size, size
        for chunk, (offset, nbytes) in enumerate(entries[:there].tolist()):
            if offset == nbytes == _ABSENT and not torn:
                continue
            if offset < size or offset + nbytes > end:
                raise CorruptData(f"{where}: the index entry of chunk {chunk} points outside the file")
            if torn and (tail is None or chunk != tail[0]) and not (checked and _verifies(file, offset, nbytes)):
                raise CorruptData(f"{where}: chunk {chunk} does not verify, and the index fails its checksum")
            stop = max(stop, offset + nbytes)
    index = entries.tobytes()
    return index + crc32c(index).to_bytes(4, "little"), stop


def _verifies(file: BinaryIO, offset: int, nbytes: int) -> bool:
    file.seek(offset)
    raw = file.read(nbytes)
    return nbytes >= 4 and crc32c(raw[:-4]) == int.from_bytes(raw[-4:], "little")

# SPDX-License-Identifier: BSD-3-Clause
"""One variable while its collection is written: chunks into blocks, full blocks into a temporary file."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from mrec._core import ArrayForm, OpenBlock, SegmentBuilder, block_decode, block_encode, crc32c
from mrec.collection.encoder import Encoder
from mrec.collection.footer import CODECS
from mrec.collection.segment import MAGIC
from mrec.errors import ClosedError
from mrec.files import PIECE, Files, opened, read_all, remove, write_all

#: Bytes of a whole block: of a chunk, after as many others; with lz4.
MOST, LZ4_MOST = (1 << 33) - 2, (1 << 31) - 1
LZ4 = CODECS["lz4"]


@dataclass(slots=True)
class Block:
    """A block that is full: its raw bytes until they are stored, then where they are in the temporary file."""

    raw: OpenBlock | None
    nraw: int
    offset: int = 0
    stored: int = 0
    codec: int = 0
    future: Future[Any] | None = None


@dataclass(frozen=True, slots=True)
class Packing:
    """How blocks are made. codec: its number in segments. target: raw bytes that fill a block."""

    codec: int
    level: int
    target: int


#: Appends bytes to the container.
Sink = Callable[[Any], None]


def write_footer(builder: SegmentBuilder, sink: Sink) -> None:
    """The end of a segment, after its blocks."""
    head, table = builder.write()
    sink(head)
    sink(table)
    sink((len(head) + len(table)).to_bytes(8, "little") + MAGIC)


class VariableWriter:
    """Chunks of one variable of all data sets. Thread-safe, but for `write_to`."""

    def __init__(self, name: str, spill: str, packing: Packing, files: Files, encoder: Encoder) -> None:
        self.name = name
        self.builder = SegmentBuilder()
        self._spill = spill
        self._spilled = 0
        self._packing = packing
        self._files = files
        self._encoder = encoder
        self._removed = False
        self._lock = threading.RLock()
        self._blocks: list[Block] = []
        self._open = self._next()
        #: Gives the place of another array among those of the variable; safe from any thread.
        self.next_order = itertools.count().__next__
        self._decoded: tuple[int, bytes] | None = None

    def _next(self) -> OpenBlock:
        return OpenBlock(self.name, len(self._blocks), LZ4_MOST if self._packing.codec == LZ4 else MOST)

    def append(self, data: Any) -> tuple[int, int, int]:
        """Keep the bytes of a chunk: (block, offset in it, size)."""
        while True:
            block = self._open
            place = block.append(data)
            if place is not None:
                if len(block) >= self._packing.target:
                    self._close(block)
                return place
            if self._encoder.error is not None:
                raise self._encoder.error

    def append_whole(self, form: ArrayForm, start: Any, values: Any) -> Any:
        """An array that is one chunk, written at once as it is stored: the chunk and its extent. None for others."""
        block = self._open
        found = block.append_whole(form, start, values)
        if found is not None and len(block) >= self._packing.target:
            self._close(block)
        return found

    def _close(self, full: OpenBlock) -> None:
        """Store a block that is full, whatever thread sees it first."""
        try:
            with self._lock:
                if not full.seal():
                    return
                block = Block(full, len(full))
                self._blocks.append(block)
                self._open = self._next()
            block.future = self._encoder.run(lambda: self._store(block))
        except BaseException as e:
            self._encoder.fail(e)  # it may be lost, and no other may take its place
            raise

    @contextmanager
    def _file(self, flags: int) -> Iterator[int]:
        """The temporary file. ClosedError once it was removed."""
        with ExitStack() as stack:
            with self._lock:
                if self._removed:
                    raise ClosedError("the collection was finished or aborted meanwhile")
                fd = stack.enter_context(opened(self._files, self._spill, flags))
            yield fd

    def _encode(self, raw: OpenBlock) -> tuple[Any, int]:
        codec = self._packing.codec
        return (raw, 0) if codec == 0 else (block_encode(codec, self._packing.level, raw), codec)

    def _store(self, block: Block) -> None:
        raw = block.raw
        assert raw is not None
        data, block.codec = self._encode(raw)
        with self._lock:
            block.offset, block.stored = self._spilled, len(data)
            self._spilled += len(data)
        with self._file(os.O_WRONLY | os.O_CREAT) as fd:
            write_all(self._files, fd, data, block.offset, self._spill)
        block.raw = None

    def read(self, number: int, offset: int, size: int) -> bytes:
        """A chunk that was appended."""
        with self._lock:
            block = self._blocks[number] if number < len(self._blocks) else None
            raw = self._open if block is None else block.raw
            if raw is not None:
                return raw.read(offset, size)
            decoded = self._decoded
        if decoded is None or decoded[0] != number:
            assert block is not None
            with self._file(os.O_RDONLY) as fd:
                data = read_all(self._files, fd, block.stored, block.offset, self._spill)
            decoded = self._decoded = (number, block_decode(block.codec, data, block.nraw))
        return decoded[1][offset : offset + size]

    # ---- finishing ---------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Nothing is appended any more: encode what is open."""
        self._decoded = None
        raw = self._open
        if len(raw) and raw.seal():
            block = Block(raw, len(raw))
            self._blocks.append(block)
            self._open = self._next()
            block.future = self._encoder.run(lambda: self._encode(raw))

    def write_to(self, sink: Sink) -> None:
        """Write the segment, and remove the temporary file."""
        at = 0
        for block in self._blocks:
            assert block.future is not None
            held = block.future.result()
            if held is None:
                self._copy(block, sink)
            else:
                data, block.codec = held
                block.stored = len(data)
                sink(data)
            self.builder.add_block(at, block.stored, block.nraw, block.codec)
            at += block.stored
            block.raw = block.future = None
        write_footer(self.builder, sink)
        self.remove()

    def _copy(self, block: Block, sink: Sink) -> None:
        with self._file(os.O_RDONLY) as fd:
            for done in range(0, block.stored, PIECE):
                n = min(PIECE, block.stored - done)
                sink(read_all(self._files, fd, n, block.offset + done, self._spill))

    def drop(self) -> None:
        """Nothing of it is wanted: once it is all stored, remove it."""
        for block in self._blocks:
            if block.future is not None:
                block.future.result()
        self.remove()

    def remove(self) -> None:
        """Remove the temporary file, for good."""
        with self._lock:
            self._removed = True
            if self._spilled:
                remove(self._files, self._spill)
                self._spilled = 0


class Output:
    """A file that is written from its beginning to its end, with the checksum of a part of it."""

    def __init__(self, files: Files, fd: int, path: str) -> None:
        self.size = 0
        self.crc = 0
        self._files, self._fd, self._path = files, fd, path

    def write(self, data: Any) -> None:
        """Append."""
        write_all(self._files, self._fd, data, self.size, self._path)
        self.size += len(data)
        self.crc = crc32c(data, self.crc)

    def begin(self) -> int:
        """A part begins; where."""
        self.crc = 0
        return self.size

# SPDX-License-Identifier: BSD-3-Clause
"""One variable over all data sets: arrays of any length, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mrec.collection.elements import decode_chunk, room
from mrec.collection.kinds import stored_kind
from mrec.errors import CorruptData, SchemaError

if TYPE_CHECKING:
    from mrec.collection.segment import Segment


class Variable:
    """One variable of every data set that has it, in the order of the data sets.

    names: the data sets. lengths: elements in each; shapes: their shapes.
    """

    def __init__(self, segment: Segment, names: list[str], numbers: list[int]) -> None:
        self._segment = segment
        self.name = segment.name
        self.names = names
        self._numbers = np.array(numbers, np.int64)
        dtypes, elements, blocks, offsets, sizes = segment.footer.layout()
        rows = self._numbers
        self._codes, self._blocks = dtypes[rows], blocks[rows]
        self._offsets, self._sizes = offsets[rows].astype(np.int64), sizes[rows].astype(np.int64)
        self.lengths: np.ndarray[Any, Any] = elements[rows].astype(np.int64)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} data sets, {int(self.lengths.sum())} elements>"

    def __iter__(self) -> Iterator[np.ndarray[Any, Any]]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, i: int) -> np.ndarray[Any, Any]:
        """All of the i-th array."""
        number = int(self._numbers[i])
        return self._segment.read(number, self._segment.info(number), ...)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shape of each array."""
        return [self._segment.info(int(i)).shape for i in self._numbers]

    @property
    def offsets(self) -> np.ndarray[Any, Any]:
        """Where each array begins in `values`, and the end of the last."""
        return np.concatenate(([0], np.cumsum(self.lengths)))

    def read(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """(values, offsets): all elements in one array, array i from offsets[i] to offsets[i + 1], in C order.

        SchemaError when data sets have it in different types; take them one by one then.
        """
        offsets = self.offsets
        codes = np.unique(self._codes)
        if len(codes) > 1:
            kinds = ", ".join(str(stored_kind(int(code))) for code in codes)
            raise SchemaError(f"{self.name!r} has several types ({kinds}); take the arrays one by one")
        if not len(codes):
            return np.empty(0), offsets
        kind = stored_kind(int(codes[0]))
        out = room(kind, (int(offsets[-1]),), None, self._segment.where)
        simple = (self._blocks >= 0) & (self.lengths > 0)
        if kind.width:
            self._copy(np.flatnonzero(simple), kind.width, out, offsets)
        else:
            for i in np.flatnonzero(simple):
                data = memoryview(self._segment.block(int(self._blocks[i])))
                data = data[self._offsets[i] : self._offsets[i] + self._sizes[i]]
                shape = (int(self.lengths[i]),)
                out[offsets[i] : offsets[i + 1]] = decode_chunk(kind, data, shape, self._segment.where)
        for i in np.flatnonzero(~simple & (self.lengths > 0)):
            out[offsets[i] : offsets[i + 1]] = self[int(i)].ravel()
        return out, offsets

    @property
    def values(self) -> np.ndarray[Any, Any]:
        """All elements in one array."""
        return self.read()[0]

    def _copy(self, rows: Any, width: int, out: np.ndarray[Any, Any], offsets: Any) -> None:
        """Arrays of one chunk each, those that lie side by side at once, block by block."""
        if not len(rows):
            return
        blocks, starts, sizes, targets = self._blocks[rows], self._offsets[rows], self._sizes[rows], offsets[rows]
        if (sizes != self.lengths[rows] * width).any():
            raise CorruptData(f"{self._segment.where}: a chunk has another size than its array")
        joined = (blocks[1:] == blocks[:-1]) & (starts[1:] == starts[:-1] + sizes[:-1])
        joined &= targets[1:] * width == targets[:-1] * width + sizes[:-1]
        firsts = np.concatenate(([0], np.flatnonzero(~joined) + 1))
        ends = np.concatenate((firsts[1:], [len(rows)])) - 1
        target = out.view(np.uint8)
        for k in np.argsort(blocks[firsts], kind="stable"):
            first, last = firsts[k], ends[k]
            data = np.frombuffer(self._segment.block(int(blocks[first])), np.uint8)
            n = int(starts[last] + sizes[last] - starts[first])
            at = int(targets[first]) * width
            target[at : at + n] = data[int(starts[first]) : int(starts[first]) + n]

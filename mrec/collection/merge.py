# SPDX-License-Identifier: BSD-3-Clause
"""Several collections into one, and one without its deleted data sets: blocks are moved as they are stored."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from mrec._core import ArrayForm, SegmentBuilder, SegmentFooter
from mrec.collection import footer
from mrec.collection.packing import Sink, write_footer
from mrec.collection.reader import Collection, open_collection
from mrec.collection.segment import Segment
from mrec.collection.writer import CollectionWriter
from mrec.errors import CorruptData, InvalidValue
from mrec.files import POSIX, Files


def merge(target: str | os.PathLike[str], sources: Any, *, overwrite: bool = False, files: Files = POSIX) -> None:
    """Make one collection of several: all data sets that are not deleted, one source after the other.

    Blocks are moved, not compressed anew; those of which no data set needs anything are left out. sources: paths or
    open collections, or one of them. DatasetExists when a name is in two of them.
    """
    given = [sources] if isinstance(sources, (str, os.PathLike, Collection)) else list(sources)
    if not given:
        raise InvalidValue("there is nothing to merge")
    # The writer's lock comes first: what another process deletes in the target meanwhile would come back.
    with CollectionWriter(target, overwrite=overwrite, files=files) as writer, ExitStack() as stack:
        opened = [
            source if isinstance(source, Collection) else stack.enter_context(open_collection(source))
            for source in given
        ]
        writer.codec = opened[0].footer.codec
        _fill(writer, opened)
        writer.finish()


def compact(path: str | os.PathLike[str], *, files: Files = POSIX) -> None:
    """Rewrite a collection without its deleted data sets and without blocks that nothing needs any more.

    Data sets keep their order and get new ordinals. The old one stays until the new one takes its place.
    """
    merge(path, [path], overwrite=True, files=files)


def _fill(writer: CollectionWriter, sources: Iterable[Collection]) -> None:
    """Schemas of the data sets, and segments that move their blocks."""
    moved: dict[str, Moved] = {}
    for source in sources:
        for name in source.names:
            schema = source.footer.schema(source.footer.ordinals[name])
            ordinal = writer.adopt_dataset(name, schema)
            for variable in [array for array, _ in schema.arrays] + [footer.DATASETS] * bool(schema.attributes):
                moved.setdefault(variable, Moved()).add(source.segment(variable), name, ordinal)
    writer.adopt(moved)


class Moved:
    """A segment made of parts of others."""

    def __init__(self) -> None:
        self._builder = SegmentBuilder()
        self._blocks: dict[tuple[int, int], int] = {}  # (segment, block) -> new number
        self._moves: list[tuple[Segment, int]] = []
        self._kept: dict[int, Segment] = {}

    def add(self, segment: Segment, dataset: str, ordinal: int) -> None:
        """An array of another segment."""
        number = segment.numbers.get(dataset)
        if number is None:
            raise CorruptData(f"{segment.where}: the data set {dataset!r} is missing")
        form, chunks, pairs, extent = entry_of(segment.footer, number, f"{segment.where}: {dataset!r}")
        moved = sorted((place, self._block(segment, block), offset, size) for place, block, offset, size in chunks)
        self._builder.add_array(ordinal, dataset.encode(), form, moved, pairs, extent)

    def _block(self, segment: Segment, block: int) -> int:
        self._kept[id(segment)] = segment
        found = self._blocks.setdefault((id(segment), block), len(self._moves))
        if found == len(self._moves):
            self._moves.append((segment, block))
        return found

    def write_to(self, sink: Sink) -> None:
        """The blocks, as they are stored, and the footer."""
        at = 0
        for segment, block in self._moves:
            offset, stored, raw, codec = segment.footer.block(block)
            for piece in segment.pieces(offset, stored):
                sink(piece)
            self._builder.add_block(at, stored, raw, codec)
            at += stored
        write_footer(self._builder, sink)


def entry_of(source: SegmentFooter, number: int, where: str) -> tuple[ArrayForm, list[Any], list[Any], Any]:
    """An array of a footer as `SegmentBuilder.add_array` takes it. CorruptData, InvalidValue."""
    code, shape, dims, chunk, fill, _ = source.array(number)
    statistics = source.statistics(number)
    if statistics is None:
        raise InvalidValue(f"{where} has no statistics; write the collection anew")
    low, high, nulls, rows = statistics
    bounds = [bound for bound in (low, high) if bound is not None]
    if len({kind for kind, _ in bounds}) > 1:
        raise CorruptData(f"{where} has a minimum and a maximum of two types")
    form = ArrayForm(code, bounds[0][0] if bounds else 0, shape, chunk, tuple([d.encode() for d in dims]), fill, rows)
    pairs = sorted((key.encode(), value) for key, value in source.pairs(number))
    return form, source.chunks(number), pairs, (low and low[1], high and high[1], nulls)

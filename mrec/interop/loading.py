# SPDX-License-Identifier: BSD-3-Clause
"""Frames of records as data sets for training: in any order, or as a stream in a shuffled one.

They do what PyTorch asks of a data set, and work without it: `torch.utils.data.DataLoader` takes them with any number
of workers, started by fork or by spawn.
"""

from __future__ import annotations

import operator
import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mrec.errors import FrameIndexError, InvalidValue, SchemaError, UnknownName
from mrec.trajectory.reader import Trajectory
from mrec.trajectory.schema import BlockSchema

#: A column or several of a block, or the name of a per-step value, or "step", "time" or "cell".
Field = tuple[str, str | Sequence[str]] | str
Item = dict[str, Any]

#: Records that a data set keeps open; frames, and bytes of them, that a stream reads together.
OPEN = 16
BLOCK = 64
TOGETHER = 1 << 20

_OWN = ("step", "time", "cell")


class FrameDataset(Sequence[Any]):
    """The frames of one or more records, one after another, as items by number (map-style).

    records: a path, or several. fields: name in the item -> (block, column), (block, columns) or the name of a per-step
    value; "step", "time" and "cell" (its vectors as rows, f64 (3, 3)) are those of the frame. frames: which ones of
    each record. dtype: of fields that are floating point ("float32"); None leaves them as they are. transform: called
    with each item, a dict of arrays; what it returns is the item. Null rows of floats are NaN.

    An item is read when it is asked for, `dataset[i]`, or many at once, `dataset.items([5, 2, 9])`, which decodes
    what they share once; PyTorch's loader asks for batches in this way by itself. The frames are those that there are
    when it is made. Pickles by path; a process that is forked opens the records anew.

    >>> data = FrameDataset("water.mrec", {"positions": ("atoms", ["x", "y", "z"])}, dtype="float32")
    >>> len(data), data[3]["positions"].shape
    (10, (3, 3))
    """

    def __init__(
        self,
        records: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        fields: Mapping[str, Field],
        *,
        frames: slice = slice(None),
        dtype: Any = None,
        transform: Callable[[Item], Any] | None = None,
    ) -> None:
        listed = [records] if isinstance(records, (str, os.PathLike)) else list(records)
        self.paths = [os.path.abspath(os.fspath(path)) for path in listed]
        if not isinstance(fields, Mapping):
            given = type(fields).__name__
            raise InvalidValue(f'fields is a mapping, as {{"positions": ("atoms", ["x", "y", "z"])}}, not {given}')
        self.fields = dict(fields)
        self.dtype = None if dtype is None else np.dtype(dtype)
        if self.dtype is not None and self.dtype.kind != "f":
            raise InvalidValue(f"dtype is {dtype!r}; it is for floating point fields, as 'float32'")
        self.transform = transform
        self._open: dict[int, Trajectory] = {}
        self._frames = []
        for i in range(len(self.paths)):
            trajectory = self._trajectory(i)
            self._check(trajectory, self.paths[i])
            self._frames.append(range(*frames.indices(len(trajectory))))
        self._ends = np.cumsum([len(found) for found in self._frames]).tolist()

    def _check(self, trajectory: Trajectory, path: str) -> None:
        schema = trajectory.schema
        for name, field in self.fields.items():
            if isinstance(field, str):
                if field not in schema.values and field not in _OWN:
                    raise UnknownName(f"{path}: field {name!r}: there is no per-step value {field!r}")
                continue
            if not isinstance(field, (tuple, list)) or len(field) != 2:
                raise InvalidValue(f"field {name!r} is {field!r}; it is a name, or (block, column) or (block, columns)")
            block, columns = field
            declared = schema.blocks.get(block, BlockSchema(block))
            for column in declared.together(columns) if isinstance(columns, str) else columns:
                if column not in declared.columns:
                    raise UnknownName(f"{path}: field {name!r}: there is no column {column!r} in a block {block!r}")

    def _trajectory(self, i: int) -> Trajectory:
        found = self._open.pop(i, None)
        if found is None:
            found = Trajectory(self.paths[i])
            if len(self._open) >= OPEN:
                del self._open[next(iter(self._open))]
        self._open[i] = found
        return found

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __repr__(self) -> str:
        return f"<FrameDataset {len(self)} items of {len(self.paths)} records: {', '.join(self.fields)}>"

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.items(range(*index.indices(len(self))))
        return self.items([index])[0]

    def __iter__(self) -> Iterator[Any]:
        for low in range(0, len(self), BLOCK):
            yield from self.items(range(low, min(low + BLOCK, len(self))))

    def items(self, indices: Sequence[int]) -> list[Any]:
        """The items of these numbers, in their order. FrameIndexError for one outside."""
        n = len(self)
        wanted: dict[int, list[tuple[int, int]]] = {}
        for place, index in enumerate(indices):
            i = operator.index(index)
            i += n if i < 0 else 0
            if not 0 <= i < n:
                raise FrameIndexError(f"there is no item {index} among {n}")
            record = bisect_right(self._ends, i)
            before = self._ends[record - 1] if record else 0
            wanted.setdefault(record, []).append((self._frames[record][i - before], place))
        found: list[Any] = [None] * len(indices)
        for record, pairs in wanted.items():
            pairs.sort()  # neighbours share chunks
            for item, (_, place) in zip(self._read(record, [frame for frame, _ in pairs]), pairs, strict=True):
                found[place] = item if self.transform is None else self.transform(item)
        return found

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The same; PyTorch calls it."""
        return self.items(indices)

    def _read(self, record: int, frames: list[int]) -> Iterator[Item]:
        """The items of frames of a record, in ascending order."""
        trajectory = self._trajectory(record)
        columns = [self._typed(self._field(trajectory, field, frames)) for field in self.fields.values()]
        for values in zip(*columns, strict=True) if columns else ((),) * len(frames):
            yield dict(zip(self.fields, values, strict=True))

    def _field(self, trajectory: Trajectory, field: Field, frames: list[int]) -> Any:
        """A field of some frames: one array, or a list of arrays where frames have other numbers of rows."""
        low, high = frames[0], frames[-1] + 1
        if not isinstance(field, str):
            try:
                return trajectory.read(*field, frames=slice(low, high) if high - low == len(frames) else frames)
            except SchemaError:  # the block has not the same rows at all of them
                return [trajectory.read(*field, frames=frame) for frame in frames]
        chosen = np.asarray(frames) - low
        if field == "cell":
            boxes = trajectory[low:high].boxes
            if boxes is None or not boxes.defined:
                raise SchemaError(f"{trajectory!r} has no cell")
            return boxes.rows[chosen]
        if field in trajectory.schema.values:
            return trajectory[low:high].values(field)[chosen]
        found = trajectory.steps if field == "step" else trajectory.times
        if found is None:
            raise SchemaError(f"{trajectory!r} has no times")
        return found[frames]

    def _typed(self, values: Any) -> Any:
        if isinstance(values, list):
            return [self._typed(one) for one in values]
        if values.dtype.kind != "f":
            return values
        whole = np.ma.filled(values, np.nan)  # where masks are not looked at, null is no number
        return whole if self.dtype is None else whole.astype(self.dtype)


class FrameStream:
    """The frames of a `FrameDataset` as a stream (iterable-style), each once, shared between workers and ranks.

    Frames are read in blocks of `block` neighbours, each of which is decoded once; None: as many as make about a
    megabyte, 64 at most. shuffle: blocks come in a random
    order, and the items of `mix` blocks are shuffled together; `set_epoch` gives another order. seed: of both. rank,
    ranks: this process takes every ranks-th block, for training on several devices.

    A worker of PyTorch's loader takes its share of the blocks by itself. `part(i, n)` is the i-th of n shares.

    >>> data = FrameDataset("water.mrec", {"x": ("atoms", "x")})
    >>> sorted(item["x"][0] for item in FrameStream(data, shuffle=True))[:3]
    [np.float64(0.0), np.float64(1.0), np.float64(2.0)]
    """

    def __init__(
        self,
        dataset: FrameDataset,
        *,
        shuffle: bool = False,
        seed: int = 0,
        block: int | None = None,
        mix: int = 4,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        block = _block(dataset) if block is None else block
        if block < 1 or mix < 1 or not 0 <= rank < ranks:
            raise InvalidValue(f"block {block} and mix {mix} are 1 or more, and rank {rank} is below ranks {ranks}")
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = seed
        self.block = block
        self.mix = mix
        self.rank = rank
        self.ranks = ranks
        self.epoch = 0
        _tell_torch(type(self))

    def set_epoch(self, epoch: int) -> None:
        """Another order from the next iteration on, the same in all workers and ranks."""
        self.epoch = epoch

    def __len__(self) -> int:
        """The items of this rank."""
        return sum(len(block) for block in self._blocks()[self.rank :: self.ranks])

    def __iter__(self) -> Iterator[Any]:
        worker, workers = _worker()
        return self.part(worker, workers)

    def part(self, worker: int, workers: int) -> Iterator[Any]:
        """The share of one of several workers of this rank."""
        blocks = self._blocks()[self.rank :: self.ranks][worker::workers]
        rng = np.random.default_rng((self.seed, self.epoch, self.rank, worker))
        for low in range(0, len(blocks), self.mix if self.shuffle else 1):
            items = [
                item for b in blocks[low : low + (self.mix if self.shuffle else 1)] for item in self.dataset.items(b)
            ]
            if self.shuffle:
                yield from (items[i] for i in rng.permutation(len(items)))
            else:
                yield from items

    def _blocks(self) -> list[range]:
        n = len(self.dataset)
        blocks = [range(low, min(low + self.block, n)) for low in range(0, n, self.block)]
        if self.shuffle:
            order = np.random.default_rng((self.seed, self.epoch)).permutation(len(blocks))
            blocks = [blocks[i] for i in order]
        return blocks


def _block(dataset: FrameDataset) -> int:
    """How many neighbours to read together, from the size of the first item."""
    if not len(dataset):
        return 1
    first = next(record for record, frames in enumerate(dataset._frames) if len(frames))
    (item,) = dataset._read(first, [dataset._frames[first][0]])
    return max(1, min(BLOCK, TOGETHER // max(1, sum(np.asarray(values).nbytes for values in item.values()))))


def _worker() -> tuple[int, int]:
    """The number of this process among the workers of PyTorch's loader, and how many there are."""
    torch = sys.modules.get("torch")
    info = None if torch is None else torch.utils.data.get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def _tell_torch(kind: type) -> None:
    """PyTorch takes for a stream what is an instance of its own class; when it is there, it is told."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.utils.data.IterableDataset.register(kind)

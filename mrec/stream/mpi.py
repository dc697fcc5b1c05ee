# SPDX-License-Identifier: BSD-3-Clause
"""Streams of the ranks of an mpi4py communicator. The writers do no communication; here is all that there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from mrec.errors import CommitError, InvalidValue
from mrec.stream import opening
from mrec.stream.fence import require_manifest
from mrec.stream.place import place_of
from mrec.stream.region import Region
from mrec.stream.roles import Contributor, Owner
from mrec.stream.schema import StreamSchema
from mrec.stream.token import Receipt
from mrec.stream.writer import StreamWriter

T = TypeVar("T")


def plan(schema: StreamSchema, n: int, dims: Sequence[str] | None = None) -> list[Region]:
    """At most n regions that cover the stream, cut at the borders of shards as evenly as these allow.

    dims: the dimensions to cut; by default the first that a variable has, and the second where the first has too few
    shards. Fewer regions than n: the last ranks have no work.
    """
    counts = {d: -(-length // schema.shard[d]) for d, length in schema.dims.items() if d != schema.time_dim}
    if dims is None:
        carried = [d for d in counts if any(d in v.dims for v in schema.variables.values())]
        dims = carried[:1] if carried and counts[carried[0]] >= n else carried[:2]
    if n < 1 or any(d not in counts for d in dims):
        raise InvalidValue(f"{n} regions along {', '.join(dims)} of {', '.join(counts)}")
    parts = _best([counts[d] for d in dims], n)
    regions: list[Region] = [{}]
    for dim, k in zip(dims, parts, strict=True):
        bounds = [min(schema.dims[dim], (counts[dim] * i // k) * schema.shard[dim]) for i in range(k)]
        spans = zip(bounds, [*bounds[1:], schema.dims[dim]], strict=True)
        regions = [{**region, dim: span} for span in list(spans) for region in regions]
    return regions


def _best(counts: list[int], n: int) -> list[int]:
    """How many parts along each axis: the most in all, then the most even."""
    if not counts:
        return []
    if len(counts) == 1:
        return [min(counts[0], n)]
    choices = [[k, *_best(counts[1:], n // k)] for k in range(1, min(counts[0], n) + 1)]
    return max(choices, key=lambda parts: (math.prod(parts), -max(c / k for c, k in zip(counts, parts, strict=True))))


class Ranks:
    """The writers of a communicator, one a rank; every method is called by all ranks.

    A rank that has no work has no `writer` and takes part in the calls all the same. What one rank raises, the others
    raise as CommitError.
    """

    def __init__(self, comm: Any, writer: StreamWriter | None) -> None:
        self.comm, self.writer = comm, writer

    def commit(self) -> Receipt:
        """Flush on all ranks, commit on rank 0, acknowledge on all."""
        token = _together(self.comm, lambda: None if self.writer is None else self.writer.flush())
        tokens = [t for t in self.comm.gather(token, root=0) or [] if t is not None]
        receipt: Receipt = _from_root(self.comm, lambda: self.writer.commit(tokens))  # type: ignore[union-attr]
        if self.writer is not None:
            self.writer.acknowledge(receipt)
        return receipt

    def close(self) -> None:
        """Close all; nothing is committed."""
        _together(self.comm, lambda: None if self.writer is None else self.writer.close())

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        """Close, and commit before, unless an exception is on its way."""
        if kind is None:
            self.commit()
            self.close()
        elif self.writer is not None:
            self.writer._let_go()


def create(comm: Any, base: Any, schema: StreamSchema, dims: Sequence[str] | None = None, **options: Any) -> Ranks:
    """A new stream, written by all ranks of `comm`. dims: see `plan`; options: those of `mrec.stream.create`."""
    regions = plan(schema, comm.size, dims)
    cut = list(regions[0])

    def owner() -> StreamWriter:
        return opening.create(base, schema, Owner(len(regions)), regions[0], partition_dims=cut, **options)

    return _come(comm, base, regions, owner, opening.join, options)


def resume(comm: Any, base: Any, dims: Sequence[str] | None = None, at: Any = None, **options: Any) -> Ranks:
    """Go on with a stream, by any number of ranks. at: keep the records with t <= at."""
    schema = _from_root(comm, lambda: require_manifest(place_of(base).session(False)).schema)
    regions = plan(schema, comm.size, dims)
    cut = list(regions[0])

    def owner() -> StreamWriter:
        return opening.resume(base, Owner(len(regions)), regions[0], at, partition_dims=cut, **options)

    return _come(comm, base, regions, owner, opening.resume, options)


def _come(
    comm: Any,
    base: Any,
    regions: list[Region],
    owner: Callable[[], StreamWriter],
    contributor: Callable[..., StreamWriter],
    options: dict[str, Any],
) -> Ranks:
    """The owner first, then the others."""
    made: list[StreamWriter] = []
    _from_root(comm, lambda: made.append(owner()))
    kept = {k: v for k, v in options.items() if k in ("durability", "threads")}

    def come() -> None:
        if 0 < comm.rank < len(regions):
            made.append(contributor(base, Contributor(comm.rank), regions[comm.rank], **kept))

    _together(comm, come)
    return Ranks(comm, made[0] if made else None)


def _from_root(comm: Any, act: Callable[[], T]) -> T:
    """What rank 0 does; its result, or its exception, on all ranks."""
    outcome: tuple[Any, Exception | None] = (None, None)
    if comm.rank == 0:
        try:
            outcome = (act(), None)
        except Exception as e:
            outcome = (None, e)
    result, error = comm.bcast(outcome, root=0)
    if error is not None:
        raise error
    return result


def _together(comm: Any, act: Callable[[], T]) -> T:
    """What each rank does; when one raises, all do."""
    result, error = None, None
    try:
        result = act()
    except Exception as e:
        error = e
    errors = comm.allgather(None if error is None else f"rank {comm.rank}: {type(error).__name__}: {error}")
    if error is not None:
        raise error
    said = [text for text in errors if text is not None]
    if said:
        raise CommitError("; ".join(said))
    return result  # type: ignore[return-value]

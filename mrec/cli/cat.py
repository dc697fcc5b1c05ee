# SPDX-License-Identifier: BSD-3-Clause
"""`mrec cat`: the frames of several records, one after another."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np

from mrec.cli.choice import add_overwrite, note
from mrec.cli.progress import progress
from mrec.cli.rewrite import Plan, largest_rows, stored, write
from mrec.cli.sizes import disk_usage, human
from mrec.display import counted
from mrec.errors import MrecError
from mrec.frame import Frame
from mrec.record.carry import carry
from mrec.record.output import new_record
from mrec.zarr.store import open_store

_DESCRIPTION = "Join the frames of records that declare the same, in the order given, into a new one."
_EPILOG = """Steps have to increase from each record to the next, unless --overlap says whose frames count where the
steps of two records overlap, from the later first to the earlier last one; all other frames are kept, in the order of
their steps. What is beside the trajectory comes from the first record; the others have the same system/ or none."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "cat", help="join the frames of several records", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("inputs", metavar="IN.mrec", nargs="+", help="the records, in order")
    parser.add_argument("output", metavar="OUT.mrec", help="the record to make")
    parser.add_argument(
        "--overlap", choices=("first", "last"), help="where records overlap in steps: whose frames are kept"
    )
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Join, then say what was made."""
    import mrec

    with ExitStack() as stack:
        records = [stack.enter_context(mrec.open(path)) for path in arguments.inputs]
        made = stack.enter_context(new_record(arguments.output, arguments.overwrite))
        trajectories = [record.trajectory for record in records]
        notes = _check_alike(arguments.inputs, records)
        parts = merge_steps(arguments.inputs, [t.steps for t in trajectories], arguments.overlap)
        for trajectory in trajectories:
            largest_rows(trajectory)
        schema = trajectories[0].schema
        for name, block in schema.blocks.items():
            block.rows = max(t.schema.blocks[name].rows for t in trajectories)
        views = [trajectories[i][frames.start : frames.stop] for i, frames in parts]
        taken = sum(map(len, views))
        compression, per_chunk = stored(records[0])
        plan = Plan(schema, compression=compression, frames_per_chunk=per_chunk)
        write(made, plan, progress(_frames(views), taken, "frames"))
        carry(open_store(records[0].path), made, schema, schema)
    for i, (path, trajectory) in enumerate(zip(arguments.inputs, trajectories, strict=True)):
        left = len(trajectory) - sum(len(frames) for number, frames in parts if number == i)
        if left:
            notes.append(f"{path}: {counted(left, 'overlapping frame')} left out")
    for text in notes:
        note(text)
    size = human(disk_usage(arguments.output)[0])
    print(f"{arguments.output}: {counted(taken, 'frame')} of {counted(len(records), 'record')}, {size}")


def _frames(views: Sequence[Any]) -> Iterator[Frame]:
    for view in views:
        yield from view


def _check_alike(paths: Sequence[str], records: Sequence[Any]) -> list[str]:
    """MrecError when a record declares other columns, units or particles than the first; what is not taken of them."""
    first, notes = records[0], []
    for path, other in zip(paths[1:], records[1:], strict=True):
        if other.trajectory.schema != first.trajectory.schema:
            raise MrecError(f"{path} declares other columns than {paths[0]}: {_difference(first, other)}")
        if other.units != first.units:
            raise MrecError(f"{path} has the units {other.units}, {paths[0]} {first.units}; nothing is converted")
        with_frames = len(other.trajectory) and len(first.trajectory)
        if with_frames and (other.trajectory.times is None) != (first.trajectory.times is None):
            without = path if other.trajectory.times is None else paths[0]
            raise MrecError(f"{without} has no times and another has; all frames of a record have one or none has")
        if other.system is not None and other.system != first.system:
            raise MrecError(f"{path} has another system than {paths[0]}: its frames are not of the same particles")
        left = [name for name in other.sections if name not in ("meta", "system", "trajectory")]
        if left:
            notes.append(f"{path}: {', '.join(left)} is not taken; what is beside the frames is that of {paths[0]}")
    return notes


def _difference(first: Any, other: Any) -> str:
    """The first part of two declarations that differs, in words."""
    a, b = first.trajectory.schema, other.trajectory.schema
    for kind in ("blocks", "values"):
        ours, theirs = getattr(a, kind), getattr(b, kind)
        for name in [*ours, *theirs]:
            if name not in ours or name not in theirs or ours[name].to_json() != theirs[name].to_json():
                return f"{theirs.get(name, f'no {name!r}')!r} where that has {ours.get(name, f'no {name!r}')!r}"
    return "their order"


def merge_steps(paths: Sequence[str], steps: Sequence[np.ndarray], overlap: str | None) -> list[tuple[int, range]]:
    """Which frames of which record follow one another, so that steps increase: (number of the record, frames).

    Records overlap at the steps from the first to the last of each: there only one of them counts, the one that
    `overlap` says. MrecError for an overlap without it.
    """
    last: int | None = None
    for path, own in zip(paths, steps, strict=True):
        if overlap is None and last is not None and len(own) and own[0] <= last:
            keep = int(np.searchsorted(own, last, side="right"))
            raise MrecError(
                f"{path} begins at step {own[0]}, and a record before it ends at {last}: pass --overlap last "
                f"(the later record counts) or --overlap first, or cut {keep} frames off it (mrec convert --start)"
            )
        last = int(own[-1]) if len(own) else last
    kept = []
    for i, own in enumerate(steps):
        free = np.ones(len(own), np.bool_)
        for other in steps[i + 1 :] if overlap == "last" else steps[:i]:
            if len(other):
                free &= (own < other[0]) | (own > other[-1])
        kept.append(np.flatnonzero(free))
    which = np.repeat(np.arange(len(steps)), [len(frames) for frames in kept])
    frames = np.concatenate(kept)
    order = np.argsort(np.concatenate([own[k] for own, k in zip(steps, kept, strict=True)]), kind="stable")
    which, frames = which[order], frames[order]
    ends = np.flatnonzero((np.diff(which) != 0) | (np.diff(frames) != 1)) + 1
    bounds = [0, *ends.tolist(), len(frames)]
    return [(int(which[a]), range(int(frames[a]), int(frames[b - 1]) + 1)) for a, b in pairwise(bounds) if a < b]

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec cat`: the frames of several records, one after another."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from mrec.cli.choice import add_overwrite, note
from mrec.cli.progress import progress
from mrec.cli.rewrite import Plan, largest_rows, stored, write
from mrec.cli.sizes import disk_usage, human
from mrec.errors import MrecError
from mrec.frame import Frame
from mrec.record.carry import carry
from mrec.record.output import new_record
from mrec.zarr.store import open_store

_DESCRIPTION = "Join the frames of records that declare the same, in the order given, into a new one."
_EPILOG = """Steps have to increase from each record to the next. What is beside the trajectory comes from the first
record; the others have the same system/ or none."""


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
        spans = cut_steps(arguments.inputs, [t.steps for t in trajectories], arguments.overlap)
        for trajectory in trajectories:
            largest_rows(trajectory)
        schema = trajectories[0].schema
        for name, block in schema.blocks.items():
            block.rows = max(t.schema.blocks[name].rows for t in trajectories)
        views = [t[span.start : span.stop] for t, span in zip(trajectories, spans, strict=True)]
        taken = sum(map(len, views))
        compression, per_chunk = stored(records[0])
        plan = Plan(schema, compression=compression, frames_per_chunk=per_chunk)
        write(made, plan, progress(_frames(views), taken, "frames"))
        carry(open_store(records[0].path), made, schema, schema)
    for path, trajectory, view in zip(arguments.inputs, trajectories, views, strict=True):
        if len(view) < len(trajectory):
            notes.append(f"{path}: {len(trajectory) - len(view)} frames overlap and were left out")
    for text in notes:
        note(text)
    print(f"{arguments.output}: {taken} frames of {len(views)} records, {human(disk_usage(arguments.output)[0])}")


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


def cut_steps(paths: Sequence[str], steps: Sequence[np.ndarray], overlap: str | None) -> list[range]:
    """The frames that are taken of each record, so that steps increase. MrecError for an overlap, without `overlap`."""
    spans = [range(len(s)) for s in steps]
    if overlap == "last":
        ends = [min((int(later[0]) for later in steps[i + 1 :] if len(later)), default=None) for i in range(len(steps))]
        return [range(len(s) if e is None else int(np.searchsorted(s, e))) for s, e in zip(steps, ends, strict=True)]
    last: int | None = None
    for i, own in enumerate(steps):
        if last is not None and len(own) and own[0] <= last:
            if overlap is None:
                keep = int(np.searchsorted(own, last, side="right"))
                raise MrecError(
                    f"{paths[i]} begins at step {own[0]}, and a record before it ends at {last}: pass --overlap last "
                    f"(the later record counts) or --overlap first, or cut {keep} frames off it (mrec convert --start)"
                )
            spans[i] = range(int(np.searchsorted(own, last, side="right")), len(own))
        if len(own):
            last = int(own[-1]) if last is None else max(last, int(own[-1]))
    return spans

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec convert` into a record: what MDAnalysis reads."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from mrec.cli.choice import frames, note
from mrec.cli.progress import progress
from mrec.cli.sizes import disk_usage, human
from mrec.display import counted
from mrec.errors import MrecError
from mrec.frame import Frame
from mrec.interop import mdanalysis
from mrec.interop.mdanalysis import COLUMNS, Source
from mrec.record.output import new_record
from mrec.trajectory.schema import Schema


def run(arguments: argparse.Namespace) -> None:
    """Convert, then say what was made."""
    with new_record(arguments.output, arguments.overwrite) as made:
        opened = mdanalysis.opened(arguments.input, arguments.topology, arguments.select, arguments.format)
        with opened as source:
            topology = source.topology()
            taken, plan = write(
                source, made, _origin(arguments), frames(arguments), arguments.precision, arguments.chunk
            )
            _write_system(made, topology)
    for text in plan.notes.values():
        note(text)
    size = human(disk_usage(arguments.output)[0])
    print(f"{arguments.output}: {counted(taken, 'frame')} of {counted(source.n_atoms, 'atom')}, {size}")


def _origin(arguments: argparse.Namespace) -> dict[str, str]:
    origin = {"file": os.path.basename(arguments.input)}
    if arguments.topology:
        origin["topology"] = os.path.basename(arguments.topology)
    if arguments.select:
        origin["selection"] = arguments.select
    return origin


def _write_system(path: str, topology: Frame) -> None:
    import mrec

    with mrec.open(path) as record:
        record.system = topology


# ---- the trajectory ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What the frames of a source turn out to have.

    steps, times: whether its own are taken. kinds: kind of data -> whether only some frames have it. notes: what was
    decided otherwise than expected, for the record and its reader.
    """

    steps: bool
    times: bool
    kinds: Mapping[str, bool]
    notes: Mapping[str, str] = field(default_factory=dict)


class _Replan(Exception):
    """A later frame is unlike those before; the conversion starts again with this plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan


def write(
    source: Source,
    path: str,
    origin: dict[str, str],
    frames: slice,
    precision: float | None = None,
    chunk: str | None = None,
) -> tuple[int, Plan]:
    """Write the frames of a slice to a new record; their number, and the plan that fitted them all.

    A source is read once when all its frames are alike; whatever differs is found on the way and starts it again.
    """
    plan: Plan | None = None
    while True:
        try:
            return _write(source, path, origin, frames, precision, chunk, plan)
        except _Replan as change:
            plan = change.plan
            shutil.rmtree(path)


def _write(
    source: Source,
    path: str,
    origin: dict[str, str],
    frames: slice,
    precision: float | None,
    chunk: str | None,
    plan: Plan | None,
) -> tuple[int, Plan]:
    import mrec

    chosen = range(*frames.indices(source.n_frames))
    reading = source.frames(frames.start, frames.stop, frames.step)
    first = next(reading, None)
    if first is None:
        raise MrecError(f"{origin['file']} has {source.n_frames} frames, and none of them is chosen")
    plan = plan or _first_plan(first)
    meta = {"source": {**origin, "format": source.format, "reader": mdanalysis.version()}}
    if plan.notes:
        meta["notes"] = dict(plan.notes)
    with mrec.TrajectoryWriter(
        path,
        _schema(source, plan, precision),
        units=source.units,
        meta=meta,
        compression="shuffle+zstd",
        chunk=chunk,
    ) as writer:
        last: Frame | None = None
        taken = 0
        for frame in progress(chain([first], reading), len(chosen), "frames"):
            _fit(plan, frame, last)
            step = frame.step if plan.steps else frame.index
            writer.append(
                step, time=frame.time if plan.times else None, blocks={"atoms": _columns(frame, plan)}, box=frame.box
            )
            last = Frame(step=frame.step, box=frame.box, index=frame.index)
            taken += 1
    if taken < len(chosen):  # MDAnalysis takes a frame that is cut short for the end
        raise MrecError(
            f"{origin['file']}: of {len(chosen)} frames only {taken} can be read; "
            f"pass --stop {chosen[taken]} to convert these"
        )
    return taken, plan


def _first_plan(frame: Frame) -> Plan:
    notes = {} if frame.step is not None else {"steps": "the source has no steps; the frames are numbered instead"}
    kinds = dict.fromkeys(_kinds(frame), False)
    return Plan(frame.step is not None, frame.time is not None, kinds, notes)


def _kinds(frame: Frame) -> list[str]:
    return [kind for kind, columns in COLUMNS.items() if columns[0] in frame["atoms"]]


def _fit(plan: Plan, frame: Frame, last: Frame | None) -> None:
    """_Replan when the frame does not fit the plan."""
    before = None if last is None else last.step
    if plan.steps and (frame.step is None or (before is not None and frame.step <= before)):
        found = "no step" if frame.step is None else f"step {frame.step} after {before}"
        note = f"frame {frame.index} of the source has {found}; the frames are numbered instead"
        raise _Replan(replace(plan, steps=False, notes={**plan.notes, "steps": note}))
    if plan.times and frame.time is None:
        note = f"frame {frame.index} of the source has no time; no times are stored"
        raise _Replan(replace(plan, times=False, notes={**plan.notes, "times": note}))
    if last is not None and last.box is not None and frame.box is None:
        raise MrecError(f"frame {frame.index} has no cell and the frames before have one; convert them apart (--stop)")
    kinds = set(_kinds(frame))
    fixed = {kind for kind, some in plan.kinds.items() if not some}
    if not fixed <= kinds <= plan.kinds.keys():
        # a frame may lack what is said to be in some; the first plan knows only the first frame
        some = {kind: kind not in fixed & kinds for kind in COLUMNS if kind in kinds | plan.kinds.keys()}
        note = (
            f"not all frames have {', '.join(kind for kind in some if some[kind])}; they are null where there are none"
        )
        raise _Replan(replace(plan, kinds=some, notes={**plan.notes, "nulls": note}))


def _schema(source: Source, plan: Plan, precision: float | None) -> Schema:
    schema = Schema().block("atoms", rows=source.n_atoms)
    for kind, some in plan.kinds.items():
        for column in COLUMNS[kind]:
            schema.column(column, "f64", precision=precision if kind == "positions" else None, nullable=some)
    return schema


def _columns(frame: Frame, plan: Plan) -> dict[str, np.ndarray]:
    atoms = frame["atoms"]
    names = [column for kind in plan.kinds for column in COLUMNS[kind]]
    return {name: atoms[name] if name in atoms else np.ma.masked_all(atoms.nrows) for name in names}

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec convert`: what MDAnalysis reads, as a record."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from mrec.cli.progress import progress
from mrec.cli.sizes import disk_usage, human
from mrec.errors import MrecError, NotARecord, RecordExists, RecordLocked
from mrec.frame import Frame
from mrec.interop import mdanalysis
from mrec.interop.mdanalysis import COLUMNS, Source
from mrec.trajectory.schema import Schema

_EPILOG = """Coordinates, velocities, forces and cell go to the trajectory, names, masses, bonds ... to system/.
Lengths are in angstrom and times in ps where the format says what its own are. Without --precision every number is kept
bit for bit. Nothing is left at OUT unless the whole conversion succeeds."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "convert", help="convert a trajectory that MDAnalysis reads", description=__doc__, epilog=_EPILOG
    )
    parser.add_argument("input", metavar="IN", help="the trajectory")
    parser.add_argument("output", metavar="OUT.mrec", help="the record to make")
    parser.add_argument("-t", "--topology", help="a file that names the atoms (default: IN)")
    parser.add_argument("--format", help="MDAnalysis's name of IN's format, when its file name does not tell it")
    parser.add_argument(
        "--precision", type=float, metavar="P", help="store coordinates to within P/2, in their own unit"
    )
    parser.add_argument("--start", type=int, metavar="FRAME", help="first frame, counted from 0")
    parser.add_argument("--stop", type=int, metavar="FRAME", help="first frame not taken")
    parser.add_argument("--stride", type=_positive, metavar="N", help="take every N-th frame")
    parser.add_argument("--select", metavar="SELECTION", help="take these atoms only (MDAnalysis's selection language)")
    parser.add_argument("--overwrite", action="store_true", help="replace a record that is there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Convert, then say what was made."""
    output = os.path.normpath(arguments.output)
    _check_output(output, arguments.overwrite)
    frames = slice(arguments.start, arguments.stop, arguments.stride)
    with mdanalysis.opened(arguments.input, arguments.topology, arguments.select, arguments.format) as source:
        origin = {"file": os.path.basename(arguments.input)}
        if arguments.topology:
            origin["topology"] = os.path.basename(arguments.topology)
        if arguments.select:
            origin["selection"] = arguments.select
        with tempfile.TemporaryDirectory(dir=os.path.dirname(output) or ".", prefix=".mrec-convert-") as private:
            made = os.path.join(private, os.path.basename(output))
            topology = source.topology()
            taken, plan = write(source, made, origin, frames, arguments.precision)
            _write_system(made, topology)
            _place(made, output, private)
    for note in plan.notes.values():
        print(f"mrec: note: {note}", file=sys.stderr)
    print(f"{arguments.output}: {taken} frames of {source.n_atoms} atoms, {human(disk_usage(output)[0])}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a stride is at least 1")
    return number


# ---- the output --------------------------------------------------------------------------------------------------


def _check_output(output: str, overwrite: bool) -> None:
    if not output.endswith(".mrec"):
        raise MrecError(f"{output}: the name of a record ends in .mrec")
    if not os.path.isdir(os.path.dirname(output) or "."):
        raise FileNotFoundError(2, "there is no such directory", os.path.dirname(output))
    if not os.path.lexists(output):
        return
    if not overwrite:
        raise RecordExists(f"{output} is there already; pass --overwrite to replace it")
    if not os.path.isfile(os.path.join(output, "zarr.json")):
        raise NotARecord(f"{output} is there and is no record; --overwrite replaces records only")


def _place(made: str, output: str, private: str) -> None:
    """Give the finished record its name. One that is there moves into the private directory, and goes with it."""
    if not os.path.lexists(output):
        os.rename(made, output)
    else:
        directory = os.open(output, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as a writer holds it
            old = os.path.join(private, "replaced")
            os.rename(output, old)
            try:
                os.rename(made, output)
            except OSError:
                os.rename(old, output)
                raise
        except BlockingIOError:
            raise RecordLocked(f"{output} is being written; it stays as it is") from None
        finally:
            os.close(directory)
    parent = os.open(os.path.dirname(output) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


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
    source: Source, path: str, origin: dict[str, str], frames: slice, precision: float | None
) -> tuple[int, Plan]:
    """Write the frames of a slice to a new record; their number, and the plan that fitted them all.

    A source is read once when all its frames are alike; whatever differs is found on the way and starts it again.
    """
    plan: Plan | None = None
    while True:
        try:
            return _write(source, path, origin, frames, precision, plan)
        except _Replan as change:
            plan = change.plan
            shutil.rmtree(path)


def _write(
    source: Source, path: str, origin: dict[str, str], frames: slice, precision: float | None, plan: Plan | None
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
        path, _schema(source, plan, precision), units=source.units, meta=meta, compression="shuffle+zstd"
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

# SPDX-License-Identifier: BSD-3-Clause
"""What has to hold for every repair, and records to damage."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import mrec
from mrec.repair import Report

Frames = list[mrec.Frame]
#: Of a name, a copy of the sample to damage, and its frames.
Sample = Callable[[str], tuple[Path, Frames]]


def frames(path: Path) -> Frames:
    with mrec.open(path) as record:
        return list(record.trajectory) if "trajectory" in record else []


def contents(path: Path) -> dict[str, tuple[bytes, int]]:
    """Bytes and modification time of every file at or below a path."""
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def repair(path: Path, original: Frames, **options: Any) -> tuple[Report, Frames]:
    """A repaired copy `sound.mrec` beside a record, checked: its report and its frames.

    The record is as before; each frame that is not reported lost is there, bit for bit; the copy verifies, and
    zarr-python reads all of it.
    """
    before, out = contents(path), path.parent / "sound.mrec"
    report = mrec.repair(path, out, **options)
    assert contents(path) == before
    assert sorted(entry.name for entry in out.parent.iterdir()) == sorted({path.name, out.name})
    kept = check_frames(report, original, frames(out))
    found = mrec.verify(out)
    assert found.findings == report.remaining
    assert found.frames == report.kept
    read_by_zarr(out)
    return report, kept


def check_frames(report: Report, original: Frames, found: Frames) -> Frames:
    """The frames of a copy are those of the original that are not reported lost, without what was left out."""
    lost = {frame for first, last in report.lost_frames for frame in range(first, last + 1)}
    assert report.kept == report.frames - len(lost) == len(found)
    wanted = [without(frame, report) for i, frame in enumerate(original[: report.frames]) if i not in lost]
    assert found == wanted
    return found


def without(frame: mrec.Frame, report: Report) -> mrec.Frame:
    """A frame without the parts that a report says are left out."""
    if not any(loss.left_out for loss in report.losses):
        return frame
    frame = copy.deepcopy(frame)
    for loss in report.losses:
        section, _, name = loss.part.partition("/")
        if not loss.left_out:
            continue
        if loss.part in ("time", "box"):
            setattr(frame, loss.part, None)
        elif section == "meta":
            del frame.values[name]
        elif not name:
            frame.blocks.pop(section, None)
        elif section in frame.blocks:
            del frame.blocks[section][name]
            if not len(frame.blocks[section]):
                del frame.blocks[section]
    return frame


def read_by_zarr(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _, node in zarr.open_group(path, mode="r").members(max_depth=None):
            if isinstance(node, zarr.Array):
                assert np.asarray(node[...]).shape == node.shape


def losses(report: Report) -> list[str]:
    """What was lost, without why."""
    return [": ".join(str(loss).split(": ")[:2]) for loss in report.losses] + sorted(report.beside)


# ---- records -----------------------------------------------------------------------------------------------------

LONG = 2600


def long(path: Path) -> None:
    """Many small frames, so that what there is one of a frame stands in three chunks of 1024.

    Steps, times and cell change irregularly. every: a ragged block that changes with each frame; seldom: one that
    changes with every second from frame 1 on; held: one that was given once.
    """
    schema = mrec.Schema().block("every").column("a", "i64").block("seldom").column("b", "i64")
    schema.block("held").column("c", "i64").value("pe", "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for i in range(LONG):
            blocks = {"every": {"a": np.arange(i % 3) + i}}
            if i % 2:
                blocks["seldom"] = {"b": np.arange(2) + i}
            if i == 3:
                blocks["held"] = {"c": np.arange(2)}
            cell = [9.0, 9.0, 9.0 + i // 2]
            writer.append(10 * i + i % 2, time=i + (i % 2) / 3, blocks=blocks, box=cell, pe=-1.5 * i)

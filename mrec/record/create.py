# SPDX-License-Identifier: BSD-3-Clause
"""Making a record of sections."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from mrec._core import Lock
from mrec.errors import InvalidValue, NotARecord, RecordExists
from mrec.record import publish
from mrec.record.observables import write_observables
from mrec.record.output import new_record
from mrec.record.record import KINDS, Record, check_version
from mrec.record.write import write_frame_sections
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import new_record_path
from mrec.zarr.json import checked
from mrec.zarr.metadata import GroupMeta
from mrec.zarr.write import sync_directories, sync_directory


def create(
    path: str | os.PathLike[str],
    *,
    frame: Any = None,
    system: Any = None,
    forcefield: Any = None,
    trajectory: Schema | None = None,
    observables: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
    status: Mapping[str, Any] | None = None,
    method: Mapping[str, Any] | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Record:
    """Make the record `path` (`<stem>.mrec`) of what is given, and open it.

    frame, system, forcefield: a Frame, or a mapping of block names to columns. trajectory: the schema of a trajectory
    without frames, which `TrajectoryWriter.open(path)` then appends to; `options` are those of its layout
    (`compression`, `chunk`, `frames_per_chunk`, `chunks_per_shard`). observables: name -> Observable. meta, status,
    method: documents; units goes to `meta["units"]`. At least one of frame, system, trajectory, forcefield and status
    is needed.

    The record appears whole or not at all. RecordExists when something is there, unless `overwrite`.

    >>> with create("snapshot.mrec", frame={"atoms": {"x": [0.0, 1.0]}}, units={"length": "nm"}) as record:
    ...     record.frame["atoms"]["x"], record.units
    (array([0., 1.]), {'length': 'nm'})
    """
    root = new_record_path(path)
    frames = {"frame": frame, "system": system, "forcefield": forcefield}
    documents = {"status": status, "method": method}
    if all(given is None for given in (*frames.values(), trajectory, status)):
        raise InvalidValue(f"a record holds one of {', '.join(KINDS)}; give one of them")
    if options and trajectory is None:
        raise InvalidValue(f"{', '.join(options)}: only a trajectory has such options")
    identity = checked(_with_units(meta, units), "meta")
    check_version(identity, root)
    with new_record(root, overwrite) as made:
        os.mkdir(made)
        publish.write_file(os.path.join(made, "zarr.json"), GroupMeta().document().encode())
        publish.document(made, "meta", identity)
        write_frame_sections(made, {name: given for name, given in frames.items() if given is not None})
        for name, document in documents.items():
            if document is not None:
                publish.document(made, name, checked(document, name))
        if trajectory is not None:
            add_trajectory(made, trajectory, **options)
        if observables:
            write_observables(made, observables)
        sync_directories(made)
    return Record(root)


def _with_units(meta: Mapping[str, Any] | None, units: Mapping[str, str] | None) -> dict[str, Any]:
    document = {} if meta is None else checked(meta, "meta")
    if units is None:
        return document
    if "units" in document:
        raise InvalidValue("units are given twice: as units= and in meta")
    if not isinstance(units, Mapping) or not all(isinstance(v, str) for pair in units.items() for v in pair):
        raise InvalidValue(f'units is a mapping of names, as {{"length": "angstrom"}}, not {units!r}')
    return {**document, "units": dict(units)}


def add_trajectory(root: str, schema: Schema, **options: Any) -> None:
    """Give a record without a trajectory one of no frames, by one rename. RecordExists when there is one."""
    from mrec.trajectory.writer import TrajectoryWriter, lock_errors

    if not os.path.isfile(os.path.join(root, "zarr.json")):
        raise NotARecord(f"{root} is no record that is written to")
    target, made = os.path.join(root, "trajectory"), os.path.join(root, ".trajectory.tmp")
    with lock_errors(root):
        lock = Lock(root)
    try:
        if os.path.lexists(target):
            raise RecordExists(f"{root} has a trajectory; append to it with TrajectoryWriter.open")
        publish.clear(root, trajectory=True)
        TrajectoryWriter(made, schema, **options).close()
        os.rename(os.path.join(made, "trajectory"), target)
        sync_directory(root)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        lock.release()

# SPDX-License-Identifier: BSD-3-Clause
"""Tells mdtraj of records.

Its registry has loaders by the last ending of a file name; where topologies come from, that a trajectory is a file, and
what writes one, stands in its code. Those functions, and `iterload`, are replaced by ones that know records and hand on
what is none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from mrec.interop.coordinates import names_record
from mrec.interop.mdtraj.file import MrecTrajectoryFile, load_mrec, parsed
from mrec.interop.mdtraj.topology import load_topology
from mrec.interop.mdtraj.writer import save_mrec


def install(library: Any) -> None:
    """Do it."""
    core = library.core.trajectory
    for ending in (".mrec", ".zip"):
        library.FormatRegistry.register_loader(ending)(_checked(load_mrec))
        library.FormatRegistry.register_fileobject(ending)(_checked(MrecTrajectoryFile))
    core._parse_topology = _knowing_topologies(core._parse_topology)
    core._assert_files_exist = _knowing_directories(core._assert_files_exist)
    core.iterload = library.iterload = _knowing_chunks(core.iterload)
    core.Trajectory._savers = _knowing_records(core.Trajectory._savers)


def _checked(load: Callable[..., Any]) -> Callable[..., Any]:
    """Refuses other zip files."""

    @functools.wraps(load, updated=())
    def loaded(filename: Any, *arguments: Any, **options: Any) -> Any:
        if not names_record(filename):
            raise OSError(f"{filename} is no record: those are called .mrec or .mrec.zip")
        return load(filename, *arguments, **options)

    return loaded


def _knowing_topologies(parse: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(parse)
    def parsed(top: Any, **options: Any) -> Any:
        return load_topology(top) if names_record(top) else parse(top, **options)

    return parsed


def _knowing_directories(check: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(check)
    def checked(names: Any) -> None:
        listed = [names] if isinstance(names, str) or not hasattr(names, "__iter__") else list(names)
        check([name for name in listed if not names_record(name)])  # opening a record says itself what is wrong

    return checked


def _knowing_records(savers: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    @functools.wraps(savers)
    def saved(trajectory: Any) -> dict[str, Any]:
        return {**savers(trajectory), ".mrec": functools.partial(save_mrec, trajectory)}

    return saved


def _knowing_chunks(iterload: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @functools.wraps(iterload)
    def loaded(filename: Any, chunk: int = 100, **options: Any) -> Iterator[Any]:
        if names_record(filename):
            return _chunks(filename, chunk, **options)
        return iterload(filename, chunk, **options)

    return loaded


def _chunks(
    filename: Any, chunk: int, top: Any = None, stride: int | None = None, atom_indices: Any = None, skip: int = 0
) -> Iterator[Any]:
    file = MrecTrajectoryFile(filename)
    topology = file.topology if top is None else parsed(top)
    file.seek(skip)
    while file.tell() < len(file):
        yield file.read_as_traj(topology, chunk or None, stride, atom_indices)

# SPDX-License-Identifier: BSD-3-Clause
"""One record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from types import TracebackType
from typing import Any

from mrec.errors import (
    ClosedError,
    CorruptData,
    InvalidValue,
    NotARecord,
    RecordNotFound,
    UnknownName,
    UnsupportedVersion,
)
from mrec.frame import Frame
from mrec.record import sections
from mrec.trajectory.options import size_option
from mrec.trajectory.reader import Trajectory
from mrec.zarr.group import Group
from mrec.zarr.metadata import parse_group
from mrec.zarr.store import Reading, Store, open_store

#: A record holds at least one of these.
KINDS = ("frame", "system", "trajectory", "forcefield", "status")
VERSIONS = (1, 2)


def open(path: str | os.PathLike[str], *, cache: int | str = "64MiB", verify: bool = True) -> Record:
    """Open the record at `path` (a directory `<stem>.mrec`, or a packed one, `<stem>.mrec.zip`) for reading.

    cache: how much of what was decoded is kept for the next read, in bytes or as a size. verify=False gives up finding
    damage: the checksums of chunks are not looked at, so that a damaged one may read as wrong values without a word,
    and of columns that are not compressed only the bytes that are asked for are read. Documents and indexes are checked
    all the same.

    Raises RecordNotFound, NotARecord, or UnsupportedVersion; for a zip file that contradicts itself CorruptData.

    >>> with mrec.open("water.mrec") as rec:
    ...     print(len(rec.trajectory), rec.trajectory[-1]["atoms"]["x"])
    10 [ 9. 10. 11.]
    """
    return Record(path, cache=cache, verify=verify)


class Record:
    """A record: `trajectory`, `system`, `frame`, and the document `meta`.

    Opening takes no lock and leaves no file; a record that is being written opens too. Thread-safe; pickles by path.
    """

    def __init__(self, path: str | os.PathLike[str], *, cache: int | str = "64MiB", verify: bool = True) -> None:
        self._reading = Reading(size_option("cache", cache), verify)
        self.path = os.path.abspath(os.fsdecode(path))
        self._closed = False
        if not os.path.exists(self.path):
            raise RecordNotFound(f"{self.path}: there is no record")
        self._store = _open_store(self.path, self._reading)
        self._check()
        self._meta = self._document("meta")
        check_version(self._meta, self.path)

    def _check(self) -> None:
        raw = self._store.get("zarr.json")
        if raw is None:
            raise NotARecord(f"{self.path} holds no zarr.json: it is no record")
        parse_group(raw, self._store.path("zarr.json"))
        if not any(self._store.exists(kind) for kind in KINDS):
            raise NotARecord(f"{self.path} holds none of {', '.join(KINDS)}: it is no record")

    def _document(self, section: str) -> dict[str, Any]:
        raw = self._store.get(f"{section}/zarr.json")
        return {} if raw is None else parse_group(raw, self._store.path(f"{section}/zarr.json")).attributes

    @property
    def meta(self) -> dict[str, Any]:
        """The document of the record, as it was stored."""
        self._use()
        return self._meta

    @property
    def units(self) -> dict[str, Any]:
        """What the numbers are in: {"length": "angstrom", ...}; empty when the record does not say."""
        units = self.meta.get("units")
        return units if isinstance(units, dict) else {}

    @property
    def sections(self) -> tuple[str, ...]:
        """The names of the groups at the root, sorted; `trajectory` is one of them when there are frames over time."""
        self._use()
        return tuple(Group(self._store))

    def __contains__(self, section: object) -> bool:
        return section in self.sections

    @property
    def trajectory(self) -> Trajectory:
        """The frames over time. UnknownName when the record has none."""
        self._use()
        return self._trajectory

    @cached_property
    def _trajectory(self) -> Trajectory:
        if not self._store.exists("trajectory"):
            raise UnknownName(f"{self.path} has no trajectory; there are: {', '.join(self.sections) or 'no sections'}")
        return Trajectory(self.path, self._store)

    @property
    def system(self) -> Frame | None:
        """What the particles are: a frame-shaped section, read now. None when there is none.

        Assigning a frame writes the section, whole or not at all, also while a trajectory is being written beside it.
        """
        return self._section("system")

    @system.setter
    def system(self, frame: Any) -> None:
        self.write("system", frame)

    @property
    def frame(self) -> Frame | None:
        """One snapshot, read now; None when there is none. Assigning a frame writes it, as for `system`."""
        return self._section("frame")

    @frame.setter
    def frame(self, frame: Any) -> None:
        self.write("frame", frame)

    def write(
        self, section: str, frame: Any, *, meta: Mapping[str, Any] | None = None, types: Mapping[str, str] | None = None
    ) -> None:
        """Write the section "system" or "frame" from a frame; see `mrec.record.sections.write_frame_section`."""
        self._use()
        if not os.path.isdir(self.path):
            raise InvalidValue(f"{self.path} is packed, and nothing is written to a packed record; unpack it first")
        sections.write_frame_section(self.path, section, frame, meta=meta, types=types)

    def _section(self, name: str) -> Frame | None:
        self._use()
        if name not in Group(self._store):
            return None
        return sections.read_frame_section(self._store, name)

    # ---- life ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of open files and memory; the record can not be used afterwards. Closing twice is no error."""
        self._closed = True
        for held in ("_trajectory", "_store"):
            self.__dict__.pop(held, None)

    def _use(self) -> None:
        if self._closed:
            raise ClosedError(f"{self.path} was closed")

    def __enter__(self) -> Record:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.path, self._reading.cache, self._reading.verify)

    def __repr__(self) -> str:
        if self._closed:
            return f"<Record {self.path}: closed>"
        return f"<Record {self.path}: {', '.join(self.sections)}>"

    def _repr_html_(self) -> str | None:
        from mrec.display import record_html

        return None if self._closed else record_html(self)


def _reopen(path: str, cache: int, verify: bool) -> Record:
    return Record(path, cache=cache, verify=verify)


def _open_store(path: str, reading: Reading) -> Store:
    try:
        return open_store(path, reading)
    except CorruptData as e:
        if path.endswith(".zip"):
            raise
        raise NotARecord(f"{path} is a file, neither the directory of a record nor a packed one") from e


def check_version(meta: dict[str, Any], path: str) -> None:
    """UnsupportedVersion when the document `meta` of the record at `path` says so."""
    if "molrec_version" not in meta:
        return
    version = meta["molrec_version"]
    if isinstance(version, bool) or not isinstance(version, int) or version not in VERSIONS:
        raise UnsupportedVersion(f"{path}: molrec_version is {version!r}; mrec reads 1 and 2")

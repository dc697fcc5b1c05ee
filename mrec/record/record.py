# SPDX-License-Identifier: BSD-3-Clause
"""One record."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from functools import cached_property
from types import TracebackType
from typing import Any, TypeVar

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
from mrec.names import is_made
from mrec.record import publish, sections
from mrec.record.metrics import Metrics, read_metrics
from mrec.record.observables import Observables
from mrec.record.references import agreeing, check_referred
from mrec.record.settled import mark_of, settled
from mrec.trajectory.options import flag_option, size_option
from mrec.trajectory.reader import Trajectory
from mrec.zarr.group import Group
from mrec.zarr.json import checked
from mrec.zarr.metadata import parse_group
from mrec.zarr.store import FilesystemStore, Reading, Store, is_url, local_path, open_store

T = TypeVar("T")

#: A record holds at least one of these.
KINDS = ("frame", "system", "trajectory", "forcefield", "status")
#: What else a place may be, by a name in it, and what reads that.
_OTHERS = {
    "data.atlas": "a collection: mrec.open_collection reads it",
    "output_manifest.json": "a stream: mrec.stream reads it",
    "zarr.json": "plain Zarr: mrec.zarr.open reads it",
}
VERSIONS = (1, 2)
#: What is written by assigning it.
WRITTEN = ("frame", "system", "forcefield", "meta", "status", "method")


def open(path: str | os.PathLike[str] | Store, *, cache: int | str = "64MiB", verify: bool = True) -> Record:
    """Open the record at `path` (a directory `<stem>.mrec`, or a packed one, `<stem>.mrec.zip`) for reading.

    path: also a URL, "s3://...", "gs://...", "https://..." (`pip install mrec[remote]`), read by byte ranges; or a
    store of `mrec.zarr`.

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
    """A record: `trajectory`, `frame`, `system`, `forcefield`, `observables`, `metrics`, and documents: `meta`,
    `status`, `method`.

    Opening takes no lock and leaves no file; a record that is being written opens too. Thread-safe; pickles by path.
    """

    def __init__(
        self, path: str | os.PathLike[str] | Store, *, cache: int | str = "64MiB", verify: bool = True
    ) -> None:
        self._reading = Reading(size_option("cache", cache), flag_option("verify", verify))
        self._closed = False
        self._store = _open_store(path, self._reading)
        self.path = self._store.root
        self._check()
        self._meta = _attributes(self._store, "meta") or {}
        check_version(self._meta, self.path)

    def _check(self) -> None:
        raw = self._store.get("zarr.json")
        if raw is None:
            raise not_a_record(self._store, self.path)
        parse_group(raw, self._store.path("zarr.json"))
        if not any(self._store.exists(kind) for kind in KINDS):
            raise not_a_record(self._store, self.path)

    @property
    def meta(self) -> dict[str, Any]:
        """The document of the record, as it was stored when the record was opened. Assigning a document replaces it."""
        self._use()
        return deepcopy(self._meta)

    @meta.setter
    def meta(self, document: Mapping[str, Any]) -> None:
        stored = checked(document, "meta")
        check_version(stored, self.path)
        publish.document(self._root(), "meta", stored)
        self._meta = stored

    @property
    def units(self) -> dict[str, Any]:
        """What the numbers are in: {"length": "angstrom", ...}; empty when the record does not say."""
        units = self.meta.get("units")
        return units if isinstance(units, dict) else {}

    @property
    def sections(self) -> tuple[str, ...]:
        """The names of the groups at the root, sorted; `trajectory` is one of them when there are frames over time."""
        self._use()
        return tuple(name for name in Group(self._store) if not is_made(name))

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

    # ---- sections ------------------------------------------------------------------------------------------------

    @property
    def frame(self) -> Frame | None:
        """One snapshot, read now; None when there is none.

        Assigning a frame writes the section, whole or not at all, also while a trajectory is being written beside it;
        `del record.frame` takes it out. So it is with `system` and `forcefield`.
        """
        return self._frame_section("frame")

    @frame.setter
    def frame(self, frame: Any) -> None:
        self.write("frame", frame)

    @frame.deleter
    def frame(self) -> None:
        self.remove("frame")

    @property
    def system(self) -> Frame | None:
        """What the particles are: topology and types, without coordinates. None when there is none."""
        return self._frame_section("system")

    @system.setter
    def system(self, frame: Any) -> None:
        self.write("system", frame)

    @system.deleter
    def system(self) -> None:
        self.remove("system")

    @property
    def forcefield(self) -> Frame | None:
        """Tables of parameters, kept and not interpreted; its `meta` is plain JSON. None when there is none."""
        return self._frame_section("forcefield")

    @forcefield.setter
    def forcefield(self, frame: Any) -> None:
        self.write("forcefield", frame)

    @forcefield.deleter
    def forcefield(self) -> None:
        self.remove("forcefield")

    def write(
        self, section: str, frame: Any, *, meta: Mapping[str, Any] | None = None, types: Mapping[str, str] | None = None
    ) -> None:
        """Write "frame", "system" or "forcefield" from a frame; see `mrec.record.sections.write_frame_section`."""
        sections.write_frame_section(self._root(), section, frame, meta=meta, types=types)

    @property
    def status(self) -> dict[str, Any] | None:
        """The document of a run's life cycle; its `state` says where it stands. None when there is none.

        Assigning a document (a dict that JSON can hold) replaces it, whole or not at all. So it is with `meta` and
        `method`. What is changed in a dict that was read is not written before it is assigned.
        """
        return self._read_document("status")

    @status.setter
    def status(self, document: Mapping[str, Any]) -> None:
        self._write_document("status", document)

    @status.deleter
    def status(self) -> None:
        self.remove("status")

    @property
    def method(self) -> dict[str, Any] | None:
        """The document that says how it was run: `type`, `description`, `engine` with a `name`. None: there is none."""
        return self._read_document("method")

    @method.setter
    def method(self, document: Mapping[str, Any]) -> None:
        self._write_document("method", document)

    @method.deleter
    def method(self) -> None:
        self.remove("method")

    @property
    def observables(self) -> Observables:
        """Named results, as a dict of `Observable`; assigning one writes it."""
        self._use()
        return Observables(self.path, self._look, self._root)

    @property
    def metrics(self) -> Metrics:
        """The curves of a run by name, as they stand now: a mapping of `Series`. (`MetricsLog` writes them.)"""
        found: Metrics = self._look("metrics", read_metrics)
        return found

    def remove(self, section: str) -> None:
        """Take a section out of the record. UnknownName when it is not there; InvalidValue for one that has to stay."""
        root = self._root()
        if section not in self.sections:
            raise UnknownName(f"{self.path} has no {section!r}; there are: {', '.join(self.sections) or 'no sections'}")
        if section in ("meta", "trajectory"):
            raise InvalidValue(
                f"{section} stays in its record; delete the record, or copy it without: copy_to(without=)"
            )
        if not set(self.sections) & set(KINDS) - {section}:
            raise InvalidValue(
                f"{section} is all that makes {self.path} a record (one of {', '.join(KINDS)}); it stays"
            )
        with agreeing(root, section):
            check_referred(self._store.again(), section, {})
            with publish.held_log(root) if section == "metrics" else nullcontext():
                publish.remove(root, section)

    def copy_to(
        self, path: str | os.PathLike[str], *, without: str | Iterable[str] = (), overwrite: bool = False
    ) -> Record:
        """Copy the record to `path`, byte for byte with all that other programs keep in it, and open the copy.

        path: `<stem>.mrec` for a directory, `<stem>.mrec.zip` for a packed one; it appears whole or not at all.
        without: groups at the root to leave out, with those that refer to their rows. A record that its writer did not
        close is copied as it reads.
        RecordLocked while a writer has this one; RecordExists when there is a record at `path`, unless `overwrite`.
        """
        self._use()
        from mrec.record.copying import copy_record

        copy_record(self, path, {without} if isinstance(without, str) else set(without), overwrite)
        return Record(path, cache=self._reading.cache, verify=self._reading.verify)

    # ---- reading and writing them --------------------------------------------------------------------------------

    def _root(self) -> str:
        """The directory that sections are written to."""
        self._use()
        if not isinstance(self._store, FilesystemStore):
            raise InvalidValue(f"{self.path} is packed, and nothing is written to a packed record; unpack it first")
        return self.path

    def _frame_section(self, name: str) -> Frame | None:
        return self._look(name, lambda store: sections.read_frame_section(store, name) if _there(store, name) else None)

    def _read_document(self, section: str) -> dict[str, Any] | None:
        return self._look(section, lambda store: _attributes(store, section))

    def _write_document(self, section: str, document: Mapping[str, Any]) -> None:
        publish.document(self._root(), section, checked(document, section))

    def _look(self, section: str, read: Callable[[Store], T]) -> T:
        """What `read` makes of a section as it stands; again when it was replaced meanwhile."""
        self._use()
        if not isinstance(self._store, FilesystemStore):
            return read(self._store.again())
        where = self._store.path(section)
        return settled(lambda: mark_of(where), lambda: read(self._store.again()), f"{self.path}: {section}")

    # ---- life ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of open files and memory; the record can not be used afterwards. Closing twice is no error."""
        self._closed = True
        for held in ("_trajectory", "_store"):
            self.__dict__.pop(held, None)

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name.startswith("_") or name == "path" or hasattr(type(self), name)):
            close = difflib.get_close_matches(name, WRITTEN, 1)
            hint = f"is it {close[0]!r}?" if close else f"what is written so: {', '.join(WRITTEN)}"
            raise AttributeError(f"a record has no {name!r} to assign; {hint}", name=name, obj=self)
        super().__setattr__(name, value)

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


def _there(store: Store, section: str) -> bool:
    return store.exists(f"{section}/zarr.json")


def _attributes(store: Store, section: str) -> dict[str, Any] | None:
    """The document of a section; None when there is none."""
    raw = store.get(f"{section}/zarr.json")
    return None if raw is None else parse_group(raw, store.path(f"{section}/zarr.json")).attributes


def _open_store(path: str | os.PathLike[str] | Store, reading: Reading) -> Store:
    if not isinstance(path, Store) and not is_url(path):
        path = local_path(path)
        if not os.path.exists(path):
            raise RecordNotFound(f"{path}: there is no record")
    try:
        return open_store(path, reading)
    except FileNotFoundError as e:
        raise RecordNotFound(f"{path}: there is no record") from e
    except CorruptData as e:
        if str(path).endswith(".zip"):
            raise
        raise not_packed(path) from e


def not_a_record(store: Store, name: str) -> NotARecord:
    """The error for a store that holds no record; it says what it holds instead, where that is known."""
    lacks = f"none of {', '.join(KINDS)}" if store.exists("zarr.json") else "no zarr.json"
    other = next((f", but {what}" for key, what in _OTHERS.items() if store.exists(key)), "")
    return NotARecord(f"{name} holds {lacks}: it is no record{other}")


def not_packed(name: object) -> NotARecord:
    """The error for a file that is no zip file."""
    return NotARecord(
        f"{name} is a file, neither the directory of a record nor a packed one; `mrec convert` makes records of the "
        "trajectories of other programs"
    )


def check_version(meta: dict[str, Any], path: str) -> None:
    """UnsupportedVersion when the document `meta` of the record at `path` says so."""
    if "molrec_version" not in meta:
        return
    version = meta["molrec_version"]
    if isinstance(version, bool) or not isinstance(version, int) or version not in VERSIONS:
        raise UnsupportedVersion(f"{path}: molrec_version is {version!r}; mrec reads 1 and 2")

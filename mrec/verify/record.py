# SPDX-License-Identifier: BSD-3-Clause
"""One record, all of it."""

from __future__ import annotations

import os

from mrec.errors import CorruptData, MrecError, NotARecord, RecordNotFound
from mrec.verify.files import Files, Store
from mrec.verify.report import Finding, Log, Progress, Report
from mrec.verify.sections import Sections
from mrec.verify.state import Token, read_token
from mrec.verify.trajectory import check_trajectory
from mrec.zarr.store import Store as AnyStore
from mrec.zarr.store import open_store

#: A record holds at least one of these.
_KINDS = ("frame", "system", "trajectory", "forcefield", "status")
#: How often a record that is being written is gone through before what is found is believed.
_PASSES = 5


def check_record(path: str | os.PathLike[str] | Store, progress: Progress | None) -> Report:
    """See `mrec.verify`."""
    name = os.fspath(path if isinstance(path, (str, os.PathLike)) else getattr(path, "root", repr(path)))
    try:
        files = Files(_open(name) if isinstance(path, (str, os.PathLike)) else path)
    except NotARecord:
        raise
    except MrecError as e:
        return Report(name, [Finding("zip", str(e))])
    _check_kind(files, name)
    for _ in range(_PASSES):
        token = read_token(files)
        report = Report(name)
        _check(Log(report, progress), files, token)
        if report.ok or read_token(files) == token:
            break
    return report


def _open(path: str) -> AnyStore:
    """The store of a record."""
    if not os.path.exists(path):
        raise RecordNotFound(f"{path}: there is no record")
    try:
        return open_store(path)
    except CorruptData as e:
        if path.endswith(".zip"):
            raise
        raise NotARecord(f"{path} is a file, neither the directory of a record nor a packed one") from e


def _check_kind(files: Files, name: str) -> None:
    if files.get("zarr.json") is None:
        raise NotARecord(f"{name} holds no zarr.json: it is no record")
    if not any(kind in files.names() for kind in _KINDS):
        raise NotARecord(f"{name} holds none of {', '.join(_KINDS)}: it is no record")


def _check(log: Log, files: Files, token: Token) -> None:
    for entry in files.damaged_entries():
        log.add("zip-crc", entry, "the CRC-32 of the entry does not match")
    Sections(log, files).check()
    if "trajectory" in files.names():
        check_trajectory(log, files, token)

# SPDX-License-Identifier: BSD-3-Clause
"""A second opinion on a record: every checksum and every rule of the format, by another way than that of the reader.

Shared with the reader are the kernels (checksums, codecs), strict JSON, the documents of Zarr and of the declaration;
the way through index, shards, updates and frames is this package's own.
"""

from __future__ import annotations

import os
from typing import Any

from mrec.errors import NotARecord, RecordNotFound
from mrec.verify.files import Store
from mrec.verify.report import Finding, Log, Progress, Report
from mrec.verify.sections import Sections
from mrec.verify.state import read_token
from mrec.verify.trajectory import check_trajectory
from mrec.zarr.store import FilesystemStore

__all__ = ["Finding", "Report", "verify"]

#: A record holds at least one of these.
_KINDS = ("frame", "system", "trajectory", "forcefield", "status")
#: How often a record that is being written is gone through before what is found is believed.
_PASSES = 5


def verify(path: str | os.PathLike[str] | Store, progress: Progress | None = None) -> Report:
    """Check every checksum and every rule of the record at `path`; what is wrong is in the report's findings.

    path: the directory of a record (closed, crashed, or being written; by any program), or a store. progress: called
    after each chunk with the chunks checked and their number. Nothing is locked or written. Raises RecordNotFound,
    NotARecord.

    >>> report = mrec.verify("water.mrec")
    >>> report.ok, report.frames, report.findings
    (True, 10, [])
    """
    store, name = _store(path)
    for _ in range(_PASSES):
        token = read_token(store)
        report = Report(name)
        log = Log(report, progress)
        Sections(log, store).check()
        if "trajectory" in store.names():
            check_trajectory(log, store, token)
        if report.ok or read_token(store) == token:
            break
    return report


def _store(path: Any) -> tuple[Store, str]:
    """The store of a record, and what it is called."""
    store: Any = path
    if isinstance(path, (str, os.PathLike)):
        if not os.path.exists(path):
            raise RecordNotFound(f"{os.fspath(path)}: there is no record")
        store = FilesystemStore(path)
    name = os.fspath(getattr(store, "root", None) or repr(store))
    if store.get("zarr.json") is None:
        raise NotARecord(f"{name} holds no zarr.json: it is no record")
    if not any(kind in store.names() for kind in _KINDS):
        raise NotARecord(f"{name} holds none of {', '.join(_KINDS)}: it is no record")
    return store, name

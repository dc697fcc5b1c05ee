# SPDX-License-Identifier: BSD-3-Clause
"""A second opinion on a record: every checksum and every rule of the format, by another way than that of the reader.

Shared with the reader are the kernels (checksums, codecs), strict JSON, the documents of Zarr and of the declaration;
the way through index, shards, updates and frames is this package's own.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mrec.verify.report import Finding, Progress, Report

if TYPE_CHECKING:
    from mrec.verify.files import Store

__all__ = ["Finding", "Report", "verify"]


def verify(path: str | os.PathLike[str] | Store, progress: Progress | None = None) -> Report:
    """Check every checksum and every rule of the record at `path`; what is wrong is in the report's findings.

    path: a stream, the directory of a record (closed, crashed, or being written; of any program), packed, or a store.
    progress: called after each chunk with the chunks checked and their number. Nothing is locked or written. Raises
    RecordNotFound, NotARecord.

    >>> report = mrec.verify("water.mrec")
    >>> report.ok, report.frames, report.findings
    (True, 10, [])
    """
    if isinstance(path, (str, os.PathLike)) and os.path.isfile(os.path.join(path, "output_manifest.json")):
        from mrec.verify.stream import check_stream

        return check_stream(path, progress)
    from mrec.verify.record import check_record  # slow to import, and most programs verify nothing

    return check_record(path, progress)

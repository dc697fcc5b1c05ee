# SPDX-License-Identifier: BSD-3-Clause
"""The records, written once by mrec; and a word on the peers that this interpreter must do without."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.interop.model import Record
from tests.interop.records import RECORDS

# molrs has wheels for Python 3.12 and later. A peer that can be installed must be there: nothing here is skipped.
WITHOUT_MOLRS = sys.version_info < (3, 12)
PEERS = ["zarr", "zarrs", "tensorstore", "h5py", "mdtraj", "MDAnalysis"] + ["molcrafts-molrs"] * (not WITHOUT_MOLRS)
collect_ignore = ["molrs_side.py", "test_molrs.py"] if WITHOUT_MOLRS else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if WITHOUT_MOLRS:
        terminalreporter.write_line("left out, for want of Python 3.12 or newer: the peer molcrafts-molrs")


@pytest.fixture(params=RECORDS.values(), ids=RECORDS.keys())
def record(request: pytest.FixtureRequest) -> Record:
    return request.param


@pytest.fixture(scope="session")
def _written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Record], Path]:
    from tests.interop import mrec_side

    folder = tmp_path_factory.mktemp("written")

    def written(record: Record) -> Path:
        path = folder / f"{record.name}.mrec"
        if not path.exists():
            mrec_side.write(record, path, record.frames)
        return path

    return written


@pytest.fixture
def ours(record: Record, _written: Callable[[Record], Path]) -> Path:
    """The record as mrec wrote it; not to be changed."""
    return _written(record)

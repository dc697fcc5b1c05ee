# SPDX-License-Identifier: BSD-3-Clause
"""Packed records at the borders of 31 and 32 bits, every byte of them read by mrec, zipfile and unzip."""

from __future__ import annotations

import resource
import subprocess
import zipfile
from pathlib import Path

import pytest

import mrec
from tests.pack.archives import files
from tests.pack.test_sizes import SIZES, SLACK, check_numbers, pack_with, record

__all__ = ["record"]


@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize("what", ["size", "offset", "directory"])
def test_every_byte(what, number, record: Path, tmp_path: Path) -> None:
    packed = pack_with(record, what, number)
    check_numbers(packed, record, what, number)
    with zipfile.ZipFile(packed) as archive:
        assert archive.testzip() is None
    subprocess.run(["unzip", "-tqq", packed], check=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    back = Path(mrec.unpack(packed, tmp_path / "back.mrec"))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < SLACK
    large = (back / "a").stat()
    assert large.st_blocks * 512 < SLACK
    with zipfile.ZipFile(packed) as archive:
        assert large.st_size == archive.getinfo("a").file_size
    (back / "a").unlink()
    assert files(back) == files(record)

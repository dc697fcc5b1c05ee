# SPDX-License-Identifier: BSD-3-Clause
"""General Zarr readers see, in what mrec wrote, the arrays that the rules ask for, and every bit of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.compare import assert_same
from tests.interop.model import Record
from tests.interop.zarr_side import read_tensorstore, read_zarr, read_zarrs


@pytest.mark.parametrize("read", [read_zarr, read_zarrs])
def test_zarr_reads_every_array(record: Record, ours: Path, read) -> None:
    want = record.arrays()
    got = read(ours / "trajectory")
    assert got.keys() == want.keys()
    for name, array in want.items():
        assert_same(got[name], array, name)


def test_tensorstore_reads_the_arrays_that_it_knows(record: Record, ours: Path) -> None:
    want = {name: array for name, array in record.arrays().items() if tensorstore_knows(record, name, array)}
    got = read_tensorstore(ours / "trajectory")
    assert got.keys() == want.keys()
    for name, array in want.items():
        assert_same(got[name], array, name)


def tensorstore_knows(record: Record, name: str, array) -> bool:
    """All but strings and, for want of the shuffle, columns with a precision."""
    block, _, column = name.partition("/")
    declared = record.blocks.get(block, {}).get(column)
    return array.dtype != object and (declared is None or declared.precision is None)

# SPDX-License-Identifier: BSD-3-Clause
"""A sample of the flipped bits (tests/long/test_flips.py flips one in every byte)."""

from __future__ import annotations

import pytest

from tests.flips.flips import PARTS, flip
from tests.flips.stores import KINDS


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_an_error_or_means_nothing(kind: str, part: str) -> None:
    row = flip(kind, part, most=60)
    assert row.outcomes["error"]
    if part != "zarr.json":  # which has no checksum
        assert not row.silent, row.silent[:10]


@pytest.mark.parametrize("part", ["data", "zip"])
@pytest.mark.parametrize("kind", KINDS)
def test_unverified_a_flipped_bit_may_be_a_wrong_value_and_nothing_worse(kind: str, part: str) -> None:
    row = flip(kind, part, most=60, verify=False)
    assert row.outcomes["error"]  # indexes, and all that decoding needs, are checked all the same
    assert row.silent or kind != "raw"

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

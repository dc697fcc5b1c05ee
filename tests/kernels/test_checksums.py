# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrec import _core

KNOWN = [  # RFC 3720 B.4, and the check value of the catalogue of CRCs
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
    (b"123456789", 0xE3069283),
    (b"", 0),
]
same_fixture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.mark.parametrize(("data", "crc"), KNOWN)
def test_crc32c_known_values(cpu, data, crc):
    assert _core.crc32c(data) == crc


def test_crc32c_agrees_with_another_library(cpu):
    other = pytest.importorskip("google_crc32c")
    data = np.random.default_rng(1).bytes(100_003)
    for n in (0, 1, 7, 8, 767, 768, 769, 6143, 6144, 6145, 100_003):
        assert _core.crc32c(data[:n]) == other.value(data[:n])


@same_fixture
@given(data=st.binary(max_size=20_000), cut=st.integers(0, 20_000))
def test_checksums_go_on_from_a_part(cpu, data, cut):
    assert _core.crc32c(data[cut:], _core.crc32c(data[:cut])) == _core.crc32c(data)
    assert _core.crc32(data[cut:], _core.crc32(data[:cut])) == zlib.crc32(data)


def test_processor_and_portable_agree():
    data = np.random.default_rng(2).bytes(50_000)
    ranges = [(start, start + n) for start in range(9) for n in (0, 5, 800, 6200, 49_000)]
    fast = [_core.crc32c(data[a:b]) for a, b in ranges]
    _core.cpu_allow(0)
    try:
        assert [_core.crc32c(data[a:b]) for a, b in ranges] == fast
    finally:
        _core.cpu_allow()


def test_inputs_of_every_kind():
    values = np.arange(24, dtype="f8").reshape(4, 6)
    crc = zlib.crc32(values.tobytes())
    frozen = values.copy()
    frozen.flags.writeable = False
    for data in (values, frozen, values.tobytes(), bytearray(values.tobytes()), memoryview(values)):
        assert _core.crc32(data) == crc
    for view in (values[:, ::2], values.T, values[::-1], np.asfortranarray(values), values[:0]):
        assert _core.crc32(view) == zlib.crc32(np.ascontiguousarray(view).tobytes())
    with pytest.raises(TypeError):
        _core.crc32("text")

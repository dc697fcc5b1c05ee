# SPDX-License-Identifier: BSD-3-Clause
"""A peer that can be installed here is installed: no test of this folder falls away in silence."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from tests.interop.conftest import PEERS


@pytest.mark.parametrize("package", PEERS)
def test_peer_is_installed(package: str) -> None:
    found = version(package)
    assert found == "0.19.0" or package != "molcrafts-molrs"

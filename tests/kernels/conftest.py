# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

from mrec import _core


@pytest.fixture(params=["processor", "older", "portable"])
def cpu(request):
    """Runs a test with everything that the processor offers, as on one of 2010, and with portable C only."""
    _core.cpu_allow({"processor": 0xFFFFFFFF, "older": 1, "portable": 0}[request.param])
    yield request.param
    _core.cpu_allow()

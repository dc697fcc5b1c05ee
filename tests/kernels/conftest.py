# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import pytest

from mrec import _core


@pytest.fixture(params=["processor", "portable"])
def cpu(request):
    """Runs a test with everything that the processor offers, and again with portable C only."""
    _core.cpu_allow(0 if request.param == "portable" else 0xFFFFFFFF)
    yield request.param
    _core.cpu_allow()

# SPDX-License-Identifier: BSD-3-Clause
"""What the reporter for OpenMM refuses before there is a simulation; it takes no OpenMM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrec.errors import InvalidValue, RecordNotFound
from mrec.interop.openmm import MrecReporter

WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"reportInterval": 0}, InvalidValue, "reportInterval is 0"),
    ({"reportInterval": 2.5}, InvalidValue, "reportInterval is 2.5"),
    ({"atomSubset": [True, False]}, InvalidValue, "atomSubset"),
    ({"atomSubset": 3}, InvalidValue, "atomSubset"),
    ({"append": True}, RecordNotFound, "no record to append to"),
    ({"append": True, "thread": 2}, TypeError, "no option 'thread'"),
    ({"units": {}}, TypeError, "no option 'units'"),
    ({"file": ""}, InvalidValue, "not empty"),
]


@pytest.mark.parametrize(("wrong", "kind", "says"), WRONG, ids=str)
def test_wrong_arguments_are_refused_at_once(
    wrong: dict[str, Any], kind: type[Exception], says: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=says):
        MrecReporter(**{"file": tmp_path / "run.mrec", "reportInterval": 1} | wrong)
    assert not list(tmp_path.iterdir())

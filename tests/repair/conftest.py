# SPDX-License-Identifier: BSD-3-Clause
"""Samples, made once, of which a test damages a copy."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from tests.repair.check import Frames, Sample, frames, long
from tests.verify.samples import SAMPLES


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    folder = tmp_path_factory.mktemp("samples")

    @cache
    def make(name: str) -> tuple[Path, Frames]:
        path = folder / f"{name}.mrec"
        (SAMPLES | {"long": long})[name](path)
        return path, frames(path)

    return make


@pytest.fixture
def sample(_made: Sample, tmp_path: Path) -> Sample:
    """A copy of a sample, to damage, and its frames."""
    (tmp_path / "place").mkdir()
    return lambda name: (shutil.copytree(_made(name)[0], tmp_path / "place/a.mrec"), _made(name)[1])

# SPDX-License-Identifier: BSD-3-Clause
"""MDAnalysis's own suites for readers and writers, run on records."""

from __future__ import annotations

from typing import Any

import MDAnalysis
import numpy as np
import pytest
from MDAnalysisTests.coordinates.base import BaseReference, BaseWriterTest, MultiframeReaderTest
from MDAnalysisTests.datafiles import COORDINATES_TOPOLOGY

import mrec
from mrec.interop.mda import MrecReader, MrecWriter

# The suite opens trajectories that say nothing of masses, and leaves readers to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def fill(ts: Any, i: int) -> None:
    """What the suite expects of frame i."""
    positions = 2**i * np.arange(3 * ts.n_atoms, dtype=np.float32).reshape(-1, 3)
    ts.positions, ts.velocities, ts.forces = positions, positions / 10, positions / 100
    ts.time, ts.frame = i, i
    ts.dimensions = np.float32([81.1, 82.2, 83.3, 75, 80, 85]) + np.float32([i, i, i, 0.1 * i, 0.1 * i, 0.1 * i])


@pytest.fixture(scope="session", params=[".mrec", ".mrec.zip"])
def trajectory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("suite") / "test.mrec"
    universe = MDAnalysis.Universe(COORDINATES_TOPOLOGY)
    with MDAnalysis.Writer(str(path), universe.atoms.n_atoms) as writer:
        for i in range(5):
            fill(universe.trajectory.ts, i)
            writer.write(universe)
    return str(path) if request.param == ".mrec" else mrec.pack(path)


class Reference(BaseReference):
    def __init__(self, trajectory: str) -> None:
        super().__init__()
        self.trajectory, self.topology = trajectory, COORDINATES_TOPOLOGY
        self.reader, self.writer, self.ext = MrecReader, MrecWriter, "mrec"
        self.changing_dimensions = True
        for frame in (self.first_frame, self.second_frame, self.last_frame, self.jump_to_frame):
            frame.velocities, frame.forces = frame.positions / 10, frame.positions / 100

    def iter_ts(self, i: int) -> Any:
        ts = super().iter_ts(i)
        ts.velocities, ts.forces = ts.positions / 10, ts.positions / 100
        return ts


class TestReader(MultiframeReaderTest):
    @pytest.fixture
    def ref(self, trajectory: str) -> Reference:
        return Reference(trajectory)


class TestWriter(BaseWriterTest):
    @pytest.fixture
    def ref(self, trajectory: str) -> Reference:
        return Reference(trajectory)

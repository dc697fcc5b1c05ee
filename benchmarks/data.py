# SPDX-License-Identifier: BSD-3-Clause
"""What is written and read: atoms at the density of water that move by 0.05 to 0.15 a frame."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

GRID = 2.0**-10  # the grid of precision 1e-3
PRECISION = 1e-3
ATOMS_PER_VOLUME = 0.1  # per cubic angstrom


@dataclass(frozen=True)
class Water:
    """xyz: f64 (frames, 3, atoms) on the grid, contiguous, so that x, y, z of a frame are contiguous arrays."""

    xyz: np.ndarray
    edge: float

    @property
    def frames(self) -> int:
        return len(self.xyz)

    @property
    def atoms(self) -> int:
        return self.xyz.shape[2]

    @cached_property
    def rows(self) -> np.ndarray:
        """f32 (frames, atoms, 3), the layout that XTC takes."""
        return np.ascontiguousarray(self.xyz.transpose(0, 2, 1), np.float32)


def water(atoms: int, frames: int) -> Water:
    rng = np.random.default_rng(atoms)
    edge = (atoms / ATOMS_PER_VOLUME) ** (1 / 3)
    xyz = np.empty((frames, 3, atoms))
    now = rng.uniform(0, edge, (3, atoms))
    mobility = rng.uniform(0.05, 0.15, atoms)
    for frame in xyz:
        now += rng.normal(0, mobility, (3, atoms))
        frame[:] = np.rint(now / GRID) * GRID
    made = Water(xyz, edge)
    _ = made.rows  # not while XTC is timed
    return made

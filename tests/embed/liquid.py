# SPDX-License-Identifier: BSD-3-Clause
"""What the simulators of examples/lennard_jones compute, again and in another way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

TIME_STEP = 0.002


def start(side: int) -> tuple[float, np.ndarray, np.ndarray]:
    n = side**3
    length = float(np.cbrt(n / 0.8))
    seed, uniform = 1, []
    for _ in range(3 * n):
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        uniform.append((seed >> 11) / 2**53)
    lattice = np.indices((side, side, side)).reshape(3, -1).T * (length / side)
    return length, lattice, 2 * np.array(uniform).reshape(-1, 3) - 1


def forces(length: float, r: np.ndarray) -> tuple[float, np.ndarray]:
    d = r[:, None] - r[None]
    d -= length * np.rint(d / length)
    square = (d**2).sum(axis=-1)
    near = (square < 2.5**2) & (square > 0)
    six = np.where(near, square, 1.0) ** -3.0 * near
    strength = 24 * six * (2 * six - 1) / np.where(near, square, 1.0)
    return float((2 * six * (six - 1)).sum()), (strength[..., None] * d).sum(axis=1)


def frames(side: int, steps: int) -> Iterator[tuple[float, np.ndarray]]:
    """The energy and the positions (n, 3) at each step."""
    length, r, v = start(side)
    for _ in range(steps):
        pe, f = forces(length, r)
        yield pe, r.copy()
        v += TIME_STEP * f
        r = r + TIME_STEP * v

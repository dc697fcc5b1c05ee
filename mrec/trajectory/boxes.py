# SPDX-License-Identifier: BSD-3-Clause
"""The cells of many frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrec.box import Box


@dataclass(frozen=True, eq=False)
class Boxes:
    """The cells of n frames as arrays, in the record's unit of length.

    vectors: f64 (n, 3, 3), the lattice vectors of a cell are the COLUMNS. origin: f64 (n, 3). periodic: bool (n, 3).
    present: bool (n,), False at frames about whose cell nothing is said: there are NaN. defined: False says of all
    frames that the system has no cell.

    `boxes[i]` is the `Box` of a frame, or None where nothing is said; `boxes[a:b]` some of them.
    """

    vectors: np.ndarray
    origin: np.ndarray
    periodic: np.ndarray
    present: np.ndarray
    defined: bool = True

    @classmethod
    def of(cls, box: Box, n: int) -> Boxes:
        """The same cell n times."""
        vectors, origin, periodic = (np.repeat(part[None], n, 0) for part in (box.vectors, box.origin, box.periodic))
        return cls(vectors, origin, periodic, np.ones(n, np.bool_), box.defined)

    @property
    def rows(self) -> np.ndarray:
        """f64 (n, 3, 3), the lattice vectors as rows (ASE, MDAnalysis, mdtraj)."""
        return self.vectors.swapaxes(1, 2)

    @property
    def lengths(self) -> np.ndarray:
        """f64 (n, 3), the lengths of the lattice vectors."""
        lengths: np.ndarray = np.sqrt((self.vectors**2).sum(axis=1))
        return lengths

    @property
    def volumes(self) -> np.ndarray:
        """f64 (n,), never negative."""
        a, b, c = np.moveaxis(self.vectors, 2, 0)
        volumes: np.ndarray = np.abs((a * np.cross(b, c)).sum(axis=1))
        return volumes

    def at(self, which: np.ndarray, present: np.ndarray) -> Boxes:
        """The cells of these numbers, each of them present or not."""
        vectors, origin, periodic = self.vectors[which], self.origin[which], self.periodic[which]
        vectors[~present], origin[~present], periodic[~present] = np.nan, np.nan, False
        return Boxes(vectors, origin, periodic, present, self.defined)

    def __len__(self) -> int:
        return len(self.present)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Boxes(
                self.vectors[index], self.origin[index], self.periodic[index], self.present[index], self.defined
            )
        if not self.present[index]:
            return None
        vectors, origin, periodic = self.vectors[index], self.origin[index], self.periodic[index]
        return Box(vectors=vectors, origin=origin, periodic=periodic, defined=self.defined)

    def __iter__(self) -> Iterator[Box | None]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        from mrec.display import counted

        what = "" if self.defined else " undefined"
        return f"<Boxes of {counted(len(self), 'frame')}{what}>"

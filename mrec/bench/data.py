# SPDX-License-Identifier: BSD-3-Clause
"""Data sets: the coordinates that every peer writes and gives back."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from mrec.errors import MrecError
from mrec.extras import extra

ATOMS_PER_VOLUME = 0.1  # of water, per cubic angstrom
#: Atoms times frames of a data set.
LARGEST = 10**9

RHODOPSIN = Path(__file__).parents[2] / "tests" / "data" / "rhodopsin"


@dataclass(frozen=True)
class DataSet:
    """Positions in angstrom, in two files that every process maps: its pages are there once, whoever reads them.

    name: as on the command line, liquid:5000x400. folder: holds the files.
    """

    name: str
    folder: Path

    @cached_property
    def xyz(self) -> np.ndarray:
        """f64 (frames, 3, atoms), contiguous: x, y and z of a frame are contiguous arrays."""
        return _mapped(self.folder / "xyz.npy")

    @cached_property
    def rows(self) -> np.ndarray:
        """f32 (frames, atoms, 3), as molecular dynamics programs have them."""
        return _mapped(self.folder / "rows.npy")

    @property
    def frames(self) -> int:
        """How many."""
        return len(self.xyz)

    @property
    def atoms(self) -> int:
        """How many in a frame."""
        return self.xyz.shape[2]

    @cached_property
    def edge(self) -> float:
        """The largest absolute coordinate, which says what float32 can hold of them."""
        return float(np.abs(self.xyz).max())

    def counts(self) -> list[int]:
        """How many atoms each frame keeps where their number changes: four fifths of them or more."""
        least = max(1, self.atoms * 4 // 5)
        return np.random.default_rng(5).integers(least, self.atoms + 1, self.frames).tolist()


def check(spec: str) -> tuple[int, int]:
    """Atoms and frames that `NAME:ATOMSxFRAMES` asks for; 0 and 0 for a file. MrecError when it says no data set."""
    kind, _, rest = spec.partition(":")
    if spec == "rhodopsin":
        return 0, 0
    if kind == "file":
        if not Path(rest).is_file():
            raise MrecError(f"{rest or 'file:PATH'} is not there; file:PATH takes any trajectory that MDAnalysis reads")
        return 0, 0
    size = re.fullmatch(r"(\d+)x(\d+)", rest)
    if kind not in SYNTHETIC or size is None or not int(size[1]) or not int(size[2]):
        names = ", ".join([*(f"{name}:ATOMSxFRAMES" for name in SYNTHETIC), "rhodopsin", "file:PATH"])
        raise MrecError(f"there is no data set {spec!r}; there are {names}")
    if int(size[1]) * int(size[2]) > LARGEST:
        raise MrecError(f"the data set {spec!r} is too large: at most {LARGEST:,} positions, which are kept in memory")
    return int(size[1]), int(size[2])


def make(spec: str, folder: Path) -> DataSet:
    """The data set `NAME` or `NAME:ATOMSxFRAMES`, or `file:PATH` of a trajectory that MDAnalysis reads.

    MrecError when there is no such data set, or what it is made from is not there.
    """
    kind, _, rest = spec.partition(":")
    if kind == "file" or kind == "rhodopsin":
        xyz = real(*([Path(rest)] if kind == "file" else [RHODOPSIN / "md_1u19.gro", RHODOPSIN / "md_1u19.xtc"]))
    else:
        xyz = SYNTHETIC[kind](*check(spec))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    np.save(folder / "xyz.npy", xyz)
    np.save(folder / "rows.npy", np.ascontiguousarray(xyz.transpose(0, 2, 1), np.float32))
    return DataSet(spec, folder)


def liquid(atoms: int, frames: int) -> np.ndarray:
    """Water at its density: each atom moves by 0.05 to 0.15 A a frame, as its neighbours do not."""
    rng = np.random.default_rng(atoms)
    xyz = np.empty((frames, 3, atoms))
    now = rng.uniform(0, (atoms / ATOMS_PER_VOLUME) ** (1 / 3), (3, atoms))
    mobility = rng.uniform(0.05, 0.15, atoms)
    for frame in xyz:
        now += rng.normal(0, mobility, (3, atoms))
        frame[:] = now
    return xyz


def crystal(atoms: int, frames: int) -> np.ndarray:
    """Atoms that swing about the sites of a cubic lattice of 4 A, by 0.1 A."""
    rng = np.random.default_rng(atoms)
    edge = int(np.ceil(atoms ** (1 / 3)))
    sites = 4.0 * np.stack(np.unravel_index(np.arange(atoms), (edge, edge, edge)))
    return sites + rng.normal(0, 0.1, (frames, 3, atoms))


def chain(atoms: int, frames: int) -> np.ndarray:
    """A protein-like chain: bonds of 1.5 A, neighbours close to each other, all of it drifting together."""
    rng = np.random.default_rng(atoms)
    bonds = rng.normal(size=(3, atoms))
    for i in range(1, atoms):  # a stiff chain turns slowly
        bonds[:, i] = 0.8 * bonds[:, i - 1] + 0.6 * bonds[:, i]
    now = (1.5 * bonds / np.linalg.norm(bonds, axis=0)).cumsum(axis=1)
    xyz = np.empty((frames, 3, atoms))
    for frame in xyz:
        now += rng.normal(0, 0.2, (3, 1))
        frame[:] = now + rng.normal(0, 0.05, (3, atoms))
    return xyz


def noise(atoms: int, frames: int) -> np.ndarray:
    """The worst case: nothing of a frame tells anything of the next, or of its neighbours."""
    return np.random.default_rng(atoms).uniform(0, 100, (frames, 3, atoms))


SYNTHETIC: dict[str, Callable[[int, int], np.ndarray]] = {
    "liquid": liquid,
    "crystal": crystal,
    "chain": chain,
    "noise": noise,
}


def real(*files: Path) -> np.ndarray:
    """What MDAnalysis reads from a topology and its trajectory, or from one file that is both."""
    for path in files:
        if not path.exists():
            raise MrecError(f"{path} is not there; file:PATH takes any trajectory that MDAnalysis reads")
    with extra("bench", "reading a file"):
        universe = import_module("MDAnalysis").Universe
    with TemporaryDirectory() as folder:  # MDAnalysis leaves a file of its own beside what it reads
        links = [Path(folder) / path.name for path in files]
        for link, path in zip(links, files, strict=True):
            link.symlink_to(path.resolve())
        trajectory = universe(*map(str, links), to_guess=()).trajectory
        xyz = np.empty((len(trajectory), 3, trajectory.n_atoms))
        for into, step in zip(xyz, trajectory, strict=True):
            into[:] = step.positions.T
        trajectory.close()
    return xyz


def _mapped(path: Path) -> np.ndarray:
    """A plain array (views of np.memmap are slow to make), private and writable (some peers take no other)."""
    return np.asarray(np.load(path, mmap_mode="c"))

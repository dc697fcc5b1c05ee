# SPDX-License-Identifier: BSD-3-Clause
"""A job and two peers as others would bring them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mrec.bench import DataSet, Peer, Place


def first_and_last(place: Place) -> int:
    """The first frame and the last."""
    handle = place.peer.open(place.path, place.data)
    place.peer.frame(handle, 0)
    place.peer.frame(handle, place.data.frames - 1)
    place.peer.close(handle)
    return 2


class NumpyFile(Peer):
    """The array as numpy saves it."""

    name = "npy"
    packages = ("numpy",)
    suffix = ".npy"
    precisions = (None,)

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        np.save(path, np.array(frames))

    def open(self, path: Path, data: DataSet) -> Any:
        return np.load(path, mmap_mode="r")

    def frame(self, handle: Any, i: int) -> Any:
        return list(np.array(handle[i]))


class Careless(NumpyFile):
    """It loses a bit."""

    name = "careless"

    def frame(self, handle: Any, i: int) -> Any:
        return list(np.array(handle[i]).astype(np.float32))


class Absent(NumpyFile):
    """It needs a package that is not there."""

    name = "absent"

    def __init__(self) -> None:
        raise ImportError("No module named 'absent'")


class Ending(NumpyFile):
    """Its process ends in the middle of a job."""

    name = "ending"

    def write(self, path: Path, frames: list[Any], precision: float | None) -> None:
        raise SystemExit(3)

# SPDX-License-Identifier: BSD-3-Clause
"""The real command in a process of its own, and what it made as zarr-python sees it."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]


def mrec(*words: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `mrec`; the exit code is as said, and what goes wrong is one line on stderr."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **options.pop("env", {})}
    call = [sys.executable, "-m", "mrec.cli", *map(str, words)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, env=environment, check=False, **options)
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}{done.stderr}"
    if code == 1:
        assert done.stdout == ""
        assert done.stderr.startswith("mrec: error: ")
        assert done.stderr.count("\n") == 1, done.stderr
    return done


def checked(*words: object, code: int) -> subprocess.CompletedProcess[str]:
    """Run a command that tells by its exit code what it found, and so may print with any."""
    call = [sys.executable, "-m", "mrec.cli", *map(str, words)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300, cwd=ROOT, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


class ZarrRecord:
    """A record read by zarr-python, with nothing of mrec: the rules of the format in a few lines."""

    def __init__(self, path: Path) -> None:
        import zarr

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.root = zarr.open_group(path, mode="r")
            self.trajectory = self.root["trajectory"]
            self.attributes = dict(self.trajectory.attrs)
        self.nstep = self.attributes["nstep"]

    def array(self, name: str) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.root[name][...])

    def has(self, name: str) -> bool:
        return name in self.root

    def meta(self) -> dict[str, Any]:
        return dict(self.root["meta"].attrs)

    def columns(self, names: tuple[str, ...], frame: int) -> np.ndarray:
        """(rows, columns) of block atoms, which is there in every frame."""
        attributes = dict(self.root["trajectory/atoms"].attrs)
        if "uniform_rows" in attributes:
            rows = slice(frame * attributes["uniform_rows"], (frame + 1) * attributes["uniform_rows"])
        else:
            update = np.searchsorted(self.array("trajectory/atoms/step_index"), frame, side="right") - 1
            rows = slice(*self.array("trajectory/atoms/offset")[update : update + 2].tolist())
        return np.stack([self.array(f"trajectory/atoms/{name}")[rows] for name in names], axis=1)

    def _progressing(self, name: str) -> np.ndarray | None:
        form = self.attributes.get(f"{name}_progression")
        if form is not None:
            return form["start"] + np.arange(self.nstep) * form.get("stride", 0)
        return self.array(f"trajectory/{name}") if self.has(f"trajectory/{name}") else None

    @property
    def steps(self) -> np.ndarray:
        steps = self._progressing("step")
        assert steps is not None
        return steps

    @property
    def times(self) -> np.ndarray | None:
        return self._progressing("time")

    def cell(self, frame: int) -> np.ndarray | None:
        """The lattice vectors, as columns; None where there is no cell."""
        if not self.has("trajectory/box"):
            return None
        if not self.has("trajectory/box/vectors"):
            vectors = self.root["trajectory/box"].attrs.get("vectors")
            return None if vectors is None else np.array(vectors)
        update = 0
        if self.has("trajectory/box/step_index"):
            update = int(np.searchsorted(self.array("trajectory/box/step_index"), frame, side="right")) - 1
        return self.array("trajectory/box/vectors")[update] if update >= 0 else None

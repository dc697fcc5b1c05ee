# SPDX-License-Identifier: BSD-3-Clause
"""What MDAnalysis reads, as frames of a record."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

import numpy as np

from mrec.box import Box
from mrec.errors import MrecError
from mrec.extras import extra
from mrec.frame import Block, Frame
from mrec.interop.mdanalysis_topology import topology_of

#: kind of data (attribute of a time step) -> its columns.
COLUMNS = {
    "positions": ("x", "y", "z"),
    "velocities": ("vx", "vy", "vz"),
    "forces": ("fx", "fy", "fz"),
}

_UNITS = {"length": "angstrom", "time": "ps", "velocity": "angstrom/ps", "force": "kJ/mol/angstrom"}
_NO_TIME = "no dt information"


class Source:
    """A trajectory that MDAnalysis has open, and of it the atoms of a selection.

    n_atoms, n_frames; units: what lengths, times ... are in, only what is known; format: MDAnalysis's name of it.
    files: the user's files by the names that MDAnalysis knows.
    """

    def __init__(self, universe: Any, selection: str | None, has_times: bool, files: Mapping[str, str]) -> None:
        self.universe = universe
        self.files = files
        self.atoms = universe.atoms if selection is None else universe.select_atoms(selection)
        if not len(self.atoms):
            raise MrecError(f"no atom matches the selection {selection!r}" if selection else "the file has no atoms")
        self._all = len(self.atoms) == len(universe.atoms)
        self.has_times = has_times
        reader = universe.trajectory
        self.n_atoms = len(self.atoms)
        self.n_frames = len(reader)
        named = getattr(reader, "format", type(reader).__name__)
        self.format = named if isinstance(named, str) else str(named[0])
        self.units = {kind: unit for kind, unit in _UNITS.items() if getattr(reader, "units", {}).get(kind)}

    def frames(self, start: int | None = None, stop: int | None = None, stride: int | None = None) -> Iterator[Frame]:
        """The frames of a slice. `index` is the number in the source, step and time are None where it has none.

        The arrays of a frame, float32, are MDAnalysis's own: they hold until the next frame is asked for.
        """
        steps = iter(self.universe.trajectory[start:stop:stride])
        at = None
        while True:
            with _readable(self.files, "" if at is None else f", after frame {at}"):
                ts = next(steps, None)
                if ts is None:
                    return
                at = int(ts.frame)
                frame = Frame({"atoms": self._columns(ts)}, step=self._step(ts), box=_cell(ts), index=at)
                frame.time = float(ts.time) if self.has_times and "time" in ts.data else None
            yield frame

    def _columns(self, ts: Any) -> Block:
        block = Block(nrows=self.n_atoms)
        for kind, names in COLUMNS.items():
            if getattr(ts, f"has_{kind}"):
                rows = getattr(ts, kind)
                rows = rows if self._all else rows[self.atoms.indices]
                block.update(zip(names, rows.T, strict=True))
        return block

    def _step(self, ts: Any) -> int | None:
        if self.format == "DCD":  # there data["step"] counts frames
            header = self.universe.trajectory._file.header
            return header["istart"] + ts.frame * header["nsavc"] if header.get("nsavc", 0) > 0 else None
        step = ts.data.get("step")
        return None if step is None else int(step)

    def topology(self) -> Frame:
        """What the file says of the atoms: block "atoms", and "bonds", "angles" ... between them, counted from 0.

        Nothing is guessed.
        """
        with _readable(self.files):
            frame = topology_of(self.atoms)
        atoms = frame["atoms"]
        for column in [name for name in atoms if self._invented(name, atoms[name])]:
            del atoms[column]
        return frame

    def _invented(self, column: str, values: np.ndarray) -> bool:
        """Whether the values are what a parser says for want of a better: mass 1 of a dump."""
        return column == "mass" and self.format == "LAMMPSDUMP" and len(self.files) == 1 and bool(np.all(values == 1))


def _cell(ts: Any) -> Box | None:
    if ts.dimensions is None:
        return None
    rows = ts.triclinic_dimensions
    return Box.from_rows(rows) if np.any(rows) else None


@contextmanager
def opened(
    path: str, topology: str | None = None, selection: str | None = None, format: str | None = None
) -> Iterator[Source]:
    """A trajectory, opened through MDAnalysis with its lengths in angstrom and its times in ps where it knows them.

    format: MDAnalysis's name of the trajectory's format, where the file's own does not tell it.
    No file is left beside the user's: MDAnalysis puts its index of an XTC or TRR beside it, so it is given a link in a
    private directory. MrecError: MDAnalysis is not there, or cannot read the file; FileNotFoundError.
    """
    library = _library(path)
    with ExitStack() as stack:
        private = stack.enter_context(tempfile.TemporaryDirectory(prefix="mrec-"))
        links = [_linked(private, str(i), name) for i, name in enumerate((path, topology)) if name]
        files = dict(zip(links, (path, topology or ""), strict=False))
        options: dict[str, Any] = {"format": format or _format(path), "to_guess": ()}
        if topology is None:
            options["topology_format"] = options["format"]
        said = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        with _readable(files):
            universe = library.Universe(*reversed(links), **options)
            stack.callback(universe.trajectory.close)
            has_times = not any(_NO_TIME in str(warning.message) for warning in said)
            source = Source(universe, selection, has_times, files)
        warnings.simplefilter("ignore")
        yield source


def _format(path: str) -> str | None:
    """The format of names that MDAnalysis does not know by itself."""
    name = os.path.basename(path)
    for packed in (".gz", ".bz2"):
        name = name.removesuffix(packed)
    if name.endswith((".lammpstrj", ".dump")):
        return "LAMMPSDUMP"
    return "HISTORY" if name.startswith("HISTORY") else None


def _library(path: str) -> Any:
    with extra("convert", f"reading {path}"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("MDAnalysis")


def _linked(private: str, folder: str, path: str) -> str:
    with open(path, "rb"):
        pass  # what is not there or not readable says so now, and under its own name
    directory = os.path.join(private, folder)
    os.makedirs(directory)
    link = os.path.join(directory, os.path.basename(path))
    os.symlink(os.path.abspath(path), link)
    return link


@contextmanager
def _readable(files: Mapping[str, str], where: str = "") -> Iterator[None]:
    """Whatever MDAnalysis raises becomes one MrecError with one line, which names the user's files."""
    try:
        yield
    except MrecError:
        raise
    except Exception as e:
        text = str(e).strip() or type(e).__name__
        for link, path in files.items():
            text = text.replace(link, path)
        _let_go(e)
        raise MrecError(f"MDAnalysis cannot read {next(iter(files.values()))}{where}: {text.splitlines()[0]}") from e


def _let_go(error: BaseException | None) -> None:
    """Let the readers go that an error has caught half made: they fail to close what they have not opened, and Python
    would print that."""
    kept, sys.unraisablehook = sys.unraisablehook, lambda what: None
    try:
        while error is not None:
            traceback.clear_frames(error.__traceback__)
            error = error.__context__
    finally:
        sys.unraisablehook = kept


def version() -> str:
    """ "MDAnalysis 2.11.0"."""
    return f"MDAnalysis {import_module('MDAnalysis').__version__}"

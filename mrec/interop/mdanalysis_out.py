# SPDX-License-Identifier: BSD-3-Clause
"""A record's atoms as an MDAnalysis universe, and its frames written in the formats that MDAnalysis writes."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from mrec.errors import MrecError
from mrec.extras import extra
from mrec.interop.atoms import Atoms, AtomSource, residues_of, same_number, standard
from mrec.interop.mdanalysis_topology import ATOMS, RESIDUES

_FORCE = "kJ/(mol*Angstrom)"


@dataclass(frozen=True)
class Format:
    """What a format keeps beside positions. loses: in words, what else a record may have that it does not."""

    name: str
    keeps: frozenset[str]
    options: Callable[[AtomSource], dict[str, Any]]
    says: str = ""


def _none(source: AtomSource) -> dict[str, Any]:
    return {}


def _dcd(source: AtomSource) -> dict[str, Any]:
    """DCD has one first step, one interval, and one time between frames."""
    steps, times = source.frames.steps, source.frames.times
    stride = int(steps[1] - steps[0]) if len(steps) > 1 else 1
    if len(set(np.diff(steps).tolist())) > 1 or not 0 < stride < 2**31 or not 0 <= steps[0] < 2**31:
        source.note("a DCD file has steps at one interval only; the steps are dropped")
        return {"dt": _interval(source, times), "nsavc": 1, "istart": 0}
    first = int(steps[0])
    if times is not None and len(times) > 1 and not np.isclose(
        times[0] * stride, first * (times[1] - times[0]), rtol=1e-6, atol=1e-9 * max(1.0, float(stride))
    ):  # fmt: skip
        source.note("a DCD file has its times from its steps; the first step is 0 to keep the interval")
    return {"dt": _interval(source, times), "nsavc": stride, "istart": first}


def _interval(source: AtomSource, times: np.ndarray | None) -> float:
    if times is None or len(times) < 2:
        return 1.0
    between = np.diff(times)
    if not np.allclose(between, between[0], rtol=1e-4, atol=0) or not between[0] > 0:
        source.note("a DCD file has times at one interval only; the times are dropped")
        return 1.0
    return float(np.mean(between) * source.factors.time)


def _kept(source: AtomSource) -> dict[str, Any]:
    return {"velocities": "velocities" in source.kinds, "forces": "forces" in source.kinds}


def _h5md(source: AtomSource) -> dict[str, Any]:
    units = {"lengthunit": "Angstrom", "timeunit": "ps", "velocityunit": "Angstrom/ps", "forceunit": _FORCE}
    return {**units, **_kept(source)}


#: ending -> format
FORMATS = {
    ".xtc": Format("XTC", frozenset({"cell", "time", "step"}), _none),
    ".trr": Format("TRR", frozenset({"cell", "time", "step", "velocities", "forces"}), _none),
    ".dcd": Format("DCD", frozenset({"cell", "time", "step"}), _dcd),
    ".ncdf": Format("NCDF", frozenset({"cell", "time", "velocities", "forces"}), _kept),
    ".nc": Format("NCDF", frozenset({"cell", "time", "velocities", "forces"}), _kept),
    ".h5md": Format("H5MD", frozenset({"cell", "time", "step", "velocities", "forces"}), _h5md),
    ".xyz": Format("XYZ", frozenset({"names"}), lambda source: {"precision": 6}),
    ".pdb": Format("PDB", frozenset({"first cell", "names", "bonds"}), lambda source: {"multiframe": True}),
}


def format_of(path: str) -> Format:
    """The format of a file name. MrecError: it is none that is written."""
    ending = os.path.splitext(path)[1].lower()
    if ending not in FORMATS:
        raise MrecError(f"{path}: a record is converted to {', '.join(FORMATS)} or .mrec; `mrec export` makes .extxyz")
    return FORMATS[ending]


def library(what: str) -> Any:
    """MDAnalysis; MissingLibrary says how to get it."""
    with extra("convert", what), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("MDAnalysis")


def selected(source: AtomSource, selection: str) -> np.ndarray:
    """The rows that a selection in MDAnalysis's language names, in the first frame of a source."""
    library("--select")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        atoms = next(iter(source))
        made = universe(source, atoms)
        _fill(made.trajectory.ts, atoms, source)
        try:
            rows = np.asarray(made.select_atoms(selection).indices, np.int64)
        except AttributeError as e:
            missing = re.search(r"'(\w+)'$", str(e))
            what = f"the {missing[1]} of its atoms" if missing else "what it asks for"
            raise MrecError(f"the selection {selection!r} cannot be made: the record does not say {what}") from None
        except Exception as e:
            reason = (str(e).strip() or type(e).__name__).splitlines()[0]
            raise MrecError(f"the selection {selection!r} is not understood: {reason}") from None
    if not len(rows):
        raise MrecError(f"no atom matches the selection {selection!r}")
    return rows


def universe(source: AtomSource, atoms: Atoms) -> Any:
    """A universe of the atoms of a frame, with the topology that record and frame know."""
    n = len(atoms.positions)
    residues = residues_of(source, atoms)
    segment = source.column(atoms, "segment")
    texts = np.full(n, "", object) if segment is None else np.asarray(segment, object)
    segments, at = _runs(texts[residues[2]])
    made = library("this").Universe.empty(
        n, n_residues=len(residues[1]), atom_resindex=residues[0], n_segments=len(segments), residue_segindex=at,
        trajectory=True, velocities="velocities" in source.kinds, forces="forces" in source.kinds,
    )  # fmt: skip
    for attribute, column in ATOMS.items():
        if (values := _whole(source, atoms, column)) is not None:
            made.add_TopologyAttr(attribute, values)
    if "type" not in source.columns and (kinds := source.column(atoms, "type_id")) is not None:
        made.add_TopologyAttr("types", np.array([str(kind) for kind in kinds.tolist()], object))
    made.add_TopologyAttr("resids", residues[1])
    made.add_TopologyAttr("resnums", residues[1].copy())  # as MDAnalysis's own parsers say
    for attribute, column in RESIDUES.items():
        if attribute != "resids" and (values := _whole(source, atoms, column)) is not None:
            made.add_TopologyAttr(attribute, values[residues[2]])
    made.add_TopologyAttr("segids", segments)
    for name, width in (("bonds", 2), ("angles", 3), ("dihedrals", 4), ("impropers", 4)):
        links = source.links(name, width)
        if len(links):
            made.add_TopologyAttr(name, links)
    return made


def _runs(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The texts without those that are the one before once more, and which of them each was."""
    new = np.ones(len(texts), bool)
    new[1:] = texts[1:] != texts[:-1]
    return texts[new], np.cumsum(new) - 1


def _whole(source: AtomSource, atoms: Atoms, column: str) -> np.ndarray | None:
    """A column with one value for every atom; None when there is none, or not for all."""
    values = source.column(atoms, column)
    if values is None or values.ndim != 1 or np.ma.getmaskarray(values).any():
        return None
    values = np.asarray(values)
    return values.astype(object) if values.dtype.kind in "TU" else values


def write(source: AtomSource, path: str, frames: Iterable[Atoms], precision: float | None = None) -> int:
    """Write frames to a file in the format of its ending; their number. What is lost is in source.notes."""
    form = format_of(path)
    lib = library(f"writing {os.path.basename(path)}")
    taken = 0
    writer: Any = None
    output = _Output(path, "w+") if form.name == "H5MD" else None
    made: Any = None
    first: Atoms | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {**form.options(source), **decimals(form, precision)}
        try:
            for atoms in same_number(source, frames, f"a {form.name} file"):
                if first is None:
                    made, first = _universe_of(form, source, atoms), atoms
                    writer = _written(form, None, lib.Writer, path, n_atoms=len(atoms.positions), format=form.name,
                                      **options)  # fmt: skip
                    writer.filename = output or path
                _check(form, source, atoms, first)
                _fill(made.trajectory.ts, atoms, source, bool({"cell", "first cell"} & form.keeps))
                if form.name == "XTC":
                    _check_packed(made.trajectory.ts.positions, options.get("precision", 3), f"frame {atoms.index}")
                _written(form, atoms, writer.write, made.atoms)
                taken += 1
        finally:
            if writer is not None:
                try:
                    _written(form, None, writer.close)
                finally:
                    writer.close = lambda: None  # its __del__ would fail once more, with a traceback
            if output is not None:
                if writer is not None and writer.h5md_file is not None:
                    _written(form, None, writer.h5md_file.close)  # the writer leaves that to the end of its life
                output.close()
        if output is not None and output.failed is not None:
            raise OSError(output.failed.errno, output.failed.strerror, path)
        if form.name == "DCD":
            _check_whole(form, lib, path, taken)
    _note_losses(form, source)
    return taken


class _Output(io.FileIO):
    """A file that takes all that it is given. What the disk did not take is in `failed`: HDF5 can not let go of a file
    that fails it, and ends the process with it."""

    failed: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all of it, or note why not."""
        left = memoryview(data).cast("B")
        try:
            while left and self.failed is None:
                left = left[super().write(left) :]
        except OSError as e:
            self.failed = e
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        """The same for the length."""
        try:
            return self.tell() if self.failed else super().truncate(size)
        except OSError as e:
            self.failed = e
            return 0


def _universe_of(form: Format, source: AtomSource, atoms: Atoms) -> Any:
    """The universe to write; its atoms all have a word for a name where a line is to have one."""
    if not len(atoms.positions):
        raise MrecError(f"frame {atoms.index} has no atoms, which {form.name} cannot say")
    made = universe(source, atoms)
    if form.name == "XYZ":
        words = ["_".join(text.split()) or "X" for text in source.names(atoms, "element", "name", "type")]
        made.add_TopologyAttr("elements", np.array(words, object))
    return made


def _check_whole(form: Format, lib: Any, path: str, taken: int) -> None:
    """libdcd does not look at what its writes return; its reader counts frames by the length of the file."""
    with lib.lib.formats.libdcd.DCDFile(path) as file:
        found = len(file)
    if found != taken:
        raise MrecError(f"of {taken} frames the {form.name} file got {found}: the disk is full, or failed")


def decimals(form: Format, precision: float | None) -> dict[str, int]:
    """The option of a writer for a precision: XTC has a number of decimals, of nm. MrecError."""
    if precision is None:
        return {}
    if form.name != "XTC":
        raise MrecError(f"--precision is of no use for a {form.name} file; only XTC and records have one")
    if not 1e-7 <= precision <= 100:
        raise MrecError(f"--precision is {precision:g}; an XTC file takes 1e-7 to 100 angstrom")
    return {"precision": int(np.ceil(-np.log10(precision / 10) - 1e-9))}


def _written(form: Format, atoms: Atoms | None, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What MDAnalysis raises becomes one MrecError with one line; a failed system call stays one."""
    try:
        return call(*arguments, **options)
    except Exception as e:
        if isinstance(e, OSError) and e.errno is not None:
            raise
        text = (str(e).strip() or type(e).__name__).splitlines()[0]
        where = "" if atoms is None else f" frame {atoms.index}"
        raise MrecError(f"MDAnalysis cannot write{where} as {form.name}: {text}") from e


def _check(form: Format, source: AtomSource, atoms: Atoms, first: Atoms) -> None:
    """Refuse what would make the file wrong, and note what it cannot hold."""
    if (atoms.cell is None) != (first.cell is None) and "cell" in form.keeps:
        raise MrecError(f"frame {atoms.index} has {'no' if atoms.cell is None else 'a'} cell, unlike the first; "
                        "convert them apart (--start, --stop)")  # fmt: skip
    if form.name in ("NCDF", "H5MD"):
        for kind in ("velocities", "forces"):
            if kind in source.kinds and getattr(atoms, kind) is None:
                raise MrecError(f"frame {atoms.index} has no {kind}, others have; use a TRR file")
    if form.name in ("XTC", "TRR") and not -(2**31) <= atoms.step < 2**31:
        raise MrecError(f"frame {atoms.index} has the step {atoms.step}; {form.name} has 32 bits for it")
    if "first cell" in form.keeps and atoms.cell != first.cell:
        source.note("a PDB file has one cell, that of the first frame; the cells of later frames are dropped")
    if atoms.cell is not None and "cell" in form.keeps:
        if atoms.cell.origin.any():
            source.note(f"{form.name} has no origin of the cell; it is dropped")
        if not atoms.cell.periodic.all():
            source.note(f"{form.name} does not say which axes are periodic")


#: Of the integers of an XTC file: the largest, and how far apart the nearest two in a row may be (x, y, z summed).
#: Its compression has a table that ends there; beyond it libmdaxdr writes other numbers, and over its memory.
_LARGEST, _APART = 2**31 - 128, 2_642_245


def _check_packed(positions: np.ndarray, decimals: int, at: str) -> None:
    """Refuse positions that an XTC file of so many decimals (of nm) cannot hold. Up to 9 are not compressed."""
    if len(positions) <= 9:
        return
    numbers = positions.astype(np.float64) * 10.0 ** (decimals - 1)
    if not np.all(np.isfinite(numbers)):
        raise MrecError(f"{at} has a position that is not finite, which an XTC file cannot hold")
    if max(np.abs(numbers).max(), np.ptp(numbers, axis=0).max()) >= _LARGEST:
        raise MrecError(f"{at} has positions too large for an XTC file of this precision; use a coarser --precision")
    if np.abs(np.diff(numbers, axis=0)).sum(axis=1).min() >= _APART:
        raise MrecError(f"{at} has atoms too far apart for an XTC file of this precision; use a coarser --precision")


def _fill(ts: Any, atoms: Atoms, source: AtomSource, with_cell: bool = True) -> None:
    """The frame as a time step: float32, as MDAnalysis has it. Without the cell the atoms stay where they are."""
    rotation = None
    ts.dimensions = None
    if with_cell and atoms.cell is not None:
        ts.dimensions, rotation = standard(atoms.cell, f"frame {atoms.index}")
    if rotation is not None:
        source.note("the cell is turned to have a along x and b in the xy plane, and the atoms with it")
    for kind in source.kinds:
        values = getattr(atoms, kind)
        setattr(ts, f"has_{kind}", values is not None)
        if values is not None:
            setattr(ts, kind, values if rotation is None else values @ rotation)
    ts.time = float(atoms.index) if atoms.time is None else atoms.time
    ts.data["step"] = atoms.step


def _note_losses(form: Format, source: AtomSource) -> None:
    for kind in ("velocities", "forces"):
        if kind in source.kinds and kind not in form.keeps:
            source.note(f"{form.name} has no {kind}; they are dropped")
    schema = source.schema
    if source.frames.times is not None and "time" not in form.keeps:
        source.note(f"{form.name} has no times; they are dropped")
    elif source.frames.times is None and "time" in form.keeps:
        source.note("the record has no times; the frames are numbered")
    if "step" not in form.keeps:
        source.note(f"{form.name} has no steps; they are dropped")
    if not {"cell", "first cell"} & form.keeps and any(True for _ in _cells(source)):
        source.note(f"{form.name} has no cell; it is dropped")
    used = {"x", "y", "z", *(c for kind in source.kinds for c in ("vx", "vy", "vz", "fx", "fy", "fz"))}
    extra = sorted(set(schema.blocks[source.block].columns) - used - set(ATOMS.values()))
    lost = [*extra, *(name for name in schema.blocks if name != source.block), *schema.values]
    if lost:
        source.note(f"{form.name} has no place for {', '.join(lost)}; dropped")
    if "names" not in form.keeps and source.columns & {"name", "element", "mass", "res_name"}:
        source.note(f"{form.name} names no atoms; `mrec export RECORD OUT.pdb --stop 1` makes a topology")


def _cells(source: AtomSource) -> Iterable[Any]:
    return (frame.box for frame in source.frames[:1] if frame.box is not None and frame.box.defined)

# SPDX-License-Identifier: BSD-3-Clause
"""Frames of a record as ASE's Atoms."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from ase import Atoms, units
from ase.calculators.singlepoint import SinglePointCalculator
from ase.data import atomic_masses, atomic_numbers
from ase.utils import string2index

import mrec
from mrec.errors import MrecError
from mrec.frame import Frame
from mrec.interop.ase.layout import ENERGY, INFO, ROWS, VALUES, array_of, from_document
from mrec.interop.atoms import KINDS, AtomSource
from mrec.interop.units import factors, warn_of_unknown

#: Columns that the Atoms have in a form of their own.
_OWN = {*sum(KINDS.values(), ()), "atomic_number", "element", "mass", *ROWS.values()}


def read_mrec(filename: str | os.PathLike[str], index: Any = -1) -> Iterator[Atoms]:
    """The Atoms of some frames, as `ase.io.read` and `iread` give them. index: an integer, a slice or its text.

    Lengths are converted to angstrom, velocities and forces to ASE's units, from those that the record says.
    """
    record = mrec.open(filename)
    source = AtomSource(record, record.trajectory)
    source.factors = factors(record.units, "fs", "eV")
    warn_of_unknown(source.factors, record.path)
    if isinstance(index, str):
        index = string2index(index)
    if not isinstance(index, slice):
        index = slice(index, (index + 1) or None)
    frames = source.frames[index]
    if index.start == -1 and len(frames) == 1:
        yield _atoms(source, source.frames[-1])
        return
    for frame in frames:
        yield _atoms(source, frame)


def _atoms(source: AtomSource, frame: Frame) -> Atoms:
    found = source.atoms(frame)
    numbers = _numbers(source, found)
    box = frame.box
    cell = None if box is None or not box.defined else box.rows * source.factors.length
    made = Atoms(numbers, found.positions, cell=cell, pbc=False if cell is None or box is None else box.periodic)
    masses = source.column(found, "mass")
    if masses is not None and not np.array_equal(masses, atomic_masses[numbers]):
        made.set_masses(np.ma.filled(masses, np.nan))
    if found.velocities is not None:
        made.set_velocities(found.velocities / units.fs)
    for name in sorted(source.columns - _OWN):
        values = source.column(found, name)
        if values is not None and not np.ma.getmaskarray(values).any():
            made.set_array(array_of(name), np.array(values.tolist(), str) if values.dtype.kind in "OT" else values)
    _give_results(made, source, found)
    made.info.update(_info(frame, found.time))
    return made


def _numbers(source: AtomSource, found: Any) -> np.ndarray:
    numbers = source.column(found, "atomic_number")
    if numbers is not None:
        return np.asarray(numbers).astype(np.int64)
    symbols = source.names(found, "element")
    unknown = sorted({symbol for symbol in symbols if symbol.capitalize() not in atomic_numbers})
    if unknown:
        raise MrecError(f"{unknown[0]!r} is no element that ASE knows; the record's atoms have them in 'element'")
    return np.array([atomic_numbers[symbol.capitalize()] for symbol in symbols], np.int64)


def _give_results(made: Atoms, source: AtomSource, found: Any) -> None:
    results: dict[str, Any] = {}
    for name in VALUES:
        value = found.values.get(ENERGY if name == "energy" else name)
        if value is not None and not np.all(np.isnan(value)):
            results[name] = value * source.factors.energy if name.endswith("energy") else value
    if "dielectric_tensor" in results:
        results["dielectric_tensor"] = results["dielectric_tensor"].reshape(3, 3)
    for name, column in ROWS.items():
        if column in found.block:
            results[name] = found.block[column]
    if found.forces is not None:
        results["forces"] = found.forces
    if results:
        made.calc = SinglePointCalculator(made, **results)


def _info(frame: Frame, time: float | None) -> dict[str, Any]:
    """Per-step values that are no results, and where the frame stands in time when the record says so."""
    info = {name: value for name, value in frame.values.items() if name not in VALUES and name not in (ENERGY, INFO)}
    if INFO in frame.values:
        info |= from_document(frame.values[INFO] or {})
    if time is not None:
        info |= {"step": frame.step, "time": time}
    return info

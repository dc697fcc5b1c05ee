# SPDX-License-Identifier: BSD-3-Clause
"""Units by the names that people write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.interop.coordinates import Coordinates
from mrec.interop.units import factors

EV, BOHR, HARTREE, AUT = 96.48533212, 0.529177210903, 2625.4996394799, 2.4188843265857e-5


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("nm", 10.0),
        ("Nanometers", 10.0),
        ("angstroms", 1.0),
        ("\u00c5", 1.0),
        ("\u212b", 1.0),
        ("a0", BOHR),
        ("Bohr", BOHR),
    ],
)
def test_lengths(unit: str, factor: float) -> None:
    found = factors({"length": unit, "time": "ps"})
    assert (found.length, found.unknown) == (factor, [])


@pytest.mark.parametrize(
    ("unit", "factor"), [("ps", 1.0), ("femtoseconds", 1e-3), ("\u00b5s", 1e6), ("\u03bcs", 1e6), ("s", 1e12)]
)
def test_times(unit: str, factor: float) -> None:
    found = factors({"length": "nm", "time": unit})
    assert (found.time, found.unknown) == (factor, [])


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("kJ/mol/nm", 0.1), ("kJ/(mol*nm)", 0.1), ("kJ mol-1 nm-1", 0.1), ("kilojoule / mole / nanometer", 0.1),
        ("kcal mol^-1 angstrom^-1", 4.184), ("kcal/(\u00c5 mol)", 4.184), ("eV/Angstrom", EV),
        ("hartree/bohr", HARTREE / BOHR),
    ],
)  # fmt: skip
def test_forces(unit: str, factor: float) -> None:
    found = factors({"length": "nm", "time": "ps", "force": unit})
    assert (found.force, found.unknown) == (factor, [])


@pytest.mark.parametrize(
    ("unit", "factor"), [("nm/ps", 10.0), ("nm ps-1", 10.0), ("nm*ps^-1", 10.0), ("\u00c5/fs", 1e3), ("m/s", 0.01)]
)
def test_velocities(unit: str, factor: float) -> None:
    found = factors({"length": "nm", "time": "ps", "velocity": unit})
    assert found.velocity == pytest.approx(factor, rel=1e-15)
    assert not found.unknown


def test_velocities_and_forces_follow_from_the_others() -> None:
    found = factors({"length": "bohr", "time": "aut", "energy": "hartree"})
    assert (found.velocity, found.force) == (BOHR / AUT, HARTREE / BOHR)


@pytest.mark.parametrize(
    "units",
    [
        {"length": "sigma"}, {"length": "1/nm"}, {"length": "nm^2"}, {"time": "tau"}, {"energy": "kJ"},
        {"velocity": "nm/ps/ps"}, {"velocity": "nm"}, {"force": "kJ/mol*nm"}, {"force": "kcal/mol-\u00c5"},
    ],
)  # fmt: skip
def test_what_is_not_known_is_said(units: dict[str, str]) -> None:
    found = factors({"length": "nm", "time": "ps", **units})
    (note,) = found.unknown
    assert repr(*units.values()) in note and note in found.notes


def test_readers_warn_of_a_unit_that_is_not_known(tmp_path: Path) -> None:
    schema = mrec.Schema().block("atoms", rows=1).column("x", "f64").column("y", "f64").column("z", "f64")
    with mrec.TrajectoryWriter(tmp_path / "x.mrec", schema, units={"length": "sigma"}) as writer:
        writer.append(0, atoms={"xyz": np.zeros((1, 3))})
    with pytest.warns(
        UserWarning, match="lengths are in 'sigma', which is not known here; they are taken for angstrom"
    ):
        Coordinates(tmp_path / "x.mrec")

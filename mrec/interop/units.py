# SPDX-License-Identifier: BSD-3-Clause
"""Units by the names that `meta["units"]` holds, as factors to angstrom, ps and kJ/mol, or other times and energies."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

_LENGTH = {"angstrom": 1.0, "a": 1.0, "å": 1.0, "nm": 10.0, "pm": 0.01, "um": 1e4, "m": 1e10, "cm": 1e8}
_LENGTH |= {"nanometer": 10.0, "picometer": 0.01, "bohr": 0.529177210903, "a0": 0.529177210903, "au": 0.529177210903}
_TIME = {"ps": 1.0, "fs": 1e-3, "ns": 1e3, "us": 1e6, "s": 1e12, "akma": 0.04888821, "aut": 2.4188843265857e-5}
_TIME |= {"picosecond": 1.0, "femtosecond": 1e-3, "nanosecond": 1e3, "au": 2.4188843265857e-5}
_ENERGY = {"kj/mol": 1.0, "kcal/mol": 4.184, "ev": 96.48533212, "hartree": 2625.4996394799, "au": 2625.4996394799}


@dataclass
class Factors:
    """What to multiply numbers by; notes: what had to be taken for granted; unknown: of these, what the record says."""

    length: float = 1.0
    time: float = 1.0
    velocity: float = 1.0
    force: float = 1.0
    energy: float = 1.0
    notes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def warn(self) -> None:
        """A warning for each unit that the record names and that is not known here, for those who read no notes."""
        for text in self.unknown:
            warnings.warn(text, UserWarning, stacklevel=2)


def factors(units: Mapping[str, object], to_time: str = "ps", to_energy: str = "kJ/mol") -> Factors:
    """The factors from a record's units. A unit that is not said, or not known, counts as the one it goes to.

    A factor between equal units is exactly 1.
    """
    clock, joule = _TIME[to_time.lower()], _ENERGY[to_energy.lower()]
    found = Factors()
    length, time = _simple(units, "length", _LENGTH), _simple(units, "time", _TIME)
    found.length = _or(found, length, "lengths", "angstrom", units.get("length"))
    found.time = _or(found, _over(time, clock), "times", to_time, units.get("time"))
    energy = _over(_simple(units, "energy", _ENERGY), joule)
    found.energy = _or(found, energy, "energies", to_energy, units["energy"]) if "energy" in units else 1.0
    velocity, force = (str(units[kind]) if kind in units else None for kind in ("velocity", "force"))
    if velocity is None:
        found.velocity = found.length / found.time
    else:
        found.velocity = _or(
            found, _over(_ratio(velocity, _LENGTH, _TIME), 1 / clock), "velocities", f"angstrom/{to_time}", velocity
        )
    if force is None:
        found.force = found.energy / found.length
    else:
        found.force = _or(
            found, _over(_ratio(force, _ENERGY, _LENGTH), joule), "forces", f"{to_energy}/angstrom", force
        )
    return found


def _simple(units: Mapping[str, object], kind: str, table: Mapping[str, float]) -> float | None:
    return _known(str(units.get(kind, "")), table)


def _known(name: str, table: Mapping[str, float]) -> float | None:
    """The factor of a unit, also under "nanometers" and "nanometre"; None for one that is not in the table."""
    name = name.strip().lower().replace("metre", "meter")
    found = table.get(name)
    return table.get(name[:-1]) if found is None and len(name) > 4 and name.endswith("s") else found


def _over(factor: float | None, target: float) -> float | None:
    return None if factor is None else factor / target


def _ratio(unit: str, above: Mapping[str, float], below: Mapping[str, float]) -> float | None:
    """ "nm/ps", "kJ/mol/nm", "kJ/(mol*nm)", "kcal mol-1 angstrom-1" is not known."""
    text = unit.lower().replace(" ", "").replace("(mol*", "mol/").rstrip(")")
    head, _, tail = text.rpartition("/")
    numerator, denominator = _known(head, above), _known(tail, below)
    return None if numerator is None or denominator is None else numerator / denominator


def _or(found: Factors, factor: float | None, what: str, target: str, unit: object) -> float:
    if factor is not None:
        return factor
    said = f"in {unit!r}, which is not known here" if unit else "without a unit"
    text = f"the record's {what} are {said}; they are taken for {target}"
    found.notes.append(text)
    if unit:
        found.unknown.append(text)
    return 1.0

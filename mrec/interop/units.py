# SPDX-License-Identifier: BSD-3-Clause
"""Units by the names that `meta["units"]` holds, as factors to angstrom, ps and kJ/mol, or other times and energies."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

_LENGTH = {"angstrom": 1.0, "a": 1.0, "å": 1.0, "nm": 10.0, "pm": 0.01, "um": 1e4, "m": 1e10, "cm": 1e8}
_LENGTH |= {"nanometer": 10.0, "nanometre": 10.0, "picometer": 0.01, "picometre": 0.01, "meter": 1e10, "metre": 1e10}
_LENGTH |= {"ångstrom": 1.0, "ångström": 1.0}
_LENGTH |= dict.fromkeys(("bohr", "a0", "au"), 0.529177210903)
_TIME = {"ps": 1.0, "fs": 1e-3, "ns": 1e3, "us": 1e6, "s": 1e12, "akma": 0.04888821, "aut": 2.4188843265857e-5}
_TIME |= {"picosecond": 1.0, "femtosecond": 1e-3, "nanosecond": 1e3, "microsecond": 1e6, "second": 1e12}
_TIME |= {"µs": 1e6, "μs": 1e6, "au": 2.4188843265857e-5}  # U+00B5, U+03BC
_ENERGY = {"kj/mol": 1.0, "kcal/mol": 4.184, "kilojoule/mol": 1.0, "kilocalorie/mol": 4.184}
_ENERGY |= dict.fromkeys(("ev", "electronvolt", "electron_volt"), 96.48533212)
_ENERGY |= dict.fromkeys(("hartree", "eh", "au"), 2625.4996394799)

#: A name with its exponent, and what stands between names.
_PIECE = re.compile(r"(a0|[^\W\d]+)(?:(?:\^|\*\*)?([+-]?1))?|([/()]|[*·\s]+)")


@dataclass
class Factors:
    """What to multiply numbers by.

    notes: what had to be taken for granted; unknown: those of them that are about units which the record says.
    """

    length: float = 1.0
    time: float = 1.0
    velocity: float = 1.0
    force: float = 1.0
    energy: float = 1.0
    notes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def factors(units: Mapping[str, object], to_time: str = "ps", to_energy: str = "kJ/mol") -> Factors:
    """The factors from a record's units. A unit that is not said, or not known, counts as the one it goes to.

    A factor between equal units is exactly 1.
    """
    clock, joule = _TIME[to_time.lower()], _ENERGY[to_energy.lower()]
    found = Factors()
    length, time = _simple(units, "length", _LENGTH), _simple(units, "time", _TIME)
    found.length = _or(found, length, "lengths", "angstrom", units.get("length"))
    found.time = _or(found, _over(time, clock), "times", to_time, units.get("time"))
    energy = _simple(units, "energy", _ENERGY)
    if energy is not None or units.get("energy"):
        found.energy = _or(found, _over(energy, joule), "energies", to_energy, units.get("energy"))
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
    above, below = _read(str(units.get(kind, "")))
    return _value(table, [*above, "/mol"] if below == ["mol"] else above) if below in ([], ["mol"]) else None


def _over(factor: float | None, target: float) -> float | None:
    return None if factor is None else factor / target


def _ratio(unit: str, above: Mapping[str, float], below: Mapping[str, float]) -> float | None:
    """The factor of "nm/ps", "kJ/mol/nm", "kJ/(mol*nm)" or "kJ mol-1 nm-1"."""
    top, bottom = _read(unit)
    if "mol" in bottom:
        bottom.remove("mol")
        top.append("/mol")
    numerator, denominator = _value(above, top), _value(below, bottom)
    return None if numerator is None or denominator is None else numerator / denominator


def _value(table: Mapping[str, float], names: list[str]) -> float | None:
    """The one name, in the singular or the plural."""
    name = names[0].removesuffix("s") if names and len(names[0]) > 3 else "".join(names[:1])
    return table.get("".join([name, *names[1:]]))


def _read(unit: str) -> tuple[list[str], list[str]]:
    """The names above and below the line. None of them when the text is no unit."""
    sides: dict[int, list[str]] = {1: [], -1: []}
    text, at, sign, group = unit.strip().lower(), 0, 1, [1]
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            return [], []
        at = piece.end()
        name, exponent, between = piece.groups()
        if name:
            sides[sign * group[-1] * int(exponent or 1)].append("mol" if name == "mole" else name)
            sign = 1
        elif between == "/":
            sign = -1
        elif between == "(":
            group.append(sign * group[-1])
            sign = 1
        elif between == ")" and len(group) > 1:
            group.pop()
    return sides[1], sides[-1]


def warn_of_unknown(found: Factors, path: str) -> None:
    """Warn of units that the record says and nobody here knows."""
    for text in found.unknown:
        warnings.warn(f"{path}: {text}", stacklevel=3)


def _or(found: Factors, factor: float | None, what: str, target: str, unit: object) -> float:
    if factor is not None:
        return factor
    said = f"in {unit!r}, which is not known here" if unit else "without a unit"
    note = f"the record's {what} are {said}; they are taken for {target}"
    found.notes.append(note)
    if unit:
        found.unknown.append(note)
    return 1.0

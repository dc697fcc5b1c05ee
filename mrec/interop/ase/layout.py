# SPDX-License-Identifier: BSD-3-Clause
"""How ASE's Atoms lie in a record: the names and units that reader and writer share."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from ase.calculators.calculator import all_properties
from ase.io import jsonio

from mrec.dtypes import CANONICAL
from mrec.errors import InvalidValue
from mrec.interop.atoms import KINDS

#: ASE's own, but for times: those are in fs.
UNITS = {"length": "angstrom", "time": "fs", "velocity": "angstrom/fs", "force": "eV/angstrom", "energy": "eV"}
UNITS |= {"mass": "Da", "charge": "e"}

#: Results of a calculator: one value a frame -> how it is kept.
VALUES = {"energy": "f64", "free_energy": "f64", "magmom": "f64", "stress": "f64x6", "dipole": "f64x3",
          "polarization": "f64x3", "dielectric_tensor": "f64x9"}  # fmt: skip
#: One row an atom, under these names. What is beside them is an array of the Atoms.
ROWS = {name: f"result_{name}" for name in all_properties if name not in VALUES and name != "forces"}

#: Names of values that are ASE's energy.
ENERGY = "pe"
INFO = "info"

_TAKEN = {*CANONICAL, *sum(KINDS.values(), ()), *ROWS.values(), "offset", "step_index", "_validity"}
_PREFIX = "array_"


def column_of(array: str) -> str:
    """The column for an array of the Atoms; with a prefix where the format has a meaning of its own for the name, and
    in it a slash as %2F."""
    if array in _TAKEN or array.startswith((_PREFIX, "__")) or "/" in array:
        return _PREFIX + array.replace("%", "%25").replace("/", "%2F")
    return array


def array_of(column: str) -> str:
    """And back."""
    if not column.startswith(_PREFIX):
        return column
    return column.removeprefix(_PREFIX).replace("%2F", "/").replace("%25", "%")


def to_document(info: dict[str, Any]) -> Any:
    """`Atoms.info` as JSON, arrays and complex numbers as ASE writes them. InvalidValue for what has no such form."""
    try:
        return _finite(json.loads(jsonio.encode(info)))
    except TypeError as e:
        raise InvalidValue(f"info cannot be kept: {e}") from None


def from_document(document: Any) -> dict[str, Any]:
    """And back."""
    found: dict[str, Any] = jsonio.decode(json.dumps(_infinite(document)))
    return found


def _finite(value: Any) -> Any:
    """JSON has no numbers for NaN and the infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"__float__": repr(value)}
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value


def _infinite(value: Any) -> Any:
    if isinstance(value, dict):
        return (
            float(value["__float__"]) if value.keys() == {"__float__"} else {k: _infinite(v) for k, v in value.items()}
        )
    return [_infinite(item) for item in value] if isinstance(value, list) else value


def results_of(atoms: Any) -> dict[str, np.ndarray]:
    """What the calculator of the Atoms knows without calculating."""
    if atoms.calc is None:
        return {}
    found = {}
    for name in all_properties:
        try:
            value = atoms.calc.get_property(name, atoms, allow_calculation=False)
        except (NotImplementedError, KeyError):
            continue
        if value is not None:
            found[name] = np.asarray(value, dtype=np.float64)
    return found

# SPDX-License-Identifier: BSD-3-Clause
"""The simulation cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mrec.errors import SchemaError

FloatArray = npt.NDArray[np.float64]

_BARE = (
    "a bare 3x3 cell does not say whether the lattice vectors are its rows or its columns; "
    "use Box.from_rows(h) (ASE, MDAnalysis, mdtraj) or Box.from_columns(h)"
)


class Box:
    """A simulation cell, immutable. Lengths are in the record's unit of length; nothing is converted.

    vectors: f64 (3, 3), the lattice vectors are the COLUMNS. origin: f64 (3,). periodic: bool (3,).
    defined: False says "this system has no cell".

    Make one with `from_rows`, `from_columns`, `from_lengths`, `from_lengths_angles` or `undefined`.

    >>> Box.from_lengths(10, 10, 20).volume
    2000.0
    """

    __slots__ = ("_defined", "_origin", "_periodic", "_vectors")

    def __init__(self, *, vectors: Any, origin: Any = None, periodic: Any = True, defined: bool = True) -> None:
        self._vectors = _floats(vectors, (3, 3), "the cell")
        self._origin = _floats(np.zeros(3) if origin is None else origin, (3,), "the origin of the cell")
        self._periodic = _flags(periodic)
        self._defined = bool(defined)
        if not defined and self._periodic.any():
            raise SchemaError("an undefined cell is not periodic; use Box.undefined()")

    @classmethod
    def from_rows(cls, rows: Any, *, origin: Any = None, periodic: Any = True) -> Box:
        """A cell from a 3x3 array whose ROWS are the lattice vectors (ASE, MDAnalysis, mdtraj)."""
        return cls(vectors=_floats(rows, (3, 3), "the cell").T, origin=origin, periodic=periodic)

    @classmethod
    def from_columns(cls, columns: Any, *, origin: Any = None, periodic: Any = True) -> Box:
        """A cell from a 3x3 array whose COLUMNS are the lattice vectors."""
        return cls(vectors=columns, origin=origin, periodic=periodic)

    @classmethod
    def from_lengths(cls, a: float, b: float, c: float, *, origin: Any = None, periodic: Any = True) -> Box:
        """A rectangular cell along x, y, z. The lengths are finite and above 0."""
        return cls(vectors=np.diag(_lengths(a, b, c)), origin=origin, periodic=periodic)

    @classmethod
    def from_lengths_angles(
        cls,
        a: float,
        b: float,
        c: float,
        alpha: float,
        beta: float,
        gamma: float,
        *,
        origin: Any = None,
        periodic: Any = True,
    ) -> Box:
        """A triclinic cell: lengths, then angles in degrees (alpha between b and c, beta a and c, gamma a and b).

        The first vector lies along x and the second in the xy plane. SchemaError when no cell has these angles.
        """
        a, b, c = _lengths(a, b, c)
        angles = np.array([alpha, beta, gamma], dtype=np.float64)
        cosines = np.where(angles == 90.0, 0.0, np.cos(np.radians(angles)))  # a right angle is exactly right
        sine = 1.0 if gamma == 90.0 else np.sin(np.radians(angles[2]))
        valid = bool(np.all((angles > 0) & (angles < 180)))
        height = -1.0
        if valid:
            shear = (cosines[0] - cosines[1] * cosines[2]) / sine
            height = 1.0 - cosines[1] ** 2 - shear**2
        if not height > 0:
            raise SchemaError(f"no cell has the angles {alpha}, {beta}, {gamma} (degrees)")
        vectors = np.array(
            [
                [a, b * cosines[2], c * cosines[1]],
                [0.0, b * sine, c * shear],
                [0.0, 0.0, c * np.sqrt(height)],
            ]
        )
        return cls(vectors=vectors, origin=origin, periodic=periodic)

    @classmethod
    def undefined(cls) -> Box:
        """ "This system has no cell"."""
        return cls(vectors=np.eye(3), periodic=False, defined=False)

    @classmethod
    def coerce(cls, value: Any) -> Box:
        """A cell from what a user passes: a Box, three lengths, or three lengths and three angles (degrees).

        A bare 3x3 array is refused (SchemaError): it does not say what its rows are.
        """
        if isinstance(value, Box):
            return value
        array = _numbers(value)
        if array is None:
            raise SchemaError(f"{value!r} is no cell; pass a Box, three lengths, or lengths and angles")
        if array.shape == (3,):
            return cls.from_lengths(*array.tolist())
        if array.shape == (6,):
            return cls.from_lengths_angles(*array.tolist())
        if array.shape == (3, 3):
            raise SchemaError(_BARE)
        raise SchemaError(f"no cell has the shape {array.shape}; pass a Box, three lengths, or lengths and angles")

    @property
    def vectors(self) -> FloatArray:
        """f64 (3, 3), the lattice vectors as columns. Read-only."""
        return self._vectors

    @property
    def rows(self) -> FloatArray:
        """f64 (3, 3), the lattice vectors as rows. Read-only."""
        return self._vectors.T

    @property
    def origin(self) -> FloatArray:
        """f64 (3,), the corner of the cell. Read-only."""
        return self._origin

    @property
    def periodic(self) -> npt.NDArray[np.bool_]:
        """bool (3,), along which lattice vectors the system repeats. Read-only."""
        return self._periodic

    @property
    def defined(self) -> bool:
        """False: "this system has no cell"."""
        return self._defined

    @property
    def lengths(self) -> FloatArray:
        """f64 (3,), the lengths of the lattice vectors."""
        lengths: FloatArray = np.sqrt((self._vectors**2).sum(axis=0))
        return lengths

    @property
    def angles(self) -> FloatArray:
        """f64 (3,), alpha, beta, gamma in degrees; NaN where a vector has no length."""
        a, b, c = self.rows
        with np.errstate(invalid="ignore", divide="ignore"):
            cosines = [u @ v / np.sqrt((u @ u) * (v @ v)) for u, v in ((b, c), (a, c), (a, b))]
        angles: FloatArray = np.degrees(np.arccos(np.clip(cosines, -1.0, 1.0)))
        return angles

    @property
    def volume(self) -> float:
        """The volume, never negative."""
        a, b, c = self.rows
        return abs(float(a @ np.cross(b, c)))

    def __eq__(self, other: object) -> bool:
        """Equal bit for bit; undefined cells are equal whatever their vectors."""
        if not isinstance(other, Box):
            return NotImplemented
        return self._bits() == other._bits()

    def __hash__(self) -> int:
        return hash(self._bits())

    def _bits(self) -> tuple[bool, bytes, bytes, bytes]:
        vectors = self._vectors.tobytes() if self._defined else b""
        return self._defined, vectors, self._origin.tobytes(), self._periodic.tobytes()

    def __repr__(self) -> str:
        if not self._defined:
            return "Box.undefined()"
        extra = "" if not self._origin.any() else f", origin={self._origin.tolist()}"
        if not self._periodic.all():
            extra += f", periodic={self._periodic.tolist()}"
        diagonal = np.diagonal(self._vectors)
        if np.array_equal(self._vectors, np.diag(diagonal)) and np.all(diagonal > 0) and np.all(np.isfinite(diagonal)):
            return f"Box.from_lengths({', '.join(map(repr, diagonal.tolist()))}{extra})"
        return f"Box.from_rows({self.rows.tolist()}{extra})"

    def _repr_html_(self) -> str:
        from mrec.display import box_html

        return box_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._vectors, self._origin, self._periodic, self._defined)


def _rebuild(vectors: FloatArray, origin: FloatArray, periodic: npt.NDArray[np.bool_], defined: bool) -> Box:
    return Box(vectors=vectors, origin=origin, periodic=periodic, defined=defined)


def _floats(value: Any, shape: tuple[int, ...], what: str) -> FloatArray:
    array = _numbers(value)
    if array is None:
        raise SchemaError(f"{what} takes numbers, not {value!r}")
    if array.shape != shape:
        raise SchemaError(f"{what} has the shape {shape}, not {array.shape}")
    array.flags.writeable = False
    return array


def _numbers(value: Any) -> FloatArray | None:
    """A new array in C order of what is all numbers within the range of f64; None for anything else."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        return None
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "fiuO":
            return None
        if given.dtype.kind == "O" and any(isinstance(one, (str, bytes)) for one in given.flat):
            return None
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        return None


def _flags(value: Any) -> npt.NDArray[np.bool_]:
    given = np.asarray(value)
    if given.dtype.kind != "b" or given.shape not in ((), (3,)):
        raise SchemaError(f"periodic takes True, False or three of them, not {value!r}")
    flags = np.array(np.broadcast_to(given, (3,)))
    flags.flags.writeable = False
    return flags


def _lengths(*lengths: float) -> list[float]:
    values = [float(length) for length in lengths]
    if not all(0 < length < np.inf for length in values):
        raise SchemaError(f"the lengths of a cell are finite and above 0, not {values}; no cell is Box.undefined()")
    return values

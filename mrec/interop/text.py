# SPDX-License-Identifier: BSD-3-Clause
"""Frames as text that needs no library: extended XYZ, which takes everything, and PDB."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, TextIO

import numpy as np

from mrec.dtypes import json_text
from mrec.errors import MrecError
from mrec.interop.atoms import KINDS, Atoms, AtomSource, standard

_EV = 96.48533212  # kJ/mol
_RESERVED = {"Lattice", "Properties", "pbc", "Origin", "Step", "Time"}
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_LETTERS = {"f": "R", "i": "I", "u": "I", "b": "L", "T": "S", "O": "S", "U": "S"}

Strings = Sequence[str] | Iterable[str]


# ---- extended XYZ ------------------------------------------------------------------------------------------------


def write_extxyz(file: TextIO, source: AtomSource, frames: Iterable[Atoms]) -> int:
    """Every frame with its cell, step, time, per-step values, and all columns of its atoms; the number of frames.

    Numbers are written so that reading them gives the same double.
    """
    taken = 0
    for atoms in frames:
        properties, columns = _properties(source, atoms)
        file.write(f"{len(atoms.positions)}\n{_comment(source, atoms, properties)}\n")
        file.writelines(f"{' '.join(row)}\n" for row in zip(*columns, strict=True))
        taken += 1
    source.note("times are in fs, lengths in angstrom, velocities in angstrom/fs, forces in eV/angstrom")
    lost = [name for name in source.schema.blocks if name != source.block]
    if lost:
        source.note(f"an extended XYZ file has no place for {', '.join(lost)}; dropped")
    return taken


def _properties(source: AtomSource, atoms: Atoms) -> tuple[str, list[Strings]]:
    """ "species:S:1:pos:R:3...", and the text of each column."""
    found = [("species", "S", 1)]
    columns: list[Strings] = [_words(source.names(atoms, "element", "name", "type"))]
    vectors = [("pos", atoms.positions, 1.0), ("velo", atoms.velocities, 1e-3), ("forces", atoms.forces, 1 / _EV)]
    for name, values, factor in vectors:
        if values is not None:
            found.append((name, "R", 3))
            columns += [_texts(column) for column in (values if factor == 1.0 else values * factor).T]
    shown = {"element", *(name for kind in source.kinds for name in KINDS[kind])}
    for name, values in atoms.block.items():
        if name in shown:
            continue
        filled = _filled(values)
        if filled is None or not _BARE.fullmatch(name):
            source.note(f"an extended XYZ file has no place for column {name!r}; dropped")
            continue
        width = math.prod(filled.shape[1:])
        flat = filled.reshape(len(filled), width)
        taken = name in {"species", *(vector for vector, _, _ in vectors)}
        found.append((f"column_{name}" if taken else name, _LETTERS[filled.dtype.kind], width))
        columns += [_texts(column) for column in flat.T]
    return ":".join(f"{name}:{letter}:{width}" for name, letter, width in found), columns


def _filled(values: np.ndarray) -> np.ndarray | None:
    """A column without nulls: NaN and empty text for them. None when the type has no such form."""
    if values.dtype.kind not in _LETTERS or 0 in values.shape[1:]:
        return None
    if not np.ma.getmaskarray(values).any():
        return np.asarray(values)
    if values.dtype.kind == "f":
        return np.ma.filled(values, np.nan)
    return np.ma.filled(values.astype(object), "") if values.dtype.kind in "OTU" else None


def _texts(column: np.ndarray) -> Strings:
    kind = column.dtype.kind
    if kind in "OTU":
        return _words(column.tolist())
    return ["FT"[flag] for flag in column.tolist()] if kind == "b" else map(repr, column.tolist())


def _words(texts: Iterable[Any]) -> list[str]:
    return ["_".join(str(text).split()) or "_" for text in texts]


def _comment(source: AtomSource, atoms: Atoms, properties: str) -> str:
    parts = []
    if atoms.cell is not None:
        parts.append(f'Lattice="{_numbers(atoms.cell.rows.ravel())}"')
        if atoms.cell.origin.any():
            parts.append(f'Origin="{_numbers(atoms.cell.origin)}"')
    parts.append(f"Properties={properties}")
    periodic = [False] * 3 if atoms.cell is None else atoms.cell.periodic.tolist()
    parts.append(f'pbc="{" ".join("FT"[flag] for flag in periodic)}"')
    parts.append(f"Step={atoms.step}")
    if atoms.time is not None:
        parts.append(f"Time={atoms.time * 1e3!r}")
    for name, value in atoms.values.items():
        text = json_text(value) if source.schema.values[name].tag.json else value
        key = f"value_{name}" if name in _RESERVED else name
        parts.append(f"{key if _BARE.fullmatch(key) else _quoted(key)}={_value(text)}")
    return " ".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, np.ndarray):
        texts = ["FT"[item] for item in value.tolist()] if value.dtype.kind == "b" else map(repr, value.tolist())
        return f'"{" ".join(texts)}"'
    if isinstance(value, (bool, np.bool_)):
        return "FT"[bool(value)]
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _numbers(values: np.ndarray) -> str:
    return " ".join(map(repr, values.tolist()))


# ---- PDB ---------------------------------------------------------------------------------------------------------


def write_pdb(file: TextIO, source: AtomSource, frames: Iterable[Atoms]) -> int:
    """One model a frame, positions to 0.001 angstrom, the cell of the first frame; the number of frames."""
    taken, first = 0, None
    for atoms in frames:
        sizes, rotation = (None, None) if atoms.cell is None else standard(atoms.cell, f"frame {atoms.index}")
        if first is None:
            first = atoms
            if sizes is not None:
                a, b, c, alpha, beta, gamma = sizes.tolist()
                file.write(f"CRYST1{a:9.3f}{b:9.3f}{c:9.3f}{alpha:7.2f}{beta:7.2f}{gamma:7.2f} P 1           1\n")
        elif atoms.cell != first.cell:
            source.note("a PDB file has one cell, that of the first frame; the cells of later frames are dropped")
        if rotation is not None:
            source.note("the cell is turned to have a along x and b in the xy plane, and the atoms with it")
        positions = atoms.positions if rotation is None else atoms.positions @ rotation
        file.write(f"MODEL     {(taken + 1) % 10000:4d}\n")
        file.writelines(_pdb_atoms(source, atoms, positions))
        file.write("ENDMDL\n")
        taken += 1
    file.writelines(_pdb_bonds(source, len(first.positions) if first is not None else 0))
    file.write("END\n")
    _note_pdb(source)
    return taken


def _pdb_atoms(source: AtomSource, atoms: Atoms, positions: np.ndarray) -> Iterable[str]:
    low, high = -999.9994, 9999.9994
    if not np.all((positions > low) & (positions < high)):
        raise MrecError(f"frame {atoms.index} has a position beyond -999.999 to 9999.999, which a PDB file "
                        "cannot hold; export to .extxyz")  # fmt: skip
    n = len(positions)
    texts = {name: _column(source, atoms, name) for name in ("name", "res_name", "chain", "icode", "altloc", "element")}
    residues, occupancy, b_factor = (_numbers_of(source, atoms, name, default) for name, default in
                                     (("res_id", 1), ("occupancy", 1.0), ("b_factor", 0.0)))  # fmt: skip
    names = texts["name"] if any(texts["name"]) else source.names(atoms, "element", "type")
    for i, (x, y, z) in enumerate(positions.tolist()):
        element = texts["element"][i][:2]
        yield (
            f"ATOM  {(i + 1) % 100000:5d} {_pdb_name(names[i], element)}{texts['altloc'][i][:1]:1s}"
            f"{texts['res_name'][i][:4] or 'UNK':<4s}{texts['chain'][i][:1]:1s}{int(residues[i]) % 10000:4d}"
            f"{texts['icode'][i][:1]:1s}   {x:8.3f}{y:8.3f}{z:8.3f}{occupancy[i]:6.2f}{b_factor[i]:6.2f}"
            f"          {element.upper():>2s}\n"
        )
    if n > 99999:
        source.note("a PDB file has five digits for the number of an atom; they start again at 100,000")


def _pdb_name(name: str, element: str) -> str:
    """Four characters; the element's last letter stands in the second."""
    name = name[:4]
    return f"{name:<4s}" if len(name) == 4 or len(element) == 2 else f" {name:<3s}"


def _column(source: AtomSource, atoms: Atoms, name: str) -> Sequence[str]:
    found = source.column(atoms, name)
    if found is None or found.dtype.kind not in "OTU":
        return list(repeat("", len(atoms.positions)))
    return [str(text) for text in np.ma.filled(found.astype(object), "").tolist()]


def _numbers_of(source: AtomSource, atoms: Atoms, name: str, default: float) -> list[float]:
    found = source.column(atoms, name)
    if found is None:
        return [default] * len(atoms.positions)
    return list(np.ma.filled(found, default).tolist())


def _pdb_bonds(source: AtomSource, n: int) -> Iterable[str]:
    pairs = source.pairs()
    if len(pairs) and n > 99999:
        source.note("a PDB file has no bonds between more than 99,999 atoms; they are dropped")
        return
    partners: dict[int, list[int]] = {}
    for i, j in (pairs + 1).tolist():
        partners.setdefault(i, []).append(j)
        partners.setdefault(j, []).append(i)
    for i in sorted(partners):
        bonded = sorted(partners[i])
        for k in range(0, len(bonded), 4):
            yield f"CONECT{i:5d}{''.join(f'{j:5d}' for j in bonded[k : k + 4])}\n"


def _note_pdb(source: AtomSource) -> None:
    has = ["steps", *(["times"] if source.frames.times is not None else []), *source.kinds[1:]]
    used = {"x", "y", "z", "name", "element", "res_name", "chain", "icode", "altloc", "res_id", "occupancy", "b_factor"}
    used |= {name for kind in source.kinds for name in KINDS[kind]}
    extra = sorted(source.schema.blocks[source.block].columns.keys() - used)
    others = [name for name in source.schema.blocks if name != source.block]
    source.note(f"a PDB file has no place for {', '.join([*has, *extra, *others, *source.schema.values])}; dropped")

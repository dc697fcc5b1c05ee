# SPDX-License-Identifier: BSD-3-Clause
"""The cell over time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mrec.verify.arrays import Stored
from mrec.verify.report import Log
from mrec.verify.tree import ROOT, Tree
from mrec.verify.updates import read_index

BOX = f"{ROOT}/box"
_WINDOW = 1 << 16


def check_cell(tree: Tree, nstep: int) -> None:
    """The cell of a trajectory, as attributes or as arrays."""
    group = tree.group("box")
    attributes = {} if group is None else group.attributes
    defined = check_defined(tree.log, BOX, attributes)
    vectors = tree.meta("box/vectors")
    fixed = "vectors" in attributes
    # Beside attributes a lone array is what a crash left of the first change.
    changes = vectors is not None and (
        not fixed or tree.meta("box/step_index") is not None or vectors.shape[:1] == (1,)
    )
    if changes:
        _check_changing(tree, nstep, defined)
    elif fixed:
        _check_fixed(tree.log, attributes, defined)


def check_defined(log: Log, where: str, attributes: dict[str, Any]) -> bool:
    """`cell_defined` of a box group."""
    defined = attributes.get("cell_defined", True)
    if not isinstance(defined, bool):
        log.add("box", where, f"cell_defined is {defined!r}")
        return True
    return defined


def _check_fixed(log: Log, attributes: dict[str, Any], defined: bool) -> None:
    vectors = attributes["vectors"]
    if not isinstance(vectors, list) or len(vectors) != 3 or not all(map(_three_numbers, vectors)):
        log.add("box", BOX, f"the attribute vectors is {vectors!r}, not three rows of three numbers")
    if "origin" in attributes and not _three_numbers(attributes["origin"]):
        log.add("box", BOX, f"the attribute origin is {attributes['origin']!r}, not three numbers")
    boundary = attributes.get("boundary", [defined] * 3)
    if not isinstance(boundary, list) or len(boundary) != 3 or not all(isinstance(b, bool) for b in boundary):
        log.add("box", BOX, f"the attribute boundary is {boundary!r}, not three flags")
    elif not defined and any(boundary):
        log.add("box", BOX, "the cell is not defined and has a periodic axis")


def _three_numbers(row: Any) -> bool:
    return isinstance(row, list) and len(row) == 3 and all(map(is_number, row))


def is_number(value: Any) -> bool:
    """Whether a JSON value stands for a double: a number in its range, or the name of one that is not finite."""
    if isinstance(value, str):
        return value in ("NaN", "Infinity", "-Infinity")
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= math.nextafter(math.inf, 0)


def _check_changing(tree: Tree, nstep: int, defined: bool) -> None:
    frames = _frames(tree, nstep)
    if frames is None:
        return
    n = len(frames)
    arrays = {"vectors": tree.array("box/vectors", "f64", (3, 3), n)}
    for name, dtype in (("origin", "f64"), ("boundary", "bool")):
        if n and tree.meta(f"box/{name}") is not None:
            arrays[name] = tree.array(f"box/{name}", dtype, (3,), n)
    for stored in arrays.values():
        if stored is None or stored.rows < n:
            return
        stored.frame_of = lambda row: int(frames[row]) if row < n else None
    _check_cells(tree.log, {name: stored for name, stored in arrays.items() if stored is not None}, frames, defined)


def _frames(tree: Tree, nstep: int) -> np.ndarray | None:
    """The frames of the updates of the cell."""
    vectors = tree.meta("box/vectors")
    assert vectors is not None
    if tree.meta("box/step_index") is not None:
        return read_index(tree, "box/step_index", nstep)
    if vectors.shape[:1] in ((0,), (1,)):
        return np.zeros(min(vectors.shape[0], nstep), np.int64)
    tree.log.add("box", BOX, f"vectors has the shape {list(vectors.shape)} and there is no step_index")
    return None


def _check_cells(log: Log, arrays: dict[str, Stored], frames: np.ndarray, defined: bool) -> None:
    last = b""
    for start in range(0, len(frames), _WINDOW):
        stop = min(start + _WINDOW, len(frames))
        cells = {name: stored.read(start, stop) for name, stored in arrays.items()}
        if any(stored.faults for stored in arrays.values()):
            return
        if not defined and "boundary" in cells and cells["boundary"].any():
            row = start + int(np.flatnonzero(cells["boundary"].any(axis=1))[0])
            log.add("box", f"{BOX}/boundary", "the cell is not defined and has a periodic axis", frame=int(frames[row]))
        for i in range(stop - start):
            bits = b"".join(values[i].tobytes() for values in cells.values())
            if bits == last:
                message = "the cell is bit for bit the one before, and so has no place"
                log.add("carry-forward", BOX, message, frame=int(frames[start + i]))
            last = bits

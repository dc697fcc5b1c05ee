# SPDX-License-Identifier: BSD-3-Clause
"""Metrics: any text as the log of a record, or as the document of its metrics, its observables or a frame.

The first byte says which. What reads is gone on with, and comes to the same once it was made arrays.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import mrec
import mrec.verify
from mrec.errors import MrecError
from tests.flips.stores import ERRORS
from tests.fuzz.place import folder

IS_JSON = True
PLACES = (
    "metrics/metrics.jsonl",
    "metrics/zarr.json",
    "observables/meta/msd/zarr.json",
    "frame/zarr.json",
    "frame/atoms/zarr.json",
    "forcefield/zarr.json",
    "status/zarr.json",
)


@cache
def record() -> Path:
    """A record with every section but a trajectory."""
    path = folder() / "sections.mrec"
    frame = mrec.Frame({"atoms": {"x": [0.0, 1.0]}}, meta={"n": 1, "v": (1.0, 2.0, 3.0)})
    observables = {"msd": mrec.Observable([1.0], "k", "d", False)}
    mrec.create(path, frame=frame, forcefield=frame, status={"state": "x"}, observables=observables)
    with mrec.MetricsLog(path) as log:
        for step in range(3):
            log.log("loss", 1.0, step=step)
    return path


def check(data: bytes) -> None:
    """Put the text in its place, and read, verify, and go on logging."""
    place, text = data[0] if data else 0, data[1:]
    file = record() / PLACES[place % len(PLACES)]
    log, catalog = record() / PLACES[0], record() / PLACES[1]
    held = log.read_bytes(), catalog.read_bytes(), file.read_bytes()
    if place % len(PLACES) == 0 and place & 64:  # as if there were no arrays
        catalog.write_bytes(b'{"zarr_format":3,"node_type":"group"}')
    file.write_bytes(text)
    try:
        look()
    finally:
        catalog.write_bytes(held[1])
        log.write_bytes(held[0])
        file.write_bytes(held[2])


def look() -> None:
    """What reads, reads the same from what was written of it."""
    path = record()
    for read in (
        lambda rec: rec.frame,
        lambda rec: rec.forcefield,
        lambda rec: rec.status,
        lambda rec: dict(rec.observables),
        lambda rec: list(rec.metrics.events()),
    ):
        try:
            with mrec.open(path) as opened:
                read(opened)
        except (*ERRORS, MemoryError):
            pass
    mrec.verify(path)
    try:
        before = curves(path)
        with mrec.MetricsLog(path):
            pass
    except (MrecError, OSError):
        return
    assert curves(path) == before
    assert not [name for name in os.listdir(path) if name.startswith(".")]


def curves(path: Path) -> dict[str, tuple[str, str]]:
    """The metrics in a form that compares, NaN and null steps too."""
    with mrec.open(path) as opened:
        return {key: (repr(s.values.tolist()), repr(s.steps)) for key, s in opened.metrics.items()}

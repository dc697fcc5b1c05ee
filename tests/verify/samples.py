# SPDX-License-Identifier: BSD-3-Clause
"""Sound records to break."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import mrec
from tests.crash import scenario

ATOMS, FRAMES = 8, 12


def regular(path: Path) -> None:
    """A closed record: a regular block, sparse bonds, a fixed cell, progressions, values of several tags, a system."""
    schema = (
        mrec.Schema()
        .block("atoms", rows=ATOMS)
        .column("x", "f64", precision=1e-3)
        .column("y", "f64")
        .column("label", "string")
        .column("tag", "i64", nullable=True)
        .block("bonds", rows=2)
        .column("atomi", "u64")
        .value("pe", "f64")
        .value("note", "json")
    )
    rng = np.random.default_rng(1)
    with mrec.TrajectoryWriter(path, schema, frames_per_chunk=2, chunks_per_shard=3) as writer:
        for i in range(FRAMES):
            atoms = {
                "x": rng.normal(size=ATOMS),
                "y": rng.normal(size=ATOMS),
                "label": [f"{k}:{i}" for k in range(ATOMS)],
                "tag": np.ma.array(np.arange(ATOMS) + i, mask=np.arange(ATOMS) % 3 == i % 3),
            }
            blocks = {"atoms": atoms} | ({"bonds": {"atomi": np.arange(i % 3 + 1, dtype="u8")}} if i % 4 == 1 else {})
            writer.append(10 * i, time=0.5 * i, blocks=blocks, box=[9, 9, 9], pe=-1.5 * i, note={"frame": i})
    with mrec.open(path) as record:
        frame = {"other": {"mass": np.arange(4.0) + 1, "atomi": np.arange(4, dtype="u8"), "q": np.arange(4)}}
        system = mrec.Frame({**frame, "atoms": {"mass": np.ones(ATOMS)}}, meta={"n": 3})
        system.box = mrec.Box.from_lengths(3, 3, 3)
        record.system = system


def changing(path: Path) -> None:
    """A closed record in which every form has ended: index, cell, steps and times stand in arrays."""
    with mrec.TrajectoryWriter(path, scenario.schema(), **scenario.OPTIONS) as writer:
        for i in range(24):
            writer.append(scenario.frame(i))


def crashed(path: Path) -> None:
    """What is on disk of a record whose writer is killed after a durable flush and another one."""
    live = path.with_name("live.mrec")
    with mrec.TrajectoryWriter(live, scenario.schema(), **scenario.OPTIONS) as writer:
        for i in range(17):
            writer.append(scenario.frame(i))
            if i in (13, 16):
                writer.flush(durable=i == 13)
        shutil.copytree(live, path)
    shutil.rmtree(live)


SAMPLES = {sample.__name__: sample for sample in (regular, changing, crashed)}

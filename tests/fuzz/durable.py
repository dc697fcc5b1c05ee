# SPDX-License-Identifier: BSD-3-Clause
"""`.durable`: any text as the durable file of a record whose writer was killed.

The first byte says whether in this boot (when it is even) or one before, and how far to go, as for documents.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import mrec
from mrec._core import boot_id
from mrec.errors import MrecError
from mrec.trajectory.standing import parse_durable
from tests.crash import scenario
from tests.fuzz.place import folder, look

IS_JSON = True
THIS = b"this-boot"  # in an input, in the place of what changes with each start of the machine


@cache
def killed() -> Path:
    """What a kill leaves: frames published after the last durable flush."""
    root = folder()
    with mrec.TrajectoryWriter(root / "live.mrec", scenario.schema(), **scenario.OPTIONS) as writer:
        for i in range(4):
            writer.append(scenario.frame(i))
            writer.flush(durable=i == 2)
        shutil.copytree(root / "live.mrec", root / "killed.mrec")
    return root / "killed.mrec"


def check(data: bytes) -> None:
    """Parse, and read the record."""
    place, text = data[0] if data else 0, data[1:]
    if place % 2 == 0:
        text = text.replace(THIS, boot_id().encode())
    try:
        parse_durable(text, ".durable")
    except MrecError:
        pass
    if place < 64:
        return
    (killed() / "trajectory" / ".durable").write_bytes(text)
    look(killed(), place // 64)

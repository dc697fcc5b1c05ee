# SPDX-License-Identifier: BSD-3-Clause
"""Flipped bits of a record: what reads otherwise than before has to be an error."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mrec
from tests.faults.story import memory
from tests.flips.stores import KINDS, everything

#: Where bytes are flipped: the data files of a directory, its documents, its zip file.
PARTS = ("data", "zarr.json", "zip")


@dataclass
class Row:
    """The flips in one part of one record: how many there were, and how many came to what."""

    kind: str
    part: str
    nbytes: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    silent: list[str] = field(default_factory=list)  # each silent wrong read

    def __str__(self) -> str:
        numbers = [self.outcomes[name] for name in ("error", "same", "silent")]
        return f"{self.kind:9} | {self.part:9} | {self.nbytes:6} | {sum(numbers):6} | {numbers[0]:6} | " + (
            f"{numbers[1]:6} | {numbers[2]}"
        )


HEAD = f"{'record':9} | {'part':9} | {'bytes':>6} | {'flips':>6} | errors |   same | silently wrong"


def flip(kind: str, part: str, most: int | None = None, seed: int = 1, verify: bool = True) -> Row:
    """Flip one bit in each byte of a part, or in `most` of them, and read everything each time."""
    rng = random.Random(f"{kind} {part} {seed}")
    with memory() as folder:
        path = folder / "run.mrec"
        KINDS[kind](path)
        if part == "zip":
            path = Path(mrec.pack(path))
        right = everything(path, verify=verify)
        assert not any(isinstance(value, Exception) for value in right.values()), right
        places = [(file, at) for file in _files(path, part) for at in range(file.stat().st_size)]
        row = Row(kind, part, len(places))
        for file, at in places if most is None else rng.sample(places, min(most, len(places))):
            bit = rng.randrange(8)
            with open(file, "r+b", buffering=0) as out:
                whole = os.pread(out.fileno(), 1, at)
                os.pwrite(out.fileno(), bytes([whole[0] ^ 1 << bit]), at)
                outcome, wrong = compare(right, everything(path, verify=verify))
                os.pwrite(out.fileno(), whole, at)
            row.outcomes[outcome] += 1
            if outcome == "silent":
                row.silent.append(f"{kind} {part}: {file.relative_to(folder)} byte {at} bit {bit}: {wrong}")
        assert everything(path, verify=verify) == right
    return row


def _files(path: Path, part: str) -> list[Path]:
    if part == "zip":
        return [path]
    return [f for f in sorted(path.rglob("*")) if f.is_file() and (f.name == "zarr.json") == (part == "zarr.json")]


def compare(right: dict[str, Any], found: dict[str, Any]) -> tuple[str, list[str]]:
    """ "same", "error", or "silent" and the places that are wrong without an error."""
    if found == right:
        return "same", []
    failed = {place for place, value in found.items() if isinstance(value, Exception)}
    if failed & {"open", "trajectory"}:  # nothing behind it could be asked for
        right = {place: value for place, value in right.items() if place in found}
    wrong = [p for p in right.keys() | found.keys() if p not in failed and found.get(p, p) != right.get(p, p)]
    return ("silent", sorted(wrong)) if wrong else ("error", [])

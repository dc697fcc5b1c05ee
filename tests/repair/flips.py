# SPDX-License-Identifier: BSD-3-Clause
"""One bit of a record flipped anywhere: what a repair keeps is exact."""

from __future__ import annotations

import random
import shutil
from functools import cached_property
from pathlib import Path

import mrec
from mrec.errors import NotARecord
from tests.cli.inside import make
from tests.golden import ROOT as GOLDEN
from tests.repair.check import Frames, check_frames, contents, frames
from tests.verify.samples import SAMPLES


class Flips:
    """Records in a folder, as directories and packed, and damaged copies of them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.random = folder, random.Random(seed)
        (folder / "damaged").mkdir()

    @cached_property
    def records(self) -> list[tuple[Path, Frames]]:
        """Records of all kinds, with their frames; those of molrs among them."""
        for name, sample in (*SAMPLES.items(), ("many", make)):
            sample(self.folder / f"{name}.mrec")
        for name in ("fixed_p3", "ragged"):
            shutil.copytree(GOLDEN / f"{name}.mrec", self.folder / f"{name}.mrec")
        found = [(path, frames(path)) for path in sorted(self.folder.glob("*.mrec"))]
        return found + [(Path(mrec.pack(path)), original) for path, original in found]

    def one(self) -> bool:
        """Flip a bit of one of them and repair it; whether anything was lost.

        Of a directory the zarr.json files and .durable stay as they are: they have no checksum.
        """
        path, original = self.random.choice(self.records)
        damaged, out = self.folder / "damaged" / path.name, self.folder / "damaged/sound.mrec"
        shutil.copytree(path, damaged) if path.is_dir() else shutil.copy(path, damaged)
        where = self._flip(damaged)
        before = contents(damaged)
        ok = self._repair(damaged, out, original, where)
        assert contents(damaged) == before, where
        shutil.rmtree(self.folder / "damaged")
        (self.folder / "damaged").mkdir()
        return not ok

    def _repair(self, damaged: Path, out: Path, original: Frames, where: str) -> bool:
        try:
            report = mrec.repair(damaged, out)
        except NotARecord as e:  # of a packed record with nothing but a trajectory, the marker
            assert damaged.is_file(), where
            assert "trajectory/zarr.json: the CRC-32" in str(e), where
            return False
        try:
            check_frames(report, original, frames(out))
            assert mrec.verify(out).findings == []
        except AssertionError as e:
            raise AssertionError(f"{where}: {report.lines()}") from e
        return report.ok

    def _flip(self, damaged: Path) -> str:
        files = [damaged] if damaged.is_file() else [file for file in sorted(damaged.rglob("c/**/*")) if file.is_file()]
        file = self.random.choice(files)
        data = bytearray(file.read_bytes())
        at, bit = self.random.randrange(len(data)), self.random.randrange(8)
        data[at] ^= 1 << bit
        file.write_bytes(data)
        return f"{file.relative_to(self.folder)}, bit {bit} of byte {at}"

# SPDX-License-Identifier: BSD-3-Clause
"""Print what each fault is found as: `python -m tests.verify.table`."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import mrec
from tests.verify.faults import FAULTS
from tests.verify.samples import SAMPLES


def main() -> None:
    print("| fault | finding |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, sample in SAMPLES.items():
            sample(Path(folder) / f"{name}.mrec")
        for fault in FAULTS:
            path = shutil.copytree(Path(folder) / f"{fault.sample}.mrec", Path(folder) / "broken.mrec")
            fault.seed(path)
            print(f"| {fault.name.replace('_', ' ')} | {mrec.verify(path).findings[0]} |")
            shutil.rmtree(path)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: BSD-3-Clause
"""The directory of a zip file: any bytes as a packed record."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from mrec.errors import MrecError
from mrec.zarr.zipdir import read_directory
from tests.fuzz.place import folder, look

IS_JSON = False


@cache
def packed() -> Path:
    """Where the input is put."""
    return folder() / "run.mrec.zip"


def check(data: bytes) -> None:
    """Parse the directory, whose files then lie in the archive without overlapping; read the record."""
    packed().write_bytes(data)
    fd = os.open(packed(), os.O_RDONLY)
    try:
        entries = read_directory(fd, "run.mrec.zip")
    except MrecError:
        return
    finally:
        os.close(fd)
    names = [entry.name for entry in entries]
    assert len(set(names)) == len(names) and names == sorted(names, key=str.encode)
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.offset):
        assert end <= entry.offset and entry.offset + entry.size <= len(data)
        end = entry.offset + entry.size
    look(packed(), 1)

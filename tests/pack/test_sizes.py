# SPDX-License-Identifier: BSD-3-Clause
"""Where the numbers of a zip file grow out of 16 and 32 bits. (tests/long reads every byte of such files.)"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import mrec
from mrec.pack import write_zip
from mrec.trajectory.closed import Piece, closed_files
from mrec.zarr import zipformat as z
from mrec.zarr.zip import ZipStore
from tests.pack.archives import assert_same, files, make_record

ROOT = Path(__file__).parents[2]
SIZES = [2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1, 2**32]
SLACK = 48 << 20  # what a process may need beyond what it has; a file of gigabytes would show


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return make_record(tmp_path / "run.mrec")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("header", [0, *SIZES])
def test_headers(size, header):
    entry = z.Packed("name", header, size, 7)
    local, central = z.local_header(entry), z.central_header(entry)
    wide, far = size >= 2**32 - 1, header >= 2**32 - 1
    assert len(local) == 30 + 4 + 20 * wide and entry.start == header + len(local)
    fields = z.LOCAL.unpack_from(local)
    assert fields[1] == (45 if wide else 10) and fields[6:9] == (7, min(size, 2**32 - 1), min(size, 2**32 - 1))
    fields = z.CENTRAL.unpack_from(central)
    numbers = [size] * (2 * wide) + [header] * far
    assert fields[1:3] == ((3 << 8 | 45, 45) if numbers else (3 << 8 | 10, 10))
    assert fields[8:10] == (min(size, 2**32 - 1),) * 2 and fields[16] == min(header, 2**32 - 1)
    extra = struct.pack(f"<HH{len(numbers)}Q", 1, 8 * len(numbers), *numbers) if numbers else b""
    assert central[46:] == b"name" + extra


@pytest.mark.parametrize("count", [1, 65534, 65535, 65536, 70000])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("start", SIZES)
def test_end_records(count, size, start):
    raw = z.end_records(count, size, start)
    assert len(raw) == (22 if count < 65535 and max(size, start) < 2**32 - 1 else 22 + 20 + 56)
    fields = z.END.unpack(raw[-22:])
    small = min(count, 65535)
    assert fields == (z.END_SIGNATURE, 0, 0, small, small, min(size, 2**32 - 1), min(start, 2**32 - 1), 0)
    if len(raw) > 22:
        assert z.END64.unpack_from(raw)[1:] == (44, 3 << 8 | 45, 45, 0, 0, count, count, size, start)
        assert z.LOCATOR.unpack_from(raw, 56) == (z.LOCATOR_SIGNATURE, 0, start + size, 1)


@pytest.mark.parametrize("count", [65534, 65535, 65536, 70000])
def test_entries(count, record, tmp_path):
    pieces = list(closed_files(str(record)))
    pieces += [Piece.text(f"more/{i:05}", f"{i}") for i in range(count - len(pieces))]
    path = tmp_path / "x.mrec.zip"
    with open(path, "w+b") as file:
        write_zip(file.fileno(), str(path), pieces)
    store = ZipStore(path)
    assert len(store.entries()) == count and store.get("more/65000") == b"65000"
    assert_same(record, path)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == count and archive.testzip() is None
    run = subprocess.run(["unzip", "-tqq", path], capture_output=True, text=True, check=True)
    assert not run.stdout
    assert (z.END64_SIGNATURE in path.read_bytes()[-98:]) == (count >= 65535)


def pack_with(record: Path, what: str, number: int) -> Path:
    """Pack a record with a file of zeros before all others, so that `what` is `number`; memory and disk stay small.

    what: the size of that entry, the offset of the one after it, or that of the directory.
    """
    others = sum(len(z.local_header(z.Packed(k, 0, len(v)))) + len(v) for k, v in files(record).items())
    size = number - {"size": 0, "offset": 31, "directory": 31 + others}[what]
    with open(record / "a", "wb") as file:
        file.truncate(size)
    code = f"""if True:
        import mrec, resource
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        mrec.pack({str(record)!r})
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) * 1024)
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert int(run.stdout) < SLACK
    packed = record.with_name(record.name + ".zip")
    assert packed.stat().st_size > size and packed.stat().st_blocks * 512 < SLACK
    return packed


def check_numbers(packed: Path, record: Path, what: str, number: int) -> None:
    """The numbers are as wide as they have to be; the entries behind the large one read right, here and in zipfile."""
    with zipfile.ZipFile(packed) as archive:
        first, second = archive.infolist()[:2]
        assert first.filename == "a" and first.file_size == (record / "a").stat().st_size
        found = {"size": first.file_size, "offset": second.header_offset, "directory": archive.start_dir}
        assert found[what] == number
        assert bool(first.extra) == (first.file_size >= 2**32 - 1)
        assert bool(second.extra) == (second.header_offset >= 2**32 - 1)
        with open(packed, "rb") as file:
            file.seek(-98, os.SEEK_END)
            assert (z.END64_SIGNATURE in file.read()) == (archive.start_dir >= 2**32 - 1)
        for info in archive.infolist()[1:]:
            assert archive.read(info) == (record / info.filename).read_bytes()
    store = ZipStore(packed)
    assert store.size("a") == first.file_size
    (record / "a").unlink()
    assert all(store.get(key) == data for key, data in files(record).items())
    assert_same(record, packed)
    assert len(mrec.open(packed).trajectory) == 5


@pytest.mark.parametrize(("what", "number"), [("size", 2**32 - 1), ("offset", 2**32 - 2), ("directory", 2**32 - 1)])
def test_large(what, number, record):
    check_numbers(pack_with(record, what, number), record, what, number)

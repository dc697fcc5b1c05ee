# SPDX-License-Identifier: BSD-3-Clause
"""Zip files that other programs might write: whatever the format allows reads right."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
import zipfile
import zlib
from pathlib import Path

import pytest

import mrec
from mrec.zarr.zip import ZipStore
from tests.pack.archives import MASK16, MASK32, Member, assert_same, build, files, make_record, members, zip64

DESCRIPTORS = {
    "signed": lambda m: b"PK\7\10" + struct.pack("<LLL", zlib.crc32(m.data), len(m.data), len(m.data)),
    "bare": lambda m: struct.pack("<LLL", zlib.crc32(m.data), len(m.data), len(m.data)),
    "wide": lambda m: b"PK\7\10" + struct.pack("<LQQ", zlib.crc32(m.data), len(m.data), len(m.data)),
}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_record(tmp_path_factory.mktemp("foreign") / "run.mrec")


@pytest.fixture
def check(record, tmp_path):
    """Whether a zip file with these bytes reads as the record does, and unpacks to it."""

    def check(raw: bytes, zipfile_too: bool = True) -> None:
        path = tmp_path / "x.mrec.zip"
        path.write_bytes(raw)
        if zipfile_too:  # what we make here is what we think it is
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None
        assert_same(record, path)
        assert files(Path(mrec.unpack(path, tmp_path / "back.mrec"))) == files(record)

    return check


@pytest.fixture
def entries(record) -> list[Member]:
    return members(record)


def test_plain(check, entries):
    check(build(entries))


@pytest.mark.parametrize("adjusted", [False, True])
@pytest.mark.parametrize("end64", [None, {}])
def test_bytes_before_the_archive(check, entries, adjusted, end64):
    check(build(entries, prefix=b"#!/bin/sh\n" + bytes(1000), adjusted=adjusted, end64=end64))


@pytest.mark.parametrize("comment", [b"x", b"a note " * 9000, b"PK\5\6", b"PK\5\6" + bytes(18) + b"and more"])
def test_comment(check, entries, comment):
    check(build(entries, comment=comment), zipfile_too=not comment.startswith(b"PK"))


@pytest.mark.parametrize("order", ["backwards", "directory"])
def test_entries_in_any_order(check, entries, order):
    check(build(entries[::-1] if order == "backwards" else sorted(entries, key=lambda m: len(m.data))))


@pytest.mark.parametrize("kind", DESCRIPTORS)
@pytest.mark.parametrize("zeros", [True, False])
def test_data_descriptors(check, entries, kind, zeros):
    for m in entries:
        m.central["flags"] = m.local["flags"] = 8
        m.descriptor = DESCRIPTORS[kind](m)
        if zeros:
            m.local |= {"crc": 0, "size": 0, "stored": 0}
        if kind == "wide":
            m.local |= {"size": MASK32, "stored": MASK32}
            m.local_extra = zip64(0, 0) if zeros else zip64(len(m.data), len(m.data))
    check(build(entries))


def test_extra_fields(check, entries):
    times = struct.pack("<HHBL", 0x5455, 5, 1, 10**9)
    owner = struct.pack("<HHBBLBL", 0x7875, 11, 1, 4, 0, 4, 0)
    for i, m in enumerate(entries):
        m.local_extra = times + owner if i % 2 else bytes(3)
        m.central_extra = owner + bytes(i % 4) if i % 3 else struct.pack("<HH", 0xCAFE, 0)
        m.comment = b"of an entry" * (i % 2)
    check(build(entries))


@pytest.mark.parametrize("which", range(1, 16))
def test_zip64_fields_in_every_combination(check, entries, which):
    raw = build(entries)  # for the offsets
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        offsets = {info.filename.encode(): info.header_offset for info in archive.infolist()}
    grown = 0
    for m in entries:
        numbers = []
        if which & 3 == 3:
            m.local = {"size": MASK32, "stored": MASK32}
            m.local_extra = zip64(len(m.data), len(m.data))
        for bit, (name, number) in enumerate((("size", len(m.data)), ("stored", len(m.data)))):
            if which & 1 << bit:
                m.central[name] = MASK32
                numbers.append(number)
        if which & 4:
            m.central["header"] = MASK32
            numbers.append(offsets[m.name] + grown)
        extra = zip64(*numbers) if numbers else b""
        if which & 8:  # the disk too
            m.central["disk"] = MASK16
            extra = struct.pack(f"<HH{len(numbers)}QL", 1, 8 * len(numbers) + 4, *numbers, 0)
        m.central_extra = struct.pack("<HHL", 0xBEEF, 4, 1) + extra
        grown += len(m.local_extra)
    check(build(entries), zipfile_too=not which & 8)


@pytest.mark.parametrize("wide", range(32))
def test_zip64_end_records_in_every_combination(check, entries, wide):
    masks = {"count": MASK16, "here": MASK16, "size": MASK32, "start": MASK32, "disk": MASK16}
    end = {name: mask for bit, (name, mask) in enumerate(masks.items()) if wide & 1 << bit}
    check(build(entries, end=end, end64={}), zipfile_too=False)


@pytest.mark.parametrize("prefix", [b"", b"before"])
def test_zip64_end_record_with_data_of_its_own(check, entries, prefix):
    check(build(entries, prefix=prefix, end64={}, extensible=b"PK\6\6" + bytes(100)), zipfile_too=False)


def test_a_locator_that_is_none(check, entries):
    entries[-1].comment = b"PK\6\7" + b"\0" * 12 + b"\1\0\0\0"
    check(build(entries), zipfile_too=False)


def test_directory_entries_and_empty_files(check, entries, tmp_path):
    directories = sorted({m.name[: i + 1] for m in entries for i, c in enumerate(m.name) if c == ord("/")})
    check(build([*(Member(name, b"") for name in directories), Member(b"empty/", b""), *entries]))


@pytest.mark.parametrize("how", ["flag", "field", "cp437"])
def test_names(entries, tmp_path, how):
    name = "wässrig/é"
    m = Member(name.encode(), b"data")
    if how == "flag":
        m.local = m.central = {"flags": 0x800}
    elif how == "cp437":
        m.name = name.encode("cp437")
    else:
        m.name = b"w_ssrig/_"
        m.central_extra = struct.pack("<HHBL", 0x7075, 5 + len(name.encode()), 1, zlib.crc32(m.name)) + name.encode()
    path = tmp_path / "x.zip"
    path.write_bytes(build([*entries, m]))
    store = ZipStore(path)
    assert store.get(name) == b"data" and store.names() == ["meta", "system", "trajectory", "wässrig"]
    stale = struct.pack("<HHBL", 0x7075, 9, 1, 0) + b"lies"
    path.write_bytes(build([*entries, Member(b"honest", b"1", central_extra=stale)]))
    assert ZipStore(path).get("honest") == b"1"


def test_zip_of_info_zip(check, record, tmp_path):
    if shutil.which("zip") is None:
        pytest.skip("there is no zip")
    subprocess.run(["zip", "-0", "-q", "-r", tmp_path / "made.zip", "."], cwd=record, check=True)
    check((tmp_path / "made.zip").read_bytes())
    (tmp_path / "made.zip").unlink()
    shutil.rmtree(tmp_path / "back.mrec")
    with open(tmp_path / "made.zip", "wb") as out:  # as a stream
        listing = "\n".join(files(record))
        subprocess.run(["zip", "-0", "-q", "-", "-@"], cwd=record, input=listing, text=True, stdout=out, check=True)
    check((tmp_path / "made.zip").read_bytes())


@pytest.mark.parametrize("force", [False, True])
def test_zip_of_python(check, record, tmp_path, force):
    with zipfile.ZipFile(tmp_path / "made.zip", "w", strict_timestamps=False) as archive:
        archive.mkdir("meta")
        for key, data in files(record).items():
            with archive.open(zipfile.ZipInfo(key), "w", force_zip64=force) as file:
                file.write(data)
    check((tmp_path / "made.zip").read_bytes())


def test_zip_of_zarr_python(check, record, tmp_path):
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(tmp_path / "made.zip", mode="w") as store:
        for key, data in files(record).items():
            store._set(key, zarr.core.buffer.default_buffer_prototype().buffer.from_bytes(data))
    check((tmp_path / "made.zip").read_bytes())

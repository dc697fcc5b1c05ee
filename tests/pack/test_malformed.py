# SPDX-License-Identifier: BSD-3-Clause
"""Zip files that contradict themselves, or can not be read in place: refused by name, and nothing is left."""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import mrec
from mrec.errors import CorruptData, MrecError, UnsupportedCodec
from tests.pack.archives import MASK16, MASK32, Member, build, make_record, members, zip64

X = "trajectory/atoms/x/zarr.json"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_record(tmp_path_factory.mktemp("malformed") / "run.mrec")


@pytest.fixture
def entries(record) -> list[Member]:
    return members(record)


def only(entries: list[Member], name: str = X) -> Member:
    return next(m for m in entries if m.name == name.encode())


def change(entries: list[Member], *, both: dict | None = None, **fields) -> bytes:
    m = only(entries)
    m.local |= both or {}
    m.central |= both or {}
    for name, value in fields.items():
        setattr(m, name, value)
    return build(entries)


def with_name(name: str, data: bytes = b"", **fields) -> Callable[[list[Member]], bytes]:
    return lambda e: build([*e, Member(name.encode(), data, **fields)])


def overlapping(entries: list[Member]) -> bytes:
    """Two entries of the directory with one local header."""
    at = build(entries).index(only(entries).name) - 30
    again = Member(b"other", only(entries).data, central={"header": at})
    return build([*entries, again])


def inside(entries: list[Member]) -> bytes:
    """An entry whole inside the bytes of another."""
    inner = Member(b"inner", b"1234")
    stored = build([inner])[: 30 + 5 + 4]
    outer = Member(b"outer", stored)
    raw = build([*entries, outer])
    inner.central["header"] = raw.index(stored)
    return build([*entries, outer, inner])


def deflated(entries: list[Member]) -> bytes:
    m = only(entries)
    packed = zlib.compress(m.data, wbits=-15)
    right = {"method": 8, "crc": zlib.crc32(m.data), "size": len(m.data)}
    m.data, m.local, m.central = packed, dict(right), dict(right)
    return build(entries)


def splice(old: bytes, new: bytes, last: bool = True) -> Callable[[list[Member]], bytes]:
    def make(entries: list[Member]) -> bytes:
        raw = build(entries)
        at = raw.rindex(old) if last else raw.index(old)
        return raw[:at] + new + raw[at + len(old) :]

    return make


MALFORMED: dict[str, tuple[Callable[[list[Member]], bytes], type[MrecError], str]] = {
    "a name twice": (with_name(X), CorruptData, f"'{X}' stands twice"),
    "a name twice in two encodings": (
        lambda e: build([*e, Member("é".encode(), b"", {"flags": 2048}, {"flags": 2048}), Member(b"\x82", b"")]),
        CorruptData,
        "'é' stands twice",
    ),
    "a file in a file": (with_name("zarr.json/x"), CorruptData, "'zarr.json' is a file, and others are in it"),
    "one local header for two": (overlapping, CorruptData, "'other'"),
    "an entry in another": (inside, CorruptData, "overlap"),
    "deflated": (deflated, UnsupportedCodec, f"'{X}' is deflated"),
    "an unknown method": (lambda e: change(e, both={"method": 77}), UnsupportedCodec, "method 77"),
    "encrypted": (lambda e: change(e, both={"flags": 1}), UnsupportedCodec, f"'{X}' is encrypted"),
    "strongly encrypted": (lambda e: change(e, both={"flags": 65}), UnsupportedCodec, f"'{X}' is encrypted"),
    "masked headers": (lambda e: change(e, both={"flags": 1 << 13}), UnsupportedCodec, "encrypted"),
    "..": (with_name("../outside", b"x"), CorruptData, "'../outside'"),
    ".. inside": (with_name("a/../../outside", b"x"), CorruptData, "'a/../../outside'"),
    "absolute": (with_name("/outside", b"x"), CorruptData, "'/outside'"),
    "a dot": (with_name("./x", b"x"), CorruptData, r"'\./x'"),
    "an empty part": (with_name("a//b"), CorruptData, "'a//b'"),
    "an empty name": (with_name(""), CorruptData, "''"),
    "a NUL": (with_name("a\0b"), CorruptData, "no name inside"),
    "a name that is not UTF-8": (
        lambda e: build([*e, Member(b"\xff", b"", {"flags": 2048}, {"flags": 2048})]),
        CorruptData,
        "not UTF-8",
    ),
    "a link": (with_name("link", b"/etc/passwd", central={"external": 0o120777 << 16}), CorruptData, "'link'.*link"),
    "a directory with bytes": (with_name("dir/", b"x"), CorruptData, "'dir/' is a directory with 1 bytes"),
    "another name before the bytes": (lambda e: change(e, local_name=b"x" * len(X)), CorruptData, "contradicts"),
    "a longer name before the bytes": (lambda e: change(e, local_name=X.encode() + b"x"), CorruptData, "contradicts"),
    "another size": (lambda e: change(e, local={"size": 1, "stored": 1}), CorruptData, f"'{X}'.*contradicts"),
    "another checksum": (lambda e: change(e, local={"crc": 1}), CorruptData, f"'{X}'.*contradicts"),
    "another method": (lambda e: change(e, local={"method": 8}), CorruptData, f"'{X}'.*contradicts"),
    "encrypted by its local header": (lambda e: change(e, local={"flags": 1}), CorruptData, f"'{X}'.*contradicts"),
    "a name in another encoding": (
        lambda e: build([*e, Member("é".encode(), b"", {}, {"flags": 2048})]),
        CorruptData,
        "contradicts",
    ),
    "streamed, with another size": (
        lambda e: change(e, local={"flags": 8, "crc": 0, "size": 0, "stored": 7}, central={"flags": 8}),
        CorruptData,
        "contradicts",
    ),
    "stored in more bytes than it has": (lambda e: change(e, both={"stored": 10**6}), CorruptData, f"'{X}'"),
    "larger than the file": (lambda e: change(e, both={"stored": 10**9, "size": 10**9}), CorruptData, f"'{X}' reaches"),
    "ZIP64, larger than all": (
        lambda e: change(
            e,
            both={"stored": MASK32, "size": MASK32},
            local_extra=zip64(2**64 - 1, 2**64 - 1),
            central_extra=zip64(2**64 - 1, 2**64 - 1),
        ),
        CorruptData,
        f"'{X}' reaches",
    ),
    "ZIP64, a header past the end": (
        lambda e: change(e, central={"header": MASK32}, central_extra=zip64(2**64 - 30)),
        CorruptData,
        f"'{X}' begins",
    ),
    "a ZIP64 field too short": (
        lambda e: change(e, both={"size": MASK32, "stored": MASK32}, central_extra=zip64(5)),
        CorruptData,
        f"'{X}'.*too short",
    ),
    "no local header": (lambda e: change(e, central={"header": 3}), CorruptData, f"'{X}'.*no local header"),
    "a header in the directory": (lambda e: change(e, central={"header": 10**6}), CorruptData, f"'{X}' begins"),
    "extra fields that reach too far": (
        lambda e: change(e, central_extra=struct.pack("<HH", 5, 9)),
        CorruptData,
        "extra field",
    ),
    "on another disk": (lambda e: change(e, central={"disk": 1}), CorruptData, "another disk"),
    "in several files": (lambda e: build(e, end={"disk": 1, "first": 1}), CorruptData, "several files"),
    "in several files by ZIP64": (lambda e: build(e, end64={}, locator={"disks": 2}), CorruptData, "several files"),
    "two counts": (lambda e: build(e, end={"here": 1}), CorruptData, "several files"),
    "a count too high": (lambda e: build(e, end={"count": 99, "here": 99}), CorruptData, "no room|is none"),
    "a count too low": (lambda e: build(e, end={"count": 2, "here": 2}), CorruptData, "between the directory"),
    "a huge count": (lambda e: build(e, end={"count": MASK16, "here": MASK16}, end64={"count": 2**63, "here": 2**63}),
                     CorruptData, "no room"),
    "a directory larger than the file": (lambda e: build(e, end={"size": 10**9}), CorruptData, "no room"),
    "a directory past the end": (lambda e: build(e, end={"start": 10**9}), CorruptData, "no room"),
    "a gap behind the directory": (lambda e: build(e, gap=b"gap"), CorruptData, "is none"),
    "end records that differ": (lambda e: build(e, end64={"count": 3, "here": 3}), CorruptData, "contradict"),
    "a ZIP64 end record elsewhere": (
        lambda e: build(e, end={"start": MASK32}, end64={"length": 45}),
        CorruptData,
        "no room",
    ),
    "a broken directory": (splice(b"PK\1\2", b"PK\1\3"), CorruptData, "is none"),
    "bytes behind the end": (lambda e: build(e) + b"x", CorruptData, "its end is missing"),
    "nothing": (lambda e: b"", CorruptData, "no zip file"),
    "an empty archive": (lambda e: build([]), MrecError, "zarr.json"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed(kind, entries, tmp_path):
    make, error, message = MALFORMED[kind]
    path = tmp_path / "in" / "x.mrec.zip"
    path.parent.mkdir()
    path.write_bytes(make(entries))
    for call in (mrec.open, mrec.unpack):
        with pytest.raises(error, match=message) as raised:
            call(path)
        assert str(path) in str(raised.value)
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*")] == ["in", "in/x.mrec.zip"]


@pytest.mark.parametrize("form", [{}, {"end64": {}}, {"comment": b"PK\5\6" * 20}])
def test_cut_at_each_of_the_last_bytes(form, entries, tmp_path):
    raw = build(entries, **form)
    path = tmp_path / "x.mrec.zip"
    for n in [*range(1, 201), len(raw) // 2, len(raw) - 1]:
        path.write_bytes(raw[:-n])
        for call in (mrec.open, mrec.unpack):
            with pytest.raises(CorruptData):
                call(path)
    assert [p.name for p in tmp_path.iterdir()] == ["x.mrec.zip"]


def test_damage_anywhere_is_refused_or_harmless(record, entries, tmp_path):
    """One byte of a header changed: an error of ours, or a record that reads right."""
    rng = random.Random(3)
    raw = build(entries, end64={})
    path = tmp_path / "x.mrec.zip"
    directory = raw.index(b"PK\1\2")
    places = [*range(directory, len(raw)), *(raw.index(m.name) - k for m in entries for k in range(1, 31))]
    for at in rng.sample(places, 500):
        damaged = bytearray(raw)
        damaged[at] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            with mrec.open(path) as rec:
                frames = list(rec.trajectory)
        except (MrecError, FileNotFoundError):
            continue
        assert [frame.step for frame in frames] == [0, 1, 4, 9, 16], at
        assert [frame["atoms"]["x"][2] for frame in frames] == [2, 3, 4, 5, 6], at

# SPDX-License-Identifier: BSD-3-Clause
"""Zip files made by hand, each header field free to be wrong, and small records to put into them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import mrec
from mrec.zarr import zipformat as z

MASK16, MASK32 = 0xFFFF, 0xFFFFFFFF
_LOCAL = ("signature", "version", "flags", "method", "time", "date", "crc", "stored", "size", "nname", "nextra")
_CENTRAL = (
    *("signature", "made_by", "version", "flags", "method", "time", "date", "crc", "stored", "size"),
    *("nname", "nextra", "ncomment", "disk", "internal", "external", "header"),
)
_END = ("signature", "disk", "first", "here", "count", "size", "start", "ncomment")
_END64 = ("signature", "length", "made_by", "version", "disk", "first", "here", "count", "size", "start")
_LOCATOR = ("signature", "disk", "at", "disks")


@dataclass
class Member:
    """An entry. local, central: fields of its headers that are to be other than right."""

    name: bytes
    data: bytes
    local: dict[str, int] = field(default_factory=dict)
    central: dict[str, int] = field(default_factory=dict)
    local_name: bytes | None = None
    local_extra: bytes = b""
    central_extra: bytes = b""
    descriptor: bytes = b""
    comment: bytes = b""


def build(
    members: Iterable[Member],
    *,
    prefix: bytes = b"",
    adjusted: bool = False,
    comment: bytes = b"",
    end: Mapping[str, int] | None = None,
    end64: Mapping[str, int] | None = None,
    locator: Mapping[str, int] | None = None,
    extensible: bytes = b"",
    gap: bytes = b"",
) -> bytes:
    """The bytes of a zip file. adjusted: offsets count the prefix. end64: there is a ZIP64 end record, with changes."""
    out, directory = bytearray(prefix), bytearray()
    shift = 0 if adjusted else len(prefix)
    count = 0
    for m in members:
        header = len(out) - shift
        name = m.name if m.local_name is None else m.local_name
        common = {"version": 10, "date": 33, "crc": zlib.crc32(m.data), "stored": len(m.data), "size": len(m.data)}
        out += _fill(z.LOCAL, _LOCAL, common, m.local, signature=0x04034B50, nname=len(name), nextra=len(m.local_extra))
        out += name + m.local_extra + m.data + m.descriptor
        directory += _fill(
            z.CENTRAL, _CENTRAL, common, m.central, signature=0x02014B50, made_by=3 << 8 | 10, nname=len(m.name),
            nextra=len(m.central_extra), ncomment=len(m.comment), external=0o100644 << 16, header=header,
        )  # fmt: skip
        directory += m.name + m.central_extra + m.comment
        count += 1
    start = len(out) - shift
    out += directory + gap
    numbers = {"here": count, "count": count, "size": len(directory), "start": start}
    if end64 is not None:
        at = len(out) - shift
        out += _fill(z.END64, _END64, numbers, end64, signature=0x06064B50, length=44 + len(extensible), version=45)
        out += extensible + _fill(z.LOCATOR, _LOCATOR, {}, locator or {}, signature=0x07064B50, at=at, disks=1)
    out += _fill(z.END, _END, numbers, end or {}, signature=0x06054B50, ncomment=len(comment)) + comment
    return bytes(out)


def _fill(
    form: struct.Struct, names: tuple[str, ...], common: Mapping[str, int], wrong: Mapping[str, int], **right: int
) -> bytes:
    values = {**dict.fromkeys(names, 0), **{k: v for k, v in common.items() if k in names}, **right, **wrong}
    signature = values["signature"].to_bytes(4, "little")
    return form.pack(signature, *(values[name] for name in names[1:]))


def zip64(*numbers: int, kind: int = 1) -> bytes:
    """An extra field of 8-byte numbers."""
    return struct.pack(f"<HH{len(numbers)}Q", kind, 8 * len(numbers), *numbers)


# ---- records -----------------------------------------------------------------------------------------------------


def make_record(path: Path, frames: int = 5, **options: Any) -> Path:
    """A closed record with several kinds of arrays."""
    schema = mrec.Schema().block("atoms", rows=3).column("x", "f64", precision=1e-3).column("name", "string")
    schema = schema.block("bonds", rows=1).column("atomi", "u64").value("pe", "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False, meta={"title": "é"}, **options) as writer:
        for i in range(frames):
            atoms = {"x": np.arange(3.0) + i, "name": [f"a{i}", "b", ""]}
            bonds = {"atomi": np.arange(i % 2 + 1, dtype=np.uint64)}
            writer.append(i * i, time=0.5 * i, box=[3, 4, 5 + i], atoms=atoms, bonds=bonds, pe=-i)
    with mrec.open(path) as record:
        record.system = mrec.Frame({"atoms": {"mass": [1.0, 2.0, 3.0], "element": ["O", "H", "H"]}})
    return path


def files(path: Path) -> dict[str, bytes]:
    """What is in a directory: key -> bytes, sorted."""
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def members(path: Path) -> list[Member]:
    """The files of a directory as entries."""
    return [Member(key.encode(), data) for key, data in sorted(files(path).items())]


def assert_same(a: Path | str, b: Path | str) -> None:
    """Two records read alike, bit for bit."""
    with mrec.open(a) as one, mrec.open(b) as two:
        assert one.meta == two.meta and one.sections == two.sections
        for section in ("system", "frame"):
            if section in one:
                _assert_same_frame(getattr(one, section), getattr(two, section))
        if "trajectory" in one:
            assert len(one.trajectory) == len(two.trajectory)
            for left, right in zip(one.trajectory, two.trajectory, strict=True):
                _assert_same_frame(left, right)


def _assert_same_frame(a: mrec.Frame, b: mrec.Frame) -> None:
    assert (a.step, a.time, a.blocks.keys(), a.values.keys()) == (b.step, b.time, b.blocks.keys(), b.values.keys())
    assert repr(a.box) == repr(b.box) and (a.box is None or a.box.vectors.tobytes() == b.box.vectors.tobytes())
    for name, value in a.values.items():
        assert np.array_equal(value, b.values[name], equal_nan=isinstance(value, float))
    for (_, _, one), (_, _, two) in zip(_columns(a), _columns(b), strict=True):
        assert one.dtype == two.dtype and np.array_equal(np.ma.getmaskarray(one), np.ma.getmaskarray(two))
        if one.dtype.kind == "T":
            assert one.tolist() == two.tolist()
        else:
            assert np.ma.getdata(one).tobytes() == np.ma.getdata(two).tobytes()


def _columns(frame: mrec.Frame) -> Iterator[tuple[str, str, Any]]:
    return ((block, name, frame[block][name]) for block in frame.blocks for name in frame[block])

# SPDX-License-Identifier: BSD-3-Clause
"""The container's footer: what is read of it, and how damage of each part is told."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import msgpack
import pytest

import mrec
from mrec.errors import CorruptData, UnsupportedVersion

zstandard: Any = pytest.importorskip("zstandard")

#: A container with one data set of no arrays, taken apart.
WHOLE: list[Any] = [8, "Zstd", 1_700_000_000_000, ["x", "k"], ["int8"], [[[], [], []]], [], [["a", 0]]]


def container(path: Path, parts: Any, sized: bool = True, after: bytes = b"") -> Path:
    """A container of a footer alone. sized: whether its frame says how long it is."""
    path.mkdir(exist_ok=True)
    text = (parts if isinstance(parts, bytes) else msgpack.packb(parts)) + after
    stored = zstandard.ZstdCompressor(write_content_size=sized).compress(text)
    end = struct.pack("<QI", len(stored), 8) + b"ATLS"
    (path / "data.atlas").write_bytes(b"ATLS" + struct.pack("<I", 8) + stored + end)
    return path


@pytest.mark.parametrize("sized", [True, False])
def test_read(sized: bool, tmp_path: Path) -> None:
    names = [f"a name {i} é" for i in range(70_000)]
    parts = [*WHOLE[:7], [[name, 0] for name in names]]
    found = mrec.open_collection(container(tmp_path / "set", parts, sized))
    assert found.names == names and found[names[-1]].ordinal == 69_999
    assert found.created.astype(int) == 1_700_000_000_000 and found.codec == "zstd"


def changed(part: int, value: Any) -> list[Any]:
    return [*WHOLE[:part], value, *WHOLE[part + 1 :]]


@pytest.mark.parametrize(
    "parts",
    [
        5,
        WHOLE[:7],
        [*WHOLE, 1],
        changed(1, 5),
        changed(2, "now"),
        changed(3, "ab"),
        changed(3, [b"x"]),
        changed(4, ["int9"]),
        changed(4, [{"list": ["int8"], "map": []}]),
        changed(4, [{"list": [["int8"]]}]),
        changed(4, [{"list": [{"list": ["int8"]}]}]),
        changed(4, [["int8"]]),
        changed(5, [[[], []]]),
        changed(5, [[[[0, 0]], [], []]]),  # an array whose variable is not there
        changed(5, [[[], [[2, 0]], []]]),
        changed(5, [[[], [[0, 1]], []]]),
        changed(5, [[[], [[0, -1]], []]]),
        changed(5, [[[], [[0, 0], [0, 0]], []]]),
        changed(5, [[[], [], [[0, []]]]]),
        changed(5, [[[], [[0, 0]], []]]),  # attributes of a data set without their variable
        changed(6, {}),
        changed(6, [[0, 8]]),
        changed(6, [[0, 8, 1 << 60]]),
        changed(6, [[0, 7, 1]]),
        changed(6, [[0, 8, -1]]),
        changed(6, [[0, 8, 0], [0, 8, 0]]),
        changed(6, [[0, 8, 4], [1, 10, 4]]),
        changed(7, {}),
        changed(7, ["a"]),
        changed(7, [["a"]]),
        changed(7, [["a", 0, 0]]),
        changed(7, [[b"a", 0]]),
        changed(7, [["a", "0"]]),
        changed(7, [["a", 1]]),
        changed(7, [["a", -1]]),
        changed(7, [["a", 1 << 63]]),
        changed(7, [["a", 0], ["a", 0]]),
        changed(0, [[[[[[[[[8]]]]]]]]]),
    ],
    ids=repr,
)
def test_damage(parts: Any, tmp_path: Path) -> None:
    with pytest.raises(CorruptData, match=r"data\.atlas"):
        mrec.open_collection(container(tmp_path / "set", parts))


def test_what_is_not_one_item(tmp_path: Path) -> None:
    whole = msgpack.packb(WHOLE)
    for n in range(len(whole)):
        with pytest.raises(CorruptData):
            mrec.open_collection(container(tmp_path / "set", whole[:n]))
    with pytest.raises(CorruptData, match="follow"):
        mrec.open_collection(container(tmp_path / "set", whole, after=b"\0"))
    with pytest.raises(CorruptData):  # more data sets than there are bytes
        mrec.open_collection(container(tmp_path / "set", whole[: whole.rindex(b"\x91\x92")] + b"\xdd\xff\xff\xff\xff"))


def test_another_version_inside(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedVersion):
        mrec.open_collection(container(tmp_path / "set", changed(0, 9)))


def test_a_frame_that_says_it_is_huge(tmp_path: Path) -> None:
    """Neither memory nor time for what the bytes cannot hold."""
    path = container(tmp_path / "set", bytes(1 << 20)) / "data.atlas"
    data = path.read_bytes()
    with pytest.raises(CorruptData):
        mrec.open_collection(path.parent)
    at = data.index(b"\x28\xb5\x2f\xfd") + 4
    assert data[at] >> 6 == 2  # four bytes say how long it is
    size_at = at + 1 + (not data[at] >> 5 & 1)
    path.write_bytes(data[:size_at] + b"\xff\xff\xff\xff" + data[size_at + 4 :])
    with pytest.raises(CorruptData):
        mrec.open_collection(path.parent)

# SPDX-License-Identifier: BSD-3-Clause
"""What `mrec.open` may be told: how much is kept, and that checksums are left alone."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import CorruptData, InvalidValue
from tests.flips.stores import KINDS, everything

ATOMS, FRAMES = 5000, 12


def large(path: Path, precision: float | None = None) -> np.ndarray:
    """A frame of x a chunk; what was written."""
    x = np.rint(np.random.default_rng(0).normal(size=(FRAMES, ATOMS)) * 1024) / 1024
    schema = mrec.Schema().block("atoms", rows=ATOMS).column("x", "f64", precision=precision)
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for i in range(FRAMES):
            writer.append(i, atoms={"x": x[i]})
    return x


@pytest.mark.parametrize("options", [{"verify": False}, {"cache": 0}, {"cache": "1 kB"}, {"cache": 1 << 30}])
@pytest.mark.parametrize("kind", KINDS)
def test_the_values_are_the_same(tmp_path: Path, kind: str, options: dict[str, object]) -> None:
    KINDS[kind](tmp_path / "a.mrec")
    assert everything(tmp_path / "a.mrec", **options) == everything(tmp_path / "a.mrec")


@pytest.mark.parametrize("cache", [-1, "much", "10s", True, 1.5])
def test_a_cache_that_is_no_size(tmp_path: Path, cache: object) -> None:
    KINDS["raw"](tmp_path / "a.mrec")
    with pytest.raises(InvalidValue, match="cache is .* use a number"):
        mrec.open(tmp_path / "a.mrec", cache=cache)  # type: ignore[arg-type]


def flip_in_chunk(path: Path, frame: int) -> None:
    """One bit of a number in the chunk of a frame."""
    shard = path / "trajectory/atoms/x/c/0"
    content = bytearray(shard.read_bytes())
    offset = int.from_bytes(content[16 * frame : 16 * frame + 8], "little")
    content[offset + 100] ^= 1
    shard.write_bytes(content)


def test_unverified_damage_reads_as_values(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    x = large(path)
    flip_in_chunk(path, 3)
    for record in (mrec.open(path), pickle.loads(pickle.dumps(mrec.open(path)))):
        with pytest.raises(CorruptData, match="atoms/x: shard c/0, chunk 3 of it: crc32c is"):
            record.trajectory.read("atoms", "x")
    for record in (mrec.open(path, verify=False), pickle.loads(pickle.dumps(mrec.open(path, verify=False)))):
        for trajectory in (record.trajectory, pickle.loads(pickle.dumps(record.trajectory))):
            found = trajectory.read("atoms", "x")
            assert np.argwhere(found != x).tolist() == [[3, 12]]


def test_unverified_an_index_is_believed_no_more(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    large(path)
    shard = path / "trajectory/atoms/x/c/0"
    content = bytearray(shard.read_bytes())
    content[16 * 3 : 16 * 3 + 8] = content[16 * 4 : 16 * 4 + 8]  # another chunk, as whole as the right one
    shard.write_bytes(content)
    trajectory = mrec.open(path, verify=False).trajectory
    assert trajectory.read("atoms", "x", frames=[4]).shape == (1, ATOMS)  # what verifies under an index that does not
    content[16 * 4 : 16 * 4 + 8] = (2**63).to_bytes(8, "little")
    shard.write_bytes(content)
    with pytest.raises(CorruptData, match="its index entry points outside the file"):
        mrec.open(path, verify=False).trajectory.read("atoms", "x", frames=[4])


def bytes_read() -> int:
    """By this process so far."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(lines[0].removeprefix("rchar: "))


counted = pytest.mark.skipif(sys.platform != "linux", reason="the system does not count what is read")


@counted
def test_who_goes_through_leaves_the_last_chunk(tmp_path: Path) -> None:
    """What a call of its own wants stays; of a pass through the array only the chunk it got to."""
    path = tmp_path / "a.mrec"
    x = large(path, 1e-3)
    trajectory = mrec.open(path).trajectory

    def costs(*frames: int) -> bool:
        before = bytes_read()
        found = trajectory.read("atoms", "x", frames=frames, rows=[1, 7])
        assert np.abs(found - x[list(frames)][:, [1, 7]]).max() < 1e-3
        return bytes_read() - before > 2000

    assert costs(1, 2, 3) and costs(4, 5, 6) and costs(7, 9, 11)
    assert not costs(1) and not costs(2) and not costs(6) and not costs(11)
    assert costs(5) and costs(4) and costs(9)
    assert not costs(4, 5, 9)
    assert costs(0, 8, 10) and not costs(8)  # not where the one before it ended


@counted
def test_unverified_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    x = large(path)

    def read(**options: bool) -> int:
        trajectory = mrec.open(path, **options).trajectory
        trajectory[0]  # documents and index
        before = bytes_read()
        assert np.array_equal(trajectory.read("atoms", "x", rows=slice(17, 19)), x[:, 17:19])
        return bytes_read() - before

    assert read() >= FRAMES * ATOMS * 8
    assert read(verify=False) < 50 * FRAMES + 1000


@pytest.mark.parametrize("precision", [None, 1e-3])
@pytest.mark.parametrize("verify", [True, False])
def test_all_ways_into_an_array(tmp_path: Path, precision: float | None, verify: bool) -> None:
    """Runs of chunks, single ones, parts, in order and not, close together and between others."""
    path = tmp_path / "a.mrec"
    x = large(path, precision)
    read = mrec.open(path, verify=verify).trajectory.read
    rng = np.random.default_rng(1)
    out = np.full((FRAMES, ATOMS, 2), np.nan)
    for frames in (slice(None), slice(2, 9), slice(None, None, -1), [5], [0, 0, 11, 3, 4, 5], slice(1, None, 3)):
        for rows in (None, [17], slice(10, 4000), slice(None, None, 2), rng.permutation(ATOMS)[:20]):
            wanted = x[frames][:, slice(None) if rows is None else rows]
            assert np.array_equal(read("atoms", "x", frames=frames, rows=rows), wanted)
            between = out[: wanted.shape[0], : wanted.shape[1], :1]
            read("atoms", ["x"], frames=frames, rows=rows, out=between)
            assert np.array_equal(between[..., 0], wanted)
            assert np.isnan(out[..., 1]).all()

# SPDX-License-Identifier: BSD-3-Clause
"""Frames of byte planes: every decoder there is reads them, and they are not larger than those of zstd itself."""

from __future__ import annotations

import shutil
import subprocess
import warnings
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numcodecs
import numpy as np
import pytest
import zarr
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.codecs import ZstdCodec
from zarr.codecs.numcodecs import Shuffle

import mrec
from mrec import _core
from mrec.bench.data import liquid
from mrec.bench.peer import rounded
from mrec.errors import CorruptData

RHODOPSIN = Path(__file__).parents[1] / "data/rhodopsin"


def pipeline(size: int = 8, level: int = 3) -> list:
    return [
        ("bytes", {"endian": "little", "elementsize": 8}),
        ("numcodecs.shuffle", {"elementsize": size}),
        ("zstd", {"level": level, "checksum": False}),
    ]


def encode(values: np.ndarray, level: int = 3) -> bytes:
    return _core.encode(pipeline(values.itemsize, level), values)


def blocks(frame: bytes) -> list[tuple[str, int]]:
    """Type and size of each block of a frame whose header takes 9 bytes."""
    found, at, last = [], 9, False
    while not last:
        header = int.from_bytes(frame[at : at + 3], "little")
        last, kind, size = bool(header & 1), ["raw", "repeated", "compressed"][header >> 1 & 3], header >> 3
        found.append((kind, size))
        at += 3 + (1 if kind == "repeated" else size)
    assert at == len(frame)
    return found


def rhodopsin() -> np.ndarray:
    """(3, frames, atoms) on the grid of 1e-3 angstrom."""
    import MDAnalysis as mda

    with warnings.catch_warnings(), TemporaryDirectory() as folder:  # it leaves offsets beside the file
        warnings.simplefilter("ignore")
        files = [shutil.copy(RHODOPSIN / name, folder) for name in ("md_1u19.gro", "md_1u19.xtc")]
        universe = mda.Universe(*files)
        frames = [universe.atoms.positions.T.astype("f8") for _ in universe.trajectory[:6]]
    return np.rint(np.stack(frames, axis=1) * 1024) / 1024


@cache
def chunks() -> dict[str, np.ndarray]:
    """What columns hold: one frame a chunk or several, fine and coarse, and values that zframe leaves to zstd."""
    rng = np.random.default_rng(1)
    small, large = rounded(liquid(99, 60), 1e-3), rounded(liquid(5001, 4), 1e-3)
    residues = [rng.integers(-900, 900, rng.integers(7, 24)) / 1024 for _ in range(20)]
    found = {
        "many frames": np.ascontiguousarray(small[:21, 0]),
        "a frame": large[0, 1],
        "four frames": np.ascontiguousarray(large[:, 2]),
        "coarse": np.rint(large[0, 0] * 128) / 128,
        "raw": rng.uniform(-50, 50, 5001),
        "velocities": np.rint(rng.normal(0, 5, 4000) * 1024) / 1024,
        "open": np.concatenate([large[0, 0][:3000], np.zeros(2001)]),
        "constant": np.full(4000, 0.5),
        "few": rng.choice(rng.normal(0, 1, 12), 5000),
        "charges": np.concatenate([residues[i] for i in rng.integers(0, 20, 400)]),
        "single": np.float32(large[0, 0]),
        "ramp": np.rint(np.arange(5000) * 102.4) / 1024,
        "decimals": np.arange(5000) * 0.001,
        "counter": np.arange(5000),
        "steps": np.repeat(rng.integers(0, 10**9, 50), 100),
        "types": rng.integers(0, 4, 5000),
        "noise": rng.integers(0, 2**63, 5000),
        "short": large[0, 0][:20],
    }
    found |= {f"rhodopsin {'xyz'[i]}": frames for i, frames in enumerate(rhodopsin())}
    return found


NAMES = ["many frames", "a frame", "four frames", "coarse", "raw", "velocities", "open", "constant", "few", "charges"]
NAMES += [
    "single",
    "ramp",
    "decimals",
    "counter",
    "steps",
    "types",
    "noise",
    "short",
    *(f"rhodopsin {axis}" for axis in "xyz"),
]


@pytest.fixture(params=NAMES)
def chunk(request) -> np.ndarray:
    return chunks()[request.param]


def test_no_larger_than_plain(chunk):
    plain = zstandard.ZstdCompressor(level=3).compress(_core.shuffle(chunk, chunk.itemsize))
    assert len(encode(chunk)) <= len(plain)


@pytest.mark.parametrize("name", ["a frame", "many frames", "four frames"])
def test_a_tenth_smaller_than_plain(name):
    plain = zstandard.ZstdCompressor(level=3).compress(_core.shuffle(chunks()[name], 8))
    assert len(encode(chunks()[name])) <= 0.91 * len(plain)


def test_blocks_of_a_frame():
    assert [kind for kind, _ in blocks(encode(chunks()["a frame"]))] == [
        "repeated",
        "compressed",
        "raw",
        *["compressed"] * 2,
    ]
    assert blocks(encode(chunks()["constant"])) == [
        ("repeated", 7 * 4000 - 4000),
        ("repeated", 4000),
        ("repeated", 4000),
    ]


def test_another_level_is_zstd_itself():
    values = chunks()["a frame"]
    for level in (1, 4):
        plain = zstandard.ZstdCompressor(level=level).compress(_core.shuffle(values, 8))
        assert abs(len(encode(values, level)) - len(plain)) < 0.02 * len(plain)
        assert len(encode(values, level)) > len(encode(values))


# ---- decoders


def test_zstandard(chunk):
    frame, planes = encode(chunk), _core.shuffle(chunk, chunk.itemsize)
    decompressor = zstandard.ZstdDecompressor(max_window_size=2**23)
    assert decompressor.decompress(frame) == planes
    stream = decompressor.decompressobj()  # bytes as they come, through a window
    assert b"".join(stream.decompress(frame[i : i + 700]) for i in range(0, len(frame), 700)) == planes
    assert zstandard.frame_content_size(frame) == len(planes)


def test_numcodecs(chunk):
    frame = encode(chunk)
    decoded = numcodecs.Shuffle(chunk.itemsize).decode(numcodecs.Zstd().decode(frame))
    assert bytes(decoded) == chunk.tobytes()


def test_our_own_with_and_without_the_processor(cpu, chunk):
    frame = encode(chunk)
    assert frame == encode(chunk)
    assert _core.decode(pipeline(chunk.itemsize), frame, chunk.nbytes) == chunk.tobytes()


def test_processor_and_portable_make_the_same_frame(chunk):
    frame = encode(chunk)
    _core.cpu_allow(0)
    try:
        assert encode(chunk) == frame
    finally:
        _core.cpu_allow()


def test_the_command(chunk):
    command = shutil.which("zstd")
    if command is None:
        pytest.skip("there is no zstd command")
    for options in ([], ["--memory=8MB"]):
        result = subprocess.run([command, "-dc", *options], input=encode(chunk), capture_output=True, check=True)
        assert result.stdout == _core.shuffle(chunk, chunk.itemsize)


@pytest.mark.parametrize("reader", ["zarr.core.codec_pipeline.BatchedCodecPipeline", "zarrs.ZarrsCodecPipeline"])
def test_zarr(tmp_path, chunk, reader):
    values = chunk.reshape(-1)
    options = {"compressors": [Shuffle(elementsize=values.itemsize), ZstdCodec(level=3)], "shape": values.shape}
    array = zarr.create_array(tmp_path, chunks=values.shape, dtype=values.dtype, **options)
    array[:] = 7
    stored = tmp_path / "c/0"
    assert stored.stat().st_size < 1000  # where the chunk is, before ours takes its place
    stored.write_bytes(encode(values))
    with zarr.config.set({"codec_pipeline.path": reader}):
        assert np.array_equal(zarr.open_array(tmp_path, mode="r")[:], values)


@pytest.mark.parametrize("atoms", [99, 5001])
def test_molrs(tmp_path, atoms):
    reader = pytest.importorskip("molrs.io.mrec").MrecReader  # there is none for Python 3.11
    frames = rounded(liquid(atoms, 45), 1e-3)
    schema = mrec.Schema().block("atoms", rows=atoms)
    for name in "xyz":
        schema.column(name, "f64", precision=1e-3)
    with mrec.TrajectoryWriter(tmp_path / "water.mrec", schema, durable=False) as writer:
        for i, xyz in enumerate(frames):
            writer.append(i, atoms=dict(zip("xyz", xyz, strict=True)))
    opened = reader(tmp_path / "water.mrec")
    for i, xyz in enumerate(frames):
        for name, values in zip("xyz", xyz, strict=True):
            assert np.array_equal(opened[i]["atoms"][name], values)


# ---- planes of every kind


@st.composite
def planes(draw) -> list[bytes]:
    """Planes of one length."""
    n = draw(st.one_of(st.integers(60, 600), st.sampled_from([1024, 2047, 2048, 5001, 131_072, 131_073, 140_000])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = []
    for _ in range(draw(st.sampled_from([2, 4, 8]))):
        kind = draw(st.sampled_from(["constant", "noise", "skewed", "two", "few", "deep", "runs", "periodic"]))
        first, plane = draw(st.integers(0, 255)), rng.integers(0, 256, n)
        if kind == "constant":
            plane[:] = first
        elif kind == "skewed":
            plane = rng.normal(first, draw(st.floats(0.3, 40)), n)
        elif kind == "two":
            plane = np.where(rng.random(n) < draw(st.floats(0, 1)), first, 255 - first)
        elif kind == "few":
            plane = rng.choice(rng.integers(0, 256, draw(st.integers(2, 40))), n)
        elif kind == "deep":  # the Huffman tree is deeper than zstd allows
            plane = first + 7 * rng.geometric(draw(st.floats(0.4, 0.9)), n)
        elif kind == "runs":
            plane = np.repeat(plane, rng.integers(1, draw(st.integers(2, 60)), n))[:n]
        elif kind == "periodic":
            period = draw(st.integers(2, max(2, n // 2)))
            plane = np.where(rng.random(n) < draw(st.floats(0, 0.3)), plane, np.resize(plane[:period], n))
        made.append(plane.astype("i8").astype("u1").tobytes())
    return made


@settings(max_examples=150, deadline=None)
@given(planes())
def test_any_planes(made):
    shuffled, size = b"".join(made), len(made)
    data = _core.unshuffle(shuffled, size)
    frame = _core.encode(pipeline(size), data)
    assert zstandard.ZstdDecompressor().decompress(frame) == shuffled
    assert _core.decode(pipeline(size), frame, len(data)) == data


@given(st.binary(max_size=4000), st.sampled_from([2, 4, 8, 16, 24]))
def test_any_bytes(data, size):
    data = data[: len(data) // size * size]
    assert _core.decode(pipeline(size), _core.encode(pipeline(size), data), len(data)) == data


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_damaged_frame_is_decoded_or_refused(seed):
    rng = np.random.default_rng(seed)
    values = chunks()["many frames"]
    frame = bytearray(encode(values))
    for at in rng.integers(0, len(frame), 3):
        frame[at] ^= 1 << rng.integers(0, 8)
    try:
        assert len(_core.decode(pipeline(), bytes(frame), values.nbytes)) == values.nbytes
    except CorruptData:
        pass

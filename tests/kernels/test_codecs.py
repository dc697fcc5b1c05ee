# SPDX-License-Identifier: BSD-3-Clause
from __future__ import annotations

import gzip
import itertools
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrec import _core
from mrec.errors import CorruptData, InvalidValue, UnsupportedCodec

LITTLE = ("bytes", {"endian": "little", "elementsize": 8})
BIG = ("bytes", {"endian": "big", "elementsize": 8})
VLEN = ("vlen-utf8", {})
SHUFFLE = ("numcodecs.shuffle", {"elementsize": 8})
GZIP = ("gzip", {"level": 1})
ZSTD = ("zstd", {"level": 3, "checksum": False})
CRC = ("crc32c", {})
COLUMN = [LITTLE, SHUFFLE, ZSTD, CRC]


def coordinates(n: int) -> bytes:
    return (np.random.default_rng(n).integers(-80_000, 80_000, n) / 1024).tobytes()


def legal(codecs) -> bool:
    """A shuffle of 8 bytes stands before anything that changes the size."""
    kinds = [name for name, _ in codecs]
    return all(set(kinds[1:i]) <= {"numcodecs.shuffle"} for i, kind in enumerate(kinds) if "shuffle" in kind)


@pytest.mark.parametrize("first", [LITTLE, BIG, VLEN], ids=["little", "big", "vlen"])
def test_every_order(first):
    for rest in itertools.chain(*(itertools.product([SHUFFLE, GZIP, ZSTD, CRC], repeat=n) for n in range(5))):
        codecs = [first, *rest]
        if legal(codecs):
            for n in (0, 1, 300):
                data = coordinates(n)
                coded = _core.encode(codecs, data)
                assert _core.decode(codecs, coded, len(data)) == data
                assert _core.decode(codecs, coded) == data


@settings(deadline=None)
@given(st.binary(max_size=5000), st.integers(0, 9), st.integers(-5, 22))
def test_any_bytes_at_any_level(data, gzip_level, zstd_level):
    for codecs in (
        [("bytes", {}), ("gzip", {"level": gzip_level}), CRC],
        [("bytes", {}), ("zstd", {"level": zstd_level, "checksum": True})],
    ):
        assert _core.decode(codecs, _core.encode(codecs, data), len(data)) == data


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([GZIP, ZSTD, SHUFFLE, CRC]), st.integers(0, 64))
def test_any_bytes_are_decoded_or_refused(data, codec, size):
    for wanted in (size, None):
        try:
            result = _core.decode([LITTLE, codec], data, wanted, 64)
        except CorruptData:
            continue
        assert len(result) == wanted if wanted is not None else len(result) <= 64


def test_truncated_and_flipped():
    data = coordinates(60)
    for codecs in (COLUMN, [LITTLE, CRC], [LITTLE, GZIP, CRC]):
        coded = _core.encode(codecs, data)
        damaged = [coded[:n] for n in range(len(coded))] + [coded + b"\0"]
        for at in range(len(coded)):
            damaged.append(coded[:at] + bytes([coded[at] ^ 1 << at % 8]) + coded[at + 1 :])
        for bad in damaged:
            with pytest.raises(CorruptData):
                _core.decode(codecs, bad, len(data))


def test_wrong_sizes():
    data = coordinates(100)
    for codecs in (COLUMN, [LITTLE], [BIG, GZIP], [LITTLE, CRC]):
        coded = _core.encode(codecs, data)
        for size in (0, len(data) - 8, len(data) + 8):
            with pytest.raises(CorruptData):
                _core.decode(codecs, coded, size)
        with pytest.raises(CorruptData):
            _core.decode(codecs, coded, None, len(data) - 8)


def test_bytes_in_the_file():
    values = np.arange(1, 5, dtype="f8")
    assert _core.encode([LITTLE], values) == values.astype("<f8").tobytes()
    assert _core.encode([BIG], values) == values.astype(">f8").tobytes()
    half = ("bytes", {"endian": "big", "elementsize": 8})
    assert _core.encode([half], values.view("c16")) == values.view("c16").astype(">c16").tobytes()
    assert _core.encode([LITTLE, CRC], b"123456789") == b"123456789" + struct.pack("<I", 0xE3069283)


# ---- other encoders and decoders


def test_gzip_of_the_standard_library():
    data = coordinates(5000)
    assert gzip.decompress(_core.encode([LITTLE, GZIP], data)) == data
    members = b"".join(gzip.compress(part, level) for part, level in ((data[:7], 0), (b"", 9), (data[7:], 6)))
    assert _core.decode([LITTLE, GZIP], members, len(data)) == data
    assert _core.decode([LITTLE, GZIP], members) == data
    with pytest.raises(CorruptData):
        _core.decode([LITTLE, GZIP], members + b"rest", len(data))


def test_zstd_of_another_library():
    zstandard = pytest.importorskip("zstandard")
    data = coordinates(5000) + bytes(200_000)
    plain = zstandard.ZstdCompressor()
    sizeless = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    assert zstandard.ZstdDecompressor().decompress(_core.encode([LITTLE, ZSTD], data)) == data
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"notes"
    frames = plain.compress(data[:999]) + skippable + sizeless.compress(data[999:30_000]) + sizeless.compress(b"")
    frames += plain.compress(data[30_000:])
    assert _core.decode([LITTLE, ZSTD], frames, len(data)) == data
    assert _core.decode([LITTLE, ZSTD], frames) == data
    stream = zstandard.ZstdCompressor().compressobj()
    parts = stream.compress(data[:5000]) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    parts += stream.compress(data[5000:]) + stream.flush()
    assert _core.decode([LITTLE, ZSTD], parts, len(data)) == data


def test_a_pipeline_of_numcodecs():
    numcodecs = pytest.importorskip("numcodecs")
    data = coordinates(2000)
    shuffle, zstd = numcodecs.Shuffle(8), numcodecs.Zstd(level=3)
    assert bytes(shuffle.decode(zstd.decode(_core.encode([LITTLE, SHUFFLE, ZSTD], data)))) == data
    assert _core.decode([LITTLE, SHUFFLE, ZSTD], zstd.encode(shuffle.encode(data)), len(data)) == data


def test_vlen_of_numcodecs():
    numcodecs = pytest.importorskip("numcodecs")
    strings = ["OW", "", "é", "𝛼-helix", "x" * 300]
    chunk = bytes(numcodecs.VLenUTF8().encode(np.array(strings, dtype=object)))
    chunk = _core.decode([VLEN, GZIP], _core.encode([VLEN, GZIP], chunk))
    ends = _core.vlen_ends(chunk, len(strings)).tolist()
    starts = [8, *(end + 4 for end in ends[:-1])]
    assert [chunk[a:b].decode() for a, b in zip(starts, ends, strict=True)] == strings


# ---- strings


@given(st.one_of(st.binary(max_size=40), st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace"))))
def test_utf8_as_python_sees_it(data):
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        assert not _core.is_utf8(data)
    else:
        assert _core.is_utf8(data)


def test_utf8_of_every_code_point_and_lead():
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            continue
        assert not _core.is_utf8(chr(code).encode("utf-8", "surrogatepass"))
    everything = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000)))).encode()
    assert _core.is_utf8(everything)
    for first in range(256):
        for second in (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF):
            for rest in (b"", b"\x80", b"\x80\x80", b"\xbf\x7f"):
                data = bytes([first, second]) + rest
                assert _core.is_utf8(data) == (data.decode("utf-8", "ignore").encode() == data)


@given(st.lists(st.text(max_size=8), max_size=6), st.data())
def test_vlen_damage(strings, draw):
    try:
        texts = [text.encode() for text in strings]
    except UnicodeEncodeError:
        return
    chunk = struct.pack("<I", len(texts)) + b"".join(struct.pack("<I", len(t)) + t for t in texts)
    assert len(_core.vlen_ends(chunk, len(texts))) == len(texts)
    cut = draw.draw(st.integers(0, len(chunk) - 1))
    for bad, count in ((chunk[:cut], len(texts)), (chunk + b"\0", len(texts)), (chunk, len(texts) + 1)):
        with pytest.raises(CorruptData):
            _core.vlen_ends(bad, count)


# ---- what is refused


@pytest.mark.parametrize("name", ["blosc", "lz4", "transpose", "sharding_indexed", "numcodecs.delta"])
def test_another_codec_is_named(name):
    with pytest.raises(UnsupportedCodec, match=f"{name}.*zarr-python"):
        _core.decode([LITTLE, (name, {})], b"", 0)


@pytest.mark.parametrize(
    ("codecs", "error"),
    [
        ([], UnsupportedCodec),
        ([GZIP], UnsupportedCodec),
        ([LITTLE, LITTLE], UnsupportedCodec),
        ([GZIP, LITTLE], UnsupportedCodec),
        ([LITTLE] + [CRC] * 8, UnsupportedCodec),
        ([LITTLE, ("gzip", {"level": 1, "window": 3})], UnsupportedCodec),
        ([LITTLE, CRC, SHUFFLE], UnsupportedCodec),
        ([LITTLE, ("gzip", {"level": 10})], CorruptData),
        ([LITTLE, ("gzip", {"level": "1"})], CorruptData),
        ([LITTLE, ("zstd", {"level": 23})], CorruptData),
        ([LITTLE, ("zstd", {"level": 1, "checksum": 1})], CorruptData),
        ([LITTLE, ("numcodecs.shuffle", {"elementsize": 0})], CorruptData),
        ([LITTLE, ("numcodecs.shuffle", {"elementsize": True})], CorruptData),
        ([("bytes", {"endian": "middle"})], CorruptData),
    ],
)
def test_pipelines_refused(codecs, error):
    with pytest.raises(error):
        _core.encode(codecs, bytes(16))


def test_sizes_that_no_chunk_has():
    with pytest.raises((MemoryError, OverflowError)):
        _core.decode([LITTLE, GZIP], gzip.compress(b"x"), 2**62)
    with pytest.raises((MemoryError, OverflowError, InvalidValue)):
        _core.decode([LITTLE], b"", -1)

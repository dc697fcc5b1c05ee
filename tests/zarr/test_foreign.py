"""Arrays that zarr-python wrote, over chunkings and pipelines."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from mrec.errors import CorruptData, UnsupportedCodec
from mrec.zarr.array import Array
from mrec.zarr.group import Group
from mrec.zarr.store import FilesystemStore

zarr = pytest.importorskip("zarr")
codecs = pytest.importorskip("zarr.codecs")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")

LITTLE, BIG = codecs.BytesCodec(endian="little"), codecs.BytesCodec(endian="big")
GZIP, ZSTD, CRC = codecs.GzipCodec(level=3), codecs.ZstdCodec(level=3, checksum=True), codecs.Crc32cCodec()
TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()


def shuffle(size):
    from zarr.codecs import numcodecs

    return numcodecs.Shuffle(elementsize=size)


def values(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "b":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if np.dtype(dtype).kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    return rng.normal(size=shape).astype(dtype)


def write(path, data, chunks, pipeline, fill=None, **options):
    """Through the codecs as they stand: array to array, array to bytes, bytes to bytes."""
    serial = next(i for i, c in enumerate(pipeline) if isinstance(c, (codecs.BytesCodec, codecs.ShardingCodec)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = zarr.create_array(
            str(path),
            shape=data.shape,
            chunks=chunks,
            dtype=data.dtype,
            fill_value=data.dtype.type(0) if fill is None else fill,
            filters=pipeline[:serial],
            serializer=pipeline[serial],
            compressors=pipeline[serial + 1 :],
            **options,
        )
        array[...] = data
    return array


def read(path):
    return Array.open(FilesystemStore(path), "")


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == np.ascontiguousarray(b).tobytes()


def check(path, data):
    array = read(path)
    assert array.shape == data.shape and array.dtype == data.dtype
    assert same(array[...], data)
    if data.ndim == 0:
        return
    rng = np.random.default_rng(9)
    for _ in range(20):
        start, stop = sorted(rng.integers(0, len(data) + 1, 2).tolist())
        assert same(array.read(slice(start, stop)), data[start:stop])
        wide = np.zeros((stop - start, 2, *data.shape[1:]), data.dtype)  # rows apart
        array.read(slice(start, stop), out=wide[:, 1])
        assert same(wide[:, 1].copy(), data[start:stop]) and not wide[:, 0].any()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bytes_codec", [LITTLE, BIG], ids=["little", "big"])
def test_types(tmp_path, dtype, bytes_codec):
    data = values(dtype, (37, 3))
    write(tmp_path, data, (10, 2), [bytes_codec, CRC])
    check(tmp_path, data)


PIPELINES = {
    "plain": [LITTLE],
    "gzip": [LITTLE, GZIP],
    "zstd": [LITTLE, ZSTD],
    "crc": [LITTLE, CRC],
    "big-zstd-crc": [BIG, ZSTD, CRC],
    "crc-gzip": [LITTLE, CRC, GZIP],
    "gzip-zstd-crc-crc": [LITTLE, GZIP, ZSTD, CRC, CRC],
    "shuffle-zstd-crc": [LITTLE, shuffle(4), ZSTD, CRC],
    "big-shuffle8-gzip": [BIG, shuffle(8), GZIP],
    "shuffle-shuffle": [LITTLE, shuffle(2), shuffle(4)],
    "transposed": [codecs.TransposeCodec(order=(2, 0, 1)), LITTLE, ZSTD, CRC],
    "transposed-twice": [codecs.TransposeCodec(order=(2, 0, 1)), codecs.TransposeCodec(order=(0, 2, 1)), BIG, CRC],
}


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("chunks", [(4, 6, 2), (7, 5, 10), (1, 1, 2), (20, 16, 16)], ids=str)
def test_pipelines(tmp_path, name, chunks):
    data = values("int32", (13, 5, 9))
    write(tmp_path, data, chunks, PIPELINES[name])
    check(tmp_path, data)


@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("index", [[LITTLE, CRC], [BIG, CRC], [LITTLE]], ids=["little", "big", "unchecked"])
def test_shards(tmp_path, name, location, index):
    data = values("float32", (13, 5, 9))
    data[4:8] = 0  # chunks that are fill are left out
    shard = codecs.ShardingCodec(
        chunk_shape=(2, 4, 4), codecs=PIPELINES[name], index_codecs=index, index_location=location
    )
    write(tmp_path, data, (6, 4, 8), [shard])
    check(tmp_path, data)


NESTED = codecs.ShardingCodec(chunk_shape=(2, 2), codecs=[BIG, ZSTD], index_codecs=[LITTLE, CRC])
AROUND = {
    "shard in shard": [codecs.ShardingCodec(chunk_shape=(4, 4), codecs=[NESTED], index_codecs=[LITTLE, CRC])],
    "transposed shard": [codecs.TransposeCodec(order=(1, 0)), NESTED],
    "compressed shard": [NESTED, GZIP, CRC],
}


@pytest.mark.parametrize("name", AROUND)
def test_codecs_around_a_shard(tmp_path, name):
    data = values("uint16", (21, 10))
    data[:5] = 0
    write(tmp_path, data, (8, 8), AROUND[name])
    check(tmp_path, data)


@pytest.mark.parametrize("encoding", list(itertools.product(["default", "v2"], ["/", "."])), ids=str)
@pytest.mark.parametrize("shape", [(), (5,), (5, 3), (0,), (3, 0)], ids=str)
def test_chunk_keys(tmp_path, encoding, shape):
    data = values("int64", shape)
    data = data if isinstance(data, np.ndarray) else np.array(data)
    keys = {"name": encoding[0], "separator": encoding[1]}
    write(tmp_path, data, (2,) * len(shape), [LITTLE, CRC], chunk_key_encoding=keys)
    array = read(tmp_path)
    assert same(np.asarray(array[...]), data)


@pytest.mark.parametrize(
    ("dtype", "fill"),
    [
        ("float64", np.nan),
        ("float64", -np.inf),
        ("float32", -0.0),
        ("float16", 1.5),
        ("uint64", 2**64 - 1),
        ("int8", -3),
        ("bool", True),
        ("complex128", complex(np.inf, -0.0)),
    ],
)
def test_fill_of_what_was_never_written(tmp_path, dtype, fill):
    data = np.full((10, 3), fill, dtype)
    array = write(tmp_path, data, (4, 2), [LITTLE, CRC], fill=fill)
    array[9] = np.array(1, dtype)
    data[9] = np.array(1, dtype)
    check(tmp_path, data)


@pytest.mark.parametrize("sharded", [False, True])
def test_strings(tmp_path, sharded):
    data = np.array([["", "a"], ["héliß", "水" * 100], ["\0x\0", "y\0"], ["", ""], ["e", ""]], np.dtypes.StringDType())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = zarr.create_array(
            str(tmp_path),
            shape=data.shape,
            chunks=(2, 1),
            shards=(4, 2) if sharded else None,
            dtype=data.dtype,
            fill_value="none",
            compressors=[GZIP, CRC],
        )
        array[:3] = data[:3]
        array[4] = data[4]
    found = read(tmp_path)
    data[3] = "none"
    assert found.dtype == np.dtypes.StringDType()
    for start in range(6):
        for stop in range(start, 6):
            assert found.read(slice(start, stop)).tolist() == data[start:stop].tolist()


def test_unknown_codec_is_named(tmp_path):
    data = values("int32", (8,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.create_array(str(tmp_path), data=data, compressors=codecs.BloscCodec(), chunks=(4,))
    with pytest.raises(UnsupportedCodec, match=r"'blosc'.*zarr-python"):
        read(tmp_path)


def test_groups(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = zarr.create_group(str(tmp_path), attributes={"a": {"b": [1, None]}})
        root.create_group("inner").create_array("data", data=np.arange(5), chunks=(2,))
    (tmp_path / "no node").mkdir()
    group = Group(FilesystemStore(tmp_path))
    assert group.attrs == {"a": {"b": [1, None]}} and list(group) == ["inner"] and "inner" in group
    assert group["inner/data"][1:4:2].tolist() == [1, 3]
    assert "../x" not in group
    with pytest.raises(KeyError):
        group["no node"]


def test_indexing(tmp_path):
    data = values("int64", (11, 4, 3))
    write(tmp_path, data, (4, 3, 2), [LITTLE, CRC])
    array = read(tmp_path)
    for key in [
        0, -1, slice(None), slice(2, 9, 3), slice(None, None, -1), slice(8, 2, -2), slice(5, 2), ..., (),
        (3, 1), (slice(2, 5), -1), (slice(None), slice(1, 3), 0), (Ellipsis, 1), (-2, slice(None), 1), np.int64(3),
    ]:  # fmt: skip
        assert np.array_equal(array[key], data[key]), key
    for key in [11, -12]:
        with pytest.raises(IndexError):
            array[key]
    assert np.array_equal(np.asarray(array), data) and len(array) == 11


def test_missing_chunk_file_is_fill(tmp_path):
    data = values("int64", (8,))
    write(tmp_path, data, (4,), [LITTLE, CRC])
    (tmp_path / "c" / "1").unlink()
    assert read(tmp_path)[...].tolist() == [*data[:4], 0, 0, 0, 0]
    strict = Array(FilesystemStore(tmp_path), "", read(tmp_path).meta, absent_is_loss=True)
    assert strict.read(slice(0, 4)).tolist() == data[:4].tolist()
    with pytest.raises(CorruptData, match=r"chunk c/1.*not there"):
        strict.read(slice(4, 8))

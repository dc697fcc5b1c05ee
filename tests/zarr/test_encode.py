"""Shards of the core's encoder, read by zarr-python."""

from __future__ import annotations

import itertools
import threading
import warnings

import numpy as np
import pytest

from mrec._core import Encoder
from mrec.errors import InvalidValue
from mrec.zarr.metadata import ArrayMeta, source_spec

zarr = pytest.importorskip("zarr")

CRC = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {"level": 3, "checksum": False}}
SHUFFLE = {"name": "numcodecs.shuffle", "configuration": {"elementsize": 4}}
VLEN = {"name": "vlen-utf8"}


def bytes_codec(endian):
    return {"name": "bytes", "configuration": {"endian": endian}}


def shard(chunk, codecs, location, index):
    conf = {"chunk_shape": list(chunk), "codecs": codecs, "index_codecs": index, "index_location": location}
    return {"name": "sharding_indexed", "configuration": conf}


def store(path, meta, values, **options):
    """Every file of an array through the encoder."""
    path.mkdir(exist_ok=True)
    (path / "zarr.json").write_text(meta.document())
    encoder = Encoder(source_spec(meta), meta.dtype, **options)
    for at in itertools.product(*[range(-(-n // g)) for n, g in zip(meta.shape, meta.grid, strict=True)]):
        part = values[tuple(slice(i * g, (i + 1) * g) for i, g in zip(at, meta.grid, strict=True))]
        made = encoder.encode(part)
        if made is not None:
            file = path.joinpath("c", *map(str, at))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(made)


def read(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return zarr.open_array(str(path), mode="r")[...]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("index", [["little", True], ["big", True], ["little", False]], ids=str)
def test_zarr_reads_shards(tmp_path, threads, location, index):
    values = np.random.default_rng(1).normal(size=(13, 9, 5)).astype(np.float32)
    values[4:9] = 0
    index_codecs = [bytes_codec(index[0]), *([CRC] if index[1] else [])]
    turned = {"name": "transpose", "configuration": {"order": [2, 0, 1]}}
    for i, codecs in enumerate([[], [SHUFFLE, ZSTD, CRC], [CRC, GZIP], [ZSTD]]):
        for j, first in enumerate([[bytes_codec("little")], [turned, bytes_codec("big")]]):
            codec = shard((2, 4, 3), first + codecs, location, index_codecs)
            meta = ArrayMeta(values.shape, "float32", (6, 8, 6), [codec], np.float32(0))
            for skip in (False, True):
                path = tmp_path / f"{i}{j}{skip}"
                store(path, meta, values, skip_fill=skip, threads=threads)
                assert read(path).tobytes() == values.tobytes()
                strided = np.repeat(values, 2, axis=1)[:, ::2].transpose(2, 1, 0).copy().transpose(2, 1, 0)
                again = tmp_path / f"{i}{j}{skip}s"
                store(again, meta, strided, skip_fill=skip, threads=threads)
                assert [f.read_bytes() for f in sorted(again.rglob("*")) if f.is_file()] == [
                    f.read_bytes() for f in sorted(path.rglob("*")) if f.is_file()
                ]


def test_zarr_reads_shards_of_strings(tmp_path):
    values = np.array([["", "a"], ["héliß", "水" * 100], ["\0x\0", ""], ["none", "none"], ["e", ""]], "T")
    codec = shard((2, 1), [VLEN, GZIP, CRC], "end", [bytes_codec("little"), CRC])
    meta = ArrayMeta(values.shape, "string", (4, 2), [codec], "none")
    for skip in (False, True):
        store(tmp_path / str(skip), meta, values, skip_fill=skip)
        assert read(tmp_path / str(skip)).tolist() == values.tolist()


def test_chunks_that_are_not_present_read_as_fill(tmp_path):
    values = np.arange(24, dtype=np.int16).reshape(6, 4)
    meta = ArrayMeta(
        (6, 4), "int16", (6, 4), [shard((2, 2), [bytes_codec("little")], "start", [bytes_codec("big")])], -1
    )
    (tmp_path / "c").mkdir()
    (tmp_path / "zarr.json").write_text(meta.document())
    (tmp_path / "c" / "0").mkdir()
    encoder = Encoder(source_spec(meta), meta.dtype)
    present = np.array([[1, 0], [0, 1], [1, 1]], bool)
    (tmp_path / "c" / "0" / "0").write_bytes(encoder.encode(values, present))
    assert read(tmp_path).tolist() == np.where(np.kron(present, np.ones((2, 2))), values, -1).tolist()
    assert encoder.encode(values, np.zeros(6, bool)) is None


def test_many_threads_share_an_encoder():
    codec = shard((100,), [bytes_codec("little"), ZSTD], "end", [bytes_codec("little")])
    meta = ArrayMeta((5000,), "int64", (5000,), [codec], 0)
    encoder = Encoder(source_spec(meta), meta.dtype, threads=2)
    values = [np.random.default_rng(i).integers(0, 99, 5000) for i in range(4)]
    alone = [encoder.encode(v) for v in values]
    found: list[list[bytes]] = [[] for _ in values]

    def work(i):
        for _ in range(20):
            found[i].append(encoder.encode(values[i]))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(set(f) == {a} and len(f) == 20 for f, a in zip(found, alone, strict=True))


def test_refusals():
    meta = ArrayMeta((4,), "int32", (4,), [bytes_codec("little")], 0)
    encoder = Encoder(source_spec(meta), meta.dtype)
    with pytest.raises(InvalidValue, match="values have 2 axes, not 1"):
        encoder.encode(np.zeros((2, 2), np.int32))
    with pytest.raises(InvalidValue, match="values are int64, the array is int32"):
        encoder.encode(np.zeros(4, np.int64))
    with pytest.raises(InvalidValue, match="axis 0 has more elements than its file"):
        encoder.encode(np.zeros(5, np.int32))
    with pytest.raises(InvalidValue, match="2 flags for 1 chunks"):
        encoder.encode(np.zeros(4, np.int32), [True, True])
    texts = Encoder(source_spec(ArrayMeta((1,), "string", (1,), [VLEN], "")), np.dtypes.StringDType())
    with pytest.raises(InvalidValue, match="5 is no string"):
        texts.encode(np.array([5], object))

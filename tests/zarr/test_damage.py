"""Damaged arrays: an error that says where, or the right values; never wrong ones."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from mrec import _core
from mrec.errors import CorruptData
from mrec.zarr.array import Array
from mrec.zarr.store import FilesystemStore
from mrec.zarr.write import BYTES, CRC32C, GZIP

ROWS, CHUNK, PER_SHARD = 22, 4, 3
ABSENT = (2**64 - 1, 2**64 - 1)


def pipeline(*codecs):
    return [*codecs, CRC32C]


def build(path, *, data_type="int32", codecs=None, location="start", leave_out=(), index_checked=True):
    """A sharded array of two shards; where each chunk's entry and bytes are."""
    codecs = codecs or pipeline(BYTES)
    values = np.arange(100, 100 + ROWS, dtype=data_type)
    index_codecs = [BYTES, CRC32C] if index_checked else [BYTES]
    conf = {"chunk_shape": [CHUNK], "codecs": codecs, "index_codecs": index_codecs, "index_location": location}
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [ROWS],
        "data_type": data_type,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [CHUNK * PER_SHARD]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [{"name": "sharding_indexed", "configuration": conf}],
    }
    path.mkdir(exist_ok=True)
    (path / "c").mkdir(exist_ok=True)
    (path / "zarr.json").write_text(json.dumps(document))
    core = [(c["name"], dict(c.get("configuration", {}))) for c in codecs]
    core[0][1]["elementsize"] = values.itemsize
    padded = np.zeros(CHUNK * PER_SHARD * 2, values.dtype)
    padded[:ROWS] = values
    for shard in range(2):
        chunks = [padded[(shard * PER_SHARD + i) * CHUNK :][:CHUNK].tobytes() for i in range(PER_SHARD)]
        encoded = [
            _core.encode(core, c) if shard * PER_SHARD + i not in leave_out else None for i, c in enumerate(chunks)
        ]
        write_shard(path / "c" / str(shard), encoded, location, index_checked)
    return values


def write_shard(file, encoded, location, index_checked=True):
    size = 16 * PER_SHARD + 4 * index_checked
    at, entries, body = size if location == "start" else 0, [], b""
    for chunk in encoded:
        entries.append(ABSENT if chunk is None else (at + len(body), len(chunk)))
        body += chunk or b""
    index = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    index += struct.pack("<I", _core.crc32c(index)) if index_checked else b""
    file.write_bytes(index + body if location == "start" else body + index)


def open_array(path, **options):
    array = Array.open(FilesystemStore(path), "")
    return Array(array.store, "", array.meta, **options) if options else array


def rows(path, **options):
    """Chunk by chunk what a fresh reader gets: values, or the error."""
    array = open_array(path, **options)
    found = []
    for start in range(0, ROWS, CHUNK):
        try:
            found.append(array.read(slice(start, min(start + CHUNK, ROWS))).tolist())
        except CorruptData as e:
            found.append(e)
    return found


def damaged(found, values):
    """Which chunks are errors; the others have to be right."""
    for i, part in enumerate(found):
        if not isinstance(part, CorruptData):
            assert part == values[i * CHUNK : (i + 1) * CHUNK].tolist()
    return [i for i, part in enumerate(found) if isinstance(part, CorruptData)]


def patch(file: Path, at: int, content: bytes) -> None:
    raw = bytearray(file.read_bytes())
    raw[at : at + len(content)] = content
    file.write_bytes(bytes(raw))


CODECS = {"plain": pipeline(BYTES), "gzip": pipeline(BYTES, GZIP)}


@pytest.mark.parametrize("location", ["start", "end"])
@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("leave_out", [(), (1,)], ids=["whole", "with a missing chunk"])
def test_every_flipped_byte(tmp_path, location, name, leave_out):
    values = build(tmp_path, codecs=CODECS[name], location=location, leave_out=leave_out)
    for i in leave_out:
        values[i * CHUNK : (i + 1) * CHUNK] = 0
    rng = np.random.default_rng(1)
    wrong = 0
    for file in sorted((tmp_path / "c").iterdir()):
        whole = file.read_bytes()
        for at in range(len(whole)):
            patch(file, at, bytes([whole[at] ^ 1 << int(rng.integers(8))]))
            wrong += bool(damaged(rows(tmp_path), values))
            file.write_bytes(whole)
    assert wrong > 0 and damaged(rows(tmp_path), values) == []


@pytest.mark.parametrize("location", ["start", "end"])
def test_every_cut_file(tmp_path, location):
    values = build(tmp_path, location=location)
    file = tmp_path / "c" / "0"
    whole = file.read_bytes()
    for n in range(len(whole)):
        file.write_bytes(whole[:n])
        assert damaged(rows(tmp_path), values), n


def test_the_message_says_where(tmp_path):
    build(tmp_path)
    patch(tmp_path / "c" / "1", 16 * PER_SHARD + 4 + 20, b"\xff\xff")
    with pytest.raises(CorruptData) as e:
        open_array(tmp_path).read(slice(0, ROWS))
    assert str(tmp_path) in str(e.value) and "shard c/1, chunk 1 of it" in str(e.value)


def test_torn_index_serves_the_entries_that_verify(tmp_path):
    values = build(tmp_path)
    file = tmp_path / "c" / "0"
    patch(file, 16 * PER_SHARD, b"\0\0\0\0")  # the checksum alone
    assert damaged(rows(tmp_path), values) == []
    entry = struct.unpack_from("<QQ", file.read_bytes(), 16)
    patch(file, 16, struct.pack("<QQ", entry[0] + 1, entry[1]))
    assert damaged(rows(tmp_path), values) == [1]
    patch(file, 16, struct.pack("<QQ", *ABSENT))
    assert damaged(rows(tmp_path), values) == [1]


def test_torn_index_of_chunks_without_checksum(tmp_path):
    values = build(tmp_path, codecs=[BYTES])
    patch(tmp_path / "c" / "0", 16 * PER_SHARD, b"\0\0\0\0")
    assert damaged(rows(tmp_path), values) == [0, 1, 2]


@pytest.mark.parametrize(
    "entry",
    [
        (2**64 - 1, 2),  # wraps around
        (2**63, 2**63),
        (0, 20),  # inside the index
        (16 * PER_SHARD, 20),
        (52, 10**6),  # past the end of the file
        (52, 2**62),
        (10**9, 20),
        (2**64 - 1, 0),
        (0, 2**64 - 1),
        (52, 0),
    ],
)
def test_entries_are_not_trusted(tmp_path, entry):
    values = build(tmp_path, index_checked=True)
    file = tmp_path / "c" / "0"
    patch(file, 0, struct.pack("<QQ", *entry))
    index = file.read_bytes()[: 16 * PER_SHARD]
    patch(file, 16 * PER_SHARD, struct.pack("<I", _core.crc32c(index)))
    assert damaged(rows(tmp_path), values) == [0]


def test_absence(tmp_path):
    values = build(tmp_path, leave_out=(2,))
    assert damaged(rows(tmp_path, absent_is_loss=True), values) == [2]
    (tmp_path / "c" / "1").unlink()
    assert damaged(rows(tmp_path, absent_is_loss=True), values) == [2, 3, 4, 5]
    found = rows(tmp_path)
    assert found[2:] == [[0] * 4] * 3 + [[0] * 2]


def test_the_durable_tail_wins_over_the_index(tmp_path):
    values = build(tmp_path)
    file = tmp_path / "c" / "1"
    raw = file.read_bytes()
    old = struct.unpack_from("<QQ", raw, 32)
    chunk = np.arange(7, 7 + CHUNK, dtype=np.int32)
    newer = _core.encode([("bytes", {"elementsize": 4}), ("crc32c", {})], chunk.tobytes())
    file.write_bytes(raw + newer)
    crc = struct.unpack("<I", newer[-4:])[0]
    tail = (1, 2, len(raw), len(newer), crc)
    assert open_array(tmp_path, tail=tail).read(slice(20, 22)).tolist() == chunk[:2].tolist()
    assert open_array(tmp_path, tail=tail).read(slice(16, 20)).tolist() == values[16:20].tolist()
    assert open_array(tmp_path).read(slice(20, 22)).tolist() == values[20:22].tolist()
    with pytest.raises(CorruptData, match="durable file"):
        open_array(tmp_path, tail=(1, 2, *old, crc)).read(slice(20, 22))
    with pytest.raises(CorruptData, match="outside"):
        open_array(tmp_path, tail=(1, 2, 10**6, len(newer), crc)).read(slice(20, 22))


def test_a_chunk_mended_while_it_is_read_again(tmp_path):
    """A reader that kept an index finds the chunk moved: it reads both again."""
    build(tmp_path)
    array = open_array(tmp_path)
    array.read(slice(0, 4))
    file = tmp_path / "c" / "0"
    raw = file.read_bytes()
    offset, nbytes = struct.unpack_from("<QQ", raw, 16)
    moved = raw + raw[offset : offset + nbytes]
    file.write_bytes(moved)
    patch(file, offset, b"\xff" * nbytes)
    patch(file, 16, struct.pack("<QQ", len(raw), nbytes))
    patch(file, 16 * PER_SHARD, struct.pack("<I", _core.crc32c(file.read_bytes()[: 16 * PER_SHARD])))
    assert array.read(slice(4, 8)).tolist() == [104, 105, 106, 107]


def test_refresh(tmp_path):
    values = build(tmp_path)
    array = open_array(tmp_path)
    array.refresh(18)
    assert array.shape == (18,) and array[...].tolist() == values[:18].tolist()
    array.refresh(ROWS)
    assert array[...].tolist() == values.tolist()


def test_a_chunk_that_claims_more_than_it_can_hold(tmp_path):
    build(tmp_path)
    document = json.loads((tmp_path / "zarr.json").read_text())
    document["shape"] = [2**40]
    document["chunk_grid"]["configuration"]["chunk_shape"] = [2**42]
    document["codecs"][0]["configuration"]["chunk_shape"] = [2**40]
    (tmp_path / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(CorruptData):
        open_array(tmp_path).read(slice(0, 4))

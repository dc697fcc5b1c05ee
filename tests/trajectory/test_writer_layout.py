# SPDX-License-Identifier: BSD-3-Clause
"""How arrays are cut into chunks and shards, which codecs they have, and that nothing else is on disk."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import mrec
from tests.trajectory.ondisk import (
    array,
    arrays,
    assert_bits,
    attributes,
    codecs,
    document,
    extents,
    frames,
    tree,
    write,
)

GOLDEN = Path(__file__).parents[1] / "data" / "golden"

# ---- extents -----------------------------------------------------------------------------------------------------


def columns(*dtypes, **options):
    schema = mrec.Schema().block("b", **options)
    for i, dtype in enumerate(dtypes):
        kind, *trailing = dtype.split(":")
        schema.column(f"q{i}", kind, trailing=tuple(map(int, trailing)), nullable=kind == "i32")
    return schema


# Declarations like those of the records that another implementation wrote, and the extents that it chose.
REFERENCE = [
    (columns("f64", rows=100), {"q0": (8601600, 2100)}),
    (columns("f64", rows=12), {"q0": (8404992, 2052)}),
    (columns("f64", rows=3000), {"q0": (12288000, 3000)}),
    (columns("u64", "string", rows=6), {"q0": (8404992, 2052), "q1": (8404992, 2052)}),
    (
        columns("u64", "f64:3", "i16", "i32", "c128", "string", "bool", rows=20),
        {
            "q0": (33554400, 16400),
            "q1": (11184800, 16400),
            "q2": (67174400, 16400),
            "q3": (67108800, 16400),
            "q4": (16777200, 16400),
            "q5": (16777200, 16400),
            "q6": (67174400, 16400),
            "_validity/q3": (67174400, 16400),
        },
    ),
    # By hand: no rows known, 16 KiB of the narrowest; a frame above 16 KiB; a frame above a shard.
    (columns("f64", "i16"), {"q0": (8192 * 4096, 8192), "q1": (8192 * 4096, 8192)}),
    (columns("f64:1000:20", rows=0), {"q0": (1677, 1)}),
    (columns("f64", rows=2049), {"q0": (2049 * 4096, 2049)}),
    (columns("f64", rows=2047), {"q0": (4094 * 4096, 4094)}),
    (columns("f64", rows=50_000_000), {"q0": (50_000_000, 50_000_000)}),
]


@pytest.mark.parametrize(("schema", "want"), REFERENCE, ids=lambda value: value if isinstance(value, str) else "")
def test_extents(tmp_path, schema, want):
    path = tmp_path / "a.mrec"
    write(path, schema).close()
    assert {name: extents(path, f"b/{name}") for name in want} == want


def test_dense_arrays(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, mrec.Schema().block("b").column("q", "f64").value("v", "f64x9")) as w:
        for step in (0, 1, 5, 6):
            w.append(step, time=step, b={"q": np.zeros(step)}, box=(1, 1, 1 + step), v=np.eye(3) * step)
    for name in ("step", "time", "meta/v", "b/offset", "b/step_index", "box/vectors", "box/step_index"):
        assert extents(path, name) == (262144, 1024)
        assert codecs(path, name) == ["bytes", "gzip:1", "crc32c"]


@pytest.mark.parametrize(("frames", "chunk"), [(1, 100), (7, 700), (1000, 100_000)])
def test_frames_per_chunk(tmp_path, frames, chunk):
    path = tmp_path / "a.mrec"
    write(path, columns("f64", rows=100), frames_per_chunk=frames, chunks_per_shard=3).close()
    assert extents(path, "b/q0") == (3 * chunk, chunk)


@pytest.mark.parametrize(
    ("size", "rows", "chunk"),
    [
        ("4 KiB", 100, 600),
        (4800, 100, 600),
        (4801, 100, 700),
        ("1MiB", 100, 131_100),
        ("1MiB", 0, 131_072),
        ("64KiB", 9000, 9000),
    ],
)
def test_chunk(tmp_path, size, rows, chunk):
    """The least number of whole frames that makes the size; rows where a frame has no declared number of them."""
    path = tmp_path / "a.mrec"
    write(path, columns("f64", rows=rows), chunk=size, chunks_per_shard=3).close()
    assert extents(path, "b/q0") == (3 * chunk, chunk)


# ---- frames over chunks and shards -------------------------------------------------------------------------------

ROWS = {"a frame is a chunk": (4, 4), "chunks hold frames": (4, 9), "frames hold chunks": (11, 4), "odd": (7, 5)}


@pytest.mark.parametrize("flush_every", [1, 3, None])
@pytest.mark.parametrize(("declared", "given"), ROWS.values(), ids=ROWS)
def test_frames_over_chunks_and_shards(tmp_path, declared, given, flush_every):
    """`given` rows a frame, 2 * declared rows a shard: a frame can be larger than a shard, and end anywhere in it."""
    path = tmp_path / "a.mrec"
    schema = mrec.Schema().block("b", rows=declared).column("q", "f64", precision=1e-3).column("s", "string")
    schema.column("t", "string", trailing=2).column("n", "i32", nullable=True).column("v", "f64", trailing=3)
    rng = np.random.default_rng(0)
    n = 40
    q, v = rng.normal(size=(n, given)), rng.normal(size=(n, given, 3))
    s = [[f"{i}.{k}" * (k % 4) for k in range(given)] for i in range(n)]
    t = [[(str(i), "é" * k) for k in range(given)] for i in range(n)]
    nulls = rng.random((n, given)) < 0.3
    options = {"frames_per_chunk": 1, "chunks_per_shard": 2, "flush_every": flush_every}
    with write(path, schema, **options) as w:
        for i in range(n):
            numbers = np.ma.array(np.full(given, i, "i4"), mask=nulls[i])
            w.append(i, b={"q": q[i], "s": s[i], "t": t[i], "n": numbers, "v": v[i]})
    assert extents(path, "b/q") == (2 * declared, declared)
    assert len(list((path / "trajectory/b/q/c").iterdir())) == -(-n * given // (2 * declared))
    stored = arrays(path)
    assert np.abs(stored["b/q"] - q.ravel()).max() <= 0.0005
    assert_bits(stored["b/v"], v.reshape(-1, 3))
    assert stored["b/s"].tolist() == [text for frame in s for text in frame]
    assert [tuple(row) for row in stored["b/t"].tolist()] == [row for frame in t for row in frame]
    assert_bits(stored["b/_validity/n"], ~nulls.ravel())
    for i, frame in enumerate(frames(path)):
        assert_bits(frame["b"]["v"], v[i])
        assert frame["b"]["s"].tolist() == s[i]
        assert [tuple(row) for row in frame["b"]["t"].tolist()] == t[i]


def test_shard_bytes(tmp_path):
    """The index comes first and has a place for every chunk with rows, also for one of nothing but fill."""
    path = tmp_path / "a.mrec"
    with write(path, columns("f64", rows=4), frames_per_chunk=1, chunks_per_shard=3) as w:
        for i in range(5):
            w.append(i, b={"q0": np.full(4, float(i % 2))})
    for number, used in ((0, 3), (1, 2)):
        shard = (path / f"trajectory/b/q0/c/{number}").read_bytes()
        index = np.frombuffer(shard[:48], "<u8").reshape(3, 2)
        assert (index[used:] == 2**64 - 1).all()
        for offset, nbytes in index[:used].tolist():
            assert nbytes == 4 * 8 + 4
            assert 52 <= offset <= len(shard) - nbytes
    assert array(path, "b/q0").tolist() == ([0.0] * 4 + [1.0] * 4) * 2 + [0.0] * 4


# ---- codecs ------------------------------------------------------------------------------------------------------

# What stands between `bytes` and `crc32c` in an f64 column with a precision, one without, and a c64 column.
COMPRESSION = {
    None: (["shuffle:8", "zstd:3"], [], []),
    "none": (["shuffle:8", "zstd:3"], [], []),
    "gzip": (["shuffle:8", "gzip:1"], ["gzip:1"], ["gzip:1"]),
    "gzip:9": (["shuffle:8", "gzip:9"], ["gzip:9"], ["gzip:9"]),
    "zstd:-5": (["shuffle:8", "zstd:-5"], ["zstd:-5"], ["zstd:-5"]),
    "shuffle+zstd:7": (["shuffle:8", "zstd:7"], ["shuffle:8", "zstd:7"], ["shuffle:4", "zstd:7"]),
}


@pytest.mark.parametrize("compression", COMPRESSION)
def test_compression(tmp_path, compression):
    path = tmp_path / "a.mrec"
    schema = mrec.Schema().block("b", rows=50).column("p", "f64", precision=1e-3).column("q", "f64").column("c", "c64")
    schema.column("n", "u16").column("s", "string").column("w", "c128")
    rng = np.random.default_rng(0)
    q, c = rng.normal(size=(20, 50)), rng.normal(size=(20, 50)).astype("c8")
    with write(path, schema, compression=compression, frames_per_chunk=3, flush_every=4) as w:
        for i in range(20):
            w.append(i, b={"p": q[i], "q": q[i], "c": c[i], "n": np.arange(50), "s": ["ab"] * 50, "w": c[i]})
    precise, plain, narrow = COMPRESSION[compression]
    found = {name: [c.removeprefix("numcodecs.") for c in codecs(path, f"b/{name}")] for name in "pqcns"}
    assert found == {
        "p": ["bytes", *precise, "crc32c"],
        "q": ["bytes", *plain, "crc32c"],
        "c": ["bytes", *narrow, "crc32c"],
        "n": ["bytes", "gzip:1", "crc32c"],
        "s": ["vlen-utf8", "gzip:1", "crc32c"],
    }
    stored = arrays(path)
    assert_bits(stored["b/q"], q.ravel())
    assert_bits(stored["b/c"], c.ravel())
    assert_bits(stored["b/w"], c.ravel().astype("c16"))
    assert np.abs(stored["b/p"] - q.ravel()).max() <= 0.0005
    assert stored["b/n"].tolist() == list(range(50)) * 20


def test_compression_makes_it_smaller(tmp_path):
    sizes = {}
    for compression in ("none", "shuffle+zstd"):
        path = tmp_path / compression
        with write(path, columns("f64", rows=1000), compression=compression, chunks_per_shard=100) as w:
            for i in range(20):
                w.append(i, b={"q0": np.random.default_rng(i).normal(size=1000).astype("f4").astype("f8")})
        sizes[compression] = sum(map(len, tree(path).values()))
    assert sizes["shuffle+zstd"] < 0.75 * sizes["none"]


# ---- documents ---------------------------------------------------------------------------------------------------


def test_array_documents_have_the_members_of_the_format(tmp_path):
    path = tmp_path / "a.mrec"
    with write(path, columns("f64", "string", rows=2)) as w:
        w.append(0, b={"q0": [1.0, 2.0], "q1": ["a", "b"]})
    keys = "zarr_format node_type shape data_type chunk_grid chunk_key_encoding fill_value codecs".split()
    for name, fill in (("b/q0", 0.0), ("b/q1", "")):
        found = document(path, name)
        assert list(found) == keys
        assert found["fill_value"] == fill
        assert found["chunk_key_encoding"] == {"name": "default", "configuration": {"separator": "/"}}
        (shard,) = found["codecs"]
        assert shard["configuration"]["index_location"] == "start"
        assert [c["name"] for c in shard["configuration"]["index_codecs"]] == ["bytes", "crc32c"]
    assert document(path, "b/q0")["codecs"][0]["configuration"]["codecs"][0]["configuration"] == {"endian": "little"}


def test_documents_are_those_of_the_other_implementation(tmp_path):
    """Key for key and value for value, for the same declaration and frames."""
    values = json.loads((GOLDEN / "fixed_p3.json").read_text())
    schema = mrec.Schema().block("atoms", rows=100)
    for name in "xyz":
        schema.column(name, "f64", precision=1e-3)
    schema.value("pe", "f64").value("temp", "f64")
    path = tmp_path / "a.mrec"
    box = mrec.Box.from_lengths(12.5, 12.5, 12.5)
    with write(path, schema) as w:
        for step, time, frame in zip(values["steps"], values["times"], values["frames"], strict=True):
            block = frame["blocks"]["atoms"]
            atoms = {name: [float.fromhex(v) for v in block[name]["values"]] for name in "xyz"}
            w.append(int(step), time=float.fromhex(time), box=box, atoms=atoms, pe=0.0, temp=0.0)
    theirs = GOLDEN / "fixed_p3.mrec" / "trajectory"
    for file in sorted(theirs.rglob("zarr.json")):
        mine = json.loads((path / "trajectory" / file.relative_to(theirs)).read_text())
        assert normal(mine) == normal(json.loads(file.read_text())), file.relative_to(theirs)


def normal(value):
    """Without what a reader takes for the same: empty configurations and attributes."""
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items() if v not in ({}, []) and k != "storage_transformers"}
    return [normal(v) for v in value] if isinstance(value, list) else value


# ---- what is left after close ------------------------------------------------------------------------------------

ALLOWED = re.compile(
    r"zarr\.json|meta/zarr\.json"
    r"|trajectory(/meta|/box|/b|/b/_validity)?/zarr\.json"
    r"|trajectory/(step|time|meta/v|box/(step_index|vectors|origin|boundary)|b/(step_index|offset|q0|q1|_validity/q0))"
    r"/(zarr\.json|c/\d+(/0)*)"
)


def changing(w, start):
    for i in range(start, start + 3):
        given = {"q0": np.ma.array([i], mask=[i % 2], dtype="i4").repeat(i + 1), "q1": ["s"] * (i + 1)}
        w.append(i * i, time=float(i * i), b=given, v=i, box=mrec.Box.from_lengths(1 + i, 1, 1, origin=(0, 0, i)))


@pytest.mark.parametrize("durable", [True, False])
def test_a_closed_record_holds_the_format_and_nothing_else(tmp_path, durable):
    path = tmp_path / "a.mrec"
    schema = columns("i32", "string", rows=2).value("v", "i64")
    with write(path, schema, durable=durable, flush_every=1, units={"length": "angstrom"}, meta={"title": "é"}) as w:
        changing(w, 0)
        w.flush()
    with mrec.TrajectoryWriter.open(path, durable=durable) as w:
        changing(w, 3)
        w.flush(durable=False)
    strange = [name for name in tree(path) if not ALLOWED.fullmatch(name)]
    assert strange == []
    assert attributes(path).keys() == {"sequence_schema", "nstep"}
    assert json.loads((path / "meta/zarr.json").read_text())["attributes"] == {
        "title": "é",
        "units": {"length": "angstrom"},
    }
    for name, data in arrays(path).items():
        rows = {"b/q0": 21, "b/q1": 21, "b/_validity/q0": 21, "b/offset": 7}.get(name, 6)
        assert len(data) == rows, name


def test_a_live_record_has_a_durable_file_and_says_so(tmp_path):
    path = tmp_path / "a.mrec"
    w = write(path, columns("f64", rows=2), durable=True)
    assert json.loads((path / "trajectory/.durable").read_text())["nstep"] == 0
    w.append(0, b={"q0": [1.0, 2.0]})
    w.flush(durable=False)
    assert attributes(path)["mrec_nstep"] == 1
    assert json.loads((path / "trajectory/.durable").read_text())["nstep"] == 0
    w.flush()
    found = json.loads((path / "trajectory/.durable").read_text())
    assert found["nstep"] == 1
    assert found["documents"]["trajectory/b/q0/zarr.json"] == (path / "trajectory/b/q0/zarr.json").read_text()
    w.close()
    assert not (path / "trajectory/.durable").exists()

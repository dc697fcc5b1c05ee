# SPDX-License-Identifier: BSD-3-Clause
"""The document: its schema, its digest, and what is no manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from mrec import stream
from mrec.errors import CorruptData, UnsupportedVersion
from mrec.stream import MemoryStore, Owner, StreamSchema, Variable
from mrec.stream.manifest import json_schema, parse_manifest
from tests.stream.crew import TWO_BY_TWO, Crew, schema

#: The declaration of the digest in docs/streams.md.
DIGEST = StreamSchema(
    dims={"lat": 4, "lon": 6},
    variables={"t2m": Variable(("time", "lat", "lon"), "f32")},
    statics={"mask": Variable(("lat", "lon"), "bool")},
    chunk={"time": 1, "lat": 2, "lon": 6},
    shard={"time": 2, "lat": 2, "lon": 6},
)


def small(**changes: Any) -> StreamSchema:
    """One variable of two values."""
    return StreamSchema(
        {"x": 2}, {"v": Variable(("time", "x"), "i8")}, {"time": 1, "x": 2}, {"time": 2, "x": 2}, **changes
    )


@pytest.fixture(autouse=True)
def every_manifest_validates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that is written in this file, at the moment it is made."""
    text = stream.Manifest.text

    def checked(self: Any) -> str:
        found = text(self)
        jsonschema.validate(json.loads(found), json_schema(self.version))
        parsed = parse_manifest(found.encode(), "m")
        if self.version == 2:
            assert text(parsed) == found
        return found

    monkeypatch.setattr(stream.Manifest, "text", checked)


@pytest.mark.parametrize("version", [1, 2])
def test_the_schemas_are_schemas(version: int) -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema(version))


@pytest.mark.parametrize("profile", ["diagnostic", "checkpoint", "none", "wasm"])
@pytest.mark.parametrize(
    "mode",
    [stream.append(), stream.indexed(4), stream.indexed(4, [0.0, 10.0, 20.0, 30.0])],
    ids=["append", "free", "fixed"],
)
def test_written_manifests_validate(profile: str, mode: Any) -> None:
    s = schema(profile=profile, mode=mode, attrs={"title": "tÿtel"})
    crew = Crew(MemoryStore(), s, TWO_BY_TWO)
    crew.write(0, 1, 2)
    crew.write_static("mask")
    crew.write_static("weight")
    crew.owner.write_blob(1, "k", b"x")
    crew.writers[2].write_blob("static", "k", b"y")
    crew.commit()
    if mode.indexed:
        crew.owner.invalidate(1)
        crew.commit()
    crew.resume(TWO_BY_TWO, **({} if mode.indexed else {"at": 15.0}))
    one = Crew(MemoryStore(), schema(profile="wasm", statics={}))
    one.write(*range(4))
    one.commit()
    assert stream.read_manifest(one.base).version == 1


@pytest.mark.parametrize("dtype", ["f32", "i64", "u64", "i16", "u8"])
def test_times_of_other_types(dtype: str) -> None:
    for mode in (stream.append(), stream.indexed(3, [1, 2, 5])):
        s = StreamSchema(
            {"x": 2},
            {"v": Variable(("time", "x"), "i8")},
            {"time": 1, "x": 2},
            {"time": 2, "x": 2},
            time_dtype=dtype,
            mode=mode,
        )
        writer = stream.create(base := MemoryStore(), s, Owner(1))
        for i, t in enumerate((1, 2, 5)):
            give = [i] if mode.indexed else []
            getattr(writer, "write_record_at" if mode.indexed else "write_record")(*give, t, {"v": np.zeros(2, "i1")})
        writer.commit([writer.flush()])
        found = stream.Stream(base).times()
        assert found.tolist() == [1, 2, 5] and found.dtype == s.time_dtype


def test_times_are_bits() -> None:
    """What is not the shortest decimal, and zeros of either sign."""
    times = [-0.0, 5e-324, 0.1 + 0.2, 1e300]
    s = StreamSchema(
        {"x": 2}, {"v": Variable(("time", "x"), "i8")}, {"time": 1, "x": 2}, {"time": 2, "x": 2}, mode=stream.indexed(4)
    )
    writer = stream.create(base := MemoryStore(), s, Owner(1))
    for i, t in enumerate(times):
        writer.write_record_at(i, t, {"v": np.zeros(2, "i1")})
    writer.commit([writer.flush()])
    assert stream.Stream(base).times().tobytes() == np.array(times).tobytes()


def test_the_digest() -> None:
    assert DIGEST.fingerprint(["lat"]) == "1a949d2ee1840fdd7ee884ae3131abb1abc647b3ec202cbe45a20a244ad9b8fd"


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "x"},
        {"epoch": -1},
        {"epoch": True},
        {"commit_seq": 1.0},
        {"stream_id": "x"},
        {"codec": {"id": "zstd"}},
        {"profile": "fast"},
        {"n_records": 9},
        {"records": [{"start": 0, "stop": 2}, {"start": 1, "stop": 3}]},
        {"records": [{"start": 1, "stop": 3}]},
        {"records": None},
        {"dims": [["lat", 3], ["lat", 3]]},
        {"dims": {"lat": 3}},
        {"vars": [{"name": "../x", "dims": ["time"], "dtype": "float32"}]},
        {"vars": [{"name": "x", "dims": ["time"], "dtype": "float16"}]},
        {"chunk_shape": {"time": 1}},
        {"shard_shape": {"time": 2**60, "lat": 4, "lon": 3, "lev": 2}},
        {"time_mode": {"kind": "other"}},
        {"partition_dims": ["time"]},
        {"writers": [{"id": 0, "region": {"lat": [0]}}]},
        {"blobs": [{"scope": 0, "writer": 0, "key": "../x", "size": 1, "crc32c": 1}]},
        {"objects": [{"key": "a", "size": 1, "crc32c": 2**32}]},
        {"objects": [{"key": "a", "size": 1, "crc32c": 1}] * 2},
        {"time_shards": [{"index": 0}]},
    ],
)
def test_what_is_no_manifest(tmp_path: Path, change: dict) -> None:
    crew = Crew(tmp_path / "s", schema(), TWO_BY_TWO)
    crew.write(0, 1)
    crew.commit()
    file = tmp_path / "s/output_manifest.json"
    doc = json.loads(file.read_text())
    for name in doc:
        without = {k: v for k, v in doc.items() if k != name}
        if name != "v1_records":
            with pytest.raises((CorruptData, UnsupportedVersion)):
                parse_manifest(json.dumps(without).encode(), "m")
    file.write_text(json.dumps({**doc, **change}))
    for call in (lambda: stream.read_manifest(tmp_path / "s"), lambda: stream.read_record(tmp_path / "s", "t2m", 0)):
        with pytest.raises((CorruptData, UnsupportedVersion), match="output_manifest"):
            call()


def test_format_and_zarr_format_are_ours() -> None:
    doc = json.loads(Crew(MemoryStore(), schema()).owner.manifest.text())
    for change in ({"format": "hdf5"}, {"zarr_format": 2}):
        with pytest.raises(CorruptData):
            parse_manifest(json.dumps({**doc, **change}).encode(), "m")

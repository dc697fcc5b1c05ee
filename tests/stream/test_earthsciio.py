# SPDX-License-Identifier: BSD-3-Clause
"""Interchange with earthsciio 0.1.4, whose version 1 streams have one writer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

from mrec import stream
from mrec.errors import CorruptData, SchemaError, UnsupportedCodec
from mrec.stream import Owner, StreamSchema, Variable
from mrec.stream.manifest import parse_manifest
from tests import golden

earthsciio = pytest.importorskip("earthsciio.backends.zarr_write")

#: zarr-python sees a file that is none of its own: the manifest.
pytestmark = pytest.mark.filterwarnings("ignore:Object at")

GOLDEN = golden.ROOT / "stream" / "v1_wasm"
TIMES = [0.0, 3600.0, 7200.0, 10800.0]
ATTRS = {
    "temperature": {"units": "K", "standard_name": "air_temperature", "coordinates": "lat lon"},
    "pressure": {"units": "Pa", "standard_name": "air_pressure", "coordinates": "lat lon"},
    "lat": {"units": "degrees_north", "standard_name": "latitude", "axis": "Y"},
    "lon": {"units": "degrees_east", "standard_name": "longitude", "axis": "X"},
    "time": {
        **{"units": "seconds since 2020-01-01 00:00:00", "standard_name": "time", "axis": "T"},
        "calendar": "proleptic_gregorian",
    },
}
GROUP = {"title": "EarthSciIO write-conformance tiny dataset", "Conventions": "CF-1.8"}
LAT, LON = np.array([10.0, 20.0, 30.0]), np.array([0.0, 1.0, 2.0, 3.0])


def fields(r: int) -> dict[str, np.ndarray]:
    i, j = np.arange(3.0)[:, None], np.arange(4.0)[None]
    return {"temperature": 280 + 10 * r + i + 0.5 * j, "pressure": 101325 - 100 * r + 3 * i - 0.25 * j}


def schema(**changes: Any) -> StreamSchema:
    found: dict[str, Any] = {
        "dims": {"time": 0, "lat": 3, "lon": 4},
        "variables": {n: Variable(("time", "lat", "lon"), "f64", ATTRS[n]) for n in ("temperature", "pressure")},
        "coords": {"lat": (LAT, ATTRS["lat"]), "lon": (LON, ATTRS["lon"]), "time": ATTRS["time"]},
        "chunk": {"time": 1, "lat": 3, "lon": 2},
        "shard": {"time": 2, "lat": 3, "lon": 4},
        "profile": "wasm",
        "attrs": GROUP,
    }
    return StreamSchema(**{**found, **changes})


def ours(path: Path, **changes: Any) -> Path:
    with stream.create(path, schema(**changes)) as writer:
        for r, t in enumerate(TIMES):
            writer.write_record(t, fields(r))
    return path


def theirs(path: Path, profile: str = "wasm", flush: bool = False, zero: bool = False) -> Path:
    made = earthsciio.OutputSchema(
        dims=[("time", 0), ("lat", 3), ("lon", 4)],
        time_dim="time",
        vars=[(n, earthsciio.OutputVar(["time", "lat", "lon"], "f8", ATTRS[n])) for n in ("temperature", "pressure")],
        chunk_shape={"time": 1, "lat": 3, "lon": 2},
        shard_shape={"time": 2, "lat": 3, "lon": 4},
        coords=[("lat", (LAT, ATTRS["lat"])), ("lon", (LON, ATTRS["lon"])), ("time", (np.zeros(0), ATTRS["time"]))],
        profile=profile,
        attrs=GROUP,
    )
    writer = earthsciio.ZarrWriter()
    handle = writer.write_open(str(path), made)
    for r, t in enumerate(TIMES):
        given = fields(r)
        if zero:
            given["pressure"] = given["pressure"] * 0
        writer.write_record(handle, t, given)
        if flush:
            writer.write_flush(handle)
    writer.write_close(handle)
    return path


def arrays(path: Path) -> dict[str, Any]:
    """Decoded values and metadata, as a comparison of two stores wants them."""
    group, found = zarr.open_group(path, mode="r"), {}
    for name, array in group.arrays():
        document = json.loads((path / name / "zarr.json").read_text())
        attrs = {k: v for k, v in array.attrs.asdict().items() if k != "_ARRAY_DIMENSIONS"}
        found[name] = (
            *(array[...].tobytes(), array.shape, str(array.dtype), array.metadata.dimension_names, array.shards),
            *(array.chunks, document["codecs"], document["fill_value"], attrs),
        )
    return {"": group.attrs.asdict(), **found}


def manifest(path: Path) -> dict[str, Any]:
    """A manifest in version 1's own form, whichever program wrote it."""
    doc = json.loads((path / "output_manifest.json").read_text())
    if "total_records" in doc:
        doc["n_records"], doc["created_at"] = doc.pop("total_records"), doc.pop("written_at")
        doc["dims"] = [{"name": name, "length": length} for name, length in doc["dims"]]
        doc["time_shards"] = [{**s, "n": s["n_records"]} for s in doc["time_shards"]]
        for shard in doc["time_shards"]:
            del shard["n_records"]
    assert doc.pop("created_at").endswith("Z")
    del doc["base_url"]
    return doc


def test_both_programs_write_the_same_store(tmp_path: Path) -> None:
    mine, other = ours(tmp_path / "mine"), theirs(tmp_path / "theirs")
    assert arrays(mine) == arrays(other)
    assert manifest(mine) == manifest(other)
    assert (
        manifest(mine).keys() | {"base_url", "created_at"}
        == json.loads((mine / "output_manifest.json").read_text()).keys()
    )


def test_earthsciio_reads_ours(tmp_path: Path) -> None:
    from earthsciio.backends.zarr import ZarrReader

    path = ours(tmp_path / "mine")

    class Entry:
        def __init__(self, path: Path) -> None:
            self.path = path

    class Cache:
        """Fetches from the store itself."""

        def fetch(self, url: str, *rest: Any, **options: Any) -> Entry:
            from earthsciio.errors import CacheMiss

            found = path / url.removeprefix("s3://bucket/run/")
            if not found.is_file():
                raise CacheMiss(url, url)
            return Entry(found)

    read = ZarrReader().read_store(Cache(), "s3://bucket/run", ["temperature", "pressure", "time", "lat"], None)
    for name in ("temperature", "pressure"):
        wanted = np.stack([fields(r)[name] for r in range(4)])
        assert np.asarray(read[name].data).tobytes() == wanted.tobytes()
        assert tuple(read[name].dims) == ("time", "lat", "lon")
    assert np.asarray(read["time"].data).tolist() == TIMES


@pytest.mark.parametrize("flush", [False, True], ids=["full shards", "an entry a flush"])
def test_we_read_theirs(tmp_path: Path, flush: bool) -> None:
    path = theirs(tmp_path / "theirs", flush=flush)
    found = stream.Stream(path)
    assert found.manifest.n_records == 4 and found.times().tolist() == TIMES
    for r in range(4):
        for name, wanted in fields(r).items():
            assert found.read_record(name, r).tobytes() == wanted.tobytes()


def test_the_golden_store() -> None:
    found = stream.Stream(GOLDEN)
    assert found.times().tolist() == TIMES and found.manifest.schema.profile == "wasm"
    for r in range(4):
        for name, wanted in fields(r).items():
            assert found.read_record(name, r).tobytes() == wanted.tobytes()
            assert (found.read_record(name, r, {"lat": (1, 3), "lon": (2, 3)}) == wanted[1:3, 2:3]).all()


@pytest.mark.parametrize("profile", ["diagnostic", "checkpoint"])
def test_blosc_is_read_through_zarr_and_never_written(tmp_path: Path, profile: str) -> None:
    path = theirs(tmp_path / "theirs", profile)
    for r in range(4):
        for name, wanted in fields(r).items():
            assert stream.read_record(path, name, r).tobytes() == wanted.tobytes()
    with pytest.raises(UnsupportedCodec, match="blosc"):
        stream.resume(path)


@pytest.mark.parametrize("role", ["single", "owner"])
def test_their_stream_is_resumed(tmp_path: Path, role: str) -> None:
    """What they left out because it is zero stays zero; version 2 begins with a second writer."""
    path = theirs(tmp_path / "theirs", zero=True, flush=True)
    assert not (path / "pressure/c/0").exists()
    if role == "single":
        with stream.resume(path, at=8000.0) as writer:
            assert writer.n_committed == 3
            writer.write_record(10800.0, fields(3))
            writer.write_record(14400.0, fields(4))
        assert json.loads((path / "output_manifest.json").read_text())["schema"].endswith("/v1")
    else:
        with stream.resume(path, Owner(1), at=8000.0) as writer:
            writer.write_record(10800.0, fields(3))
            writer.write_record(14400.0, fields(4))
            writer.commit([writer.flush()])
        m = stream.read_manifest(path)
        assert (m.version, m.v1_records, m.epoch) == (2, 3, 1) and "pressure/c/0/0/0" not in m.objects
    assert stream.Stream(path).times().tolist() == [*TIMES, 14400.0]
    for r in range(5):
        assert stream.read_record(path, "temperature", r).tobytes() == fields(r)["temperature"].tobytes()
        wanted = fields(r)["pressure"] * (r > 2)
        assert (stream.read_record(path, "pressure", r) == wanted).all()


def test_a_missing_object_is_fill_in_version_1_and_a_loss_in_version_2(tmp_path: Path) -> None:
    path = Path(shutil.copytree(GOLDEN, tmp_path / "one"))
    shutil.rmtree(path / "pressure/c/0")
    assert not stream.read_record(path, "pressure", 0).any()
    path = ours(tmp_path / "two", profile="none")
    shutil.rmtree(path / "pressure/c/0")
    with pytest.raises(CorruptData, match="pressure/c/0/0/0 of committed data is missing"):
        stream.read_record(path, "pressure", 0)


def test_version_1_is_for_what_it_can_hold(tmp_path: Path) -> None:
    with stream.create(tmp_path / "s", schema()) as writer:
        with pytest.raises(SchemaError, match="no blobs"):
            writer.write_blob("static", "k", b"")
        writer.set_attrs({"title": "other"})
        writer.write_record(0.0, fields(0))
    assert json.loads((tmp_path / "s/zarr.json").read_text())["attributes"] == {"title": "other"}


def test_the_form_that_rust_writes() -> None:
    doc = json.loads((GOLDEN / "output_manifest.json").read_text())
    doc["dims"] = [{"name": n, "length": length} for n, length in (("time", 4), ("lat", 3), ("lon", 4))]
    doc["vars"] = [{**v, "attrs": {"units": "K"}} for v in doc["vars"]]
    doc["n_records"], doc["created_at"] = doc.pop("total_records"), doc.pop("written_at")
    doc["time_shards"] = [{"index": 0, "t_start": 0.0, "t_end": 10800.0, "n": 4}]
    found = parse_manifest(json.dumps(doc).encode(), "m")
    assert found.count == 4 and found.schema.dims == {"time": 0, "lat": 3, "lon": 4}

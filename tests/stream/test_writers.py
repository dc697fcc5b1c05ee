# SPDX-License-Identifier: BSD-3-Clause
"""One writer and many give the same stream; what is refused at opening and at writing."""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import zarr

from mrec import stream
from mrec.errors import (
    ClosedError,
    CommitPending,
    InvalidValue,
    NotARecord,
    NotCommitted,
    RecordExists,
    RecordLocked,
    RegionError,
    RegionNotShardAligned,
    SchemaError,
)
from mrec.stream import Contributor, MemoryStore, Owner, Single, StreamSchema, Variable
from mrec.stream.schema import TYPES
from tests.stream.crew import FOUR_ROWS, TWO_BY_TWO, Crew, check, contents, data, schema, tiles, value


@pytest.mark.parametrize("regions", [TWO_BY_TWO, FOUR_ROWS], ids=["2x2", "4 rows"])
@pytest.mark.parametrize("profile", ["diagnostic", "checkpoint", "none", "wasm"])
def test_many_writers_give_the_bytes_of_one(tmp_path: Path, regions: list, profile: str) -> None:
    s = schema(profile=profile)
    one, many = Crew(tmp_path / "one", s), Crew(tmp_path / "many", s, regions)
    for crew in (one, many):
        crew.write(0, 1)
        crew.commit()
        crew.write(2, 3, 4, 5, 6)
        for name in s.statics:
            crew.write_static(name)
        crew.commit()
        crew.close()
    assert data(tmp_path / "one") == data(tmp_path / "many")
    check(tmp_path / "many", s, range(7))
    assert not contents(tmp_path / "many").keys() & {k for k in contents(tmp_path / "many") if k.startswith("locks/")}


def test_193_rows_on_four_ranks(tmp_path: Path) -> None:
    s = StreamSchema(
        dims={"lat": 193, "lon": 4},
        variables={"a": Variable(("time", "lat", "lon"), "f32"), "lonely": Variable(("time", "lon"), "f32")},
        chunk={"time": 1, "lat": 8, "lon": 4},
        shard={"time": 1, "lat": 16, "lon": 4},
    )
    regions = tiles(lat=(0, 48, 96, 144, 193))
    crew = Crew(tmp_path / "s", s, regions)
    assert [list(w.mine) for w in crew.writers] == [["a", "lonely"], ["a"], ["a"], ["a"]]
    crew.write(0, 1)
    crew.commit()
    check(tmp_path / "s", s, range(2))


def test_plain_zarr_reads_it(tmp_path: Path) -> None:
    s = schema()
    crew = Crew(tmp_path / "s", s, TWO_BY_TWO)
    crew.write(0, 1, 2, 3)
    crew.commit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        group = zarr.open_group(tmp_path / "s", mode="r")
        for name in s.variables:
            assert group[name].metadata.dimension_names == s.variables[name].dims
            assert group[name].attrs["_ARRAY_DIMENSIONS"] == list(s.variables[name].dims)
            found = group[name][:]
            assert found.tobytes() == np.stack([value(s, name, i) for i in range(4)]).tobytes()
        assert group["time"][:].tolist() == [0, 10, 20, 30]
        assert group["lat"].attrs["units"] == "degrees_north"


@pytest.mark.parametrize("profile", ["diagnostic", "none", "wasm"])
@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_back_bit_for_bit(name: str, profile: str) -> None:
    s = StreamSchema(
        dims={"x": 5},
        variables={"v": Variable(("time", "x"), name)},
        statics={"k": Variable(("x",), name)},
        chunk={"time": 2, "x": 2},
        shard={"time": 2, "x": 4},
        profile=profile,
    )
    bits = np.random.default_rng(0).integers(0, 256, 5 * 8, np.uint8)
    if name == "bool":
        values = bits[:5] > 127
    else:
        values = bits[: 5 * np.dtype(TYPES[name]).itemsize].view(TYPES[name]).copy()
    if name[0] == "f":
        values[:4] = [np.nan, -0.0, np.inf, 5e-324]
        values.view(f"u{values.itemsize}")[0] |= 0x5
    base = MemoryStore()
    with stream.create(base, s) as writer:
        writer.write_record(1.5, {"v": values})
        writer.write_static("k", values)
    for got in (stream.read_record(base, "v", 0), stream.read_static(base, "k")):
        assert got.dtype == values.dtype and got.tobytes() == values.tobytes()


@pytest.mark.parametrize("order", [[6, 5, 4, 3, 2, 1, 0], [3, 0, 6, 2, 5, 1, 4]])
def test_any_order_of_records_gives_the_bytes_of_forward(tmp_path: Path, order: list[int]) -> None:
    s = schema(mode=stream.indexed(7, [10.0 * i for i in range(7)]))
    forward, other = Crew(tmp_path / "a", s, TWO_BY_TWO), Crew(tmp_path / "b", s, TWO_BY_TWO)
    forward.write(*range(7))
    forward.commit()
    for i in order:
        other.write(i)
        other.commit()
    assert data(tmp_path / "a") == data(tmp_path / "b")
    check(tmp_path / "b", s, range(7))


def test_no_chunk_is_elided_and_none_beyond_the_extent_stored(tmp_path: Path) -> None:
    s = schema(profile="none")
    with stream.create(tmp_path / "s", s) as writer:
        writer.write_record(0.0, {n: np.zeros_like(value(s, n, 0)) for n in s.variables})
    raw = (tmp_path / "s/t2m/c/0/3/2").read_bytes()  # lat 12: one row of a shard of 4
    index = np.frombuffer(raw[-4 - 16 * 6 : -4], "<u8").reshape(3, 2, 2)
    assert (index[1:] == 2**64 - 1).all() and (index[:, 1] == 2**64 - 1).all()  # time past 1, rows past 13
    assert index[0, 0].tolist() == [0, 2 * 3 * 4 + 4]


# ---- refusals at opening ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "error", "match"),
    [
        ({"lat": (0, 7)}, RegionNotShardAligned, r"writer 0 .*lat \[0, 7\).*shard of 4"),
        ({"lat": (2, 8)}, RegionNotShardAligned, r"lat \[2, 8\)"),
        ({"lat": (8, 8)}, RegionError, r"lat \[8, 8\)"),
        ({"lat": (0, 14)}, RegionError, r"\[0, 13\)"),
        ({"lat": (-4, 8)}, RegionError, r"lat \[-4, 8\)"),
        ({"depth": (0, 1)}, RegionError, "no dimension 'depth'"),
        ({"time": (0, 1)}, RegionError, "time dimension"),
        ({"lat": (0.0, 4.0)}, RegionError, "two integers"),
        ({"lat": 4}, RegionError, r"\(start, stop\)"),
    ],
)
def test_a_region_is_checked_before_anything_is_written(tmp_path: Path, region: dict, error: type, match: str) -> None:
    with pytest.raises(error, match=match):
        stream.create(tmp_path / "s", schema(), Owner(2), region, partition_dims=["lat"])
    assert not (tmp_path / "s").exists()


def test_a_contributor_cuts_what_the_owner_said(tmp_path: Path) -> None:
    stream.create(tmp_path / "s", schema(), Owner(2), {"lat": (0, 8)})
    before = contents(tmp_path / "s")
    with pytest.raises(RegionError, match=r"cuts lon .* but the stream is cut along lat"):
        stream.join(tmp_path / "s", Contributor(1), {"lon": (0, 3)})
    with pytest.raises(RegionNotShardAligned, match="writer 1"):
        stream.join(tmp_path / "s", Contributor(1), {"lat": (9, 13)})
    with pytest.raises(RegionError, match="writers 0 to 1"):
        stream.join(tmp_path / "s", Contributor(2), {"lat": (8, 13)})
    assert contents(tmp_path / "s") == before


@pytest.mark.parametrize(
    "change",
    [
        {"profile": "fast"},
        {"chunk": {"time": 1, "lat": 3, "lon": 3, "lev": 1}},
        {"chunk": {"time": 1, "lat": 2, "lon": 3}},
        {"shard": {"time": 3, "lat": 0, "lon": 3, "lev": 2}},
        {"variables": {"a": Variable(("lat", "time"), "f4")}},
        {"variables": {"a": Variable(("time", "depth"), "f4")}},
        {"variables": {"blobs": Variable(("time", "lat"), "f4")}},
        {"variables": {"c": Variable(("time", "lat"), "f4")}},
        {"variables": {"a/b": Variable(("time", "lat"), "f4")}},
        {"variables": {"lat": Variable(("time", "lat"), "f4")}},
        {"variables": {"mask": Variable(("time", "lat"), "f4")}},
        {"variables": {}, "statics": {}},
        {"statics": {"a": Variable(("time", "lat"), "f4")}},
        {"statics": {"a": Variable((), "f4")}},
        {"coords": {"lat": np.zeros(4)}},
        {"coords": {"depth": np.zeros(4)}},
        {"attrs": {"x": float("nan")}},
        {"attrs": {"x": object()}},
        {"time_dtype": "bool"},
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(change: dict) -> None:
    with pytest.raises(SchemaError):
        schema(**change)


@pytest.mark.parametrize("dtype", ["f16", "c64", "str", "datetime64[s]", "complex128", object])
def test_an_unsupported_type_is_refused(dtype: object) -> None:
    with pytest.raises(SchemaError, match="f64, f32"):
        Variable(("time", "x"), dtype)  # type: ignore[arg-type]


def test_create_overwrites_only_when_asked_and_only_streams(tmp_path: Path) -> None:
    s = schema()
    with stream.create(tmp_path / "s", s) as w:
        w.write_record(0.0, {n: value(s, n, 0) for n in s.variables})
    with pytest.raises(RecordExists, match="overwrite=True"):
        stream.create(tmp_path / "s", s)
    stream.create(tmp_path / "s", s, overwrite=True).close()
    assert stream.read_manifest(tmp_path / "s").n_records == 0
    assert not list((tmp_path / "s/t2m").glob("c*"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home/letter").write_text("dear")
    with pytest.raises(RecordExists, match="no stream"):
        stream.create(tmp_path / "home", s, overwrite=True)
    assert (tmp_path / "home/letter").read_text() == "dear"


def test_an_unfinished_creation_is_no_stream(tmp_path: Path) -> None:
    s = schema()
    stream.create(tmp_path / "s", s).close()
    (tmp_path / "s/output_manifest.json").unlink()
    for call in (stream.read_manifest, stream.resume):
        with pytest.raises(NotARecord, match="not finished"):
            call(tmp_path / "s")
    with pytest.raises(RecordExists):
        stream.create(tmp_path / "s", s)
    stream.create(tmp_path / "s", s, overwrite=True).close()
    check(tmp_path / "s", s, [])


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    s = schema()
    first = stream.create(tmp_path / "s", s)
    for call in (lambda: stream.resume(tmp_path / "s"), lambda: stream.create(tmp_path / "s", s, overwrite=True)):
        with pytest.raises(RecordLocked):
            call()
    first.close()
    stream.resume(tmp_path / "s").close()


# ---- refusals at writing ---------------------------------------------------------------------------------------


def test_a_record_is_whole_and_of_its_writer(tmp_path: Path) -> None:
    crew = Crew(tmp_path / "s", schema(), TWO_BY_TWO)
    good = crew.arrays(crew.writers[1], 0)
    writer = crew.writers[1]
    assert set(good) == {"t2m", "ps", "merid"}
    with pytest.raises(SchemaError, match="lacks 'ps'"):
        writer.write_record(0.0, {k: v for k, v in good.items() if k != "ps"})
    with pytest.raises(RegionError, match="writer 1 is not responsible for 'zonal'"):
        writer.write_record(0.0, {**good, "zonal": np.zeros(8, "i4")})
    with pytest.raises(SchemaError, match="no variable 'snow'"):
        writer.write_record(0.0, {**good, "snow": 1})
    with pytest.raises(SchemaError, match=r"shape \[13, 9\], not \[8, 3\]"):
        writer.write_record(0.0, {**good, "t2m": np.zeros((13, 9), "f4")})
    with pytest.raises(SchemaError, match="float64 does not fit"):
        writer.write_record(0.0, {**good, "t2m": good["t2m"].astype("f8")})
    with pytest.raises(SchemaError, match="finite"):
        writer.write_record(np.nan, good)
    with pytest.raises(RegionError, match="not responsible for 'weight'"):
        crew.writers[2].write_static("weight", np.zeros(9))
    for method in ("set_attrs", "invalidate", "commit"):
        with pytest.raises(InvalidValue, match="for the owner"):
            getattr(writer, method)({})
    assert writer.write_record(0.0, good) == 0
    with pytest.raises(InvalidValue, match="times increase"):
        writer.write_record(0.0, good)
    with pytest.raises(InvalidValue, match="appends"):
        writer.write_record_at(1, 1.0, good)


def test_times_of_an_indexed_stream_are_given(tmp_path: Path) -> None:
    crew = Crew(tmp_path / "s", schema(mode=stream.indexed(3, [0.0, 10.0, 20.0])))
    arrays = crew.arrays(crew.owner, 1)
    with pytest.raises(InvalidValue, match="has the time 10.0, not 11.0"):
        crew.owner.write_record_at(1, 11.0, arrays)
    with pytest.raises(InvalidValue, match=r"\[0, 3\)"):
        crew.owner.write_record_at(3, 30.0, arrays)
    with pytest.raises(InvalidValue, match="-0.0"):
        crew.owner.write_record_at(0, -0.0, arrays)
    with pytest.raises(InvalidValue, match="indexed"):
        crew.owner.write_record(0.0, arrays)


def test_closing(tmp_path: Path) -> None:
    crew = Crew(tmp_path / "s", schema(), TWO_BY_TWO)
    crew.write(0)
    with pytest.raises(CommitPending, match="writer 3 closed with 1 record"):
        crew.writers[3].close()
    tokens = [w.flush() for w in crew.writers[:3]]
    assert len(tokens) == 3 and not (tmp_path / "s/locks/0-3").exists()
    with pytest.raises(ClosedError):
        crew.writers[3].flush()
    crew.owner.close()
    assert stream.read_manifest(tmp_path / "s").n_records == 0
    crew = Crew(tmp_path / "t", schema(), TWO_BY_TWO)
    crew.write(0)
    crew.owner.close(crew.flush())
    check(tmp_path / "t", schema(), [0])


def test_a_single_writer_in_a_with_block_flushes(tmp_path: Path) -> None:
    s = schema()
    with stream.create(tmp_path / "s", s, Single()) as writer:
        writer.write_record(0.0, {n: value(s, n, 0) for n in s.variables})
        with pytest.raises(NotCommitted):
            stream.read_record(tmp_path / "s", "t2m", 0)
    check(tmp_path / "s", s, [0])


# ---- reading ---------------------------------------------------------------------------------------------------


def test_any_region_can_be_read(tmp_path: Path) -> None:
    s = schema()
    crew = Crew(tmp_path / "s", s, TWO_BY_TWO)
    crew.write(0, 1, 2, 3)
    crew.write_static("mask")
    crew.write_static("weight")
    crew.commit()
    for lat, lon in itertools.product([(0, 13), (3, 9), (12, 13)], [(0, 9), (5, 7), (8, 9)]):
        got = stream.read_record(tmp_path / "s", "ps", 3, {"lat": lat, "lon": lon})
        wanted = value(s, "ps", 3)[:, slice(*lat), slice(*lon)]
        assert got.tobytes() == wanted.tobytes() and got.shape == wanted.shape
        got = stream.read_static(tmp_path / "s", "mask", {"lat": lat, "lon": lon})
        assert (got == value(s, "mask", 0)[slice(*lat), slice(*lon)]).all()
    for region in ({"lat": (3, 14)}, {"depth": (0, 1)}, {"lat": (3, 3)}):
        with pytest.raises(RegionError):
            stream.read_record(tmp_path / "s", "ps", 3, region)
    with pytest.raises(NotCommitted, match="record 4 is not committed"):
        stream.read_record(tmp_path / "s", "ps", 4)
    with pytest.raises(KeyError):
        stream.read_record(tmp_path / "s", "snow", 0)


def test_attributes_are_published_by_a_commit(tmp_path: Path) -> None:
    s = schema(attrs={"title": "old"})
    crew = Crew(tmp_path / "s", s, TWO_BY_TWO)
    crew.owner.set_attrs({"title": "new", "n": [1, 2]})
    assert stream.read_manifest(tmp_path / "s").attrs == {"title": "old"}
    receipt = crew.commit()
    assert receipt.commit_seq == 1 and receipt.records == ()
    assert stream.read_manifest(tmp_path / "s").attrs == {"title": "new", "n": [1, 2]}
    assert json.loads((tmp_path / "s/zarr.json").read_text())["attributes"] == {"title": "new", "n": [1, 2]}
    before = contents(tmp_path / "s")
    assert crew.commit() == receipt and contents(tmp_path / "s") == before

# SPDX-License-Identifier: BSD-3-Clause
"""What is no record, time, token, region or schema is refused by its class, and nothing changes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrec import stream
from mrec.errors import (
    CommitError,
    InvalidValue,
    MrecError,
    RecordExists,
    RegionError,
    SchemaError,
    StaleWriter,
)
from mrec.stream import Contributor, MemoryStore, Owner, StreamSchema, Token, Variable
from tests.stream.crew import FOUR_ROWS, TWO_BY_TWO, Crew, check, schema, tiles

ONE = {
    "dims": {"x": 4},
    "variables": {"a": Variable(("time", "x"), "f64")},
    "chunk": {"time": 1, "x": 2},
    "shard": {"time": 2, "x": 2},
}


def one(**changes: Any) -> Any:
    return stream.create(MemoryStore(), StreamSchema(**{**ONE, **changes}))


@pytest.mark.parametrize(
    "arrays",
    [
        [np.zeros(4)],
        np.zeros(4),
        "a",
        {"a": [[0.0], [1.0, 2.0]]},
        {"a": np.ma.masked_equal(np.arange(4.0), 2.0)},
        {"a": np.arange(4)},  # 64 bits of an integer are more than a float64 holds
        {"a": np.zeros(4, "M8[s]")},
        {"a": np.array(["x"] * 4)},
        {"a": np.array([None] * 4)},
        {"a": None},
        {"a": np.zeros((4, 1))},
        {"a": np.zeros(4, "c16")},
    ],
)
def test_what_is_no_record(arrays: Any) -> None:
    with one() as writer:
        with pytest.raises(SchemaError, match=r"'a'|mapping"):
            writer.write_record(0.0, arrays)
        assert writer.write_record(0.0, {"a": np.arange(4, dtype="i4")[::-1]}) == 0  # what fits is converted
    assert stream.read_record(writer.place, "a", 0).tolist() == [3.0, 2.0, 1.0, 0.0]


def test_a_record_is_taken_as_it_is_when_it_is_given(tmp_path: Path) -> None:
    values = np.arange(4.0)
    for mode in (stream.append(), stream.indexed(2)):
        for chunk in (1, 2):
            base = MemoryStore()
            with stream.create(base, StreamSchema(**{**ONE, "mode": mode, "chunk": {"time": chunk, "x": 2}})) as writer:
                values[:] = 1
                if mode.indexed:
                    writer.write_record_at(0, 0.0, {"a": values})
                else:
                    writer.write_record(0.0, {"a": values})
                values[:] = 2
            assert stream.read_record(base, "a", 0).tolist() == [1.0] * 4


def test_a_shard_has_nothing_of_the_one_before() -> None:
    """Buffers are used again; a row without a record is fill."""
    base = MemoryStore()
    writer = stream.create(base, StreamSchema(**{**ONE, "mode": stream.indexed(6)}), threads=2)
    for i in (0, 1, 3):
        writer.write_record_at(i, float(i), {"a": np.full(4, i + 1.0)})
    writer.flush()
    whole = MemoryStore()
    other = stream.create(whole, StreamSchema(**{**ONE, "mode": stream.indexed(6)}))
    other.write_record_at(3, 3.0, {"a": np.full(4, 4.0)})
    other.flush()
    for part in (0, 1):
        assert base.values[f"a/c/1/{part}"] == whole.values[f"a/c/1/{part}"]


@pytest.mark.parametrize("t", [True, "3", None, [1.0], np.array([1.0]), np.datetime64("2020-01-01"), 1j, np.inf, {}])
def test_what_is_no_time(t: Any) -> None:
    with one() as writer, pytest.raises(SchemaError, match="time"):
        writer.write_record(t, {"a": np.zeros(4)})


@pytest.mark.parametrize(
    "changes",
    [
        {"dims": [("x", 4)]},
        {"variables": ["a"]},
        {"variables": {"a": 5}},
        {"variables": {"a": (("time", "x"),)}},
        {"variables": {"a": (("time", "x"), None)}},
        {"variables": {"a": (("time", "x"), "c16")}},
        {"statics": None},
        {"chunk": 3},
        {"shard": {"time": 2, "x": 0}},
        {"dims": {"x": 0}},
        {"dims": {"x": -1}},
        {"dims": {"x": 2**60}},
        {"coords": {"x": [[0.0], [1.0, 2.0]]}},
        {"coords": {"x": ["a", "b", "c", "d"]}},
        {"mode": "append"},
        {"attrs": {"a": float("nan")}},
        {"attrs": {1: 2}},
        {"attrs": {"a": "\ud800"}},
    ],
)
def test_what_is_no_schema(changes: Any) -> None:
    with pytest.raises(SchemaError):
        StreamSchema(**{**ONE, **changes})


@pytest.mark.parametrize("given", [(0, None), (2, [[0.0, 1.0]]), (2, 5), (2, [1.0, 1.0]), (2, [0.0, np.nan])])
def test_what_is_no_axis(given: Any) -> None:
    with pytest.raises(SchemaError):
        StreamSchema(**ONE, mode=stream.indexed(*given))


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (SchemaError, lambda base: stream.create(base, ONE)),
        (InvalidValue, lambda base: stream.create(base, StreamSchema(**ONE), "owner")),
        (InvalidValue, lambda base: stream.create(base, StreamSchema(**ONE), Contributor(1))),
        (InvalidValue, lambda base: stream.create(base, StreamSchema(**ONE), threads=0)),
        (InvalidValue, lambda base: stream.create(base, StreamSchema(**ONE), threads=1.5)),
        (InvalidValue, lambda base: stream.create(base, StreamSchema(**ONE), durability="sync")),
        (RegionError, lambda base: stream.create(base, StreamSchema(**ONE), Owner(2), [0, 2])),
        (RegionError, lambda base: stream.create(base, StreamSchema(**ONE), Owner(2), {"x": (0.0, 2.0)})),
        (RegionError, lambda base: stream.create(base, StreamSchema(**ONE), Owner(3), {"x": (0, 2)})),  # of two shards
        (RegionError, lambda base: stream.create(base, StreamSchema(**ONE), Owner(2), {"time": (0, 2)})),
    ],
)
def test_what_does_not_begin_leaves_nothing(tmp_path: Path, error: type[Exception], call: Callable[[Any], Any]) -> None:
    with pytest.raises(error):
        call(tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_overwriting_takes_a_stream_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(RecordExists, match="thesis"):
        stream.create(tmp_path, StreamSchema(**ONE), overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years"


@pytest.mark.parametrize("what", [True, 0.5, None, [0, None], [1.5], object()])
def test_what_is_no_invalidation(what: Any) -> None:
    writer = one(mode=stream.indexed(2))
    writer.write_record_at(0, 0.0, {"a": np.zeros(4)})
    writer.write_record_at(1, 1.0, {"a": np.zeros(4)})
    with pytest.raises(InvalidValue):
        writer.invalidate(what)
    assert writer.n_committed == 2
    writer.close()


def test_what_is_no_blob() -> None:
    with one() as writer:
        for data in (5, "text", None, [1]):
            with pytest.raises(InvalidValue, match="blob is bytes"):
                writer.write_blob("static", "k", data)
        for scope in (-1, True, 1.5, None, "record"):
            with pytest.raises(InvalidValue):
                writer.write_blob(scope, "k", b"")
        for key in ("", ".hidden", "a/b", "..", "x" * 129, "é", 5):
            with pytest.raises(InvalidValue, match="key of a blob"):
                writer.write_blob("static", key, b"")
        writer.write_blob("static", "k", np.arange(3, dtype="u1"))
    assert stream.read_blob(writer.place, "static", 0, "k") == bytes([0, 1, 2])


def test_attributes_are_those_of_the_call() -> None:
    attrs: dict[str, Any] = {"list": [1]}
    with one() as writer:
        writer.set_attrs(attrs)
        attrs["list"].append(2)
    assert stream.read_manifest(writer.place).attrs == {"list": [1]}


# ---- tokens and receipts -----------------------------------------------------------------------------------------


def two(tmp_path: Path) -> Crew:
    crew = Crew(tmp_path / "s", schema(), tiles(lat=(0, 8, 13)))
    crew.write(0)
    return crew


def files(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def forged(text: str, **changes: Any) -> str:
    return json.dumps({**json.loads(text), **changes})


def test_what_are_no_tokens(tmp_path: Path) -> None:
    crew = two(tmp_path)
    tokens = [t.to_json() for t in crew.flush()]
    before = files(tmp_path)
    deep = "[" * 100_000
    wrong = [
        *(None, 5, tokens[0], tokens[0].encode(), json.loads(tokens[0]), Token("", 0, 0, {}, "", 0)),
        *([tokens[0], x] for x in (None, 5, b"\xff", "", "{}", "[]", deep, {"schema": {1, 2}}, {"a": float("nan")})),
        [tokens[0], forged(tokens[1], records=[[0, 2**24]])],
        [tokens[0], forged(tokens[1], records=[[0, 2**53]])],
        [tokens[0], forged(tokens[1], writer=2**53)],
        [tokens[0], forged(tokens[1], t=[[1]])],
        [tokens[0], forged(tokens[1], t=[10**400])],
        [tokens[0], forged(tokens[1], t_hex=["7ff8000000000000"])],
        [tokens[0], forged(tokens[1], region={"lat": [8, 2**50]})],
        [tokens[0], forged(tokens[1], region={"lat": ["8", 13]})],
        [tokens[0], forged(tokens[1], region={"time": [0, 1]})],
        [tokens[0], forged(tokens[1], blobs=[{"scope": "static", "key": "../../x"}])],
        [tokens[0], forged(tokens[1], blobs=[{"scope": 7, "key": "x"}])],
        [tokens[0], forged(tokens[1], statics=["weight"])],
        [tokens[0], forged(tokens[1], objects=[{"key": "/etc/passwd", "size": 1, "crc32c": 0}])],
        [tokens[0], forged(tokens[1], objects=[])],
        [tokens[0], Token(None, None, None, None, None, None)],  # type: ignore[arg-type]
        [tokens[0], tokens[0]],
        [*tokens, tokens[1]],
    ]
    for given in wrong:
        with pytest.raises(CommitError):
            crew.owner.commit(given)
        assert files(tmp_path) == before
    crew.owner.commit(tokens)
    check(tmp_path / "s", crew.schema, [0])


def test_a_forged_receipt_takes_nothing_away(tmp_path: Path) -> None:
    crew = two(tmp_path)
    tokens = crew.flush()
    receipt = crew.owner.commit(tokens)
    text = receipt.to_json()
    other = crew.writers[1]
    for changes in (
        {"records": [[0, 2]]},
        {"records": [[1, 2]]},
        {"records": "all"},
        {"commit_seq": 3},
        {"commit_seq": -1},
        {"epoch": 1},
        {"stream_id": "0" * 32},
        {"invalidated": [1.5]},
        {"blobs": [{"scope": "static", "writer": 0, "key": "../x"}]},
        {"schema": "mrec/stream-token/v1"},
    ):
        with pytest.raises(CommitError):
            other.acknowledge(forged(text, **changes))
        with pytest.raises(CommitError):
            other.acknowledge(5)
    other.acknowledge(text)
    crew.write(1)
    crew.commit()
    check(tmp_path / "s", crew.schema, [0, 1])


# ---- reading -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "region",
    [{"lat": 3}, {"lat": (0.5, 2.5)}, {"lat": slice(0, 4, 2)}, {"lat": (-1, 2)}, {"lat": (2, 2)}, {"x": (0, 1)}],
)
def test_what_is_no_region_to_read(tmp_path: Path, region: Any) -> None:
    crew = two(tmp_path)
    crew.commit()
    with pytest.raises(RegionError):
        stream.read_record(tmp_path / "s", "t2m", 0, region)
    part = stream.read_record(tmp_path / "s", "t2m", 0, {"lat": slice(3, None), "lon": np.array([1, 2])})
    assert part.shape == (10, 1)


# ---- processes ---------------------------------------------------------------------------------------------------


def test_a_forked_child_has_no_writer(tmp_path: Path) -> None:
    crew = two(tmp_path)
    pid = os.fork()
    if pid == 0:
        refused = 0
        for act in (crew.owner.flush, lambda: crew.owner.write_record(1.0, {}), lambda: crew.owner.set_attrs({})):
            try:
                act()
            except StaleWriter:
                refused += 1
        try:
            crew.owner.close()
        finally:
            os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
    with pytest.raises(MrecError, match="another process|locked|holds"):
        stream.resume(tmp_path / "s", Owner(2), {"lat": (0, 8)})
    crew.commit()
    check(tmp_path / "s", crew.schema, [0])


def test_a_place_in_a_life_is_taken_once(tmp_path: Path) -> None:
    for regions in (FOUR_ROWS, TWO_BY_TWO):
        crew = Crew(tmp_path / str(len(regions[0])), schema(), regions)
        before = files(tmp_path)
        with pytest.raises(StaleWriter, match="writer 1 is there already"):
            stream.join(crew.base, Contributor(1), regions[1])
        with pytest.raises(RegionError, match="has the writers 0 to 3"):
            stream.join(crew.base, Contributor(4), regions[1])
        assert files(tmp_path) == before
        crew.owner.close()
        crew.owner.close()

# SPDX-License-Identifier: BSD-3-Clause
"""Tokens, receipts and lives: what a commit refuses, and what writers make of one that they missed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrec import stream
from mrec.errors import CommitError, CommitPending, InvalidValue, NotCommitted, RecordCommitted, StaleWriter
from mrec.stream import Contributor, MemoryStore, Owner, Single
from mrec.stream.manifest import Sealed
from tests.stream.crew import TWO_BY_TWO, Crew, check, contents, cut, schema, tiles, value


@pytest.fixture(params=["local", "memory"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return tmp_path / "s" if request.param == "local" else MemoryStore()


@pytest.fixture
def crew(base: Any) -> Crew:
    """One commit of records 0 and 1; records 2 to 4 written."""
    found = Crew(base, schema(), TWO_BY_TWO)
    found.write(0, 1)
    found.commit()
    found.write(2, 3, 4)
    return found


def forged(token: Any, **changes: Any) -> str:
    """A token with some members changed."""
    doc = json.loads(token.to_json())
    doc.update(changes)
    return json.dumps(doc)


def moved(token: Any, old: str, new: str) -> str:
    """A token with another key of one object."""
    doc = json.loads(token.to_json())
    doc["objects"] = [{**o, "key": new if o["key"] == old else o["key"]} for o in doc["objects"]]
    return json.dumps(doc)


ATTACKS: dict[str, tuple[Callable[[Crew, list[Any]], list[Any]], str]] = {
    "missing": (lambda c, t: t[:3], "no token of writer 3"),
    "none": (lambda c, t: [], "no token of writer 0, 1, 2, 3"),
    "twice": (lambda c, t: [t[0], t[1], t[1], t[3]], "writer 1 gave two tokens"),
    "too many": (lambda c, t: [*t, t[1]], "5 tokens for 4 writers"),
    "unknown writer": (lambda c, t: [*t[:3], forged(t[3], writer=4)], "writers 0 to 3"),
    "foreign stream": (lambda c, t: [*t[:3], forged(t[3], stream_id="f" * 32)], "foreign"),
    "another epoch": (lambda c, t: [*t[:3], forged(t[3], epoch=1)], "epoch 1"),
    "fingerprint": (lambda c, t: [*t[:3], forged(t[3], fingerprint="0" * 64)], "fingerprint"),
    "stale base": (lambda c, t: [*t[:3], forged(t[3], base_commit_seq=0)], "writer 3 is stale"),
    "future base": (lambda c, t: [*t[:3], forged(t[3], base_commit_seq=2)], "writer 3 is stale"),
    "gap": (
        lambda c, t: [*t[:3], forged(t[3], region={"lat": [12, 13], "lon": [6, 9]})],
        r"no writer has lat \[8, 12\)",
    ),
    "overlap": (
        lambda c, t: [*t[:3], forged(t[3], region={"lat": [4, 13], "lon": [6, 9]})],
        "writers 1 and 3 overlap",
    ),
    "misaligned": (lambda c, t: [*t[:3], forged(t[3], region={"lat": [9, 13], "lon": [6, 9]})], "inside a shard"),
    "fewer records": (
        lambda c, t: [*t[:3], forged(t[3], records=[[2, 4]], t=[20.0, 30.0], t_hex=list(t[3].t_hex[:2]))],
        "writers 0 and 3 have different records; 4",
    ),
    "divergent t": (
        lambda c, t: [
            *t[:3],
            forged(t[3], t=[20.0, 31.0, 40.0], t_hex=[t[3].t_hex[0], "403f" + "0" * 12, t[3].t_hex[2]]),
        ],
        "time of record 3 differs: 30.0 of writer 0, 31.0 of writer 3; no retry .* all writers resume",
    ),
    "t and its bits": (lambda c, t: [*t[:3], forged(t[3], t=[20.0, 31.0, 40.0])], "forged: record 3"),
    "t not hexadecimal": (lambda c, t: [forged(x, t_hex=["x"] * 3) for x in t], "16 hexadecimal"),
    "t infinite": (lambda c, t: [forged(x, t_hex=["7ff0000000000000"] * 3) for x in t], "no finite time"),
    "a hole": (lambda c, t: [forged(x, records=[[3, 6]]) for x in t], "records 3 to 5, next are 2 to 4"),
    "again": (lambda c, t: [forged(x, records=[[0, 3]]) for x in t], "records 0 to 2, next are 2 to 4"),
    "t falls": (
        lambda c, t: [forged(x, t=[5.0, 30.0, 40.0], t_hex=["4014" + "0" * 12, *x.t_hex[1:]]) for x in t],
        "increase",
    ),
    "variable left out": (
        lambda c, t: [*t[:3], forged(t[3], objects=[o for o in objects(t[3]) if not o["key"].startswith("ps/")])],
        "writer 3 lacks the object 'ps/c/0/0/2/2'",
    ),
    "another's object": (
        lambda c, t: [*t[:3], moved(t[3], "ps/c/0/0/2/2", "ps/c/0/0/0/0")],
        "names 'ps/c/0/0/0/0', which is not its own",
    ),
    "a way out": (lambda c, t: [*t[:3], moved(t[3], "ps/c/0/0/2/2", "../../etc/passwd")], "which is not its own"),
    "the manifest": (lambda c, t: [*t[:3], moved(t[3], "ps/c/0/0/2/2", "output_manifest.json")], "not its own"),
    "a wrong size": (
        lambda c, t: [*t[:3], forged(t[3], objects=[{**o, "size": o["size"] + 1} for o in objects(t[3])])],
        "superseded",
    ),
    "a wrong checksum": (
        lambda c, t: [*t[:3], forged(t[3], objects=[{**o, "crc32c": o["crc32c"] ^ 1} for o in objects(t[3])])],
        "superseded",
    ),
    "an object twice": (lambda c, t: [*t[:3], forged(t[3], objects=objects(t[3]) * 2)], "stands twice"),
    "unknown static": (
        lambda c, t: [*t[:3], forged(t[3], statics=["snow"])],
        "static 'snow', which the stream has not",
    ),
    "static of one": (lambda c, t: [*t[:3], forged(t[3], statics=["mask"])], "writer 0 lacks the static 'mask'"),
    "static of another": (lambda c, t: [*t[:3], forged(t[3], statics=["weight"])], "weight"),
    "blob of another record": (
        lambda c, t: [*t[:3], forged(t[3], blobs=[{"scope": 0, "key": "k"}])],
        "record 0, which the token has not",
    ),
    "blob that climbs": (lambda c, t: [*t[:3], forged(t[3], blobs=[{"scope": 2, "key": "../k"}])], "no token"),
    "blob not there": (lambda c, t: [*t[:3], forged(t[3], blobs=[{"scope": 2, "key": "k"}])], "lacks the object"),
    "no JSON": (lambda c, t: [*t[:3], t[3].to_json()[:-1]], "no token"),
    "NaN": (lambda c, t: [*t[:3], t[3].to_json().replace("20.0", "NaN")], "no token"),
    "a key twice": (lambda c, t: [*t[:3], t[3].to_json()[:-1] + ', "writer": 3}'], "no token"),
    "another schema": (lambda c, t: [*t[:3], forged(t[3], schema="x")], "no token"),
    "a member gone": (lambda c, t: [*t[:3], json.dumps({"schema": "mrec/stream-token/v1"})], "is missing"),
    "no text": (lambda c, t: [*t[:3], 3], "a token is a text"),
    "too many records": (lambda c, t: [*t[:3], forged(t[3], records=[[0, 2**50]])], "no token"),
}


def objects(token: Any) -> list[dict[str, Any]]:
    return json.loads(token.to_json())["objects"]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_refused_commit_changes_nothing(crew: Crew, base: Any, attack: str) -> None:
    change, match = ATTACKS[attack]
    tokens = crew.flush()
    given = change(crew, tokens)
    before = contents(base)
    with pytest.raises(CommitError, match=match) as refused:
        crew.owner.commit(given)
    assert contents(base) == before
    assert refused.value.retry == (attack not in ("gap", "overlap", "misaligned", "divergent t", "t falls"))
    check(base, crew.schema, [0, 1])
    crew.commit(tokens)  # nothing was lost
    check(base, crew.schema, range(5))


def test_a_token_larger_than_any_is_not_parsed(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream.token, "MOST_BYTES", 4000)
    tokens = crew.flush()
    with pytest.raises(CommitError, match="5000 bytes"):
        crew.owner.commit([*tokens[:3], " " * 5000])


def test_a_replayed_commit_is_stale(crew: Crew) -> None:
    tokens = crew.flush()
    crew.commit(tokens)
    with pytest.raises(CommitError, match="stale: made after commit 1, the stream is at commit 2"):
        crew.owner.commit(tokens)


def test_tokens_may_come_as_text_bytes_and_objects(crew: Crew, base: Any) -> None:
    a, b, c, d = crew.flush()
    crew.owner.commit([a, b.to_json(), c.to_json().encode(), json.loads(d.to_json())])
    check(base, crew.schema, range(5))


def test_a_token_that_a_flush_replaced_is_superseded(crew: Crew, base: Any) -> None:
    crew.write(5)
    old = crew.flush()
    new = [*old[:3], crew.writers[3]]
    crew.write(6, only=[crew.writers[3]])
    crew.write(7, only=[crew.writers[3]])
    new[3] = crew.writers[3].flush()
    with pytest.raises(CommitError, match="different records"):
        crew.owner.commit(new)
    with pytest.raises(CommitError, match="not there|superseded") as e:
        bad = replace(old[3], objects={k: Sealed(v.size + 9, v.crc32c) for k, v in old[3].objects.items()})
        crew.owner.commit([*old[:3], bad])
    assert e.value.retry


def test_the_older_of_two_tokens_is_superseded(base: Any) -> None:
    crew = Crew(base, schema(), TWO_BY_TWO)
    crew.write(0)
    old = crew.flush()
    crew.write(1)
    crew.flush()
    with pytest.raises(CommitError, match="superseded"):
        crew.owner.commit(old)
    check(base, crew.schema, [])
    crew.commit()
    check(base, crew.schema, [0, 1])


# ---- pending ---------------------------------------------------------------------------------------------------


def test_an_append_writer_holds_the_named_shard_and_one_more(base: Any) -> None:
    crew = Crew(base, schema(), TWO_BY_TWO)  # 3 records a shard
    crew.write(0)
    crew.flush()
    crew.write(1, 2)  # the named shard is full and may not be published
    published = contents(base)
    crew.write(3, 4)
    assert contents(base) == published
    crew.write(5)
    with pytest.raises(CommitPending, match="time shard 0 is full"):
        crew.write(6)
    receipt = crew.commit()
    assert receipt.records == tuple(range(6))
    crew.write(6)
    crew.commit()
    check(base, crew.schema, range(7))


def test_what_a_token_names_is_not_written_again(base: Any) -> None:
    s = schema(mode=stream.indexed(6))
    crew = Crew(base, s, TWO_BY_TWO)
    crew.write(0, 1)
    crew.write(1, salt=1)
    crew.write(1)  # the last one counts
    crew.write_static("mask")
    crew.write_static("weight")
    crew.owner.write_blob(1, "k", b"1")
    crew.flush()
    with pytest.raises(CommitPending, match="record 1"):
        crew.write(1, salt=1)
    with pytest.raises(CommitPending, match="static 'mask'"):
        crew.write_static("mask")
    for scope in (1, 0):
        with pytest.raises(CommitPending):
            crew.owner.write_blob(scope, "k", b"2")
    crew.commit()
    check(base, s, [0, 1])
    with pytest.raises(RecordCommitted, match="record 1"):
        crew.write(1, salt=1)
    with pytest.raises(RecordCommitted, match="static 'mask'"):
        crew.write_static("mask")
    with pytest.raises(RecordCommitted, match="record 1"):
        crew.owner.write_blob(1, "k", b"2")


def test_invalidated_records_are_written_again(base: Any) -> None:
    s = schema(mode=stream.indexed(6))
    crew = Crew(base, s, TWO_BY_TWO)
    crew.write(*range(6))
    crew.write_static("mask")
    crew.write_static("weight")
    crew.owner.write_blob(4, "k", b"old")
    crew.writers[2].write_blob(4, "k", b"old of 2")
    crew.owner.write_blob("static", "s", b"old")
    crew.commit()
    assert stream.read_blob(base, 4, 2, "k") == b"old of 2"
    crew.owner.invalidate([4])
    crew.owner.invalidate(["mask", "blobs/static/0/s"])
    with pytest.raises(RecordCommitted):
        crew.write(4, salt=1)  # not before the commit
    receipt = crew.commit()
    assert receipt.invalidated == (4, "blobs/static/0/s", "mask") and receipt.records == ()
    for read in (
        lambda: stream.read_record(base, "t2m", 4),
        lambda: stream.read_static(base, "mask"),
        lambda: stream.read_blob(base, 4, 2, "k"),
        lambda: stream.read_blob(base, "static", 0, "s"),
    ):
        with pytest.raises(NotCommitted):
            read()
    check(base, s, [0, 1, 2, 3, 5])
    crew.write(4)
    crew.write_static("mask", salt=1)
    crew.writers[2].write_blob(4, "k", b"new")
    crew.commit()
    check(base, s, range(6))
    assert (stream.read_static(base, "mask") == value(s, "mask", 0, 1)).all()
    assert stream.read_blob(base, 4, 2, "k") == b"new"
    with pytest.raises(NotCommitted):
        stream.read_blob(base, 4, 0, "k")  # it was the record's, and went with it


@pytest.mark.parametrize("what", [0, [9], "snow", ["mask"]])
def test_what_cannot_be_invalidated(base: Any, what: Any) -> None:
    crew = Crew(base, schema(), TWO_BY_TWO)
    crew.write(0)
    crew.commit()
    with pytest.raises(InvalidValue):
        crew.owner.invalidate(what)


def test_statics_are_named_by_all_in_one_commit(base: Any) -> None:
    s = schema()
    crew = Crew(base, s, TWO_BY_TWO)
    for writer in crew.writers[:3]:
        writer.write_static("mask", cut(s, "mask", writer.region, value(s, "mask", 0)))
    with pytest.raises(CommitError, match="writer 3 lacks the static 'mask'"):
        crew.commit()
    last = crew.writers[3]
    last.write_static("mask", cut(s, "mask", last.region, value(s, "mask", 0)))
    crew.commit()
    assert (stream.read_static(base, "mask") == value(s, "mask", 0)).all()


@pytest.mark.parametrize("key", ["", ".k", "a/b", "..", "ü", "k" * 129, 3])
def test_keys_of_blobs(base: Any, key: Any) -> None:
    crew = Crew(base, schema(), TWO_BY_TWO)
    with pytest.raises(InvalidValue, match="no key of a blob"):
        crew.owner.write_blob("static", key, b"")
    with pytest.raises(InvalidValue, match="static"):
        crew.owner.write_blob("record", "k", b"")


def test_a_blob_waits_for_its_record(base: Any) -> None:
    crew = Crew(base, schema(), TWO_BY_TWO)
    crew.owner.write_blob(1, "k", b"1")
    crew.write(0)
    crew.commit()
    with pytest.raises(NotCommitted):
        stream.read_blob(base, 1, 0, "k")
    crew.write(1)
    crew.commit()
    assert stream.read_blob(base, 1, 0, "k") == b"1"


# ---- receipts --------------------------------------------------------------------------------------------------


def test_a_contributor_that_missed_its_receipt_goes_on_after_refresh(crew: Crew, base: Any) -> None:
    crew.write(5)
    receipt = crew.owner.commit(crew.flush())
    crew.writers[1].acknowledge(receipt)
    crew.writers[2].refresh()
    assert [w.base for w in crew.writers] == [2, 2, 2, 1]
    crew.write(6)
    tokens = crew.flush()  # the last one rebases by itself
    assert [t.base_commit_seq for t in tokens] == [2] * 4
    crew.commit(tokens)
    check(base, crew.schema, range(7))
    for writer in crew.writers:
        writer.acknowledge(receipt)  # known already
        writer.refresh()
        assert writer.base == 3


def test_refresh_raises_when_the_commit_does_not_cover_the_token(base: Any) -> None:
    crew = Crew(base, schema(), TWO_BY_TWO)
    crew.write(0, 1, 2)
    tokens = crew.flush()
    crew.write(3)
    crew.writers[3].flush()  # names record 3 too
    receipt = crew.owner.commit(tokens)
    for call in (crew.writers[3].refresh, crew.writers[3].flush):
        with pytest.raises(CommitError, match="does not cover the token of writer 3"):
            call()
    for writer in crew.writers:
        writer.acknowledge(receipt)
    crew.commit()
    check(base, crew.schema, range(4))


def test_foreign_and_skipped_receipts(crew: Crew) -> None:
    receipt = crew.owner.commit(crew.flush())
    writer = crew.writers[1]
    for changes in ({"stream_id": "0" * 32}, {"epoch": 1}):
        with pytest.raises(CommitError, match="the receipt is of stream"):
            writer.acknowledge(replace(receipt, **changes))
    with pytest.raises(CommitError, match=r"refresh\(\)"):
        writer.acknowledge(replace(receipt, commit_seq=3))
    for text in ("{}", "x", json.dumps({"schema": "mrec/stream-receipt/v1"}), 3):
        with pytest.raises(CommitError, match="receipt"):
            writer.acknowledge(text)
    writer.acknowledge(receipt)


def test_what_was_not_in_the_token_stays(base: Any) -> None:
    crew = Crew(base, schema(), TWO_BY_TWO)
    crew.write(0)
    tokens = crew.flush()
    crew.write(1, 2, 3)
    crew.commit(tokens)
    check(base, crew.schema, [0])
    crew.commit()
    check(base, crew.schema, range(4))


# ---- lives -----------------------------------------------------------------------------------------------------


def test_join_is_for_a_new_stream(crew: Crew, base: Any) -> None:
    with pytest.raises(StaleWriter, match="resume, instead of join"):
        stream.join(base, Contributor(1), TWO_BY_TWO[1])
    with pytest.raises(StaleWriter, match="writer 1 is there already in epoch 0"):
        stream.resume(base, Contributor(1), TWO_BY_TWO[1])


def test_a_writer_of_an_earlier_life_writes_nothing(crew: Crew, base: Any) -> None:
    old = crew.writers
    token = old[3].flush()
    crew.resume(TWO_BY_TWO)
    assert {w.epoch for w in crew.writers} == {1}
    before = contents(base)
    for writer in old[1:]:
        with pytest.raises(StaleWriter, match="epoch 1 now, this writer is of epoch 0"):
            writer.flush()
        with pytest.raises(StaleWriter):
            writer.refresh()
    with pytest.raises(StaleWriter):
        old[0].commit([])
    assert contents(base) == before
    crew.write(2)
    tokens = crew.flush()
    with pytest.raises(CommitError, match="writer 3 is of epoch 0, the stream is in epoch 1"):
        crew.owner.commit([*tokens[:3], token])
    with pytest.raises(CommitError, match="epoch"):
        old[1].acknowledge(crew.owner.commit(tokens))
    check(base, crew.schema, [0, 1, 2])


def test_a_writer_of_a_replaced_stream_writes_nothing(crew: Crew, base: Any) -> None:
    old = crew.writers
    old[0].fence.release()
    fresh = stream.create(base, crew.schema, Owner(4), TWO_BY_TWO[0], partition_dims=["lat", "lon"], overwrite=True)
    stream.join(base, Contributor(1), TWO_BY_TWO[1])
    before = contents(base)
    for writer in old[1:]:
        with pytest.raises(StaleWriter, match="another stream"):
            writer.flush()
        writer._pending.clear()
        writer.close()
    assert contents(base) == before  # nor does it take away the claim of its successor
    assert fresh.flush().records == ()


def test_without_a_manifest_a_writer_is_stale(crew: Crew, tmp_path: Path, base: Any) -> None:
    if isinstance(base, MemoryStore):
        base.delete("output_manifest.json")
    else:
        (base / "output_manifest.json").unlink()
    with pytest.raises(StaleWriter, match="manifest is gone"):
        crew.writers[1].flush()


def test_a_single_writer_is_not_joined(base: Any) -> None:
    stream.create(base, schema(), Single())
    with pytest.raises(Exception, match="writers 0 to 0"):
        stream.join(base, Contributor(1), {})


def test_a_sleeper_finds_its_temporary_file_gone(tmp_path: Path) -> None:
    """The resume comes after the check of the epoch and before the rename."""
    crew = Crew(tmp_path / "s", schema(), tiles(lat=(0, 8, 13)))
    crew.write(0)
    crew.commit()
    sleeper = crew.writers[1]
    crew.write(1)
    check_alive = sleeper._alive
    later: list[Crew] = []

    def asleep() -> int:
        found = check_alive()
        if not later and list((tmp_path / "s/tmp").iterdir()):
            again = Crew.__new__(Crew)
            again.base, again.schema, again.options, again.writers = crew.base, crew.schema, {}, [crew.owner]
            again.resume(tiles(lat=(0, 8, 13)))
            later.append(again)
        return found

    sleeper._alive = asleep
    before = (tmp_path / "s/t2m/c/0/2/0").read_bytes()
    with pytest.raises(StaleWriter):
        sleeper.flush()
    assert later and (tmp_path / "s/t2m/c/0/2/0").read_bytes() == before
    check(tmp_path / "s", crew.schema, [0])

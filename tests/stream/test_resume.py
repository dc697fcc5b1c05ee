# SPDX-License-Identifier: BSD-3-Clause
"""Restarts: nothing lost, nothing doubled, the bytes of an uninterrupted run; truncation; restart slots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mrec import stream
from mrec.errors import InvalidValue, NotCommitted, RecordCommitted, RegionError, SchemaError
from mrec.stream import MemoryStore, Owner
from tests.stream.crew import FOUR_ROWS, TWO_BY_TWO, Crew, check, data, schema, tiles, value


@pytest.fixture(params=["local", "memory"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return tmp_path / "s" if request.param == "local" else MemoryStore()


@pytest.mark.parametrize("regions", [None, TWO_BY_TWO], ids=["one", "2x2"])
def test_a_resumed_run_equals_an_uninterrupted_one(base: Any, regions: Any) -> None:
    """Killed in the middle of a shard, with uncommitted objects lying about."""
    s = schema()
    whole = Crew(MemoryStore(), s, regions)
    for i in range(0, 10, 2):
        whole.write(i, i + 1)
        whole.commit()
    crew = Crew(base, s, regions)
    for i in range(0, 10, 2):
        crew.write(i, i + 1)
        crew.commit()
        if regions is not None:
            crew.write(i + 2, i + 3, i + 4, salt=1)  # published, never committed
            crew.flush()
        crew.resume(regions)
        check(base, s, range(i + 2))
    for each in (whole, crew):
        each.write(10)
        each.commit()
    assert data(base) == data(whole.base)


def test_another_partition_goes_on(base: Any) -> None:
    s = schema()
    crew = Crew(base, s, TWO_BY_TWO)
    crew.write(0, 1)
    crew.commit()
    crew.write(2, 3, 4, salt=1)
    crew.flush()
    crew.resume(tiles(lat=(0, 4, 13)), partition_dims=["lat"])
    crew.write(2, 3)
    crew.commit()
    crew.resume(FOUR_ROWS)
    crew.write(4)
    crew.commit()
    crew.resume()
    crew.write(5)
    crew.commit()
    crew.close()
    whole = Crew(MemoryStore(), s)
    whole.write(*range(6))
    whole.commit()
    assert data(base) == data(whole.base)
    with pytest.raises(RegionError, match="stream is cut along no dimension"):
        stream.resume(base, Owner(2), {"lat": (0, 4)}, partition_dims=[])


@pytest.mark.parametrize("keep", range(8))
def test_truncation_keeps_the_longest_prefix(base: Any, keep: int) -> None:
    """Twice in a row; what is written again gives the bytes of a run that never went further."""
    s = schema()
    crew = Crew(base, s, TWO_BY_TWO)
    crew.write(*range(7))
    crew.owner.write_blob(6, "k", b"6")
    crew.writers[1].write_blob(0, "k", b"0")
    crew.write_static("mask")
    crew.write_static("weight")
    crew.commit()
    crew.resume(TWO_BY_TWO, at=10.0 * keep - 5)
    left = min(keep, 7)
    check(base, s, range(left))
    m = stream.read_manifest(base)
    assert m.statics == {"mask", "weight"} and {b[0] for b in m.blobs} == {i for i in (0, 6) if i < left}
    once = Crew(MemoryStore(), s, TWO_BY_TWO)
    if left:
        once.write(*range(left))
        if keep > 0:
            once.writers[1].write_blob(0, "k", b"0")
        if left == 7:
            once.owner.write_blob(6, "k", b"6")
    once.write_static("mask")
    once.write_static("weight")
    once.commit()
    crew.resume(TWO_BY_TWO, at=10.0 * keep - 15)
    check(base, s, range(min(max(left - 1, 0) if keep < 8 else 7, left)))
    crew.write(*range(stream.read_manifest(base).n_records, left))
    if left == 1:
        crew.writers[1].write_blob(0, "k", b"0")
    if keep == 7:
        crew.owner.write_blob(6, "k", b"6")
    crew.commit()
    assert data(base) == data(once.base)
    check(base, s, range(left))


def test_truncation_is_for_append_streams(base: Any) -> None:
    crew = Crew(base, schema(mode=stream.indexed(4)))
    crew.close()
    with pytest.raises(InvalidValue, match="append"):
        stream.resume(base, at=1.0)


@pytest.mark.parametrize("regions", [None, TWO_BY_TWO], ids=["one", "2x2"])
def test_an_indexed_run_goes_on_from_committed_rows_only(base: Any, regions: Any) -> None:
    s = schema(mode=stream.indexed(8, [10.0 * i for i in range(8)]))
    crew = Crew(base, s, regions)
    crew.write(0, 4, 7)
    crew.commit()
    if regions is not None:
        crew.write(1, 2, 3, 5, salt=1)
        crew.flush()
    crew.resume(regions)
    check(base, s, [0, 4, 7])
    crew.write(5)
    crew.commit()
    crew.write(1)
    crew.commit()
    check(base, s, [0, 1, 4, 5, 7])
    once = Crew(MemoryStore(), s, regions)
    once.write(0, 1, 4, 5, 7)
    once.commit()
    assert data(base) == data(once.base)


def test_a_released_shard_is_loaded_again_in_the_same_life(base: Any) -> None:
    s = schema(mode=stream.indexed(6))
    crew = Crew(base, s, TWO_BY_TWO)
    crew.write(3, 4, 5, salt=1)
    assert not crew.writers[0]._shards
    crew.write(4)
    crew.write(3, 5)
    crew.commit()
    check(base, s, [3, 4, 5])


# ---- restart slots ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regions", [None, TWO_BY_TWO], ids=["one", "2x2"])
def test_slots_rotate(base: Any, regions: Any) -> None:
    s = schema(mode=stream.indexed(2, rewrite="rotate"), shard={"time": 1, "lat": 4, "lon": 3, "lev": 2})
    crew = Crew(base, s, regions)
    assert stream.read_manifest(base).readable() == []
    for step in range(5):
        slots = {w.next_slot() for w in crew.writers}
        assert slots == {step % 2}
        if step % 2:
            crew.owner.write_blob(step % 2, "state", b"%d" % step)
        crew.write(*slots, salt=step)
        if regions is not None and step:  # published, and killed
            crew.flush()
            check(base, s, [1 - step % 2], salt=step - 1)
            crew.resume(regions)
            crew.write(*slots, salt=step)
            if step % 2:
                crew.owner.write_blob(step % 2, "state", b"%d" % step)
        crew.commit()
        check(base, s, [step % 2], salt=step)
        with pytest.raises(RecordCommitted, match=f"record {step % 2}"):
            crew.write(step % 2, salt=9)
        if step:
            with pytest.raises(NotCommitted, match="may be written again"):
                stream.read_record(base, "t2m", 1 - step % 2)
    with pytest.raises(InvalidValue, match="restart slots"):
        crew.owner.invalidate([0])
    crew.resume(regions)
    assert crew.owner.next_slot() == 1 and stream.read_manifest(base).times[0] == 0.0


def test_what_rotates_has_shards_of_one_record() -> None:
    with pytest.raises(SchemaError, match="time shard of 1"):
        schema(mode=stream.indexed(2, rewrite="rotate"))
    for wrong in ({"n": 0}, {"n": 2, "rewrite": "always"}, {"n": 2, "times": [1.0]}):
        with pytest.raises(SchemaError):
            stream.indexed(**wrong)
    with pytest.raises(SchemaError, match="times increase"):
        schema(mode=stream.indexed(2, [1.0, 1.0]))


def test_memory_is_that_of_open_shards(base: Any) -> None:
    s = schema()
    crew = Crew(base, s, TWO_BY_TWO)
    most = 0
    for i in range(0, 60, 2):
        crew.write(i, i + 1)
        most = max(most, *(len(w._shards) for w in crew.writers))
        crew.commit()
        most = max(most, *(len(w._shards) for w in crew.writers))
    assert most <= 2 and all(len(w._objects) == 0 for w in crew.writers[1:])
    assert value(s, "total", 59).tobytes() == stream.read_record(base, "total", 59).tobytes()

# SPDX-License-Identifier: BSD-3-Clause
"""Streams on an object store: a local S3 server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from mrec import stream
from mrec.errors import CommitError, CorruptData, RecordExists, StaleWriter
from mrec.stream import Contributor, MemoryStore, Owner
from mrec.stream.remote import ObjectStore
from tests.stream.crew import TWO_BY_TWO, Crew, check, schema, tiles

pytest.importorskip("obstore")
moto = pytest.importorskip("moto.server")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    found = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    found.start()
    host, port = found.get_host_and_port()
    yield f"http://{host}:{port}"
    found.stop()


@pytest.fixture
def bucket(server: str, request: pytest.FixtureRequest) -> Any:
    import urllib.request

    from obstore.store import S3Store

    name = f"b{abs(hash(request.node.name))}"
    urllib.request.urlopen(urllib.request.Request(f"{server}/{name}", method="PUT")).close()
    options = {
        "access_key_id": "a",
        "secret_access_key": "b",
        "region": "us-east-1",
        "virtual_hosted_style_request": False,
    }
    return S3Store(name, endpoint=server, client_options={"allow_http": True}, **options)


def values(store: ObjectStore) -> dict[str, bytes | None]:
    return {k: store.get(k) for k in store.keys() if not k.startswith(("locks/", "output_manifest"))}


def test_an_object_store_behaves_as_memory_does(bucket: Any) -> None:
    s = schema()
    stores: list[Any] = [ObjectStore(bucket, "run"), MemoryStore()]
    for base in stores:
        crew = Crew(base, s, TWO_BY_TWO)
        crew.write(0, 1)
        crew.write_static("mask")
        crew.write_static("weight")
        crew.owner.write_blob(0, "k", b"x")
        crew.commit()
        crew.write(2, 3, 4, salt=1)
        crew.flush()
        crew.resume(tiles(lat=(0, 4, 13)), partition_dims=["lat"])
        crew.write(2)
        crew.commit()
        crew.resume(at=15.0)
        check(base, s, [0, 1])
        crew.close()
        assert stream.read_blob(base, 0, 0, "k") == b"x"
        assert stream.read_static(base, "mask", {"lat": (5, 9)}).shape == (4, 9)
        with pytest.raises(RecordExists):
            stream.create(base, s)
    remote = values(stores[0])
    assert remote == {k: v for k, v in stores[1].values.items() if k in remote} and len(remote) > 30
    stream.create(stores[0], s, overwrite=True).close()
    check(stores[0], s, [])


def test_the_refusals_of_a_commit(bucket: Any) -> None:
    s = schema()
    base = ObjectStore(bucket)
    crew = Crew(base, s, tiles(lat=(0, 8, 13)))
    crew.write(0)
    tokens = crew.flush()
    with pytest.raises(CommitError, match="no token of writer 1"):
        crew.owner.commit(tokens[:1])
    name = next(k for k in tokens[1].objects if k.startswith("t2m"))
    base.put(name, b"short")
    with pytest.raises(CommitError, match="superseded"):
        crew.owner.commit(tokens)
    base.delete(name)
    with pytest.raises(CommitError, match="not there"):
        crew.owner.commit(tokens)
    check(base, s, [])
    with pytest.raises(StaleWriter):
        stream.join(base, Contributor(1), {"lat": (8, 13)})


def test_the_manifest_is_replaced_on_condition(bucket: Any) -> None:
    """Two owners, where no lock keeps them apart: one of them finds out."""
    s = schema()
    base = ObjectStore(bucket)
    crew = Crew(base, s, tiles(lat=(0, 13)))
    crew.write(0)
    token = crew.owner.flush()
    other = ObjectStore(bucket)
    text = other.get("output_manifest.json")
    assert text is not None
    other.replace("output_manifest.json", text + b" ")
    with pytest.raises(CommitError, match="another writer replaced output_manifest.json"):
        crew.owner.commit([token])
    old = crew.owner
    stream.resume(base, Owner(1))
    with pytest.raises(StaleWriter, match="epoch 1"):
        old.flush()


def test_large_objects_go_up_in_parts(bucket: Any) -> None:
    """More than one part of a multipart upload, and reading a part of it."""
    base = ObjectStore(bucket)
    big = os.urandom(12 << 20)
    base.put("big", big)
    view = base.view("big")
    assert len(view) == len(big) and view[5 << 20 : 6 << 20] == big[5 << 20 : 6 << 20] and view[7:7] == b""


def test_a_damaged_object_is_seen(bucket: Any) -> None:
    s = schema(profile="wasm")  # no checksum in its chunks
    base = ObjectStore(bucket)
    crew = Crew(base, s, tiles(lat=(0, 8, 13)))
    crew.write(0, 1, 2)
    crew.commit()
    raw = bytearray(base.get("t2m/c/0/0/0") or b"")
    raw[3] ^= 1
    base.put("t2m/c/0/0/0", bytes(raw))
    with pytest.raises(CorruptData):
        stream.read_record(base, "t2m", 0)

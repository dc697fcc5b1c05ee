# SPDX-License-Identifier: BSD-3-Clause
"""Collections that are not files here: under URLs, and on a local S3 server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.collection import compact, merge
from mrec.collection.objects import upload
from mrec.errors import ClosedError, RecordExists, RecordNotFound
from tests.collection import golden
from tests.collection.test_failures import make, put

fsspec = pytest.importorskip("fsspec")


def test_uploaded_and_read_by_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrec.collection.objects.PART", 8 << 10)
    source, url = golden.FOLDER / "all_types_zstd", "memory://bucket/set"
    with pytest.raises(RecordNotFound):
        mrec.open_collection(url)
    upload(source, url)
    here, there = mrec.open_collection(source), mrec.open_collection(url)
    assert there.names == here.names and there.attribute("i") == here.attribute("i")
    assert there["first"]["grid"][1:3, 2].tolist() == here["first"]["grid"][1:3, 2].tolist()
    with pytest.raises(RecordExists):
        upload(source, url)
    there.delete("first")
    assert mrec.open_collection(url).names == here.names[1:]
    upload(source, url, overwrite=True)
    assert mrec.open_collection(url).names == here.names  # the old mask went
    array = there["second-name-longer-than-sixteen-bytes"]["grid"]
    there.close()
    with pytest.raises(ClosedError):
        array[...]


def test_written_to_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    url = "memory://bucket/written"
    with mrec.CollectionWriter(url) as writer:
        assert writer.path == url
        put(writer, "a", [1.0, 2.0])
        with pytest.raises(RecordNotFound):
            mrec.open_collection(url)
    with pytest.raises(RecordExists, match="memory://"):
        mrec.CollectionWriter(url)
    with pytest.raises(ZeroDivisionError), mrec.CollectionWriter(url, overwrite=True) as writer:
        _ = 1 / 0
    found = mrec.open_collection(url)
    assert found.names == ["a"] and found["a"]["x"][...].tolist() == [1, 2] and found.checksums is not None
    merge("memory://bucket/both", [url, make(tmp_path / "set", "b", "c")])
    mrec.open_collection("memory://bucket/both").delete("b")
    compact("memory://bucket/both")
    both = mrec.open_collection("memory://bucket/both")
    assert both.names == ["a", "c"] and not both.deleted and both["c"]["x"][...].tolist() == [1, 2]
    assert sorted(os.listdir(tmp_path)) == ["set"]  # nothing of the temporary directories


def test_a_store_of_obstore(tmp_path: Path) -> None:
    obstore = pytest.importorskip("obstore")
    with pytest.raises(RecordNotFound):
        mrec.open_collection(obstore.store.MemoryStore())
    make(tmp_path / "set")
    for store in (obstore.store.MemoryStore(), obstore.store.LocalStore(tmp_path / "set")):
        for name in ("data.atlas", "data.atlas.crc"):
            obstore.put(store, name, (tmp_path / "set" / name).read_bytes())
        found = mrec.open_collection(store, verify=True)
        assert found.names == ["a", "b", "c"] and found["b"]["x"][1:].tolist() == [2]
        found.delete("a")
        assert mrec.open_collection(store).names == ["b", "c"]
        assert obstore.get(store, "deleted.mask").bytes() == b"ATLM\1\0\0\0\1\0\0\0\0\0\0\0"
    assert mrec.open_collection(tmp_path / "set").names == ["b", "c"]


# ---- S3 -----------------------------------------------------------------------------------------------------------

KEYS = {"key": "a", "secret": "b"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("s3fs")
    found = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    found.start()
    host, port = found.get_host_and_port()
    yield f"http://{host}:{port}"
    found.stop()


@pytest.fixture
def bucket(server: str) -> Any:
    """(URL of a bucket, options for it, a client of the server)"""
    client = pytest.importorskip("boto3").client(
        "s3", endpoint_url=server, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    )
    client.create_bucket(Bucket="sets")
    yield "s3://sets", KEYS | {"client_kwargs": {"endpoint_url": server}, "use_listings_cache": False}, client
    for entry in client.list_objects_v2(Bucket="sets").get("Contents", []):
        client.delete_object(Bucket="sets", Key=entry["Key"])
    client.delete_bucket(Bucket="sets")


pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def large(url: str, options: Any, seed: int, **more: Any) -> Any:
    """A collection of 12 MB, in parts of 5."""
    values = np.random.default_rng(seed).normal(size=500_000)
    with mrec.CollectionWriter(url, codec="none", **more, **options) as writer:
        for name in ("a", "b", "c"):
            put(writer, name, values)
    return values


def test_large_ones_go_up_in_parts(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url, options, client = bucket
    monkeypatch.setattr("mrec.collection.objects.PART", 5 << 20)
    values = large(f"{url}/large", options, 1)
    assert client.head_object(Bucket="sets", Key="large/data.atlas")["ETag"].endswith('-3"')  # of three parts
    assert not client.head_object(Bucket="sets", Key="large/data.atlas.crc")["ETag"].endswith('-1"')
    found = mrec.open_collection(f"{url}/large", **options)
    assert found.names == ["a", "b", "c"] and np.array_equal(found["b"]["x"][100:200], values[100:200])


def test_an_upload_that_fails_leaves_nothing(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No parts on the server, and the older collection with its deleted data sets."""
    import s3fs

    url, options, client = bucket
    monkeypatch.setattr("mrec.collection.objects.PART", 5 << 20)
    values = large(f"{url}/large", options, 1)
    mrec.open_collection(f"{url}/large", **options).delete("a")
    sent = s3fs.core.S3File._upload_chunk

    def failing(self: Any, final: bool = False) -> Any:
        if self.loc > 5 << 20:
            raise OSError("the line is cut")
        return sent(self, final)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="cut"):
        patch.setattr(s3fs.core.S3File, "_upload_chunk", failing)
        large(f"{url}/large", options, 2, overwrite=True)
    assert not client.list_multipart_uploads(Bucket="sets").get("Uploads")
    found = mrec.open_collection(f"{url}/large", **options)
    assert found.names == ["b", "c"] and np.array_equal(found["c"]["x"][...], values)
    new = large(f"{url}/large", options, 2, overwrite=True)
    found = mrec.open_collection(f"{url}/large", **options)
    assert found.names == ["a", "b", "c"] and np.array_equal(found["c"]["x"][...], new)


def test_listings_that_are_kept_hide_nothing(bucket: Any, tmp_path: Path) -> None:
    """What others put there after this process has listed the bucket."""
    import s3fs

    url, options, client = bucket
    options = options | {"use_listings_cache": True}

    def write(*names: str, **more: Any) -> None:
        with mrec.CollectionWriter(f"{url}/set", **more, **options) as writer:
            for name in names:
                put(writer, name)

    write("a", "b")
    files = s3fs.S3FileSystem(**options)
    assert len(files.ls("sets/set")) == 2
    client.put_object(Bucket="sets", Key="set/deleted.mask", Body=b"ATLM\1\0\0\0\1\0\0\0\0\0\0\0")
    assert mrec.open_collection(f"{url}/set", **options).names == ["b"]
    write("c", "d", overwrite=True)
    assert mrec.open_collection(f"{url}/set", **options).names == ["c", "d"]  # the mask of the other went
    files.ls("sets/set")
    make(tmp_path / "longer", "e", "a longer name than before")
    client.put_object(Bucket="sets", Key="set/data.atlas", Body=(tmp_path / "longer" / "data.atlas").read_bytes())
    client.delete_object(Bucket="sets", Key="set/data.atlas.crc")
    assert mrec.open_collection(f"{url}/set", **options).names == ["e", "a longer name than before"]
    files.ls("sets")
    client.put_object(Bucket="sets", Key="new/data.atlas", Body=(tmp_path / "longer" / "data.atlas").read_bytes())
    with pytest.raises(RecordExists):
        mrec.CollectionWriter(f"{url}/new", **options)

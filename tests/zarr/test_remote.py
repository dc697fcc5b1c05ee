"""Records behind HTTP and S3, by byte ranges: what is read, and how many requests that takes."""

from __future__ import annotations

import os

import numpy as np
import pytest

import mrec
import mrec.zarr
from mrec.errors import CorruptData, ReadOnly, RecordNotFound
from tests.zarr.server import serve

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)
COLUMNS, FRAMES, ROWS = ("x", "y", "z"), 500, 10_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A record of 120 MB, as a directory and packed."""
    path = tmp_path_factory.mktemp("remote")
    schema = mrec.Schema().block("atoms", rows=ROWS)
    for name in COLUMNS:
        schema.column(name, "f64")
    rng = np.random.default_rng(0)
    with mrec.TrajectoryWriter(path / "run.mrec", schema, durable=False) as writer:
        for i in range(FRAMES):
            writer.append(i, time=i / 2, atoms={name: rng.normal(size=ROWS) for name in COLUMNS})
    mrec.pack(path / "run.mrec")
    assert (path / "run.mrec.zip").stat().st_size > 119e6
    return path


@pytest.fixture(scope="module")
def expected(folder):
    with mrec.open(folder / "run.mrec") as record:
        return {i: {name: record.trajectory[i]["atoms"][name] for name in COLUMNS} for i in (0, 250, 251, 499)}


def check(record, requests, expected):
    """Read frames; the requests for the opening, a frame, the same again, the next."""
    counts = [len(requests)]
    assert len(record.trajectory) == FRAMES
    counts[0] = len(requests)
    for i in (250, 250, 251, 0, 499):
        before = len(requests)
        frame = record.trajectory[i]["atoms"]
        assert all(frame[name].tobytes() == expected[i][name].tobytes() for name in COLUMNS)
        counts.append(len(requests) - before)
    opened, cold, again, *warm = counts
    assert cold <= 2 * len(COLUMNS) and again == 0 and all(n <= len(COLUMNS) for n in warm)
    return opened


def test_a_packed_record_over_http(folder, expected):
    with serve(folder) as (url, requests):
        with mrec.open(f"{url}/run.mrec.zip") as record:
            assert check(record, requests, expected) <= 2 + len(COLUMNS)
            before = len(requests)
            values = record.trajectory.read("atoms", ["x"], frames=slice(0, 100))
            assert len(requests) - before <= 30  # 8 MB, 64 KiB and more at a time
            assert values[0].tobytes() == expected[0]["x"].tobytes()
        assert all(ranges is not None for verb, _, ranges in requests if verb == "GET")


def test_a_directory_over_http(folder, expected):
    with serve(folder) as (url, requests):
        with mrec.open(f"{url}/run.mrec") as record:
            for i in (499, 0):
                frame = record.trajectory[i]["atoms"]
                assert all(frame[name].tobytes() == expected[i][name].tobytes() for name in COLUMNS)


@pytest.fixture
def bucket(folder, monkeypatch):
    """The same on S3: what opens it, and the requests."""
    moto = pytest.importorskip("moto.server")
    obstore = pytest.importorskip("obstore.store")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host.replace('0.0.0.0', '127.0.0.1')}:{port}"
    import boto3

    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=endpoint, **keys)
    client.create_bucket(Bucket="records")
    client.upload_file(str(folder / "run.mrec.zip"), "records", "sub/run.mrec.zip")
    store = obstore.S3Store(
        "records", endpoint=endpoint, access_key_id="a", secret_access_key="b", region="us-east-1",
        client_options={"allow_http": True}, virtual_hosted_style_request=False,
    )  # fmt: skip
    yield store, endpoint
    server.stop()


class Counted:
    """A bucket that counts the requests."""

    def __init__(self, bucket):
        self.bucket, self.requests = bucket, []

    def __getattr__(self, name):
        def call(*args):
            self.requests.append((name, *args))
            return getattr(self.bucket, name)(*args)

        return call


def test_a_packed_record_on_s3(bucket, expected):
    from mrec.zarr.remote import FsspecBucket, ObstoreBucket, RemoteZipStore

    store, endpoint = bucket
    buckets = [(ObstoreBucket(store), "sub/run.mrec.zip")]
    if pytest.importorskip("s3fs"):
        fs = fsspec.filesystem("s3", key="a", secret="b", endpoint_url=endpoint, skip_instance_cache=True)
        buckets.append((FsspecBucket(fs), "records/sub/run.mrec.zip"))
    for each, key in buckets:
        counted = Counted(each)
        with mrec.open(RemoteZipStore(counted, key, "s3")) as record:
            assert check(record, counted.requests, expected) <= 2 + len(COLUMNS)
    with mrec.open(mrec.zarr.remote_store(store, "sub/run.mrec.zip")) as record:
        assert len(record.trajectory) == FRAMES


def test_a_file_system_with_directories(tmp_path):
    mrec.zarr.create(tmp_path / "a.zarr").create_array("x", data=np.arange(5))
    store = mrec.zarr.remote_store(fsspec.filesystem("file"), str(tmp_path / "a.zarr"))
    assert mrec.zarr.open(store, "x")[...].tolist() == [0, 1, 2, 3, 4] and store.exists("x")
    for key in ("x", "x/zarr.json/y", "nothing"):
        assert store.get(key) is None and store.get_range(key, 0, 2) is None
        with pytest.raises(FileNotFoundError):
            store.size(key)


def test_memory_and_other_file_systems():
    fs = fsspec.filesystem("memory")
    made = mrec.zarr.create(mrec.zarr.MemoryStore(), {"a": [1]})
    values = np.arange(1000).reshape(50, 20)
    made.create_array("g/x", data=values, chunks=(5, 4), shards=(20, 20))
    for key in made.store.walk():
        fs.pipe(f"/place/{key}", made.store.get(key))
    try:
        root = mrec.zarr.open("memory://place")
        assert list(root) == ["g"] and root.attrs == {"a": [1]} and root.tree() == made.tree()
        assert np.array_equal(root["g/x"][3:40:7, 2], values[3:40:7, 2])
        store = root.store
        assert store.get_range("g/x/zarr.json", -5) == store.get("g/x/zarr.json")[-5:]
        assert store.get_ranges("zarr.json", [(0, 2), (3, 9)]) == [
            store.get("zarr.json")[a:b] for a, b in [(0, 2), (3, 9)]
        ]
        with pytest.raises(ReadOnly, match="is read-only"):
            root["g/x"][0] = 1
    finally:
        fs.rm("/place", recursive=True)


def test_what_is_not_there_and_what_can_not_be_read(folder):
    with serve(folder) as (url, _), pytest.raises(RecordNotFound, match="there is no record"):
        mrec.open(f"{url}/other.mrec.zip")
    with serve(folder, ranges=False) as (url, _), pytest.raises(OSError, match="no ranges are served there"):
        mrec.open(f"{url}/run.mrec.zip")
    with pytest.raises(ImportError, match=r"to open nowhere:// install mrec\[remote\]"):
        mrec.open("nowhere://a/b.mrec.zip")


def test_a_failing_server_is_told(folder, tmp_path):
    os.link(folder / "run.mrec.zip", tmp_path / "run.mrec.zip")
    with serve(tmp_path) as (url, _), mrec.open(f"{url}/run.mrec.zip") as record:
        assert len(record.trajectory) == FRAMES
        (tmp_path / "run.mrec.zip").unlink()
        with pytest.raises(OSError) as failed:
            record.trajectory[100]
    assert isinstance(failed.value.__cause__, FileNotFoundError)


def test_damage_is_found(folder, tmp_path):
    raw = bytearray((folder / "run.mrec.zip").read_bytes())
    raw[60_000_000] ^= 1
    (tmp_path / "run.mrec.zip").write_bytes(raw)
    with serve(tmp_path) as (url, _), mrec.open(f"{url}/run.mrec.zip") as record, pytest.raises(CorruptData):
        record.trajectory.read("atoms", ["y"])

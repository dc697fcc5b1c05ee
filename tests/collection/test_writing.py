# SPDX-License-Identifier: BSD-3-Clause
"""Writers of collections: where they write, from how many threads, in which process, and how they end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec._core import block_encode
from mrec.collection import merge
from mrec.collection.dataset import add_to
from mrec.errors import (
    ClosedError,
    ForkedHandle,
    InvalidValue,
    MrecError,
    RecordExists,
    RecordLocked,
    SchemaError,
    UnknownName,
)
from mrec.files import Files
from tests.collection.test_failures import make, put


def test_a_record_is_no_place_for_a_collection(tmp_path: Path) -> None:
    frame = mrec.Frame({"atoms": {"x": np.arange(3.0)}}, step=0)
    with mrec.TrajectoryWriter(tmp_path / "run.mrec", mrec.Schema.from_frame(frame)) as writer:
        writer.append(None, frame)
    before = sorted(tmp_path.rglob("*"))
    for overwrite in (False, True):
        with pytest.raises(RecordExists):
            mrec.CollectionWriter(tmp_path / "run.mrec", overwrite=overwrite)
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(NotADirectoryError):
        mrec.CollectionWriter(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"kept"


@pytest.mark.parametrize(
    "options",
    [
        {"codec": "gzip"},
        {"codec": None},
        {"codec": ["zstd"]},
        {"threads": 0},
        {"threads": "2"},
        {"level": None},
        {"level": 23},
        {"block_size": 0},
        {"block_size": 1.5},
        {"path": ""},
    ],
    ids=repr,
)
def test_options_that_are_none(options: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue):
        mrec.CollectionWriter(**{"path": tmp_path / "set"} | options)
    assert not (tmp_path / "set").exists()


def test_a_misspelt_argument(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="thread"):
        mrec.CollectionWriter(tmp_path / "set", thread=2)
    with pytest.raises(TypeError, match="caches"):
        mrec.open_collection(make(tmp_path / "set"), caches=5)


def test_a_data_set_left_open_ends_the_block(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="is open"), mrec.CollectionWriter(tmp_path / "set") as writer:
        dataset = writer.add_dataset("a")
        with pytest.raises(RecordLocked):
            mrec.CollectionWriter(tmp_path / "set")
    assert writer.closed and not (tmp_path / "set").exists()
    with pytest.raises(ClosedError):
        dataset.define_array("x", "int8", ("t",), (1,))
        dataset.write_array("x", (0,), [1])
    with pytest.raises(ClosedError):
        dataset.finish()
    make(tmp_path / "set")


@pytest.mark.parametrize("threads", [1, 3])
def test_many_threads_add(threads: int, tmp_path: Path) -> None:
    """Of several types and shapes, some dropped, and what each names is what it wrote."""

    def work(k: int) -> None:
        for i in range(40):
            dataset = writer.add_dataset(f"set{k}.{i}")
            values = np.arange(i + 1, dtype=("f4", "i8")[i % 2]) + k
            for name in ("x", f"own{k}"):
                dataset.define_array(name, values.dtype, ("t",), values.shape, (7,))
                dataset.write_array(name, (0,), values)
            dataset.set_attribute("k", k)
            dataset.abort() if i % 5 == 4 else dataset.finish()

    with mrec.CollectionWriter(tmp_path / "set", threads=threads, block_size=1000) as writer:
        workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    found = mrec.open_collection(tmp_path / "set")
    assert len(found) == 4 * 32 and [found[name].ordinal for name in found] == list(range(4 * 32))
    for name, dataset in found.items():
        k, i = map(int, name[3:].split("."))
        assert i % 5 != 4 and dataset.attributes == {"k": k} and list(dataset) == ["x", f"own{k}"]
        assert all(np.array_equal(dataset[array][...], np.arange(i + 1) + k) for array in dataset)
    assert found.stats("x").row_count == sum(len(dataset["x"][...]) for dataset in found.values())


class Full(Files):
    """A disk that is full after so many bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def pwrite(self, fd: int, data: memoryview, offset: int) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().pwrite(fd, data, offset)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("room", [0, 5_000, 60_000, 100_000])
def test_a_full_disk(threads: int, room: int, tmp_path: Path) -> None:
    """The error reaches the caller, whatever thread met it; the old collection stays, and nothing else."""
    make(tmp_path / "set")
    writer = mrec.CollectionWriter(
        tmp_path / "set", codec="none", threads=threads, block_size=1000, overwrite=True, files=Full(room)
    )
    with pytest.raises(OSError, match="No space") as failure, writer:
        for i in range(60):
            put(writer, f"set{i}", np.arange(100.0))
    assert failure.value.errno == errno.ENOSPC and writer.closed
    assert sorted(os.listdir(tmp_path / "set")) == ["data.atlas", "data.atlas.crc"]
    assert mrec.open_collection(tmp_path / "set").names == ["a", "b", "c"]
    with pytest.raises(ClosedError):
        writer.add_dataset("more")


def test_an_abort_while_others_write(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    begun = threading.Event()

    def work(k: int) -> None:
        try:
            for i in range(100_000):
                put(writer, f"set{k}.{i}", np.arange(100.0))
                begun.set()
        except MrecError as e:
            errors.append(e)

    writer = mrec.CollectionWriter(tmp_path / "set", threads=2, block_size=1000)
    workers = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for worker in workers:
        worker.start()
    begun.wait()
    writer.abort()
    for worker in workers:
        worker.join()
    assert len(errors) == 3 and all(isinstance(e, ClosedError) for e in errors)
    assert not (tmp_path / "set" / "data.atlas").exists()
    make(tmp_path / "set")


def test_an_abort_before_a_block_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that encodes its own block writes no file into what was aborted, and reads none."""
    make(tmp_path / "set")
    encoding, aborted = threading.Event(), threading.Event()

    def wait(*block: Any) -> bytes:
        encoding.set()
        aborted.wait()
        return block_encode(*block)

    writer = mrec.CollectionWriter(tmp_path / "set", overwrite=True, block_size=100)
    with writer.add_dataset("d") as dataset:
        dataset.define_array("x", "float64", ("t",), (100,))
        dataset.write_array("x", (0,), np.arange(100.0))
    monkeypatch.setattr("mrec.collection.packing.block_encode", wait)
    variable = writer.variable("x")
    with ThreadPoolExecutor(1) as pool:
        put_one = pool.submit(put, writer, "e", np.arange(100.0))
        encoding.wait()
        writer.abort()
        aborted.set()
        with pytest.raises(ClosedError):
            put_one.result()
    with pytest.raises(ClosedError):
        variable.read(0, 0, 8)
    assert sorted(os.listdir(tmp_path / "set")) == ["data.atlas", "data.atlas.crc"]


def test_interrupted_between_two_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written after it waits for no block that never comes, and a block that is lost ends the collection."""
    writer = mrec.CollectionWriter(tmp_path / "set", block_size=100)
    put(writer, "a", np.arange(100.0))
    with monkeypatch.context() as interrupted:
        interrupted.setattr("mrec.collection.packing.Block", strike)
        with pytest.raises(KeyboardInterrupt):
            put(writer, "b", np.arange(100.0))
    with pytest.raises(KeyboardInterrupt):
        writer.variable("x").append(b"12345678")
    with pytest.raises(KeyboardInterrupt):
        put(writer, "c", np.arange(100.0))
    with pytest.raises(KeyboardInterrupt), writer:
        pass
    assert writer.closed and not (tmp_path / "set").exists()


def strike(*_: Any) -> None:
    raise KeyboardInterrupt


def test_finished_while_the_interpreter_ends(tmp_path: Path) -> None:
    """There are no new threads then."""
    code = """
import atexit, sys, mrec
writer = mrec.CollectionWriter(sys.argv[1])
with writer.add_dataset("a") as d:
    d.define_array("x", "int32", ("t",), (3,))
    d.write_array("x", (0,), [1, 2, 3])
atexit.register(writer.finish)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "set")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert mrec.open_collection(tmp_path / "set")["a"]["x"][...].tolist() == [1, 2, 3]
    assert sorted(os.listdir(tmp_path / "set")) == ["data.atlas", "data.atlas.crc"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_process_leaves_it_alone(tmp_path: Path) -> None:
    writer = mrec.CollectionWriter(tmp_path / "set", codec="none", block_size=100)
    put(writer, "a", np.arange(100.0))
    pid = os.fork()
    if pid == 0:
        try:
            try:
                writer.add_dataset("b")
            except ForkedHandle:
                writer.abort()
                del writer
                os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    put(writer, "b")
    writer.finish()
    found = mrec.open_collection(tmp_path / "set")
    assert found.names == ["a", "b"] and np.array_equal(found["a"]["x"][...], np.arange(100.0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_process_waits_for_no_thread_of_its_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entering, forked = threading.Event(), threading.Event()

    def wait(*array: Any) -> None:
        entering.set()
        forked.wait()
        add_to(*array)

    monkeypatch.setattr("mrec.collection.writer.add_to", wait)
    writer = mrec.CollectionWriter(tmp_path / "set")
    dataset = writer.add_dataset("b")
    with ThreadPoolExecutor(1) as pool:
        put_one = pool.submit(put, writer, "a")
        entering.wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            refused = 0
            steps = [lambda: dataset.define_array("y", "int8", (), ()), lambda: writer.add_dataset("c")]
            for step in (*steps, dataset.finish, writer.finish):
                try:
                    step()
                except ForkedHandle:
                    refused += 1
            os._exit(refused)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
        forked.set()
        put_one.result()
    dataset.finish()
    writer.finish()
    assert mrec.open_collection(tmp_path / "set").names == ["b", "a"]


def test_blocks_that_lz4_cannot_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of the codec, made small: refused when it is written, and the rest stays."""
    monkeypatch.setattr("mrec.collection.packing.LZ4_MOST", 100)
    with mrec.CollectionWriter(tmp_path / "set", codec="lz4") as writer:
        put(writer, "a")
        with pytest.raises(InvalidValue, match="chunk"):
            put(writer, "b", np.zeros(20))
    assert mrec.open_collection(tmp_path / "set").names == ["a"]


# ---- merging ------------------------------------------------------------------------------------------------------


def test_one_source_needs_no_list(tmp_path: Path) -> None:
    source = make(tmp_path / "set")
    merge(tmp_path / "one", source)
    merge(tmp_path / "two", mrec.open_collection(source))
    merge(tmp_path / "three", (path for path in [str(source)]))
    for name in ("one", "two", "three"):
        found = mrec.open_collection(tmp_path / name)
        assert found.names == ["a", "b", "c"] and found["c"]["x"][...].tolist() == [1, 2]


def test_nothing_deleted_meanwhile_comes_back(tmp_path: Path) -> None:
    """The mask is read when nobody else can change it any more."""
    make(tmp_path / "set")

    class Late(Files):
        def mkdir(self, path: str) -> None:  # the first call of the writer
            mrec.open_collection(tmp_path / "set").delete("b")
            super().mkdir(path)

    merge(tmp_path / "set", [tmp_path / "set"], overwrite=True, files=Late())
    assert mrec.open_collection(tmp_path / "set").names == ["a", "c"]


def test_one_variable_of_several_kinds(tmp_path: Path) -> None:
    """Merged of collections that define it each in its own way; deleted, opened anew, merged again, compacted."""
    kinds = {
        "a": ("float32", (3,), None, np.float32([1, np.nan, 3])),
        "b": ("string", (2, 2), "none", np.array([["a", "none"], ["c", "d" * 20]], object)),
        "c": ("uint64", (), None, np.uint64((1 << 64) - 1)),
        "d": ("binary", (0,), None, np.empty(0, object)),
        "e": ("M8[ns]", (1, 1), 5, np.array([[7]], "M8[ns]")),
    }
    for codec, (name, (dtype, shape, fill, values)) in zip(["zstd", "lz4", "none"] * 2, kinds.items(), strict=False):
        with mrec.CollectionWriter(tmp_path / name, codec=codec) as writer, writer.add_dataset(name) as dataset:
            dataset.define_array("x", dtype, [f"{name}{i}" for i in range(len(shape))], shape, None, fill)
            if values.size:
                dataset.write_array("x", (0,) * len(shape), values)
            dataset.set_array_attribute("x", "kind", dtype)
    merge(tmp_path / "most", [tmp_path / name for name in "abcd"])
    mrec.open_collection(tmp_path / "most").delete("b")
    merge(tmp_path / "all", [tmp_path / "e", mrec.open_collection(tmp_path / "most")])
    mrec.open_collection(tmp_path / "all").delete("d")
    merge(tmp_path / "all", [tmp_path / "all", tmp_path / "b"], overwrite=True)
    found = mrec.open_collection(tmp_path / "all")
    assert found.names == ["e", "a", "c", "b"]
    for name in found:
        array = found[name]["x"]
        dtype, shape, fill, values = kinds[name]
        assert array.shape == shape and array.fill_value == fill and found.attribute("kind", "x")[name] == dtype
        assert array[...].tolist() == values.tolist() or np.array_equal(array[...], values, equal_nan=True)
    assert found.variable("x").shapes == [(1, 1), (3,), (), (2, 2)]
    with pytest.raises(SchemaError, match="several types"):
        found.variable("x").read()
    assert found.stats("x").row_count == 9
    with pytest.raises(UnknownName):
        found["d"]
    atlas = pytest.importorskip("atlas._atlas").Atlas.open(str(tmp_path / "all"))
    assert atlas.list_datasets() == found.names and atlas.dataset("b").array_meta("x")["fill_value"] == "none"

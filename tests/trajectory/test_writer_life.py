# SPDX-License-Identifier: BSD-3-Clause
"""From making a writer to its end: closed, left, dropped, shared, forked; and who may hold a record."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import (
    ClosedError,
    ForkedHandle,
    InvalidValue,
    NotARecord,
    RecordExists,
    RecordLocked,
    RecordNotFound,
    WriterBusy,
)
from tests.trajectory.ondisk import attributes, frames, tree, write

ROOT = Path(__file__).parents[2]


def schema(rows=2):
    return mrec.Schema().block("b", rows=rows).column("q", "f64")


def append(w, n=1):
    for _ in range(n):
        w.append(None, b={"q": np.full(2, float(w.nframes))})


# ---- the end -----------------------------------------------------------------------------------------------------


def test_closing_twice_is_no_error(tmp_path):
    w = write(tmp_path / "a", schema())
    append(w, 3)
    assert not w.closed
    w.close()
    before = tree(tmp_path / "a")
    w.close()
    assert w.closed
    assert tree(tmp_path / "a") == before


def test_after_close(tmp_path):
    w = write(tmp_path / "a", schema())
    append(w, 3)
    w.close()
    many = [lambda n=n: w.append_many(range(5, 5 + n), b={"q": np.zeros((n, 2))}) for n in (0, 1)]
    for call in (lambda: append(w), w.flush, *many):
        with pytest.raises(ClosedError, match=str(tmp_path / "a")) as caught:
            call()
        assert isinstance(caught.value, ValueError)
    assert (w.nframes, len(w), w.published, w.last_step, w.position) == (3, 3, 3, 2, "3@2")
    assert "3 frames, closed" in repr(w)
    assert len(frames(tmp_path / "a")) == 3


def test_an_exception_in_a_with_block_goes_on_and_the_frames_are_landed(tmp_path):
    with pytest.raises(KeyError, match="the user's"), write(tmp_path / "a", schema()) as w:
        append(w, 5)
        raise KeyError("the user's")
    assert w.closed
    assert len(frames(tmp_path / "a")) == 5
    assert not (tmp_path / "a/trajectory/.durable").exists()


def test_dropped_with_frames_not_landed(tmp_path):
    w = write(tmp_path / "a", schema())
    append(w, 2)
    w.flush(durable=False)
    append(w, 3)
    with pytest.warns(RuntimeWarning, match=r"a was never closed; frames lost: 3; close it, or use `with`"):
        del w
        gc.collect()
    assert len(frames(tmp_path / "a")) == 2
    mrec.TrajectoryWriter.open(tmp_path / "a").close()  # the lock went with it


def test_a_script_that_forgets_to_close_is_told(tmp_path):
    script = """
import sys, mrec
writer = mrec.TrajectoryWriter(sys.argv[1], mrec.Schema().value("pe", "f64"))
writer.append(pe=1.0)
"""
    call = [sys.executable, "-c", script, str(tmp_path / "a.mrec")]
    done = subprocess.run(call, capture_output=True, text=True, check=True)
    assert "a.mrec was never closed; frames lost: 1;" in done.stderr


def test_dropped_with_everything_landed(tmp_path):
    w = write(tmp_path / "a", schema())
    append(w, 2)
    w.flush(durable=False)
    with pytest.warns(ResourceWarning, match="a was never closed$"):
        del w
        gc.collect()


def test_dropped_after_close_says_nothing(tmp_path, recwarn):
    w = write(tmp_path / "a", schema())
    append(w)
    w.close()
    del w
    gc.collect()
    assert not recwarn.list


def test_it_does_not_pickle(tmp_path):
    with write(tmp_path / "a", schema()) as w, pytest.raises(TypeError, match="pickle its path"):
        pickle.dumps(w)


@pytest.mark.usefixtures("one_thread")
def test_what_it_says_of_itself(tmp_path):
    with write(tmp_path / "a", schema(), flush_every=2) as w:
        assert w.position == "0@"
        append(w, 3)
        assert repr(w) == f"<TrajectoryWriter {str(tmp_path / 'a')!r}: 3 frames, 2 published>"
        assert w.schema == schema()


def test_a_relative_path_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    w = write("a", schema())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    append(w)
    w.close()
    assert len(frames(tmp_path / "a")) == 1


# ---- threads and processes ---------------------------------------------------------------------------------------


def test_a_second_thread_inside(tmp_path):
    """One thread appends much at once; another that comes meanwhile is told so, and nothing is lost."""
    rows = 20_000
    big = np.random.default_rng(0).normal(size=(60, rows))
    w = write(tmp_path / "a", schema(rows), compression="gzip:6", flush_every=1000)
    busy, stop = [], threading.Event()

    def meddle():
        while not stop.is_set():
            try:
                w.flush(durable=False)
            except WriterBusy as e:
                busy.append(str(e))
            time.sleep(0.001)  # the interpreter lock is let go inside the call: without a pause it is always inside

    thread = threading.Thread(target=meddle)
    thread.start()
    taken = 0
    while taken < 20 and not (busy and taken):
        try:
            w.append_many(range(60 * taken, 60 * taken + 60), b={"q": big})
            taken += 1
        except WriterBusy:
            pass
    stop.set()
    thread.join()
    w.close()
    assert busy and "one writer serves one thread at a time" in busy[0]
    assert len(frames(tmp_path / "a")) == 60 * taken


def test_closing_while_a_thread_is_inside_can_be_done_again(tmp_path):
    w = write(tmp_path / "a", schema(100_000), compression="gzip:9", flush_every=1000)
    thread = threading.Thread(target=lambda: w.append_many(range(20), b={"q": np.random.normal(size=(20, 100_000))}))
    thread.start()
    while w.nframes == 0:
        time.sleep(0.001)
    with pytest.raises(WriterBusy, match=f"{tmp_path}.*inside another call"):
        w.close()
    assert not w.closed
    thread.join()
    w.close()
    assert len(frames(tmp_path / "a")) == 20


def test_a_second_writer_in_the_same_process(tmp_path):
    path = tmp_path / "a"
    with write(path, schema()) as w:
        append(w)
        before = tree(path)
        for call in (
            lambda: mrec.TrajectoryWriter.open(path),
            lambda: mrec.TrajectoryWriter.open(path, truncate_after_step=-1),
            lambda: mrec.TrajectoryWriter(path, schema(), overwrite=True),
        ):
            with pytest.raises(RecordLocked, match=f"{path}.*close it first.*process {os.getpid()} has it") as caught:
                call()
            assert isinstance(caught.value, BlockingIOError)
        assert tree(path) == before
        append(w)
    assert len(frames(path)) == 2
    mrec.TrajectoryWriter.open(path).close()


HOLD = """
import sys, mrec
w = mrec.TrajectoryWriter.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
w.append(None, b={"q": [8.0, 9.0]})
w.close()
"""


def test_a_second_writer_in_another_process(tmp_path):
    path = tmp_path / "a"
    write(path, schema()).close()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert holder.stdout.readline() == b"open\n"
    with pytest.raises(RecordLocked, match=f"process {holder.pid} has it"):
        mrec.TrajectoryWriter.open(path)
    with mrec.open(path) as rec:  # readers need no lock
        assert len(rec.trajectory) == 0
    holder.communicate(b"go\n")
    assert holder.returncode == 0
    assert frames(path)[0]["b"]["q"].tolist() == [8.0, 9.0]
    mrec.TrajectoryWriter.open(path).close()


def in_child(what):
    """What `what` returns in a forked child, as text."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        try:
            text = repr(what())
        except BaseException as e:
            text = f"{type(e).__name__}: {e}"
        os.write(into, text.encode())
        os._exit(0)
    os.close(into)
    with open(out, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(child, 0)
    return text


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_cannot_write(tmp_path):
    path = tmp_path / "a"
    with write(path, schema()) as w:
        append(w, 2)
        for call in (lambda: append(w), w.flush, w.close):
            assert in_child(call).startswith(f"{ForkedHandle.__name__}: {path}: this writer belongs to the parent")
        assert in_child(lambda: len(frames(path))) == "0"
        append(w)
    assert len(frames(path)) == 3


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_hold_ends_with_its_owner_though_a_child_lives(tmp_path):
    path = tmp_path / "a"
    w = write(path, schema())
    wait, go = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(go)
        os.read(wait, 1)
        os._exit(0)
    os.close(wait)
    w.close()
    mrec.TrajectoryWriter.open(path).close()
    os.close(go)
    os.waitpid(child, 0)


# ---- where it may be made ----------------------------------------------------------------------------------------


def place(tmp_path, what):
    path = tmp_path / "a"
    if what == "a record":
        with write(path, schema()) as w:
            append(w, 3)
    elif what == "a file":
        path.write_text("mine")
    elif what == "a directory of files":
        path.mkdir()
        (path / "mine.txt").write_text("mine")
    elif what == "a Zarr array":
        import zarr

        zarr.create_array(path, shape=(4,), dtype="f8", chunks=(2,))[:] = 1.0
    elif what == "a Zarr group of something else":
        import zarr

        zarr.create_group(path).create_array("temperature", shape=(4,), dtype="f8")[:] = 1.0
    elif what == "an empty directory":
        path.mkdir()
    elif what == "a creation that was cut short":
        write(path, schema()).close()
        for name in ("zarr.json", "b/zarr.json"):
            (path / "trajectory" / name).unlink()
    elif what == "a snapshot":
        write(path, schema()).close()
        os.rename(path / "trajectory", path / "frame")
    return path


PLACES = ["a record", "an empty directory", "a creation that was cut short", "a snapshot"]
NO_PLACES = ["a file", "a directory of files", "a Zarr array", "a Zarr group of something else"]


def contents(path):
    return path.read_bytes() if path.is_file() else tree(path)


@pytest.mark.parametrize("what", [*PLACES, *NO_PLACES])
def test_something_is_there(tmp_path, what):
    path = place(tmp_path, what)
    before = contents(path)
    with pytest.raises(RecordExists, match=f"{path}.*overwrite=True") as caught:
        write(path, schema())
    assert isinstance(caught.value, FileExistsError)
    assert contents(path) == before


@pytest.mark.parametrize("what", PLACES)
def test_overwrite_replaces_a_record(tmp_path, what):
    path = place(tmp_path, what)
    write(tmp_path / "new", schema()).close()
    write(path, schema(), overwrite=True).close()
    assert tree(path) == tree(tmp_path / "new")


@pytest.mark.parametrize("what", NO_PLACES)
def test_overwrite_never_removes_what_is_no_record(tmp_path, what):
    path = place(tmp_path, what)
    before = contents(path)
    with pytest.raises(RecordExists, match=f"{path}.*no record, so it is not replaced"):
        write(path, schema(), overwrite=True)
    assert contents(path) == before


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "no" / "a", schema())
    assert caught.value.filename == str(tmp_path / "no" / "a")


def test_open_where_nothing_is(tmp_path):
    with pytest.raises(RecordNotFound, match="no record"):
        mrec.TrajectoryWriter.open(tmp_path / "a")


@pytest.mark.parametrize("what", ["a file", "a directory of files", "a Zarr group of something else"])
def test_open_what_is_no_record(tmp_path, what):
    path = place(tmp_path, what)
    before = contents(path)
    with pytest.raises(NotARecord, match=str(path)):
        mrec.TrajectoryWriter.open(path)
    assert contents(path) == before


def test_open_a_record_without_a_trajectory(tmp_path):
    path = place(tmp_path, "a snapshot")
    before = tree(path)
    with pytest.raises(InvalidValue, match=r"no trajectory to append to; create one"):
        mrec.TrajectoryWriter.open(path)
    assert tree(path) == before


def test_other_sections_of_the_record_are_left_alone(tmp_path):
    path = tmp_path / "a"
    with write(path, schema()) as w:
        append(w)
        with mrec.open(path) as rec:
            rec.system = mrec.Frame({"atoms": {"id": np.arange(2, dtype="u8")}})
        append(w)
    with mrec.TrajectoryWriter.open(path, durable=False) as w:
        append(w)
    with mrec.open(path) as rec:
        assert rec.system["atoms"]["id"].tolist() == [0, 1]
        assert len(rec.trajectory) == 3
    assert attributes(path)["nstep"] == 3


def test_a_path_with_a_nul_is_no_shorter_path(tmp_path):
    with pytest.raises(InvalidValue, match="NUL"):
        mrec.TrajectoryWriter(f"{tmp_path}/x.mrec\0y", mrec.Schema())
    assert not list(tmp_path.iterdir())


def test_a_path_of_bytes(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.mrec"
    with mrec.TrajectoryWriter(path, mrec.Schema().value("pe", "f64")) as w:
        w.append(0, pe=1.5)
    assert w.path == os.fsdecode(path)
    assert mrec.open(path).trajectory.values("pe").tolist() == [1.5]
    with mrec.TrajectoryWriter.open(path) as w:
        assert w.nframes == 1

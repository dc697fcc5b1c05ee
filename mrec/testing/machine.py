# SPDX-License-Identifier: BSD-3-Clause
"""A state machine that takes a writer through any turn of calls, kills and power losses."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mrec import pack, unpack, verify
from mrec._core import boot_id
from mrec.frame import Frame
from mrec.record import open as open_record
from mrec.testing.model import Model
from mrec.testing.routes import assert_reads
from mrec.testing.strategies import frames, schemas
from mrec.trajectory.reader import Trajectory
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import TrajectoryWriter

#: What follows appending.
FLUSHES = st.sampled_from(["no", "not synced", "durably"])


class WriterMachine(RuleBasedStateMachine):
    """Writes a record and reads it back, against a list of frames.

    Derive from it, put your writer in the place of ours by replacing `create`, `reopen`, `append`, `flush`, `close`,
    `published` and `count`, and let `YourMachine.TestCase` be collected by pytest or unittest. `schemas`, `options` and
    `frames` say what goes in. A rule that does not fit is left out by `truncate = None`, and so on, in the class.

    After each kill, and in between, the record has to hold the frames that were published, bit for bit, by every route
    (`assert_reads`). A kill leaves what the page cache holds; so `kill` goes on from a copy of the record as it is, and
    `kill_while_writing` lets a forked process write to one until SIGKILL ends it.
    """

    #: Draws the declaration of each record.
    schemas: st.SearchStrategy[Schema] = schemas()

    #: Draws the keyword arguments that `create` gets.
    options: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {
            "frames_per_chunk": st.sampled_from([1, 2, 3]),
            "chunks_per_shard": st.sampled_from([1, 2, 300]),
            "flush_every": st.sampled_from([1, 4, 10**6, 10**6]),
            "compression": st.sampled_from([None, "none", "gzip:1", "zstd:1", "shuffle+zstd:1"]),
        }
    )

    def frames(self, steady: bool) -> st.SearchStrategy[Frame]:
        """Frames that may come next; steady: those that keep a record in its short forms."""
        return frames(self.model, steady=steady)

    # ---- the writer ----------------------------------------------------------------------------------------------

    def create(self, path: str, schema: Schema, **options: Any) -> Any:
        """A writer of a new record."""
        return TrajectoryWriter(path, schema, durable_every=None, **options)

    def reopen(self, path: str, at: str | None = None) -> Any:
        """A writer that goes on with a record; `at`: a `TrajectoryWriter.position` to cut back to first."""
        return TrajectoryWriter.open(path, at=at, flush_every=10**6, durable_every=None)

    def append(self, writer: Any, frame: Frame) -> None:
        """Append one frame."""
        writer.append(frame)

    def flush(self, writer: Any, durable: bool) -> None:
        """Publish what was appended, and sync it if durable."""
        writer.flush(durable=durable)

    def close(self, writer: Any) -> None:
        """End the writer in order."""
        writer.close()

    def published(self, writer: Any) -> int | None:
        """How many frames readers see now; None when the writer does not tell."""
        return int(writer.published)

    def count(self, writer: Any) -> int | None:
        """How many frames were appended; None when the writer does not tell."""
        return int(writer.nframes)

    def read_elsewhere(self, path: str, model: Model) -> None:
        """Read a closed record in further ways, and raise when it is not what the model says."""

    # ---- the life of a machine -----------------------------------------------------------------------------------

    def __init__(self) -> None:
        super().__init__()
        self.outside = sys.exc_info()[1]  # what hypothesis is handling, when it runs an example again
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # nothing here depends on a disk
        self.folder = tempfile.mkdtemp(prefix="mrec-testing-", dir=memory)
        self.path = os.path.join(self.folder, "run.mrec")
        self.writer: Any = None
        self.follower: Trajectory | None = None
        self.closed = False

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """A new record."""
        self.model = Model(data.draw(self.schemas, "schema"))
        self.writer = self.create(self.path, self.model.schema.copy(), **data.draw(self.options, "options"))

    def teardown(self) -> None:
        """Close and read what a run leaves, unless it failed."""
        try:
            if sys.exc_info()[1] is self.outside and (self.writer is not None or self.closed):
                self.close_and_read()
        finally:
            self._drop()
            shutil.rmtree(self.folder, ignore_errors=True)

    @invariant()
    def counts(self) -> None:
        """The writer knows what it was given."""
        if self.writer is not None:
            count, published = self.count(self.writer), self.published(self.writer)
            assert count in (None, len(self.model)), f"{count} frames appended, not {len(self.model)}"
            assert published is None or self.model.published <= published <= len(self.model)

    # ---- writing -------------------------------------------------------------------------------------------------

    @rule(data=st.data(), flush=FLUSHES)
    def append_one(self, data: st.DataObject, flush: str) -> None:
        """Any frame."""
        self._append(data.draw(self.frames(steady=False), "frame"))
        self._flush(flush)

    @rule(data=st.data(), n=st.integers(1, 6), flush=FLUSHES)
    def append_steadily(self, data: st.DataObject, n: int, flush: str) -> None:
        """Frames of the kind that keeps a record in its short forms."""
        for _ in range(n):
            self._append(data.draw(self.frames(steady=True), "frame"))
        self._flush(flush)

    @precondition(lambda self: self.writer is not None)
    @rule(durable=st.booleans())
    def flush_again(self, durable: bool) -> None:
        """Publish what there may be."""
        self._flush("durably" if durable else "not synced")

    @precondition(lambda self: self.writer is not None)
    @rule()
    def close_and_read(self) -> None:
        """End the writer, and read the record with all that reads one."""
        self._close()
        self._assert_holds(self.path)
        assert not os.path.exists(os.path.join(self.path, "trajectory", ".durable")), "a closed record has a .durable"
        self.read_elsewhere(self.path, self.model)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Cut the record back to some frame, and go on from there."""
        self._close()
        self._cut_back(data.draw(st.integers(0, len(self.model)), "frames that stay"))

    # ---- ends ----------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.writer is not None)
    @rule()
    def kill(self) -> None:
        """The process dies between two calls: what was published stays, what was only appended is lost."""
        self._kill()
        self._settle(self.model.published)

    @rule(data=st.data(), n=st.integers(1, 5), after=st.integers(0, 4))
    def kill_while_writing(self, data: st.DataObject, n: int, after: int) -> None:
        """A process that appends n frames and flushes after each is killed `after` so many flushes.

        Where that hits it is for the machine to decide; so afterwards the record is cut back to these flushes.
        """
        if self.writer is not None:
            self._kill()
            self._settle(self.model.published)
        before, durable = len(self.model), []
        for _ in range(n):
            self.model.append(data.draw(self.frames(steady=False), "frame"))
            durable.append(data.draw(st.booleans(), "durable"))
        said = self._write_until_killed(self.model.given[before:], durable, min(after, n))
        self._settle(before + said)
        self._cut_back(before + min(after, n))

    @precondition(lambda self: not self.closed)
    @rule()
    def lose_power(self) -> None:
        """The machine stops: what was synced stays, the rest is not believed."""
        if self.writer is not None:
            self._kill()
        durable = os.path.join(self.path, "trajectory", ".durable")
        if os.path.exists(durable) and boot_id():
            with open(durable, "rb") as file:
                text = file.read()
            with open(durable, "wb") as file:
                file.write(text.replace(boot_id().encode(), b"another boot", 1))
        self._settle(self.model.durable)

    # ---- reading -------------------------------------------------------------------------------------------------

    @rule()
    def read(self) -> None:
        """Open the record anew, beside the writer, and read it by every route."""
        trajectory = open_record(self.path).trajectory
        n = len(trajectory)
        assert self.model.published <= n <= len(self.model), f"{n} frames, {self.model.published} were published"
        assert_reads(trajectory, self.model.frames[:n])

    @rule()
    def follow(self) -> None:
        """A reader that was there before takes in what is new."""
        if self.follower is None:
            self.follower = open_record(self.path).trajectory
        before = len(self.follower)
        assert_reads(self.follower, self.model.frames[:before])
        assert self.follower.refresh() >= max(before, self.model.published)
        assert_reads(self.follower, self.model.frames[: len(self.follower)])

    @rule()
    def pack_and_unpack(self) -> None:
        """One file of the record, as it is when it has no writer, and a record of that."""
        if self.writer is not None:
            self._close()
        packed = pack(self.path)
        self._assert_holds(packed)
        copy = unpack(packed, os.path.join(self.folder, "copy.mrec"))
        assert_reads(open_record(copy).trajectory, self.model.frames)
        shutil.rmtree(copy)
        os.unlink(packed)

    # ---- steps of these ------------------------------------------------------------------------------------------

    def _append(self, frame: Frame) -> None:
        """By the writer that there is, or one that opens the record after whatever happened to it."""
        if self.writer is None:
            self.writer = self.reopen(self.path)
            self.model.flushed(True)
            self.closed = False
        self.append(self.writer, frame)
        self.model.append(frame)
        self.model.published = self.published(self.writer) or self.model.published

    def _flush(self, how: str) -> None:
        if how != "no":
            self.flush(self.writer, how == "durably")
            self.model.flushed(how == "durably")

    def _cut_back(self, n: int) -> None:
        step = self.model.frames[n - 1].step if n else ""
        self.writer = self.reopen(self.path, f"{n}@{step}")
        self.model.cut(n)
        self.model.flushed(True)
        self.follower, self.closed = None, False
        assert_reads(open_record(self.path).trajectory, self.model.frames)

    def _close(self) -> None:
        if self.writer is not None:
            self.close(self.writer)
            self._drop()
            self.model.flushed(True)
            self.closed = True

    def _kill(self) -> None:
        copy = os.path.join(self.folder, "copy.mrec")
        shutil.copytree(self.path, copy)
        self._drop()
        shutil.rmtree(self.path)
        os.rename(copy, self.path)
        self.follower = None

    def _drop(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.writer = None

    def _settle(self, least: int) -> None:
        """Take over what the record holds: at least so many frames, each of them right."""
        n = len(open_record(self.path).trajectory)
        assert least <= n <= len(self.model), f"the record holds {n} frames, not {least} to {len(self.model)}"
        self.model.cut(n)
        self._assert_holds(self.path)

    def _assert_holds(self, path: str) -> None:
        with open_record(path) as record:
            assert_reads(record.trajectory, self.model.frames)
        report = verify(path)
        assert report.ok, report

    def _write_until_killed(self, given: list[Frame], durable: list[bool], after: int) -> int:
        """How many flushes a forked process came back from until it was killed."""
        told, tell = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads: it only writes, and is killed
            child = os.fork()
        if child == 0:
            self._write_and_tell(given, durable, tell)
        os.close(tell)
        with open(told, "rb", buffering=0) as pipe:
            said = b""
            while len(said) < after and b"!" not in said:
                said += pipe.read(1) or b"!it ended by itself"
            if b"!" not in said:
                os.kill(child, signal.SIGKILL)
            said += pipe.read()
        os.waitpid(child, 0)
        assert b"!" not in said, said[said.index(b"!") + 1 :].decode()
        return len(said)

    def _write_and_tell(self, given: list[Frame], durable: list[bool], tell: int) -> None:
        """In the child: a dot for each flush, "!" and what went wrong."""
        try:
            writer = self.reopen(self.path)
            for frame, sync in zip(given, durable, strict=True):
                self.append(writer, frame)
                self.flush(writer, sync)
                os.write(tell, b".")
            while True:
                signal.pause()
        except BaseException:
            os.write(tell, b"!" + traceback.format_exc().encode())
        finally:
            os._exit(1)

# SPDX-License-Identifier: BSD-3-Clause
"""A sample of the state machine (tests/long/test_prop.py: many more), and that it finds what is wrong with a writer."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

import mrec
from mrec.testing import WriterMachine
from tests.testing.peers import PeerMachine

SAMPLE = settings(
    PeerMachine.TestCase.settings, max_examples=12, stateful_step_count=15, derandomize=True, database=None
)

TestOurWriter = PeerMachine.TestCase
TestOurWriter.settings = SAMPLE


class ThreadedMachine(PeerMachine):
    """With a thread behind each writer. What a call did is known when the thread is done with it."""

    def create(self, path, schema, **options):
        return super().create(path, schema, **options, threads=2)

    def reopen(self, path, at=None):
        return mrec.TrajectoryWriter.open(path, at=at, flush_every=10**6, durable_every=None, threads=3)

    def append(self, writer, frame):
        super().append(writer, frame)
        writer._core.wait()


TestOurWriterWithThreads = ThreadedMachine.TestCase
TestOurWriterWithThreads.settings = SAMPLE


# ---- writers with something wrong --------------------------------------------------------------------------------


class Broken(WriterMachine):
    """Without the rule that hits here or there: what it finds once it may not find again."""

    kill_while_writing = None
    schemas = st.just(mrec.Schema().block("b", rows=3).column("x", "f64").column("n", "f64", nullable=True))


class Unflushed(Broken):
    """Its unsynced flush does nothing, and it says that it had published all."""

    def flush(self, writer, durable):
        if durable:
            writer.flush()

    def published(self, writer):
        return None


class Unsigned(Broken):
    """It takes -0.0 for 0.0."""

    def append(self, writer, frame):
        blocks = {name: {column: self.plain(b[column]) for column in b} for name, b in frame.blocks.items()}
        writer.append(frame.step, time=frame.time, box=frame.box, blocks=blocks, values=frame.values)

    def plain(self, array):
        return array + 0.0 if array.dtype == np.float64 else array


class QuietNaN(Unsigned):
    """It has one NaN only."""

    def plain(self, array):
        return np.where(np.isnan(array), np.nan, array) if type(array) is np.ndarray and array.dtype == "f8" else array


class Uncut(Broken):
    """It does not cut back."""

    def reopen(self, path, at=None):
        return super().reopen(path)


class Doubling(Broken):
    """After a reopening it writes the last frame once more."""

    def reopen(self, path, at=None):
        writer = super().reopen(path, at)
        if writer.nframes and at is None:
            last = mrec.open(path).trajectory[-1]
            last.step += 1
            writer.append(last)
        return writer

    def count(self, writer):
        return None


class Forgetful(Broken):
    """It leaves null rows out of account."""

    def append(self, writer, frame):
        blocks = {
            name: {column: np.asarray(np.ma.getdata(b[column])) for column in b} for name, b in frame.blocks.items()
        }
        writer.append(frame.step, time=frame.time, box=frame.box, blocks=blocks, values=frame.values)


@pytest.mark.filterwarnings("ignore:the writer of .* was never closed")
@pytest.mark.parametrize("broken", [Unflushed, Unsigned, QuietNaN, Uncut, Doubling, Forgetful])
def test_it_finds_what_is_wrong(broken: type[WriterMachine]) -> None:
    many = settings(SAMPLE, max_examples=400, phases=[Phase.generate], print_blob=False)
    with pytest.raises((AssertionError, mrec.MrecError)):
        run_state_machine_as_test(broken, settings=many)
    gc.collect()  # the writers that tracebacks kept


def test_what_a_writer_cannot_do_is_left_out() -> None:
    class NoCuts(Uncut):
        truncate = None

    run_state_machine_as_test(NoCuts, settings=settings(SAMPLE, max_examples=5))

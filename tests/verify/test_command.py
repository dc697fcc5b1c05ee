# SPDX-License-Identifier: BSD-3-Clause
"""`mrec verify` as it is called."""

from __future__ import annotations

import json
import multiprocessing
import shutil
from functools import partial
from pathlib import Path

import pytest

import mrec as library
from tests.cli.command import checked
from tests.crash import scenario
from tests.verify.faults import FAULTS
from tests.verify.samples import regular

run = partial(checked, "verify")


@pytest.fixture
def record(tmp_path: Path) -> Path:
    regular(tmp_path / "a.mrec")
    return tmp_path / "a.mrec"


def test_clean(record: Path) -> None:
    assert run(record, code=0).stdout.startswith(f"{record}: no fault in 12 frames, ")
    assert run(record, "--quiet", code=0).stdout == ""
    found = json.loads(run(record, "--json", code=0).stdout)
    assert (found["ok"], found["frames"], found["findings"]) == (True, 12, [])
    assert run(record, code=0).stderr == ""


def test_findings(record: Path) -> None:
    next(fault for fault in FAULTS if fault.name == "a_bit_of_a_chunk").seed(record)
    lines = run(record, code=1).stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("error checksum: trajectory/atoms/y shard c/1 chunk 2 frame 10: the checksum of its ")
    assert lines[1].startswith(f"{record}: 1 fault in 12 frames, ")
    assert run(record, "--quiet", code=1).stdout == ""
    found = json.loads(run(record, "--json", code=1).stdout)
    assert not found["ok"]
    place = {"rule": "checksum", "severity": "error", "array": "trajectory/atoms/y", "chunk": 2, "frame": 10}
    assert place.items() <= found["findings"][0].items()


def test_no_record(tmp_path: Path) -> None:
    for path in (tmp_path / "none.mrec", tmp_path):
        done = run(path, code=2)
        assert (done.stdout, done.stderr.count("\n")) == ("", 1)
        assert done.stderr.startswith("mrec: error: ")
    assert run(code=2).stderr.startswith("usage: mrec verify ")


def write(path: Path, ready: object, stop: object) -> None:
    schema = scenario.schema()
    with library.TrajectoryWriter(path, schema, durable_every=0.05, **scenario.OPTIONS) as writer:
        i = 0
        while not stop.is_set() or i < 40:  # type: ignore[attr-defined]
            writer.append(scenario.frame(i))
            writer.flush(durable=False)
            ready.set()  # type: ignore[attr-defined]
            i += 1


def test_record_that_is_being_written(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, stop = context.Event(), context.Event()
    path = tmp_path / "live.mrec"
    writer = context.Process(target=write, args=(path, ready, stop))
    writer.start()
    try:
        assert ready.wait(60)
        seen = [library.verify(path) for _ in range(12)]
    finally:
        stop.set()
        writer.join(60)
    assert [report.findings for report in seen] == [[]] * len(seen)
    assert seen[-1].frames > seen[0].frames
    assert library.verify(path).findings == []
    shutil.rmtree(path)

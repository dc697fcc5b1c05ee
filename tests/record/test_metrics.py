"""Metrics: whole lines, arrays of them, and what is left when a process is killed or a call fails."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime

import numpy as np
import pytest

import mrec
from mrec.errors import (
    ClosedError,
    CorruptData,
    ForkedHandle,
    InvalidValue,
    NotARecord,
    RecordLocked,
    SchemaError,
    UnknownName,
)
from mrec.record.metrics import read_log, safe

LOG = "metrics/metrics.jsonl"


@pytest.fixture
def path(tmp_path):
    mrec.create(tmp_path / "r.mrec", status={"state": "running"})
    return tmp_path / "r.mrec"


def curve(path, key):
    series = mrec.open(path).metrics[key]
    return dict(zip(series.steps.tolist(), series.values.tolist(), strict=True))


# ---- what is logged ----------------------------------------------------------------------------------------------


def test_live_closed_and_gone_on_with(path):
    moment = datetime(2024, 5, 1, 12, tzinfo=UTC)
    with mrec.MetricsLog(path) as log:
        log.log("loss", 1.5, step=0, time=moment)
        log.log({"loss": np.float32(0.5), "lr": np.array(1)}, step=10, tags={"phase": "ü"})
        log.log("note", math.inf)
        log.log("note", -math.inf)
        live = mrec.open(path).metrics
        assert not (path / "metrics/series").exists() and live["loss"].values.tolist() == [1.5, 0.5]
    metrics = mrec.open(path).metrics
    assert list(metrics) == ["loss", "lr", "note"]
    assert metrics["loss"].steps.tolist() == [0, 10] and metrics["note"].steps is None
    assert metrics["note"].values.tolist() == [math.inf, -math.inf]
    assert metrics["loss"].wall_time[0] == "2024-05-01T12:00:00.000000+00:00"
    assert [event.get("tags") for event in metrics.events()] == [None, {"phase": "ü"}, {"phase": "ü"}, None, None]
    attributes = json.loads((path / "metrics/zarr.json").read_text())["attributes"]
    assert attributes["wal"] == {"lines": 5, "bytes": os.path.getsize(path / LOG)}
    assert attributes["series"]["loss"] == {
        "type": "scalar",
        "count": 2,
        "latest_step": 10,
        "latest_timestamp": metrics["loss"].wall_time[1],
    }
    assert mrec.verify(path).ok
    with mrec.MetricsLog(path) as log:
        log.log("loss", 9.0, step=0)  # replaces
        log.log("loss", 0.25, step=20)
        assert curve(path, "loss") == {0: 9.0, 10: 0.5, 20: 0.25}  # arrays, and later lines
    (path / LOG).unlink()  # the arrays stand alone
    assert curve(path, "loss") == {0: 9.0, 10: 0.5, 20: 0.25}
    with pytest.raises(UnknownName, match="no series 'nothing'; there are: 'loss', 'lr', 'note'"):
        mrec.open(path).metrics["nothing"]


def test_a_record_without(path):
    assert len(mrec.open(path).metrics) == 0 and list(mrec.open(path).metrics.events()) == []


def test_what_stands_beside_the_arrays_stays(path):
    with mrec.MetricsLog(path) as log:
        log.log("a", 1.0)
    (path / "metrics/notes.txt").write_text("mine")
    document = json.loads((path / "metrics/zarr.json").read_text())
    document["attributes"]["theirs"] = [1]
    (path / "metrics/zarr.json").write_text(json.dumps(document))
    with mrec.MetricsLog(path) as log:
        log.log("a", 2.0)
    assert (path / "metrics/notes.txt").read_text() == "mine"
    assert json.loads((path / "metrics/zarr.json").read_text())["attributes"]["theirs"] == [1]
    assert sorted(os.listdir(path)) == ["meta", "metrics", "status", "zarr.json"]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("loss", "loss"),
        ("a/b c", "a%2Fb%20c"),
        (".", "%2E"),
        ("..", "%2E."),
        ("__x", "%5F_x"),
        ("é", "%C3%A9"),
        ("%", "%25"),
    ],
)
def test_names(path, key, name):
    assert safe(key) == name
    with mrec.MetricsLog(path) as log:
        log.log(key, 1.0, step=1)
    assert (path / "metrics/series" / name / "zarr.json").exists()
    assert curve(path, key) == {1: 1.0} and mrec.verify(path).ok


def test_a_log_of_its_own(tmp_path, path):
    file = tmp_path / "run.mlp.jsonl"
    for i in range(2):
        with mrec.MetricsLog(file) as log:
            log.log("loss", float(i), step=i)
    assert read_log(str(file))["loss"].values.tolist() == [0.0, 1.0]
    with pytest.raises(InvalidValue, match=r"run\.mlp\.jsonl lies in the record .*r\.mrec"):
        mrec.MetricsLog(path / "run.mlp.jsonl")
    with pytest.raises(FileNotFoundError):
        mrec.MetricsLog(tmp_path / "nowhere" / "run.mlp.jsonl")
    with pytest.raises(NotARecord, match="make one with mrec.create"):
        mrec.MetricsLog(tmp_path / "no.mrec")


REFUSED = {
    "text": (lambda log: log.log("a", "1"), SchemaError, "the value of 'a': '1' .str. is no f64"),
    "bool": (lambda log: log.log("a", True), SchemaError, "a bool is no f64"),
    "large": (lambda log: log.log("a", 2**60 + 1), SchemaError, "not exactly a double"),
    "step": (lambda log: log.log("a", 1.0, step=1.5), InvalidValue, "a step is a whole number, not 1.5"),
    "step of 65 bits": (lambda log: log.log("a", 1.0, step=2**63), InvalidValue, "of 64 bits"),
    "no step": (lambda log: log.log("with", 1.0), InvalidValue, "'with' has steps; so has every value"),
    "a step": (lambda log: log.log("without", 1.0, step=5), InvalidValue, "'without' has no steps; so has every"),
    "key": (lambda log: log.log("", 1.0), InvalidValue, "the key of a series is a name, not ''"),
    "number": (lambda log: log.log(5, 1.0), InvalidValue, "the key of a series is a name, not 5"),
    "surrogate": (lambda log: log.log("\ud800", 1.0), InvalidValue, "surrogate"),
    "zarr.json": (lambda log: log.log("zarr.json", 1.0), InvalidValue, "'zarr.json'.*taken for a file of the format"),
    "temporary": (lambda log: log.log(".a.tmp", 1.0), InvalidValue, "taken for a file of the format"),
    "long": (lambda log: log.log("é" * 50, 1.0), InvalidValue, "too long"),
    "case": (lambda log: log.log("WITH", 1.0), InvalidValue, "'with' and 'WITH' differ only in case"),
    "tags": (lambda log: log.log("a", 1.0, tags=[1]), InvalidValue, "tags: a document is a dict"),
    "tags of NaN": (lambda log: log.log("a", 1.0, tags={"x": math.nan}), InvalidValue, "tags: no JSON document"),
    "time": (lambda log: log.log("a", 1.0, time=datetime(2024, 1, 1)), InvalidValue, "with an offset from UTC"),
    "one of two": (lambda log: log.log({"a": 1.0, "b": "x"}), SchemaError, "the value of 'b'"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused_whole(path, case):
    call, error, match = REFUSED[case]
    with mrec.MetricsLog(path) as log:
        log.log("with", 1.0, step=1)
        log.log("without", 1.0)
        before = (path / LOG).read_bytes()
        with pytest.raises(error, match=match):
            call(log)
        assert (path / LOG).read_bytes() == before
    assert list(mrec.open(path).metrics) == ["with", "without"]


def test_one_at_a_time(path):
    log = mrec.MetricsLog(path)
    with pytest.raises(RecordLocked, match="another MetricsLog has it"):
        mrec.MetricsLog(path)
    log.flush()  # whose arrays come with another directory
    with pytest.raises(RecordLocked):
        mrec.MetricsLog(path)
    if (pid := os.fork()) == 0:
        try:
            log.log("a", 1.0)
        except ForkedHandle:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    log.log("a", 1.0)
    log.close()
    log.close()
    with pytest.raises(ClosedError, match="was closed"):
        log.log("a", 1.0)


def test_packed(path):
    with mrec.MetricsLog(path) as log:
        log.log("a", 1.0, step=1)
    packed = mrec.pack(path)
    assert mrec.open(packed).metrics["a"].values.tolist() == [1.0]
    with pytest.raises(NotARecord):
        mrec.MetricsLog(packed)


# ---- foreign and damaged logs ------------------------------------------------------------------------------------

LINE = b'{"t":"scalar","k":"a","s":1,"w":"2024-01-01T00:00:00Z","v":1.0}\n'
WRONG = {
    "no JSON": (b"{]\n", "line 2: not strict JSON"),
    "a list": (b"[1]\n", "line 2: a JSON object is needed, not list"),
    "two objects": (b"{}{}\n", "line 2: not strict JSON"),
    "a key twice": (b'{"t":"scalar","t":"scalar"}\n', "line 2: not strict JSON: the key 't' stands twice"),
    "NaN": (LINE.replace(b"1.0", b"NaN"), "line 2: not strict JSON: NaN is no JSON number"),
    "no key": (b'{"t":"scalar","v":1}\n', "line 2: k, the key, is None"),
    "value": (LINE.replace(b"1.0", b'"x"'), 'line 2: v, the value, is "x"'),
    "step": (LINE.replace(b'"s":1', b'"s":1.5'), "line 2: s, the step, is 1.5"),
    "time": (LINE.replace(b'"2024-01-01T00:00:00Z"', b"5"), "line 2: w, the time, is 5"),
}


@pytest.mark.parametrize("case", WRONG)
def test_lines_that_are_refused(path, case):
    line, match = WRONG[case]
    mrec.MetricsLog(path).close()
    (path / LOG).write_bytes(LINE + line + LINE)
    with pytest.raises(CorruptData, match=match):
        mrec.open(path).metrics  # noqa: B018
    assert [f.rule for f in mrec.verify(path).findings] == ["metrics-log"]
    with pytest.raises(CorruptData):
        mrec.MetricsLog(path)
    assert (path / LOG).read_bytes() == LINE + line + LINE  # nothing was cut


def test_what_other_programs_log(path):
    mrec.MetricsLog(path).close()
    other = b'{"t":"image","k":"a","blob":[1]}\n'
    (path / LOG).write_bytes(b"\n" + LINE + b"  \n" + other + LINE.replace(b"1.0", b'"NaN"') + LINE[:20])
    metrics = mrec.open(path).metrics
    assert metrics.torn and len(metrics["a"]) == 1 and math.isnan(metrics["a"].values[0])
    assert [event["t"] for event in metrics.events()] == ["scalar", "image", "scalar"]
    with mrec.MetricsLog(path) as log:  # which cuts the torn line
        log.log("a", 2.0, step=2)
    lines = (path / LOG).read_bytes().split(b"\n")
    assert lines[3] == other[:-1] and json.loads(lines[-2])["s"] == 2 and not mrec.open(path).metrics.torn


def test_steps_here_and_there(path):
    mrec.MetricsLog(path).close()
    (path / LOG).write_bytes(LINE + LINE.replace(b'"s":1,', b""))
    assert mrec.open(path).metrics["a"].steps.tolist() == [1, None]
    with pytest.raises(SchemaError, match="'a' has events with and without a step"):
        mrec.MetricsLog(path)


DAMAGE = {
    "fewer lines than the arrays hold": (lambda p: (p / LOG).write_bytes(LINE[:10]), "hold .* bytes of the log"),
    "a count of text": (lambda p: catalog(p, lambda a: a["series"]["a"].update(count="1")), "count of the series 'a'"),
    "another count": (lambda p: catalog(p, lambda a: a["series"]["a"].update(count=2)), r"series/a: no float64\[2\]"),
    "no catalog": (lambda p: catalog(p, lambda a: a.update(series=[])), "no catalog"),
    "wal of text": (lambda p: catalog(p, lambda a: a.update(wal="x")), "wal is 'x'"),
    "values gone": (lambda p: shutil.rmtree(p / "metrics/series/a"), "series/a: no float64"),
    "no group": (lambda p: (p / "metrics/zarr.json").unlink(), "lies in no group"),
}  # fmt: skip


def catalog(path, change):
    file = path / "metrics/zarr.json"
    document = json.loads(file.read_text())
    change(document["attributes"])
    file.write_text(json.dumps(document))


@pytest.mark.parametrize("case", DAMAGE)
def test_damage(path, case):
    damage, match = DAMAGE[case]
    with mrec.MetricsLog(path) as log:
        log.log("a", 1.0, step=1)
    damage(path)
    with pytest.raises(CorruptData, match=match):
        mrec.open(path).metrics  # noqa: B018
    if case != "no group":
        assert {f.rule for f in mrec.verify(path).findings} == {"metrics"}


# ---- killed ------------------------------------------------------------------------------------------------------


def logged(n):
    """n events of two series, and what they come to."""
    events = [("loss" if i % 3 else "lr", float(i), i // 2 if i % 5 else max(i // 2 - 3, 0)) for i in range(n)]
    kept = {}
    for key, value, step in events:
        kept.setdefault(key, {})[step] = value
    return events, kept


def test_cut_at_and_within_every_line(path, tmp_path):
    """Killed at every line boundary and within every line: nothing is lost, and nothing doubled."""
    with mrec.MetricsLog(path) as log:
        for key, value, step in logged(4)[0]:
            log.log(key, value, step=step)
        log.flush()
        for key, value, step in logged(9)[0][4:]:
            log.log(key, value, step=step)
        live = shutil.copytree(path, tmp_path / "live.mrec")
    whole = (live / LOG).read_bytes()
    held = json.loads((live / "metrics/zarr.json").read_text())["attributes"]["wal"]["bytes"]
    ends = [i + 1 for i in range(held - 1, len(whole)) if whole[i : i + 1] == b"\n"]
    for size in sorted(
        {size for end in ends for size in (end, end + 1, end + 40, end - 1)} & {*range(held, len(whole) + 1)}
    ):
        n = whole[:size].count(b"\n")
        cut = shutil.copytree(live, tmp_path / "cut.mrec")
        (cut / LOG).unlink()
        (cut / LOG).write_bytes(whole[:size])
        check(cut, logged(n)[1])
        with mrec.MetricsLog(cut) as log:
            for key, value, step in logged(10)[0][n:]:
                log.log(key, value, step=step)
            check(cut, logged(10)[1])
        check(cut, logged(10)[1])
        with mrec.MetricsLog(cut):
            pass
        check(cut, logged(10)[1])
        assert mrec.verify(cut).ok
        shutil.rmtree(cut)


def check(path, kept):
    metrics = mrec.open(path).metrics
    assert {key: dict(zip(s.steps.tolist(), s.values.tolist(), strict=True)) for key, s in metrics.items()} == kept
    assert all(len(metrics[key]) == len(kept[key]) for key in metrics)


CHILD = """
import sys, mrec
log = mrec.MetricsLog(sys.argv[1])
i = int(sys.argv[2])
while True:
    log.log("loss", float(i), step=i)
    print(i, flush=True)
    if i % 40 == 39:
        log.flush()
    i += 1
"""


def test_killed_for_real(path):
    """What a call of log returned for is there, whenever the process is killed."""
    rng = np.random.default_rng(1)
    start = 0
    for _ in range(5):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(path), str(start)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        wanted = start + int(rng.integers(5, 120))
        told = start - 1
        for line in child.stdout:
            told = int(line)
            if told >= wanted:
                break
        child.send_signal(signal.SIGKILL)
        rest, _ = child.communicate()
        whole = rest[: rest.rfind("\n") + 1].split()
        told = int(whole[-1]) if whole else told
        found = curve(path, "loss")
        assert found == {i: float(i) for i in range(len(found))} and told < len(found) <= told + 3
        start = len(found)
    with mrec.MetricsLog(path):
        pass
    assert curve(path, "loss") == {i: float(i) for i in range(start)}
    assert not [name for name in os.listdir(path) if name.startswith(".")] and mrec.verify(path).ok


@pytest.mark.parametrize("after", [0, 10])
def test_a_write_that_fails(path, monkeypatch, after):
    """The part of a line that got there is cut off again; the log says what happened until it is opened again."""
    log = mrec.MetricsLog(path)
    log.log("a", 1.0, step=1)
    write = os.write

    def full(fd, data):
        monkeypatch.setattr(os, "write", refuse)
        return write(fd, data[:after]) if after else refuse(fd, data)

    def refuse(fd, data):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="no space"):
        log.log("a", 2.0, step=2)
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OSError, match="no space"):
        log.log("a", 2.0, step=2)
    assert (path / LOG).read_bytes().count(b"\n") == 1 and (path / LOG).read_bytes().endswith(b"\n")
    log.close()
    with mrec.MetricsLog(path) as log:
        log.log("a", 2.0, step=2)
    assert curve(path, "a") == {1: 1.0, 2: 2.0}

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec head`, `mrec plot` and `mrec watch`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import mrec as library
from mrec.cli import plot
from mrec.cli.watch import Rate
from tests.cli.command import ROOT
from tests.cli.inside import Command, make


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def test_head(run: Command, tmp_path: Path) -> None:
    path = make(tmp_path / "a.mrec")
    found = json.loads(run("head", path, "--json", "-n", "3"))
    with library.open(path) as record:
        frames = list(record.trajectory[:3])
    for document, frame in zip(found, frames, strict=True):
        assert (document["index"], document["step"], document["time"]) == (frame.index, frame.step, frame.time)
        assert document["cell"]["vectors"] == frame.box.rows.tolist()
        assert document["blocks"]["atoms"]["columns"]["x"] == frame["atoms"]["x"].tolist()
        assert document["blocks"]["atoms"]["columns"]["q"][frame.index] is None
        assert document["values"]["stress"] == frame.values["stress"].tolist()
        assert document["values"]["note"] == frame.values["note"]
    text = run("head", path, "--rows", "2")
    assert text.startswith("frame 0: step 0, time 0\n  cell 20.12")
    assert "\n  pe -0\n" in text
    assert "\n  atoms, 8 rows\n" in text
    assert text.endswith("1 of 6 frames\n")
    assert len(run("head", path, "-n", "99").split("frame ")) == 7


def test_head_of_what_json_has_not(run: Command, tmp_path: Path) -> None:
    schema = library.Schema().block("a", rows=2).column("c", "c128").column("n", "u64").value("pe", "f64")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema, durable=False) as writer:
        writer.append(0, a={"c": [1 + 2j, complex(np.nan, np.inf)], "n": np.array([1, 2**63], np.uint64)}, pe=np.nan)
    (frame,) = json.loads(run("head", tmp_path / "a.mrec", "--json"))
    assert frame["blocks"]["a"]["columns"] == {"c": [[1.0, 2.0], ["NaN", "Infinity"]], "n": [1, str(2**63)]}
    assert frame["values"] == {"pe": "NaN"}


def test_head_of_what_a_terminal_would_act_upon(run: Command, tmp_path: Path) -> None:
    schema = library.Schema().block("a").column("s", "string").value("note", "string")
    with library.TrajectoryWriter(tmp_path / "a.mrec", schema, durable=False) as writer:
        writer.append(0, a={"s": ["ä\n\x1b[31m", "\u2028水"]}, note="a\tb")
    text = run("head", tmp_path / "a.mrec")
    assert text.splitlines()[1:] == [
        "  note a\\tb",
        "  a, 2 rows",
        "    s",
        r"    ä\n\x1b[31m",
        r"    \u2028水",
        "1 of 1 frames",
    ]
    assert json.loads(run("head", tmp_path / "a.mrec", "--json"))[0]["values"] == {"note": "a\tb"}


def test_plot_of_names_that_look_like_math(run: Command, tmp_path: Path) -> None:
    schema = library.Schema().value("$_$", "f64")
    with library.TrajectoryWriter(tmp_path / "a $^$.mrec", schema, units={"time": "$_$"}, durable=False) as writer:
        writer.append(0, time=1.0, values={"$_$": 1.0})
    run("plot", tmp_path / "a $^$.mrec", "$_$", "-o", tmp_path / "out.png")
    assert (tmp_path / "out.png").exists()


def test_plot(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.mrec")
    monkeypatch.chdir(tmp_path)
    assert run("plot", path, "pe", "stress", "done") == "a.png: pe, stress, done at 6 frames\n"
    assert Path("a.png").read_bytes().startswith(b"\x89PNG\r\n")
    with library.open(path) as record:
        view = record.trajectory[::2]
        label, x = plot.axis(view, record.units)
        figure = plot.draw(label, x, [plot.series(view, name) for name in ("pe", "stress")])
    pe, stress = figure.axes
    assert pe.lines[0].get_xdata().tolist() == [0.0, 1.0, 2.0]
    assert pe.lines[0].get_ydata().tolist() == [0.0, -3.0, -6.0]
    assert [line.get_ydata().tolist() for line in stress.lines] == [[float(i), i + 2.0, i + 4.0] for i in range(6)]
    assert (pe.get_ylabel(), stress.get_ylabel(), stress.get_xlabel()) == ("pe", "stress", "time (fs)")
    assert "'note' is json" in run("plot", path, "note", "-o", "b.png", code=1)
    assert "there is no per-step value 'temp'" in run("plot", path, "temp", "-o", "b.png", code=1)
    assert "pass --overwrite" in run("plot", path, "pe", code=1)
    assert sorted(os.listdir()) == ["a.mrec", "a.png"]


def test_the_rate() -> None:
    rate = Rate()
    rate.add(100, 0.0)
    assert rate.per_second is None
    rate.add(120, 2.0)
    assert rate.per_second == 10.0
    for i in range(100):
        rate.add(120 + i, 3.0 + i)
    assert rate.per_second == pytest.approx(1.0)
    rate.add(5, 200.0)
    assert rate.per_second is None


WRITER = """
import sys, mrec
schema = mrec.Schema().block("atoms", rows=1).column("x", "f64").value("pe", "f64")
with mrec.TrajectoryWriter(sys.argv[1], schema, flush_every=1) as writer:
    for i, word in enumerate(sys.stdin):
        writer.append(10 * i, time=i / 4, atoms={"x": [i]}, pe=-i)
        print(i, flush=True)
"""


class Live:
    """A record that another process writes, a frame a word, and a watch of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        pipe = subprocess.PIPE
        call = [sys.executable, "-c", WRITER, str(path)]
        self.writer = subprocess.Popen(call, stdin=pipe, stdout=pipe, text=True, env=environment)
        self.append()
        call = [sys.executable, "-u", "-m", "mrec.cli", "watch", str(path), "--interval", "0.05"]
        self.watch = subprocess.Popen(call, stdout=pipe, stderr=pipe, text=True, env=environment)

    def append(self) -> None:
        assert self.writer.stdin is not None
        assert self.writer.stdout is not None
        print("next", file=self.writer.stdin, flush=True)
        self.writer.stdout.readline()

    def line(self, beginning: str) -> str:
        """The next line that begins so; those before it tell of other changes."""
        assert self.watch.stdout is not None
        for line in self.watch.stdout:
            if line.startswith(beginning):
                return line
        raise AssertionError(f"the watch ended: {self.watch.stderr and self.watch.stderr.read()}")

    def close(self) -> None:
        for process in (self.writer, self.watch):
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture
def live(tmp_path: Path) -> object:
    made = Live(tmp_path / "a.mrec")
    yield made
    made.close()


def test_watch_until_it_is_closed(live: Live) -> None:
    assert "step 0  time 0  pe 0" in live.line("1 frame  ")
    live.append()
    live.append()
    assert "/s  " in (line := live.line("3 frames  "))
    assert line.endswith("step 20  time 0.5  pe -2\n")
    live.writer.communicate()
    assert live.line("closed") == "closed with 3 frames\n"
    assert live.watch.wait(30) == 0


def test_watch_of_a_writer_that_dies(live: Live) -> None:
    live.line("1 frame")
    time.sleep(0.5)
    live.writer.kill()
    out, err = live.watch.communicate(timeout=60)
    assert live.watch.returncode == 1
    assert err.endswith("its writer ended without closing it; it has 1 frame\n")


def test_watch_of_a_writer_that_has_died(live: Live, run: Command) -> None:
    live.writer.kill()
    live.writer.wait()
    assert "its writer ended without closing it; it has 1 frame" in run("watch", live.path, code=1, printed=True)


def test_watch_that_is_stopped(live: Live) -> None:
    live.line("1 frame")
    live.watch.send_signal(signal.SIGINT)
    out, err = live.watch.communicate(timeout=60)
    assert (live.watch.returncode, out, err) == (0, "", "")
    live.append()


def test_watch_of_a_closed_record(run: Command, tmp_path: Path) -> None:
    assert run("watch", make(tmp_path / "a.mrec")).splitlines()[-1] == "closed with 6 frames"

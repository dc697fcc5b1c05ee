# SPDX-License-Identifier: BSD-3-Clause
"""What a notebook shows of records, trajectories, frames, blocks and cells."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.trajectory.frames import State

EVIL = "<script>alert('x')</script>\x1b[31m&"


class Balanced(HTMLParser):
    """Every tag that opens is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def shown(value: Any) -> str:
    """The text of what a notebook shows."""
    parser = Balanced()
    parser.feed(value._repr_html_())
    parser.close()
    assert parser.open == []
    assert parser.seen <= {"details", "summary", "table", "tr", "th", "td", "br", "small", "p"}
    return parser.text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A record whose steps and times are stored one by one."""
    made = tmp_path / f"a<b>{'c' * 20}.mrec"
    schema = mrec.Schema().block("atoms", rows=100).value("pe", "f64").value("note", "string", fill="")
    for name in "xyz":
        schema.column(name, "f64", precision=1e-3)
    schema.block("tags", rows=1).column("text", "string")
    with mrec.TrajectoryWriter(made, schema, units={"length": "angstrom", "time": EVIL}, durable=False) as writer:
        for i in range(40):
            atoms = {name: np.arange(100.0) + i for name in "xyz"}
            tags = {"text": [EVIL]}
            writer.append(i * i, time=0.5 * i * i, atoms=atoms, tags=tags, box=[10.0, 11.0, 12.0], pe=-i, note=EVIL)
    mrec.open(made).system = {"atoms": {"name": ["<b>"] * 100}}
    return made


def test_nothing_of_the_data_is_markup(path: Path) -> None:
    record = mrec.open(path)
    for value in (record, record.trajectory, record.trajectory[3], record.trajectory[3]["tags"], record.system):
        html = value._repr_html_()
        assert "<script" not in html and "\x1b" not in html and "<b>" not in html
        shown(value)
    assert EVIL.replace("\x1b", r"\x1b") in shown(record.trajectory[3]["tags"]).replace("\n", "")


def test_a_record_and_its_trajectory_are_shown_without_reading_a_frame(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any) -> Any:
        raise AssertionError("a frame was read")

    for name in ("frame", "frames", "values", "block", "steps", "times"):
        monkeypatch.setattr(State, name, refuse)
    record = mrec.open(path)
    text = shown(record)
    assert "length angstrom" in text and "40" in text and "0 to 1521" in text and "0 to 760.5" in text
    assert shown(record.trajectory[5:8]).count("25 to 49") == 1
    assert "steps 25 to 49, times 12.5 to 24.5" in repr(record.trajectory[5:8])


@pytest.mark.parametrize("times", [True, False])
def test_the_ends_are_those_of_steps_and_times(tmp_path: Path, times: bool) -> None:
    with mrec.TrajectoryWriter(tmp_path / "e.mrec", mrec.Schema().value("pe", "f64")) as writer:
        for i, step in enumerate((3, 5, 9, 10)):
            writer.append(step, time=0.1 * i if times else None, pe=0.0)
    frames = mrec.open(tmp_path / "e.mrec").trajectory
    for some in (frames, frames[1:3], frames[::-1], frames[2:3]):
        found = [(int(some.steps[i]), float(some.times[i]) if times else None) for i in (0, -1)]
        assert list(mrec.open(tmp_path / "e.mrec").trajectory.ends) == list(frames.ends)
        assert list(some.ends) == found
    with pytest.raises(mrec.errors.FrameIndexError):
        _ = frames[:0].ends


def test_what_is_long_is_cut() -> None:
    columns = {f"c{i:02}": np.arange(1000.0) for i in range(40)}
    frame = mrec.Frame({"many": columns, "long": {"text": ["y" * 10_000]}}, values={"note": "z" * 10_000})
    text = shown(frame)
    assert len(text) < 3000
    assert "1000 rows, 28 more columns" in text
    assert "c11" in text and "c12" not in text


def test_blocks_and_cells() -> None:
    nulls = np.ma.array([1.5, 2.5], mask=[False, True])
    text = shown(mrec.Block({"q": nulls, "v": np.zeros((2, 3)), "name": ["O", "H"]}))
    assert "float64[3]" in text and "string" in text and "\n-\n" in text and "2 rows" in text
    assert "no" not in shown(mrec.Block(nrows=7)) and "7 rows" in shown(mrec.Block(nrows=7))
    assert "24\n" in shown(mrec.Box.from_lengths(2, 3, 4))
    assert "undefined" in shown(mrec.Box.undefined())
    assert "origin" in shown(mrec.Box.from_lengths(2, 3, 4, origin=[1, 0, 0]))


def test_a_closed_record_and_a_damaged_one(path: Path) -> None:
    record = mrec.open(path)
    (path / "trajectory/zarr.json").write_text("{}")
    text = shown(record)
    assert "trajectory: " in text
    record.close()
    assert record._repr_html_() is None
    assert "closed" in repr(record)

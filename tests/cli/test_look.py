# SPDX-License-Identifier: BSD-3-Clause
"""`mrec info` and `mrec ls`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mrec as library
from mrec.cli.ls import codec_names
from mrec.cli.progress import progress
from mrec.cli.sizes import disk_usage, human
from tests.cli.command import ROOT, ZarrRecord, mrec

pytestmark = pytest.mark.filterwarnings("ignore")


def make(path: Path, frames: int = 3) -> Path:
    schema = (
        library.Schema()
        .block("atoms", rows=4)
        .column("x", "f64", precision=1e-3)
        .column("name", "string")
        .value("pe", "f64")
        .value("stress", "f64x9", fill=[0.0] * 9)
    )
    with library.TrajectoryWriter(path, schema, units={"length": "nm"}, meta={"title": "Wasser: 水"}) as writer:
        for i in range(frames):
            atoms = {"x": np.arange(4.0) + i, "name": ["O", "H", "H", "M"]}
            writer.append(10 * i, time=0.5 * i, atoms=atoms, box=[3, 4, 5, 90, 90, 60], pe=-1.5)
    with library.open(path) as record:
        record.system = library.Frame({"atoms": {"mass": [16.0, 1.0, 1.0, 0.0]}})
    return path


def test_info(tmp_path: Path) -> None:
    path = make(tmp_path / "run.mrec")
    found = json.loads(mrec("info", path, "--json").stdout)
    assert (found["bytes"], found["files"]) == disk_usage(str(path))
    assert " in 1 file\n" in mrec("info", library.pack(path)).stdout
    assert found["meta"] == {"title": "Wasser: 水", "units": {"length": "nm"}}
    assert found["system"]["blocks"] == {"atoms": {"rows": 4, "columns": {"mass": "f64"}}}
    trajectory = found["trajectory"]
    assert (trajectory["frames"], trajectory["steps"], trajectory["times"]) == (3, [0, 20], [0.0, 1.0])
    assert trajectory["rows"] == {"atoms": 4}
    assert trajectory["schema"] == ZarrRecord(path).attributes["sequence_schema"]
    assert np.allclose(trajectory["cell"]["lengths"] + trajectory["cell"]["angles"], [3, 4, 5, 90, 90, 60])
    text = mrec("info", "run.mrec", cwd=tmp_path).stdout
    assert text.startswith("run.mrec: ")
    for part in (
        "trajectory: 3 frames, steps 0 to 20, times 0 to 1\n",
        "'atoms' (4 rows): x f64 precision=0.001, name string\n",
        "per step: pe f64, stress f64x9 fill=",
        "cell at the end: 3 4 5, angles 90 90 60\n",
        "system/atoms: 4 rows: mass f64\n",
        'title: "Wasser: 水"\n',
    ):
        assert part in text


def test_an_empty_trajectory(tmp_path: Path) -> None:
    path = make(tmp_path / "run.mrec", frames=0)
    assert json.loads(mrec("info", path, "--json").stdout)["trajectory"]["frames"] == 0
    assert "0 frames" in mrec("info", path).stdout
    assert "trajectory/" in mrec("ls", path).stdout


def test_a_live_record(tmp_path: Path) -> None:
    schema = library.Schema().block("atoms", rows=1).column("x", "f64")
    with library.TrajectoryWriter(tmp_path / "run.mrec", schema) as writer:
        for i in range(5):
            writer.append(i, atoms={"x": [float(i)]})
        writer.flush()
        assert json.loads(mrec("info", tmp_path / "run.mrec", "--json").stdout)["trajectory"]["frames"] == 5
        mrec("ls", tmp_path / "run.mrec")


def test_a_cell_without_volume(tmp_path: Path) -> None:
    """Its angles are no numbers, and JSON stays JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    with library.TrajectoryWriter(tmp_path / "run.mrec", library.Schema()) as writer:
        writer.append(0, box=library.Box.from_rows(np.diag([1.0, 2.0, 0.0])))
    found = json.loads(mrec("info", tmp_path / "run.mrec", "--json").stdout, parse_constant=refuse)
    assert found["trajectory"]["cell"]["angles"] == ["NaN", "NaN", 90.0]
    assert "angles nan nan 90" in mrec("info", tmp_path / "run.mrec").stdout


def test_places_to_print_to(tmp_path: Path) -> None:
    """One that has not all letters, one that is full, and none."""
    path = make(tmp_path / "Wasser 水.mrec")
    ascii = mrec("info", path, env={"PYTHONIOENCODING": "ascii"}).stdout
    assert ascii.isascii()
    assert "Wasser \\u6c34.mrec: " in ascii
    json.loads(mrec("head", path, "--json", env={"PYTHONIOENCODING": "ascii"}).stdout)
    for redirected, code in ((">&-", 0), ("> /dev/full", 1)):
        shell = ["sh", "-c", f'"$0" -m mrec.cli info "$1" {redirected}', sys.executable, str(path)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(shell, capture_output=True, text=True, timeout=300, env=environment, check=False)
        assert done.returncode == code
        assert done.stderr == ("mrec: error: No space left on device\n" if code else "")


def test_ls(tmp_path: Path) -> None:
    path = make(tmp_path / "run.mrec")
    nodes = {node["path"]: node for node in json.loads(mrec("ls", path, "--json").stdout)}
    root = ZarrRecord(path).root
    members = dict(root.members(max_depth=None))
    assert nodes.keys() == {"", *members}
    for name, member in members.items():
        node = nodes[name]
        assert node["bytes"] == disk_usage(str(path / name))[0]
        if node["kind"] == "array":
            assert node["shape"] == list(member.shape)
            assert node["type"] == member.metadata.data_type.to_json(zarr_format=3)
            assert node["chunks"] == list(member.chunks)
            assert node["shards"] == (list(member.shards) if member.shards else None)
    assert nodes["trajectory/atoms/x"]["codecs"] == "shuffle+zstd:3"
    assert nodes["trajectory/atoms/name"]["codecs"] == "gzip:1"
    lines = mrec("ls", path).stdout.splitlines()
    assert len(lines) == len(nodes)
    assert len(set(map(len, lines))) == 1
    row = next(line.split() for line in lines if line.lstrip().startswith("x "))
    assert row[:4] == ["x", "float64", "12", "shuffle+zstd:3"]
    assert [node["path"] for node in json.loads(mrec("ls", path / "system/atoms", "--json").stdout)] == ["", "mass"]


@pytest.mark.parametrize("command", ["info", "ls"])
def test_what_is_no_record(tmp_path: Path, command: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.mrec").write_text("text")
    for name in ("folder", "file.mrec", "nothing"):
        assert name in mrec(command, tmp_path / name, code=1).stderr


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    path = make(tmp_path / "run.mrec")
    ends, writes = os.pipe()
    os.close(ends)
    call = [sys.executable, "-m", "mrec.cli", "ls", str(path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(call, stdout=writes, stderr=subprocess.PIPE, env=environment, text=True, check=False)
    os.close(writes)
    assert (done.returncode, done.stderr) == (0, "")


def test_codec_names() -> None:
    assert codec_names([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]) == "none"
    gzip = {"name": "gzip", "configuration": {"level": 5}}
    assert codec_names([{"name": "transpose", "configuration": {"order": [1, 0]}}, "bytes", gzip]) == "transpose+gzip:5"


def test_sizes() -> None:
    assert [human(n) for n in (0, 999, 1000, 12345, 999_700, 5e9, 2e13)] == [
        "0 B", "999 B", "1 kB", "12.3 kB", "1 MB", "5 GB", "20 TB"
    ]  # fmt: skip


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress(range(3), 3, "frames")) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(progress(range(3), 3, "frames")) == [0, 1, 2]
    assert capsys.readouterr().err == ""  # less than a second
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert list(progress(range(3), 3, "frames")) == [0, 1, 2]

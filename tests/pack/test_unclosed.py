# SPDX-License-Identifier: BSD-3-Clause
"""A record whose writer was not closed is packed as it reads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec._core import crc32c
from mrec.errors import CorruptData
from tests.crash.scenario import OPTIONS, assert_frame, frame, schema
from tests.pack.archives import assert_same, files

FRAMES = 20


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Copies of a live record, taken after each publishing: what a kill leaves there."""
    root = tmp_path_factory.mktemp("crashed")
    found = []
    with mrec.TrajectoryWriter(root / "live.mrec", schema(), **OPTIONS) as writer:
        for i in range(FRAMES):
            writer.append(frame(i))
            writer.flush(durable=i % 3 == 2)
            found.append(shutil.copytree(root / "live.mrec", root / f"{i}.mrec"))
        yield found


def other_boot(path: Path) -> None:
    """As after a power loss: the machine has started again since."""
    durable = path / "trajectory" / ".durable"
    durable.write_text(json.dumps({**json.loads(durable.read_text()), "boot_id": "another"}))


@pytest.mark.parametrize("i", range(FRAMES))
@pytest.mark.parametrize("rebooted", [False, True])
def test_packed_as_it_reads(crashed, i, rebooted, tmp_path):
    path = shutil.copytree(crashed[i], tmp_path / "run.mrec")
    if rebooted:
        other_boot(path)
    before = files(path)
    packed = mrec.pack(path)
    assert files(path) == before
    assert_same(path, packed)
    made = Path(mrec.unpack(packed, tmp_path / "back.mrec"))
    n = i + 1 if not rebooted else (i + 1) // 3 * 3
    assert len(mrec.open(packed).trajectory) == n
    assert_closed_like(made, path)
    with mrec.TrajectoryWriter.open(made) as writer:
        for k in range(n, FRAMES):
            writer.append(frame(k))
    for k, found in enumerate(mrec.open(made).trajectory):
        assert_frame(found, k)


def assert_closed_like(made: Path, crashed: Path) -> None:
    """The same files as a closing leaves, documents with the same content, indexes whole."""
    mrec.TrajectoryWriter.open(crashed).close()
    there, right = files(made), files(crashed)
    assert there.keys() == right.keys()
    for key, data in right.items():
        if key.endswith("zarr.json"):
            assert json.loads(there[key]) == json.loads(data), key
        elif "/c/" in key:
            size = 16 * 2 + 4  # two chunks a shard, but for arrays of one row a step
            if "/step" in key or "/meta/" in key or "/time" in key or "offset" in key or "/box/" in key:
                size = 16 * 256 + 4
            assert crc32c(there[key][: size - 4]).to_bytes(4, "little") == there[key][size - 4 : size], key
            absent = [index(file, size).min(axis=1) == 2**64 - 1 for file in (there[key], data)]
            assert absent[0].tolist() == absent[1].tolist(), key
    marker = json.loads(there["trajectory/zarr.json"])["attributes"]
    assert "mrec_nstep" not in marker and "trajectory/.durable" not in there


def index(file: bytes, size: int) -> np.ndarray:
    return np.frombuffer(file[: size - 4], "<u8").reshape(-1, 2)


def torn(path: Path, entry: int | None = None) -> None:
    raw = bytearray(path.read_bytes())
    raw[32] ^= 1
    if entry is not None:
        raw[16 * entry] ^= 1
    path.write_bytes(raw)


def test_a_torn_index_is_made_whole(crashed, tmp_path):
    path = shutil.copytree(crashed[9], tmp_path / "run.mrec")
    shard = "trajectory/atoms/x/c/0"
    whole = files(path)[shard]
    torn(path / shard)
    packed = mrec.pack(path)
    assert_same(path, packed)
    assert files(Path(mrec.unpack(packed, tmp_path / "back.mrec")))[shard][:36] == whole[:36]
    torn(path / shard, entry=1)
    with pytest.raises(CorruptData, match="chunk 1 does not verify"):
        mrec.pack(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["back.mrec", "run.mrec", "run.mrec.zip"]


def test_what_others_put_there_is_kept(crashed, tmp_path):
    path = shutil.copytree(crashed[12], tmp_path / "run.mrec")
    for key in ("notes/zarr.json", "notes/a", "trajectory/extra/zarr.json", "trajectory/extra/c/0", "readme"):
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(b"{}")
    (path / "trajectory/.zarr.json.tmp").write_bytes(b"half")
    made = files(Path(mrec.unpack(mrec.pack(path), tmp_path / "back.mrec")))
    assert {key for key, data in made.items() if data == b"{}"} == {
        *("notes/zarr.json", "notes/a", "trajectory/extra/zarr.json", "trajectory/extra/c/0", "readme")
    }


def test_dead_arrays_are_left_out(crashed, tmp_path):
    """What a transition had begun when the writer died."""
    path = shutil.copytree(crashed[3], tmp_path / "run.mrec")
    assert not (path / "trajectory/step").exists()
    for key in ("step/c/0", "box/step_index/c/0", "box/vectors/c/0/0/0", "atoms/offset/c/0"):
        (path / "trajectory" / key).parent.mkdir(parents=True)
        (path / "trajectory" / key).write_bytes(b"dead")
    made = files(Path(mrec.unpack(mrec.pack(path), tmp_path / "back.mrec")))
    assert b"dead" not in made.values()


def test_an_empty_record(tmp_path):
    with mrec.TrajectoryWriter(tmp_path / "live.mrec", schema()):
        path = shutil.copytree(tmp_path / "live.mrec", tmp_path / "run.mrec")
    packed = mrec.pack(path)
    assert len(mrec.open(packed).trajectory) == 0
    assert "trajectory/.durable" not in files(Path(mrec.unpack(packed, tmp_path / "back.mrec")))

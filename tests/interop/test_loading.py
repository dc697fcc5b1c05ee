# SPDX-License-Identifier: BSD-3-Clause
"""Data sets of frames give the frames, in any order, in processes that were forked or spawned, and as streams."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.errors import FrameIndexError, InvalidValue, RecordNotFound, UnknownName
from mrec.interop.loading import FrameDataset, FrameStream

FIELDS = {"r": ("atoms", ["x", "y", "z"]), "kind": ("atoms", "type_id"), "energy": "pe", "cell": "cell", "time": "time"}


def write(path: Path, counts: list[int], seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    schema = mrec.Schema().block("atoms", rows=max(counts))
    for name in "xyz":
        schema.column(name, "f64", precision=1e-3)
    schema.column("type_id", "u64").value("pe", "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for i, n in enumerate(counts):
            atoms = {"xyz": rng.uniform(0, 9, (n, 3)), "type_id": rng.integers(0, 4, n, np.uint64)}
            writer.append(10 * i, time=0.5 * i, box=[9.0 + i, 9.0, 9.0], atoms=atoms, pe=100.0 * seed + i)
    return path


def wanted(paths: list[Path]) -> list[Any]:
    return [frame for path in paths for frame in mrec.open(path).trajectory]


def assert_same(item: Any, frame: Any) -> None:
    atoms = frame["atoms"]
    np.testing.assert_array_equal(item["r"], np.stack([atoms[name] for name in "xyz"], axis=1))
    np.testing.assert_array_equal(item["kind"], atoms["type_id"])
    np.testing.assert_array_equal(item["cell"], frame.box.rows)
    assert (item["energy"], item["time"]) == (frame.values["pe"], frame.time)


@pytest.fixture(params=["same", "ragged"])
def paths(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    counts = [20] * 60 if request.param == "same" else [5 + i % 7 for i in range(60)]
    return [write(tmp_path / "a.mrec", counts, 1), write(tmp_path / "b.mrec", counts[:25], 2)]


def test_items_are_the_frames(paths: list[Path]) -> None:
    data, frames = FrameDataset(paths, FIELDS), wanted(paths)
    assert len(data) == 85
    order = np.random.default_rng(0).permutation(85)
    for i in order[:20]:
        assert_same(data[i], frames[i])
    for item, i in zip(data.items(order), order, strict=True):
        assert_same(item, frames[i])
    for item, frame in zip(data, frames, strict=True):
        assert_same(item, frame)
    assert_same(data[-1], frames[-1])
    with pytest.raises(FrameIndexError):
        data[85]


def test_frames_types_and_transform(paths: list[Path]) -> None:
    data = FrameDataset(paths, FIELDS, frames=slice(5, None, 10), dtype="float32", transform=lambda item: item["r"])
    frames = wanted(paths)
    assert len(data) == 6 + 2
    for item, i in zip(data, [5, 15, 25, 35, 45, 55, 65, 75], strict=True):
        assert item.dtype == np.float32
        np.testing.assert_array_equal(item[:, 0], frames[i]["atoms"]["x"].astype(np.float32))


def test_packed_records_and_many_of_them(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{i}.mrec", [3, 3], i) for i in range(20)]
    packed = [mrec.pack(path) for path in paths]
    data = FrameDataset(packed, FIELDS)
    for i in (39, 0, 17, 38):
        assert data[i]["energy"] == 100.0 * (i // 2) + i % 2


def read(data: FrameDataset, indices: list[int]) -> list[float]:
    return [float(item["r"].sum()) for item in data.items(indices)]


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers(paths: list[Path], method: str) -> None:
    data = FrameDataset(paths, FIELDS)
    order = np.random.default_rng(1).permutation(85).tolist()
    before = read(data, order)  # the records are open, their caches full, when the workers start
    batches = [order[i : i + 8] for i in range(0, 85, 8)]
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        found = list(pool.map(read, [data] * len(batches), batches))
        again = read(data, order)  # while the children have them too
    assert sum(found, []) == before == again


def test_a_stream_gives_each_frame_once(paths: list[Path]) -> None:
    data = FrameDataset(paths, {"energy": "pe"})
    for shuffle in (False, True):
        stream = FrameStream(data, shuffle=shuffle, block=8, mix=3)
        energies = [item["energy"] for item in stream]
        assert sorted(energies) == [frame.values["pe"] for frame in wanted(paths)]
        assert (energies == sorted(energies)) is not shuffle
    assert [item["energy"] for item in stream] == energies
    stream.set_epoch(1)
    assert [item["energy"] for item in pickle.loads(pickle.dumps(stream))] != energies


def test_workers_and_ranks_share_a_stream(paths: list[Path]) -> None:
    data = FrameDataset(paths, {"energy": "pe"})
    found = []
    for rank in range(3):
        stream = FrameStream(data, shuffle=True, block=4, rank=rank, ranks=3)
        mine = [item["energy"] for worker in range(2) for item in stream.part(worker, 2)]
        assert len(mine) == len(stream)
        found += mine
    assert sorted(found) == [frame.values["pe"] for frame in wanted(paths)]


def test_nulls_and_slices(tmp_path: Path) -> None:
    schema = mrec.Schema().block("atoms", rows=2).column("q", "f64", nullable=True)
    with mrec.TrajectoryWriter(tmp_path / "x.mrec", schema) as writer:
        for i in range(3):
            writer.append(i, atoms={"q": np.ma.array([1.0 * i, 5.0], mask=[False, i == 1])})
    data = FrameDataset(tmp_path / "x.mrec", {"q": ("atoms", "q")}, dtype="float32")
    found = [item["q"] for item in data[::-1]]
    assert all(type(values) is np.ndarray and values.dtype == np.float32 for values in found)
    np.testing.assert_array_equal(found, np.float32([[2, 5], [1, np.nan], [0, 5]]))


def test_what_is_refused(paths: list[Path]) -> None:
    with pytest.raises(UnknownName, match="field 'q'.*'charge'"):
        FrameDataset(paths, {"q": ("atoms", "charge")})
    with pytest.raises(UnknownName, match="per-step value 'temp'"):
        FrameDataset(paths, {"t": "temp"})
    with pytest.raises(InvalidValue, match="fields is a mapping, .*, not list"):
        FrameDataset(paths, ["pe"])  # type: ignore[arg-type]
    with pytest.raises(RecordNotFound, match="there is no record"):
        FrameDataset([*paths, "nothing.mrec"], FIELDS)
    data = FrameDataset(paths, {"r": ("atoms", "xyz"), "energy": "pe"})
    assert repr(data) == f"<FrameDataset {len(data)} items of {len(paths)} records: r, energy>"
    assert np.array_equal(data[7]["r"], FrameDataset(paths, FIELDS)[7]["r"])
    with pytest.raises(InvalidValue, match="rank"):
        FrameStream(FrameDataset(paths, FIELDS), rank=2, ranks=2)
    with pytest.raises(InvalidValue, match="field 'r' is"):
        FrameDataset(paths, {"r": ("atoms",)})  # type: ignore[dict-item]
    with pytest.raises(InvalidValue, match="'int32'.*floating point"):
        FrameDataset(paths, FIELDS, dtype="int32")
    with pytest.raises(TypeError, match="integer"):
        FrameDataset(paths, FIELDS)[1.5]


def test_no_import_of_torch() -> None:
    code = "import sys, mrec.interop.loading; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_loader_of_pytorch(paths: list[Path], workers: int, method: str) -> None:
    loading = pytest.importorskip("torch.utils.data")
    data = FrameDataset(paths, {"energy": "pe"})
    options = {"batch_size": 8, "num_workers": workers, "multiprocessing_context": method if workers else None}
    for source in (data, FrameStream(data, shuffle=True, block=4)):
        found = [value for batch in loading.DataLoader(source, **options) for value in batch["energy"].tolist()]
        assert sorted(found) == [frame.values["pe"] for frame in wanted(paths)]

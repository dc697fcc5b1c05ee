# SPDX-License-Identifier: BSD-3-Clause
"""Streams and trajectories through xarray, dask, and processes of dask.distributed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec import stream
from mrec.stream import Owner
from tests.stream.crew import TWO_BY_TWO, Crew, schema, value

xr = pytest.importorskip("xarray")
from mrec.interop.xarray import MrecBackend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Object at", "ignore:Consolidated metadata", "ignore:.*consolidated")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    s = schema(attrs={"title": "t"})
    crew = Crew(tmp_path / "s", s, TWO_BY_TWO)
    crew.write(*range(5))
    crew.write_static("mask")
    crew.write_static("weight")
    crew.commit()
    crew.write(5, 6)
    crew.flush()  # not committed
    return tmp_path / "s"


def whole(name: str) -> np.ndarray:
    return np.stack([value(schema(), name, i) for i in range(5)])


def check(ds: Any) -> None:
    assert dict(ds.sizes) == {"time": 5, "lat": 13, "lon": 9, "lev": 2} and ds.attrs == {"title": "t"}
    for name in schema().variables:
        assert ds[name].dims == schema().variables[name].dims
        assert ds[name].values.tobytes() == whole(name).tobytes()
    assert ds.t2m.attrs["units"] == "K" and ds.lat.attrs["units"] == "degrees_north"
    assert (ds.mask.values == value(schema(), "mask", 0)).all()
    assert ds.time.values.tolist() == [0, 10, 20, 30, 40]


def test_a_stream_is_a_dataset_of_its_committed_records(path: Path) -> None:
    ds = xr.open_dataset(path, engine=MrecBackend, decode_times=False)
    check(ds)
    assert ds.ps.isel(time=3, lat=slice(2, 11, 3), lon=-1).values.tobytes() == whole("ps")[3][:, 2:11:3, -1].tobytes()
    assert (ds.t2m.isel(time=[4, 0], lat=slice(None, None, -2)).values == whole("t2m")[[4, 0]][:, ::-2]).all()
    assert ds.t2m.isel(time=slice(0, 0)).values.shape == (0, 13, 9)
    assert (ds.t2m.sel(time=20, lat=0, method="nearest").values == whole("t2m")[2, 6]).all()


def test_plain_zarr_opens_it_too(path: Path) -> None:
    ds = xr.open_zarr(path, consolidated=False, decode_times=False, chunks=None)
    for name in schema().variables:
        assert ds[name].values[:5].tobytes() == whole(name).tobytes()


def test_dask_takes_a_shard_a_task(path: Path) -> None:
    ds = xr.open_dataset(path, engine=MrecBackend, chunks={}, decode_times=False)
    assert ds.t2m.chunks == ((3, 2), (4, 4, 4, 1), (3, 3, 3))
    check(ds.compute())
    assert float(ds.ps.mean()) == pytest.approx(whole("ps").mean())
    check(pickle.loads(pickle.dumps(ds)).compute())


def test_an_indexed_stream_shows_what_is_committed(tmp_path: Path) -> None:
    s = schema(mode=stream.indexed(8))
    crew = Crew(tmp_path / "s", s, TWO_BY_TWO)
    crew.write(6, 1, 4)
    crew.commit()
    ds = xr.open_dataset(tmp_path / "s", engine=MrecBackend, chunks={}, decode_times=False)
    assert ds.time.values.tolist() == [10, 40, 60]
    assert (ds.t2m.values == np.stack([value(s, "t2m", i) for i in (1, 4, 6)])).all()


def test_workers_of_dask_distributed_read_it(path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        check(xr.open_dataset(path, engine=MrecBackend, chunks={}, decode_times=False).compute())


def test_the_entry_point_is_declared() -> None:
    declared = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert 'mrec = "mrec.interop.xarray:MrecBackend"' in declared
    assert MrecBackend().guess_can_open("water.mrec") and not MrecBackend().guess_can_open("other.nc")


def test_a_trajectory_is_a_dataset(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(6, 10))
    declared = mrec.Schema().value("pe", "f64")
    declared.block("atoms", rows=10).column("x", "f64").column("id", "u64")
    declared.block("bonds").column("atomi", "u64")
    with mrec.TrajectoryWriter(tmp_path / "w.mrec", declared) as writer:
        for i in range(6):
            atoms = {"x": x[i], "id": np.arange(10, dtype="u8") + i}
            bonds = {"atomi": np.zeros(i + 1, "u8")}  # not regular
            writer.append(i * 5, time=i * 0.5, pe=float(i), atoms=atoms, bonds=bonds)
    for chunks in (None, {}):
        ds = xr.open_dataset(tmp_path / "w.mrec", engine=MrecBackend, chunks=chunks, decode_times=False)
        assert set(ds.data_vars) == {"pe", "atoms_x", "atoms_id"}
        assert ds.step.values.tolist() == [0, 5, 10, 15, 20, 25] and ds.pe.values.tolist() == [0, 1, 2, 3, 4, 5]
        assert ds.atoms_x.dims == ("frame", "atoms") and ds.atoms_x.values.tobytes() == x.tobytes()
        assert (ds.atoms_x.isel(frame=slice(1, 5, 2), atoms=[7, 2]).values == x[1:5:2][:, [7, 2]]).all()


def test_an_empty_stream(tmp_path: Path) -> None:
    stream.create(tmp_path / "s", schema(), Owner(1))
    ds = xr.open_dataset(tmp_path / "s", engine=MrecBackend, decode_times=False)
    assert ds.sizes["time"] == 0 and ds.t2m.values.shape == (0, 13, 9) and "mask" not in ds

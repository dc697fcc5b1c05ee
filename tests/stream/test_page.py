# SPDX-License-Identifier: BSD-3-Clause
"""The blocks of docs/streams.md that need a server, ranks or other packages run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec import stream
from tests.crash import scenario

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/streams.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The blocks of the page in a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


def schema() -> dict[str, Any]:
    """The names of the page's first program, whose stream is in the working directory then."""
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)
    return names


def test_every_block_is_run() -> None:
    assert [len(blocks(language)) for language in ("sh", "py")] == [1, 3]


def test_ranks(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    program = blocks("python")[0].partition("with ")[0]
    program += "def my_rows(hour, region):\n    return field[slice(*region['lat'])] + hour\n\n\n" + blocks("py")[0]
    (tmp_path / "model.py").write_text(program)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": path}
    done = subprocess.run(
        ["bash", "-ec", blocks("sh")[0]], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = stream.Stream(tmp_path / "run.stream")
    assert found.manifest.n_records == 24
    assert np.array_equal(found.read_record("t2m", 23), np.arange(24, dtype="f4").reshape(4, 6) + 23)


def test_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    moto = pytest.importorskip("moto.server")
    monkeypatch.chdir(tmp_path)
    names = schema()
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{url}/bucket", method="PUT")).close()
        for name, value in (("ENDPOINT", url), ("ALLOW_HTTP", "true"), ("ACCESS_KEY_ID", "a")):
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        exec(blocks("py")[1], names)
        names["writer"].write_record(0.0, {"t2m": names["field"]})
        names["writer"].flush()
        assert np.array_equal(stream.read_record(names["writer"].place, "t2m", 0), names["field"])
        names["writer"].close()
    finally:
        server.stop()


@pytest.mark.filterwarnings("ignore:Object at")  # zarr names the files beside the arrays
def test_xarray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xarray = pytest.importorskip("xarray")
    from xarray.backends import plugins

    from mrec.interop.xarray import MrecBackend

    pytest.importorskip("dask")
    monkeypatch.chdir(tmp_path)
    names = schema()
    with mrec.TrajectoryWriter("water.mrec", scenario.schema(), **scenario.OPTIONS) as writer:
        for i in range(3):
            writer.append(scenario.frame(i))
    found = plugins.list_engines()
    if "mrec" not in found:  # this tree is not installed
        monkeypatch.setattr(plugins, "list_engines", lambda: {**found, "mrec": MrecBackend()})
    exec(blocks("py")[2], names)
    assert np.array_equal(names["ds"].t2m.mean("time"), names["field"] + 2)
    assert 3 in names["water"].sizes.values()
    assert np.array_equal(xarray.open_zarr("run.stream", consolidated=False).t2m[4], names["field"] + 4)

"""The example of an index for nearest neighbours, walked and read by zarr-python."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import mrec.zarr

zarr = pytest.importorskip("zarr")
FILE = Path(__file__).parents[2] / "examples" / "neighbour_index.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("neighbour_index", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dtype", ["float16", "float32", "uint8", "int8"])
def test_zarr_walks_and_reads_the_index(tmp_path, example, dtype):
    rows = (np.random.default_rng(2).normal(size=(300, 16)) * 30).astype(np.int8).astype(dtype)
    path = tmp_path / "index.zarr"
    example.CHUNK_BYTES = 1024
    example.build(path, rows)
    assert example.search(path, rows[7]) in np.flatnonzero((rows == rows[7]).all(axis=1))
    theirs = zarr.open_group(str(path), mode="r")
    names = dict(theirs.members(max_depth=None))
    assert {"info", "index_root", "index_root/embeddings", "lvl_1", "lvl_1/node_0", "lvl_1/node_3/ids"} <= set(names)
    assert dict(theirs["info"].attrs) == {"dimension": 16, "dtype": dtype, "levels": 1, "rows": 300}
    seen = np.concatenate([theirs[f"lvl_1/node_{i}/ids"][...] for i in range(4)])
    assert sorted(seen) == list(range(300))
    for name, node in names.items():
        if name.endswith("embeddings"):
            ids = theirs[name.replace("embeddings", "ids")][...]
            assert node.dtype == dtype and node[...].tobytes() == rows[ids].tobytes()
            assert node.metadata.dimension_names == ("row", "dimension")
    lines = mrec.zarr.open(path).tree().splitlines()
    assert lines[:4] == [
        "/",
        "├── index_root",
        f"│   ├── embeddings [4, 16] {dtype}",
        "│   └── ids [4] int64",
    ]

# SPDX-License-Identifier: BSD-3-Clause
"""An index for nearest-neighbour search as a Zarr hierarchy: rows of numbers in the leaves, the way to them above.

    python examples/neighbour_index.py index.zarr

Groups: `info` (what the index is), `index_root` (the centres that a search begins with), `lvl_1/node_0 ...` (the rows
near each centre). Each has `embeddings` (rows x dimension) and `ids`; chunks are whole rows of about so many bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import mrec.zarr

CHUNK_BYTES = 256 * 1024


def write_node(parent: mrec.zarr.Group, name: str, rows: np.ndarray, ids: np.ndarray) -> None:
    """One node: its rows, and the number of each."""
    per_chunk = max(1, CHUNK_BYTES // max(1, rows.itemsize * rows.shape[1]))
    node = parent.create_group(name, {"rows": len(rows)})
    node.create_array("embeddings", data=rows, chunks=(per_chunk, rows.shape[1]), dimension_names=("row", "dimension"))
    node.create_array("ids", data=ids, chunks=per_chunk)


def build(path: str | Path, rows: np.ndarray, centres: int = 4, seed: int = 0) -> None:
    """An index of one level: each row goes to its nearest centre, which is one of the rows."""
    chosen = np.sort(np.random.default_rng(seed).choice(len(rows), centres, replace=False))
    near = nearest(rows[chosen], rows)
    root = mrec.zarr.create(path)
    root.create_group("info", {"dimension": rows.shape[1], "dtype": str(rows.dtype), "levels": 1, "rows": len(rows)})
    write_node(root, "index_root", rows[chosen], chosen.astype(np.int64))
    for i in range(centres):
        ids = np.flatnonzero(near == i).astype(np.int64)
        write_node(root, f"lvl_1/node_{i}", rows[ids], ids)


def nearest(centres: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The number of the nearest centre of each row."""
    wide = centres.astype(np.float64)
    return np.array([((wide - row.astype(np.float64)) ** 2).sum(axis=1).argmin() for row in rows])


def search(path: str | Path, row: np.ndarray) -> int:
    """The number of the row of the index that is nearest to `row`, of those near the nearest centre."""
    root = mrec.zarr.open(path)
    node = int(nearest(root["index_root/embeddings"][...], row[None])[0])
    found = nearest(root[f"lvl_1/node_{node}/embeddings"][...], row[None])[0]
    return int(root[f"lvl_1/node_{node}/ids"][found])


if __name__ == "__main__":
    rows = np.random.default_rng(1).normal(size=(2000, 64)).astype(np.float16)
    build(sys.argv[1], rows)
    print(mrec.zarr.open(sys.argv[1]).tree())
    assert search(sys.argv[1], rows[42]) == 42

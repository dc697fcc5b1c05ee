# SPDX-License-Identifier: BSD-3-Clause
"""All arrays of a record, by path, as the general Zarr readers see them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import tensorstore
import zarr

READABLE_BY_TENSORSTORE = {"bytes", "crc32c", "gzip", "sharding_indexed", "transpose", "zstd"}


def read_zarr(trajectory: Path, pipeline: str = "BatchedCodecPipeline") -> dict[str, np.ndarray]:
    paths = {
        "BatchedCodecPipeline": "zarr.core.codec_pipeline.BatchedCodecPipeline",
        "ZarrsCodecPipeline": "zarrs.ZarrsCodecPipeline",
    }
    found = {}
    with zarr.config.set({"codec_pipeline.path": paths[pipeline]}):
        for name, member in zarr.open_group(trajectory, mode="r").members(max_depth=None):
            if isinstance(member, zarr.Array):
                assert type(member.async_array.codec_pipeline).__name__ == pipeline
                found[name] = np.asarray(member[...])
    return found


def read_zarrs(trajectory: Path) -> dict[str, np.ndarray]:
    return read_zarr(trajectory, "ZarrsCodecPipeline")


def read_tensorstore(trajectory: Path) -> dict[str, np.ndarray]:
    """The arrays whose data type and codecs tensorstore knows."""
    found = {}
    for path in trajectory.rglob("zarr.json"):
        document = json.loads(path.read_text())
        if document["node_type"] == "array" and known_to_tensorstore(document):
            spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path.parent)}}
            found[str(path.parent.relative_to(trajectory))] = tensorstore.open(spec).result().read().result()
    return found


def known_to_tensorstore(document: dict) -> bool:
    codecs = list(document["codecs"])
    for codec in codecs:
        codecs += codec.get("configuration", {}).get("codecs", [])
    return document["data_type"] != "string" and all(c["name"] in READABLE_BY_TENSORSTORE for c in codecs)

# SPDX-License-Identifier: BSD-3-Clause
"""The examples in docstrings run in a folder of their own, beside the record `water.mrec`: 10 frames of 3 atoms."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _pytest.doctest import DoctestItem

import mrec

# What a shell runs in the background has SIGINT ignored, and every process that a test starts would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _example_folder(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    if isinstance(request.node, DoctestItem):
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
        write_water(Path("water.mrec"))
        write_set(Path("set"))
        doctest_namespace |= {"mrec": mrec, "np": np}


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what a call has done when it returns: with a thread behind the writer it may be under way."""
    monkeypatch.setenv("MREC_THREADS", "1")


def write_water(path: Path) -> None:
    schema = mrec.Schema().block("atoms", rows=3)
    for name in "xyz":
        schema.column(name, "f64")
    with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
        for i in range(10):
            writer.append(100 * i, time=0.2 * i, atoms={name: np.arange(3.0) + i for name in "xyz"})


def write_set(path: Path) -> None:
    with mrec.CollectionWriter(path) as writer:
        for month, (name, values) in enumerate({"jan": [1.5, 2.5, 4.0], "feb": [8.0]}.items()):
            with writer.add_dataset(name) as dataset:
                dataset.define_array("temperature", "float32", dims=("time",), shape=(len(values),))
                dataset.write_array("temperature", (0,), values)
                dataset.set_attribute("month", month + 1)

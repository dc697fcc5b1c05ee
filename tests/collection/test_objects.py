# SPDX-License-Identifier: BSD-3-Clause
"""Collections that are not files here."""

from __future__ import annotations

from pathlib import Path

import pytest

import mrec
from mrec.collection.objects import upload
from mrec.errors import RecordExists, RecordNotFound
from tests.collection import golden

fsspec = pytest.importorskip("fsspec")


def test_uploaded_and_read_by_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrec.collection.objects.PART", 8 << 10)
    source, url = golden.FOLDER / "all_types_zstd", "memory://bucket/set"
    with pytest.raises(RecordNotFound):
        mrec.open_collection(url)
    upload(source, url)
    here, there = mrec.open_collection(source), mrec.open_collection(url)
    assert there.names == here.names and there.attribute("i") == here.attribute("i")
    assert there["first"]["grid"][1:3, 2].tolist() == here["first"]["grid"][1:3, 2].tolist()
    with pytest.raises(RecordExists):
        upload(source, url)
    there.delete("first")
    assert mrec.open_collection(url).names == here.names[1:]
    upload(source, url, overwrite=True)
    assert mrec.open_collection(url).names == here.names  # the old mask went

"""A snapshot that another program wrote."""

from __future__ import annotations

import pytest

import mrec
from mrec.errors import UnknownName
from tests import golden


@pytest.fixture
def record():
    return mrec.open(golden.ROOT / "snapshot.mrec")


@pytest.mark.parametrize("section", ["frame", "system"])
def test_values(record, section):
    entry, found = golden.load("snapshot")[section], getattr(record, section)
    assert found.blocks.keys() == entry["blocks"].keys()
    for block, columns in entry["blocks"].items():
        assert set(found[block].columns) == columns.keys()
        for name, values in columns.items():
            golden.check_column(found[block][name], values)
    golden.check_box(found.box, entry.get("box"))
    document = {key: golden.value(*tagged) for key, tagged in entry.get("meta", {}).items()}
    assert found.meta == document


def test_document_and_sections(record):
    assert record.meta == golden.load("snapshot")["meta"]
    assert record.sections == ("frame", "meta", "system")
    assert record.frame["atoms"].precision == {"x": 0.001, "y": 0.001, "z": 0.001}


def test_no_trajectory(record):
    with pytest.raises(UnknownName, match="no trajectory"):
        record.trajectory  # noqa: B018

# SPDX-License-Identifier: BSD-3-Clause
"""What atlas-python wrote, read with exactly its values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

import mrec
from mrec._core import SegmentBuilder, SegmentFooter
from mrec.collection import footer
from mrec.collection.merge import entry_of
from tests.collection import golden


def same(found: Any, wanted: Any) -> bool:
    """Equal, NaN too, and of one type."""
    return type(found) is type(wanted) and (found == wanted or (found != found and wanted != wanted))


@pytest.mark.parametrize("name", golden.NAMES)
def test_every_value_and_attribute(name: str) -> None:
    found, wanted = mrec.open_collection(golden.FOLDER / name), golden.expected(name)
    assert found.names == wanted["order"]
    for dataset, entry in wanted["datasets"].items():
        assert list(found[dataset]) == list(entry["arrays"])
        attributes = {key: golden.attribute(value) for key, value in entry["attributes"].items()}
        assert found[dataset].attributes == attributes
        assert [type(v) for v in found[dataset].attributes.values()] == [type(v) for v in attributes.values()]
        for array, given in entry["arrays"].items():
            check_array(found[dataset][array], given)
            assert found[dataset][array].attributes == entry["array_attributes"].get(array, {})


def check_array(found: Any, given: Any) -> None:
    wanted = golden.values(given)
    assert found.type == given["dtype"] and list(found.shape) == given["shape"] and list(found.dims) == given["dims"]
    chunk = given["chunk_shape"] or [max(n, 1) for n in given["shape"]]
    assert list(found.chunk_shape) == chunk
    read = found[...]
    assert golden.equal(read, wanted)
    fill = given["fill"]
    assert same(found.fill_value, fill if given["dtype"] == "string" or fill is None else golden.number(fill))
    stats = given["stats"]
    assert same(found.stats.min, golden.bound(given["dtype"], stats["min"]))
    assert same(found.stats.max, golden.bound(given["dtype"], stats["max"]))
    assert (found.stats.null_count, found.stats.row_count) == (stats["null_count"], stats["row_count"])


@pytest.mark.parametrize("name", golden.NAMES)
def test_one_variable_over_all(name: str) -> None:
    found, wanted = mrec.open_collection(golden.FOLDER / name), golden.expected(name)
    for variable in found.variables:
        arrays = {d: e["arrays"][variable] for d, e in wanted["datasets"].items() if variable in e["arrays"]}
        over = found.variable(variable)
        assert over.names == list(arrays)
        values, offsets = over.read()
        for i, given in enumerate(arrays.values()):
            assert golden.equal(values[offsets[i] : offsets[i + 1]], golden.values(given).ravel())
            assert over[i].shape == tuple(given["shape"]) == over.shapes[i]


def test_the_mask_is_respected() -> None:
    found = mrec.open_collection(golden.FOLDER / "one_deleted")
    assert found.names == golden.expected("one_deleted")["order"]
    gone = "second-name-longer-than-sixteen-bytes"
    assert gone not in found and len(found) == 2
    with pytest.raises(KeyError, match="deleted"):
        found[gone]
    assert found["dritte-ü"].ordinal == 2
    assert found.variable("only_here").names == [] and found.stats("only_here") is None
    assert found.variable("temperature").read()[1].tolist() == [0, 200, 800]
    assert gone not in found.attribute("i")


@pytest.mark.parametrize("name", golden.NAMES)
def test_footers_are_built_to_the_same_bytes(name: str) -> None:
    data = (golden.FOLDER / name / "data.atlas").read_bytes()
    n = footer.tail_of(data, len(data), name)
    found, text = footer.unpack_footer(data[-16 - n : -16], len(data) - 16 - n, name)
    assert b"".join(footer.packed_footer(found)) == text
    assert msgpack.unpackb(text)[3] == found.strings  # another parser
    for offset, size in found.segments.values():
        segment = data[offset : offset + size]
        length = int.from_bytes(segment[-12:-4], "little")
        stored = segment[-12 - length : -12]
        assert rebuilt(SegmentFooter(stored, size - 12 - length)) == stored


def rebuilt(source: SegmentFooter) -> bytes:
    builder = SegmentBuilder()
    for i in range(source.nblocks):
        builder.add_block(*source.block(i))
    for i, name in enumerate(source.names()):
        form, chunks, pairs, extent = entry_of(source, i, name)
        builder.add_array(i, name.encode(), form, chunks, pairs, extent)
    return b"".join(builder.write())


def test_slices_read_what_numpy_would() -> None:
    grid = mrec.open_collection(golden.FOLDER / "all_types_zstd")["first"]["grid"]
    whole = np.asarray(grid)
    for index in (
        0,
        -1,
        (1, slice(2, 6), 2),
        (..., 1),
        (slice(None, None, -2), slice(6, 0, -3)),
        slice(3, 3),
        (4, 6, 2),
    ):
        assert np.array_equal(grid[index], whole[index]), index
    with pytest.raises(IndexError):
        grid[5]


def test_a_copy_in_a_folder_of_its_own_needs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "data.atlas").write_bytes((golden.FOLDER / "all_types_none" / "data.atlas").read_bytes())
    assert mrec.open_collection(tmp_path)["first"]["scalar"][...] == 5

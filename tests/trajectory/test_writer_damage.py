# SPDX-License-Identifier: BSD-3-Clause
"""A record that cannot be appended to is refused when it is opened, by name, and left as it is."""

from __future__ import annotations

import json
import shutil

import pytest

import mrec
from mrec.errors import CorruptData, MrecError, SchemaError, UnsupportedCodec, UnsupportedVersion
from tests.trajectory.growing import KINDS, OPTIONS, append, schema
from tests.trajectory.ondisk import arrays, frames, tree, write


def edit(path, node, change):
    file = path / "trajectory" / node / "zarr.json"
    found = json.loads(file.read_text())
    change(found)
    file.write_text(json.dumps(found))


def shard(document):
    return document["codecs"][0]["configuration"]


def set_codec(number, codec):
    return lambda document: shard(document)["codecs"].__setitem__(number, codec)


def flip(path, name, offset):
    data = bytearray(path.joinpath(name).read_bytes())
    data[offset] ^= 1
    path.joinpath(name).write_bytes(data)


def flip_tail(path, node, number):
    """One bit of the chunk `number` in the last shard of an array: the open one, which a writer has to read."""
    file = sorted((path / "trajectory" / node / "c").rglob("[0-9]*"), key=lambda f: (f.is_file(), len(str(f)), f))[-1]
    data = file.read_bytes()
    offset = int.from_bytes(data[16 * number : 16 * number + 8], "little")
    assert offset < len(data)
    flip(path, file.relative_to(path), offset + 2)


def shorten(rows):
    return lambda document: document["shape"].__setitem__(0, rows)


def declare(change):
    return lambda document: change(document["attributes"]["sequence_schema"])


# name: class, what the message says, what is done to a record of 9 ragged frames
BAD = {
    "an unknown codec": (
        UnsupportedCodec,
        r"b/q.*blosc.*zarr-python",
        lambda p: edit(p, "b/q", set_codec(1, {"name": "blosc", "configuration": {}})),
    ),
    "a shard laid out otherwise": (
        UnsupportedCodec,
        "b/v.*index at their start",
        lambda p: edit(p, "b/v", lambda d: shard(d).__setitem__("index_location", "end")),
    ),
    "no shard": (
        UnsupportedCodec,
        "meta/pe.*laid out otherwise",
        lambda p: edit(p, "meta/pe", lambda d: d.__setitem__("codecs", shard(d)["codecs"])),
    ),
    "a wrong checksum in the last chunk": (CorruptData, "b/q", lambda p: flip_tail(p, "b/q", 1)),
    "a wrong checksum in the last strings": (CorruptData, "b/s", lambda p: flip_tail(p, "b/s", 1)),
    "a wrong place in the index": (CorruptData, "meta/pe.*index", lambda p: flip(p, "trajectory/meta/pe/c/0", 0)),
    "a column shorter than claimed": (CorruptData, "b/q.*fewer than the", lambda p: edit(p, "b/q", shorten(3))),
    "a mask shorter than claimed": (CorruptData, "_validity/n.*fewer", lambda p: edit(p, "b/_validity/n", shorten(3))),
    "an index shorter than claimed": (CorruptData, "b/offset.*fewer", lambda p: edit(p, "b/offset", shorten(2))),
    "values shorter than nstep": (
        CorruptData,
        "meta/t.*8 rows, fewer than the 9",
        lambda p: edit(p, "meta/t", shorten(8)),
    ),
    "steps shorter than nstep": (CorruptData, "step.*8 rows, fewer than the 9", lambda p: edit(p, "step", shorten(8))),
    "cells shorter than claimed": (CorruptData, "box/vectors.*fewer", lambda p: edit(p, "box/vectors", shorten(1))),
    "a column that is gone": (CorruptData, "b/v.*missing", lambda p: shutil.rmtree(p / "trajectory/b/v")),
    "a column of another type": (
        SchemaError,
        "b/q.*int64.*f64.*declared",
        lambda p: edit(p, "b/q", lambda d: d.update(data_type="int64", fill_value=0)),
    ),
    "targets": (
        SchemaError,
        "'c': targets says that 'none' refers to 'b', and there is no such column",
        lambda p: edit(p, "", declare(lambda s: s["blocks"]["c"].update(targets={"none": "b"}))),
    ),
    "a declaration from the future": (
        SchemaError,
        "'colour'",
        lambda p: edit(p, "", declare(lambda s: s["blocks"]["c"].update(colour="red"))),
    ),
    "a progression without nstep": (
        CorruptData,
        "time_progression without nstep",
        lambda p: edit(
            p, "", lambda d: (d["attributes"].pop("nstep"), d["attributes"].update(time_progression={"start": 0.0}))
        ),
    ),
    "no JSON": (CorruptData, "trajectory/b/q/zarr.json", lambda p: (p / "trajectory/b/q/zarr.json").write_text("{")),
    "a version from the future": (
        UnsupportedVersion,
        "molrec_version is 3",
        lambda p: (p / "meta/zarr.json").write_text(
            '{"zarr_format":3,"node_type":"group","attributes":{"molrec_version":3}}'
        ),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_and_left_as_it_is(tmp_path, case):
    kind, says, spoil = BAD[case]
    path = tmp_path / "a"
    with write(path, schema(), **OPTIONS) as w:
        for i in range(9):
            append(w, KINDS["ragged"](i))
    good = tmp_path / "good"
    shutil.copytree(path, good)
    spoil(path)
    before = tree(path)
    assert before != tree(good)
    with pytest.raises(kind, match=says) as caught:
        mrec.TrajectoryWriter.open(path)
    assert isinstance(caught.value, MrecError)
    assert tree(path) == before
    for name, data in tree(good).items():  # mended, it goes on at once: nothing holds it
        path.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        path.joinpath(name).write_bytes(data)
    with mrec.TrajectoryWriter.open(path, durable=False) as w:
        append(w, KINDS["ragged"](9))
    assert len(frames(path)) == 10
    del caught


def test_a_torn_index_whose_chunks_verify_is_mended(tmp_path):
    path = tmp_path / "a"
    with write(path, schema(), **OPTIONS) as w:
        for i in range(9):
            append(w, KINDS["ragged"](i))
    before = frames(path)
    index = 16 * 256
    flip(path, "trajectory/meta/pe/c/0", index)  # the first byte of its checksum
    with mrec.TrajectoryWriter.open(path) as w:
        append(w, KINDS["ragged"](9))
    assert frames(path)[:9] == before
    assert arrays(path)["meta/pe"].tolist() == [float(i) for i in range(10)]

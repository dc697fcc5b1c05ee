# SPDX-License-Identifier: BSD-3-Clause
"""Faults, one and more for each rule, in records that open all the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import mrec
from mrec import _core
from tests.verify import edit
from tests.verify.edit import NOWHERE, Shard

T = "trajectory"


@dataclass(frozen=True)
class Fault:
    """What is done to which sample, and the finding that has to come of it: rule and place."""

    name: str
    rule: str
    sample: str
    array: str
    seed: Callable[[Path], Any]
    where: dict[str, Any] = field(default_factory=dict)


FAULTS: list[Fault] = []


def fault(rule: str, sample: str, array: str, **where: Any) -> Callable[[Callable[[Path], Any]], None]:
    """Put a function that breaks a record into the list."""

    def add(seed: Callable[[Path], Any]) -> None:
        FAULTS.append(Fault(seed.__name__, rule, sample, array, seed, where))

    return add


# ---- shard bytes -------------------------------------------------------------------------------------------------


@fault("checksum", "regular", f"{T}/atoms/y", shard="c/1", chunk=2, frame=10)
def a_bit_of_a_chunk(path: Path) -> None:
    shard = Shard(path / T / "atoms/y", 1)
    shard.flip(shard.entry(2)[0] + 5)


@fault("index-checksum", "regular", f"{T}/atoms/y", shard="c/1")
def a_bit_of_the_checksum_of_an_index(path: Path) -> None:
    shard = Shard(path / T / "atoms/y", 1)
    shard.flip(16 * shard.count)


@fault("index-entry", "regular", f"{T}/atoms/y", shard="c/0", chunk=1, frame=2)
def a_chunk_beyond_the_file(path: Path) -> None:
    shard = Shard(path / T / "atoms/y")
    shard.set_entry(1, len(shard.data) - 3, shard.entry(1)[1])


@fault("index-entry", "regular", f"{T}/atoms/y", shard="c/0", chunk=1, frame=2)
def a_chunk_whose_end_wraps_around(path: Path) -> None:
    shard = Shard(path / T / "atoms/y")
    shard.set_entry(1, 2**64 - 8, 64)


@fault("index-entry", "regular", f"{T}/atoms/y", shard="c/0", chunk=1, frame=2)
def a_chunk_inside_the_index(path: Path) -> None:
    shard = Shard(path / T / "atoms/y")
    shard.set_entry(1, 8, shard.entry(1)[1])


@fault("overlap", "regular", f"{T}/atoms/y", shard="c/0", chunk=1, frame=2)
def two_chunks_at_one_place(path: Path) -> None:
    shard = Shard(path / T / "atoms/y")
    shard.set_entry(1, *shard.entry(0))


@fault("index-size", "regular", f"{T}/meta/pe", shard="c/0", chunk=0, frame=0)
def a_file_shorter_than_its_index(path: Path) -> None:
    shard = Shard(path / T / "meta/pe")
    shard.data = shard.data[:100]
    shard.save()


@fault("missing-shard", "regular", f"{T}/atoms/y", shard="c/1")
def a_shard_that_is_gone(path: Path) -> None:
    (path / T / "atoms/y/c/1").unlink()


@fault("backed", "regular", f"{T}/bonds/step_index", severity="warning")
def updates_that_no_file_holds(path: Path) -> None:
    edit.shape(path / T / "bonds/step_index", 2**40)


@fault("missing-chunk", "regular", f"{T}/atoms/y", shard="c/1", chunk=0, frame=6)
def a_chunk_that_is_gone(path: Path) -> None:
    Shard(path / T / "atoms/y", 1).set_entry(0, NOWHERE, NOWHERE)


@fault("missing-chunk", "crashed", f"{T}/atoms/y", shard="c/0", chunk=1, frame=3)
def a_chunk_that_is_gone_from_an_open_record(path: Path) -> None:
    Shard(path / T / "atoms/y").set_entry(1, NOWHERE, NOWHERE)


@fault("decode", "regular", f"{T}/atoms/tag", shard="c/0", chunk=0, frame=0)
def a_chunk_that_no_codec_made(path: Path) -> None:
    Shard(path / T / "atoms/tag").replace(0, _core.encode([("bytes", {"elementsize": 1}), ("crc32c", {})], b"no gzip"))


@fault("bool", "regular", f"{T}/atoms/_validity/tag", shard="c/0", chunk=1, frame=2)
def a_flag_of_two(path: Path) -> None:
    Shard(path / T / "atoms/_validity/tag").edit(1, lambda flags: flags.view("u1").__setitem__(3, 2))


@fault("string", "regular", f"{T}/atoms/label", shard="c/0", chunk=0, frame=0)
def a_string_that_is_not_utf8(path: Path) -> None:
    Shard(path / T / "atoms/label").edit_text(0, b"3:1", b"3\xff1")


# ---- documents ---------------------------------------------------------------------------------------------------


@fault("document", "regular", f"{T}/atoms/y")
def a_key_twice(path: Path) -> None:
    file = path / T / "atoms/y/zarr.json"
    file.write_text(file.read_text().replace("{", '{"zarr_format":3,', 1))


@fault("length", "changing", f"{T}/atoms/y")
def an_array_too_short(path: Path) -> None:
    edit.shape(path / T / "atoms/y", 700)


@fault("length", "regular", f"{T}/atoms")
def a_column_shorter_than_the_others(path: Path) -> None:
    edit.shape(path / T / "atoms/y", 88)


@fault("length", "changing", f"{T}/meta/pe")
def a_closed_array_too_long(path: Path) -> None:
    edit.shape(path / T / "meta/pe", 25)


@fault("type", "regular", f"{T}/atoms/tag")
def another_type_than_declared(path: Path) -> None:
    edit.document(path / T / "atoms/tag", lambda found: found.update(data_type="uint64"))


@fault("missing-array", "regular", f"{T}/meta/pe")
def a_value_without_its_array(path: Path) -> None:
    shutil.rmtree(path / T / "meta/pe")


@fault("sharding", "regular", f"{T}/meta/pe")
def an_array_without_shards(path: Path) -> None:
    array = path / T / "meta/pe"
    shard = Shard(array)
    shard.path.write_bytes(shard.chunk(0))

    def plain(found: dict[str, Any]) -> None:
        inner = found["codecs"][0]["configuration"]
        found["codecs"] = inner["codecs"]
        found["chunk_grid"]["configuration"]["chunk_shape"] = inner["chunk_shape"]

    edit.document(array, plain)


@fault("fill", "regular", f"{T}/atoms/y")
def another_fill_value(path: Path) -> None:
    edit.document(path / T / "atoms/y", lambda found: found.update(fill_value=1.0))


@fault("meta-dtype", "regular", f"{T}/meta/pe")
def another_tag(path: Path) -> None:
    edit.attributes(path / T / "meta/pe", meta_dtype="i64")


@fault("marker", "regular", f"{T}/zarr.json")
def a_closed_record_with_the_mark_of_an_open_one(path: Path) -> None:
    edit.attributes(path / T, mrec_nstep=12)


@fault("schema", "regular", f"{T}/zarr.json")
def a_declaration_with_an_unknown_member(path: Path) -> None:
    edit.schema(path, lambda schema: schema["blocks"]["atoms"].update(colour="red"))


@fault("canonical", "regular", f"{T}/atoms/ix")
def a_canonical_column_of_another_type(path: Path) -> None:
    def rename(schema: dict[str, Any]) -> None:
        columns = schema["blocks"]["atoms"]["columns"]
        columns["ix"] = columns.pop("tag")

    edit.schema(path, rename)
    for folder in ("atoms", "atoms/_validity"):
        (path / T / folder / "tag").rename(path / T / folder / "ix")


# ---- steps, times, values ----------------------------------------------------------------------------------------


@fault("step-progression", "regular", f"{T}/zarr.json")
def steps_that_stand_still(path: Path) -> None:
    edit.attributes(path / T, step_progression={"start": 0, "stride": 0})


@fault("step-progression", "regular", f"{T}/zarr.json")
def steps_that_are_no_integers(path: Path) -> None:
    edit.attributes(path / T, step_progression={"start": 0, "stride": 10.0})


@fault("step-order", "changing", f"{T}/step", frame=7)
def a_step_that_falls(path: Path) -> None:
    Shard(path / T / "step").edit(0, lambda steps: steps.__setitem__(7, 3))


@fault("time-progression", "regular", f"{T}/zarr.json")
def times_that_leave_the_numbers(path: Path) -> None:
    edit.attributes(path / T, time_progression={"start": 0.0, "stride": 1.7e308})


@fault("json-text", "regular", f"{T}/meta/note", frame=4)
def a_text_that_is_no_json(path: Path) -> None:
    Shard(path / T / "meta/note").edit_text(0, b'{"frame":4}', b"{'frame':4}")


@fault("json-text", "regular", f"{T}/meta/note", frame=4)
def a_text_that_is_not_compact(path: Path) -> None:
    Shard(path / T / "meta/note").edit_text(0, b'{"frame":4}', b'{"fram": 4}')


# ---- blocks ------------------------------------------------------------------------------------------------------


@fault("regular", "regular", f"{T}/atoms")
def half_a_regular_block(path: Path) -> None:
    edit.attributes(path / T / "atoms", dense_updates=None)


@fault("update-index", "changing", f"{T}/atoms/step_index", frame=4)
def updates_out_of_order(path: Path) -> None:
    Shard(path / T / "atoms/step_index").edit(0, lambda index: index.__setitem__(5, 4))


@fault("offset", "changing", f"{T}/atoms/offset", frame=5)
def offsets_that_fall(path: Path) -> None:
    Shard(path / T / "atoms/offset").edit(0, lambda offset: offset.__setitem__(6, 3))


@fault("offset", "changing", f"{T}/atoms/offset", frame=0)
def offsets_that_do_not_start_at_0(path: Path) -> None:
    Shard(path / T / "atoms/offset").edit(0, lambda offset: offset.__setitem__(0, 1))


@fault("structural-shape", "changing", f"{T}/atoms", frame=14)
def an_update_of_another_shape(path: Path) -> None:
    edit.schema(path, lambda schema: schema["blocks"]["atoms"].update(structural_shape=[8, 5]))


@fault("carry-forward", "regular", f"{T}/atoms", frame=7)
def an_update_that_says_nothing_new(path: Path) -> None:
    # frames 6 and 7 are chunk 0 of shard 1
    for column in ("x", "y", "tag", "_validity/tag"):
        Shard(path / T / "atoms" / column, 1).edit(0, lambda rows: rows.__setitem__(slice(8, 16), rows[:8].copy()))
    label = Shard(path / T / "atoms/label", 1)
    text = _core.decode(label.pipeline, label.chunk(0))
    label.replace(0, _core.encode(label.pipeline, text.replace(b":7", b":6")))


@fault("precision", "regular", f"{T}/atoms/x", frame=9)
def a_value_beside_the_grid(path: Path) -> None:
    Shard(path / T / "atoms/x", 1).edit(1, lambda rows: rows.__setitem__(11, 0.1))


@fault("mask", "regular", f"{T}/atoms/_validity/tag")
def a_nullable_column_without_its_mask(path: Path) -> None:
    shutil.rmtree(path / T / "atoms/_validity/tag")


@fault("targets", "regular", f"{T}/bonds/atomi", frame=5)
def a_reference_to_a_row_that_is_not_there(path: Path) -> None:
    edit.schema(path, lambda schema: schema["blocks"]["bonds"].update(targets={"atomi": "atoms"}))
    Shard(path / T / "bonds/atomi").edit(0, lambda rows: rows.__setitem__(3, 8))


@fault("targets", "regular", f"{T}/bonds/atomi", frame=1)
def a_reference_to_a_block_that_is_not_yet_there(path: Path) -> None:
    edit.schema(path, lambda schema: schema["blocks"].update(late={"columns": {"k": {"dtype": "u64", "trailing": []}}}))
    edit.schema(path, lambda schema: schema["blocks"]["bonds"].update(targets={"atomi": "late"}))


@fault("reference", "regular", f"{T}/bonds/atomi", frame=5)
def an_atom_that_is_not_there(path: Path) -> None:
    Shard(path / T / "bonds/atomi").edit(0, lambda rows: rows.__setitem__(3, 8))


@fault("aligned", "regular", f"{T}/bonds", frame=1)
def aligned_blocks_of_other_lengths(path: Path) -> None:
    edit.schema(path, lambda schema: schema["blocks"]["bonds"].update(aligned_with="atoms"))


@fault("system", "regular", f"{T}/atoms", frame=0)
def a_system_of_more_atoms(path: Path) -> None:
    shutil.copytree(path / "system/other", path / "system/new")
    shutil.rmtree(path / "system/atoms")
    (path / "system/new").rename(path / "system/atoms")


# ---- cell --------------------------------------------------------------------------------------------------------


@fault("box", "changing", f"{T}/box")
def a_cell_that_may_or_may_not_be(path: Path) -> None:
    edit.attributes(path / T / "box", cell_defined="no")


@fault("box", "regular", f"{T}/box")
def an_undefined_cell_with_a_periodic_axis(path: Path) -> None:
    edit.attributes(path / T / "box", cell_defined=False, boundary=[True, False, False])


@fault("carry-forward", "changing", f"{T}/box", frame=8)
def a_cell_that_says_nothing_new(path: Path) -> None:
    Shard(path / T / "box/vectors").edit(0, lambda cells: cells.__setitem__(3, cells[2].copy()))


# ---- durable file ------------------------------------------------------------------------------------------------


def durable(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    file = path / T / ".durable"
    found = json.loads(file.read_text())
    change(found)
    file.write_text(json.dumps(found))


@fault("durable", "crashed", f"{T}/.durable")
def a_durable_file_of_two_minds(path: Path) -> None:
    durable(path, lambda found: found.update(nstep=15))


@fault("durable-shape", "crashed", f"{T}/atoms")
def a_durable_document_that_is_not_exact(path: Path) -> None:
    def longer(found: dict[str, Any]) -> None:
        key = f"{T}/atoms/y/zarr.json"
        text = json.loads(found["documents"][key])
        text["shape"][0] += 40
        found["documents"][key] = json.dumps(text)

    durable(path, longer)


@fault("durable-tail", "crashed", f"{T}/atoms/y", shard="c/2", chunk=0)
def a_tail_that_is_not_there(path: Path) -> None:
    durable(path, lambda found: found["tails"][f"{T}/atoms/y"].__setitem__(4, 1))


# ---- sections ----------------------------------------------------------------------------------------------------


@fault("count", "regular", "system/other")
def a_block_without_count(path: Path) -> None:
    edit.attributes(path / "system/other", count=None)


@fault("length", "regular", "system/other/q")
def a_column_longer_than_its_block(path: Path) -> None:
    edit.shape(path / "system/other/q", 5)


@fault("checksum", "regular", "system/other/mass", shard="c/0")
def a_bit_of_a_section(path: Path) -> None:
    file = path / "system/other/mass/c/0"
    data = bytearray(file.read_bytes())
    data[9] ^= 1
    file.write_bytes(data)


@fault("canonical", "regular", "system/other/free")
def a_canonical_column_of_another_type_in_a_section(path: Path) -> None:
    (path / "system/other/q").rename(path / "system/other/free")


@fault("reference", "regular", "system/other/atomi")
def an_atom_that_the_system_has_not(path: Path) -> None:
    file = path / "system/other/atomi/c/0"
    codecs: Any = [("bytes", {"elementsize": 8}), ("gzip", {}), ("crc32c", {})]
    file.write_bytes(_core.encode(codecs, np.array([0, 1, 2, 8], "u8").tobytes()))


@fault("mask", "regular", "system/other/_validity/gone")
def a_mask_of_no_column(path: Path) -> None:
    shutil.copytree(path / T / "atoms/_validity/tag", path / "system/other/_validity/gone")


@fault("precision", "regular", "system/other/mass")
def a_precision_that_the_values_do_not_have(path: Path) -> None:
    edit.attributes(path / "system/other/mass", precision=4.0)


@fault("box", "regular", "system/box")
def a_cell_without_vectors(path: Path) -> None:
    shutil.rmtree(path / "system/box/vectors")


@fault("meta-types", "regular", "system")
def a_value_under_a_tag_that_it_does_not_fit(path: Path) -> None:
    edit.attributes(path / "system", n="three")


@fault("name", "regular", "system/__other")
def a_block_with_a_name_of_zarr(path: Path) -> None:
    (path / "system/other").rename(path / "system/__other")


@fault("incomplete", "regular", "status")
def a_status_without_state(path: Path) -> None:
    (path / "status").mkdir()
    (path / "status/zarr.json").write_text('{"zarr_format":3,"node_type":"group"}')


@fault("observable", "regular", "observables/rdf")
def an_observable_without_its_document(path: Path) -> None:
    (path / "observables").mkdir()
    shutil.copytree(path / "system/other/mass", path / "observables/rdf")


@fault("metrics", "regular", "metrics/series/loss")
def a_series_shorter_than_its_catalog_says(path: Path) -> None:
    with mrec.MetricsLog(path) as log:
        log.log("loss", 1.0, step=1)
    shutil.rmtree(path / "metrics/series/loss")


@fault("metrics-log", "regular", "metrics/metrics.jsonl")
def a_line_of_a_log_that_is_no_object(path: Path) -> None:
    mrec.MetricsLog(path).close()
    (path / "metrics/metrics.jsonl").write_text("[1]\n")


@fault("meta-types", "regular", "forcefield")
def a_forcefield_with_a_typed_document(path: Path) -> None:
    mrec.open(path).forcefield = {"pair": {"eps": [1.0]}}
    text = (path / "forcefield/zarr.json").read_text()
    node = json.loads(text) | {"attributes": {"_meta_types": {}}}
    (path / "forcefield/zarr.json").write_text(json.dumps(node))


@fault("precision", "regular", "frame/a/x")
def a_precision_that_is_no_number(path: Path) -> None:
    mrec.open(path).frame = {"a": {"x": [1.0]}}
    edit.document(path / "frame/a/x", lambda found: found.update(attributes={"precision": None}))


@fault("observable", "regular", "observables/rdf")
def a_group_in_the_place_of_an_observable(path: Path) -> None:
    mrec.open(path).observables["rdf"] = mrec.Observable([1.0], "k", "d", False)
    shutil.rmtree(path / "observables/rdf")
    shutil.copytree(path / "observables/meta/rdf", path / "observables/rdf")

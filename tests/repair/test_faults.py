# SPDX-License-Identifier: BSD-3-Clause
"""`mrec.repair` and each rule of the format: what is lost is what a fault touches."""

from __future__ import annotations

from pathlib import Path

import pytest

import mrec
from tests.golden import ROOT as GOLDEN
from tests.repair.check import Sample, check_frames, frames, losses, repair
from tests.verify.faults import FAULTS, Fault
from tests.verify.samples import SAMPLES

T = "trajectory"

#: What is lost by each fault of tests/verify; nothing by those that are not here.
LOST = {
    "a_bit_of_a_chunk": ["lost atoms/y: frames 10-11"],
    "a_chunk_beyond_the_file": ["lost atoms/y: frames 2-3"],
    "a_chunk_whose_end_wraps_around": ["lost atoms/y: frames 2-3"],
    "a_chunk_inside_the_index": ["lost atoms/y: frames 2-3"],
    "two_chunks_at_one_place": ["lost atoms/y: frames 0-3"],
    "a_file_shorter_than_its_index": ["left out meta/pe: frames 0-11"],
    "a_shard_that_is_gone": ["lost atoms/y: frames 6-11"],
    "a_chunk_that_is_gone": ["lost atoms/y: frames 6-7"],
    "a_chunk_that_is_gone_from_an_open_record": ["lost atoms/y: frames 3-5"],
    "a_chunk_that_no_codec_made": ["lost atoms/tag: frames 0-1"],
    "a_flag_of_two": ["lost atoms/tag: frames 2-3"],
    "a_string_that_is_not_utf8": ["lost atoms/label: frames 0-1"],
    "a_key_twice": ["left out atoms/y: frames 0-11"],
    "an_array_too_short": ["lost atoms/y: frames 17-23"],
    "a_column_shorter_than_the_others": ["lost atoms/y: frame 11"],
    "a_precision_that_is_no_number": ["frame/a/x"],
    "another_type_than_declared": ["left out atoms/tag: frames 0-11"],
    "a_value_without_its_array": ["left out meta/pe: frames 0-11"],
    "a_declaration_with_an_unknown_member": ["trajectory"],
    "steps_that_stand_still": ["lost step: frames 0-11"],
    "steps_that_are_no_integers": ["lost step: frames 0-11"],
    "a_step_that_falls": ["lost step: frames 6-7"],
    "times_that_leave_the_numbers": ["left out time: frames 0-11"],
    "a_text_that_is_no_json": ["lost meta/note: frame 4"],
    "half_a_regular_block": ["left out atoms: frames 0-11"],
    "updates_out_of_order": ["left out atoms: frames 0-23"],
    "updates_that_no_file_holds": ["left out bonds: frames 0-11"],
    "offsets_that_fall": ["left out atoms: frames 0-23"],
    "offsets_that_do_not_start_at_0": ["left out atoms: frames 0-23"],
    "an_update_of_another_shape": ["lost atoms: frames 14, 16-17, 19-20, 22-23"],
    "a_value_beside_the_grid": ["lost atoms/x: frame 9"],
    "a_nullable_column_without_its_mask": ["left out atoms/tag: frames 0-11"],
    "a_reference_to_a_row_that_is_not_there": ["lost bonds/atomi: frames 5-8"],
    "a_reference_to_a_block_that_is_not_yet_there": ["left out bonds/atomi: frames 1-11"],
    "an_atom_that_is_not_there": ["lost bonds/atomi: frames 5-8"],
    "aligned_blocks_of_other_lengths": ["left out bonds: frames 1-11"],
    "a_system_of_more_atoms": ["system/atoms"],
    "a_cell_that_may_or_may_not_be": ["left out box: frames 0-23"],
    "an_undefined_cell_with_a_periodic_axis": ["left out box: frames 0-11"],
    "a_block_without_count": ["system/other"],
    "a_column_longer_than_its_block": ["system/other/q"],
    "a_bit_of_a_section": ["system/other/mass"],
    "an_atom_that_the_system_has_not": ["system/other/atomi"],
    "a_mask_of_no_column": ["system/other/_validity/gone"],
    "a_precision_that_the_values_do_not_have": ["system/other/mass"],
    "a_cell_without_vectors": ["system/box"],
    "a_value_under_a_tag_that_it_does_not_fit": ["system/zarr.json"],
    "an_observable_without_its_document": ["observables/rdf", "observables/zarr.json"],
    "a_group_in_the_place_of_an_observable": ["observables/meta/rdf", "observables/rdf"],
    "a_forcefield_with_a_typed_document": ["forcefield/zarr.json"],
}
#: What no checksum tells: these change what is stored, and frames are compared with those.
_OTHER_DATA = {
    "a_canonical_column_of_another_type",
    "a_cell_that_says_nothing_new",
    "a_text_that_is_not_compact",
    "an_update_that_says_nothing_new",
}
#: What is no damage, and stays in the copy.
_KEPT = {"canonical", "incomplete", "metrics", "metrics-log", "name"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_costs_what_it_touches(fault: Fault, sample: Sample) -> None:
    path, original = sample(fault.sample)
    fault.seed(path)
    report, _ = repair(path, frames(path) if fault.name in _OTHER_DATA else original)
    assert losses(report) == LOST.get(fault.name, [])
    assert report.ok == (fault.name not in LOST)
    assert {finding.rule for finding in report.remaining} == {fault.rule} & _KEPT


def test_the_faults_are_those_of_verify() -> None:
    assert LOST.keys() | _OTHER_DATA <= {fault.name for fault in FAULTS}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sound_record_is_copied(name: str, sample: Sample) -> None:
    path, original = sample(name)
    report, kept = repair(path, original)
    assert (report.ok, report.findings, len(kept)) == (True, [], len(original))


@pytest.mark.parametrize("name", [path.name for path in sorted(GOLDEN.glob("*.mrec"))])
def test_records_of_molrs_are_copied(name: str, tmp_path: Path) -> None:
    report = mrec.repair(GOLDEN / name, tmp_path / "sound.mrec")
    assert (report.ok, mrec.verify(tmp_path / "sound.mrec").findings) == (True, [])
    check_frames(report, frames(GOLDEN / name), frames(tmp_path / "sound.mrec"))

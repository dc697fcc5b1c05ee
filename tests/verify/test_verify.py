# SPDX-License-Identifier: BSD-3-Clause
"""`mrec.verify` finds what is wrong and nothing else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mrec
import mrec.zarr
from mrec.errors import NotARecord, RecordNotFound
from mrec.verify.rules import RULES
from tests.cli.command import ROOT
from tests.crash import scenario
from tests.golden import ROOT as GOLDEN
from tests.interop import mrec_side
from tests.interop.records import RECORDS
from tests.verify.edit import Shard
from tests.verify.faults import FAULTS, Fault
from tests.verify.samples import SAMPLES

Make = Callable[[str], Path]


@pytest.fixture(scope="session")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    folder = tmp_path_factory.mktemp("samples")

    def make(name: str) -> Path:
        path = folder / f"{name}.mrec"
        if not path.exists():
            SAMPLES[name](path)
        return path

    return make


@pytest.fixture
def sample(_made: Make, tmp_path: Path) -> Make:
    """A copy of a sample, to break."""
    return lambda name: shutil.copytree(_made(name), tmp_path / "a.mrec")


# ---- faults ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_fault_is_found_by_its_rule(fault: Fault, sample: Make) -> None:
    path = sample(fault.sample)
    fault.seed(path)
    mrec.open(path).close()
    report = mrec.verify(path)
    assert not report.ok
    print(f"{fault.name.replace('_', ' ')} -> {report.findings[0]}")
    assert {finding.rule for finding in report.findings} == {fault.rule}, report.findings
    first = report.findings[0]
    assert {"array": fault.array} | fault.where == {key: getattr(first, key) for key in ("array", *fault.where)}, first


def test_every_rule_has_a_fault() -> None:
    """But for what does not open, fails in the system, or is tested with packed records below, or in tests/stream."""
    streams = {rule for rule in RULES if rule == "manifest" or rule.startswith("stream-")}
    assert RULES.keys() - {fault.rule for fault in FAULTS} - streams == {"version", "read", "zip", "zip-crc"}


def test_rules_are_documented() -> None:
    page = (ROOT / "docs/verify.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", page, re.MULTILINE)
    assert dict(rows) == RULES


def test_many_faults_at_once(sample: Make) -> None:
    path = sample("regular")
    seeded = [f for f in FAULTS if f.name in ("a_bit_of_a_chunk", "a_flag_of_two", "a_cell_without_vectors")]
    for fault in seeded:
        fault.seed(path)
    assert {finding.rule for finding in mrec.verify(path).findings} == {fault.rule for fault in seeded}


# ---- sound records -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [path.stem for path in sorted(GOLDEN.glob("*.mrec"))])
def test_goldens_are_sound(name: str) -> None:
    report = mrec.verify(GOLDEN / f"{name}.mrec")
    assert report.findings == []
    assert report.chunks > 0


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_sound(name: str, _made: Make) -> None:
    assert mrec.verify(_made(name)).findings == []


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_our_records_are_sound(record, tmp_path: Path) -> None:
    mrec_side.write(record, tmp_path / "a.mrec", record.frames)
    report = mrec.verify(tmp_path / "a.mrec")
    assert report.findings == []
    assert report.frames == len(record.frames)


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_records_of_molrs_are_sound(record, tmp_path: Path) -> None:
    pytest.importorskip("molrs", reason="molrs has wheels for Python 3.12 and later")
    from tests.interop import molrs_side

    path, third = tmp_path / "a.mrec", len(record.frames) // 3
    molrs_side.write(record, path, record.frames[:third])
    assert mrec.verify(path).findings == []
    mrec_side.append(record, path, record.frames[third : 2 * third])
    assert mrec.verify(path).findings == []
    molrs_side.append(record, path, record.frames[2 * third :])
    assert mrec.verify(path).findings == []


@pytest.mark.parametrize("durable", [True, False])
def test_live_and_killed_records_are_sound(durable: bool, tmp_path: Path) -> None:
    """After each frame: as it is, as a kill leaves it, and as another boot finds it."""
    path, other = tmp_path / "a.mrec", tmp_path / "other.mrec"
    with mrec.TrajectoryWriter(path, scenario.schema(), **scenario.OPTIONS) as writer:
        for i in range(20):
            writer.append(scenario.frame(i))
            writer.flush(durable=durable or i % 4 == 0)
            report = mrec.verify(path)
            assert (report.findings, report.frames) == ([], i + 1)
            shutil.copytree(path, other)
            file = other / "trajectory/.durable"
            file.write_text(json.dumps(json.loads(file.read_text()) | {"boot_id": "another"}))
            report = mrec.verify(other)
            assert (report.findings, report.frames) == ([], i + 1 if durable else i // 4 * 4 + 1)
            shutil.rmtree(other)
    assert mrec.verify(path).findings == []


def test_each_document_of_an_open_record_is_missed(tmp_path: Path) -> None:
    """Also those without which there is nothing to miss: of times, cell, updates, nulls, a whole block."""
    path, live = tmp_path / "a.mrec", tmp_path / "live.mrec"
    with mrec.TrajectoryWriter(live, scenario.schema(), **scenario.OPTIONS) as writer:
        for i in range(12):
            writer.append(scenario.frame(i))
        writer.flush(durable=True)
        documents = json.loads((live / "trajectory/.durable").read_text())["documents"]
        names = sorted(documents)
        assert {"trajectory/time/zarr.json", "trajectory/box/zarr.json", "trajectory/atoms/zarr.json"} <= set(names)
        for name in names:
            shutil.copytree(live, path)
            (path / name).unlink()
            assert name in [finding.array for finding in mrec.verify(path).findings], name
            shutil.rmtree(path)


def test_marker_that_is_gone(tmp_path: Path) -> None:
    """Beside a durable file with frames; beside one without the record is still being created."""
    path, live = tmp_path / "a.mrec", tmp_path / "live.mrec"
    with mrec.TrajectoryWriter(live, scenario.schema(), **scenario.OPTIONS) as writer:
        shutil.copytree(live, path)
        (path / "trajectory/zarr.json").unlink()
        with pytest.raises(NotARecord):
            mrec.verify(path)
        shutil.rmtree(path)
        writer.append(scenario.frame(0))
        writer.flush()
        shutil.copytree(live, path)
    (path / "trajectory/zarr.json").unlink()
    report = mrec.verify(path)
    assert [(finding.rule, finding.array) for finding in report.findings] == [("document", "trajectory/zarr.json")]
    assert report.frames == 1


def test_absence_in_a_torn_index_is_not_believed(tmp_path: Path) -> None:
    """Other programs leave out what is fill; a sector that was erased looks the same."""
    path = shutil.copytree(GOLDEN / "ragged.mrec", tmp_path / "a.mrec")
    shard = Shard(path / "trajectory/atoms/x")
    shard.data[:16] = b"\xff" * 16
    shard.save()
    assert {finding.rule for finding in mrec.verify(path).findings} >= {"index-checksum", "missing-chunk"}


def test_truncated_record_is_sound(tmp_path: Path) -> None:
    path = tmp_path / "a.mrec"
    with mrec.TrajectoryWriter(path, scenario.schema(), **scenario.OPTIONS) as writer:
        for i in range(20):
            writer.append(scenario.frame(i))
    for frames in (17, 8, 1, 0):
        last = scenario.frame(frames - 1).step if frames else -1
        mrec.TrajectoryWriter.open(path, truncate_after_step=last).close()
        report = mrec.verify(path)
        assert (report.findings, report.frames) == ([], frames)


def test_blocks_that_were_never_given_rows_are_sound(tmp_path: Path) -> None:
    schema = mrec.Schema().block("atoms").column("x", "f64", precision=1e-3, trailing=3, nullable=True).block("none")
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", schema) as writer:
        for step in range(3):
            writer.append(step, atoms={"x": np.empty((0, 3))})
    assert mrec.verify(tmp_path / "a.mrec").findings == []


def test_sharded_arrays_without_axes(tmp_path: Path) -> None:
    record = mrec.create(tmp_path / "a.mrec", status={"state": "finished"})
    record.observables["n"] = mrec.Observable(7, "scalar", "a number", False)
    shutil.rmtree(tmp_path / "a.mrec/observables/n")
    group = mrec.zarr.open(tmp_path / "a.mrec", "observables")
    group.create_array("n", data=np.array(7), shards=())
    assert mrec.verify(tmp_path / "a.mrec").ok and record.observables["n"].values == 7
    (tmp_path / "a.mrec/observables/n/c").write_bytes(b"7")
    assert [(f.rule, f.array) for f in mrec.verify(tmp_path / "a.mrec").findings] == [("index-size", "observables/n")]


def test_new_record_is_sound(tmp_path: Path) -> None:
    with mrec.TrajectoryWriter(tmp_path / "a.mrec", scenario.schema()):
        assert mrec.verify(tmp_path / "a.mrec").findings == []
    assert mrec.verify(tmp_path / "a.mrec").findings == []


# ---- ways in -----------------------------------------------------------------------------------------------------


class Memory:
    """A store that has only values by key, as that of a zip file does."""

    root = "memory"

    def __init__(self, path: Path) -> None:
        self.values = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}

    def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def names(self, key: str = "") -> list[str]:
        prefix = f"{key}/" if key else ""
        below = [name[len(prefix) :].split("/") for name in self.values if name.startswith(prefix)]
        return sorted({parts[0] for parts in below if len(parts) > 1})


@pytest.mark.parametrize("name", SAMPLES)
def test_any_store(name: str, sample: Make) -> None:
    path = sample(name)
    files, memory = mrec.verify(path), mrec.verify(Memory(path))
    assert memory.findings == []
    assert (files.frames, files.chunks, files.nbytes) == (memory.frames, memory.chunks, memory.nbytes)
    shard = next(path.glob("trajectory/atoms/y/c/0"))
    shard.write_bytes(shard.read_bytes()[:-9])
    assert mrec.verify(path).findings == mrec.verify(Memory(path)).findings != []


@pytest.mark.parametrize("name", SAMPLES)
def test_packed_record(name: str, sample: Make) -> None:
    path = sample(name)
    files = mrec.verify(path)
    packed = mrec.verify(mrec.pack(path))
    assert (packed.findings, packed.frames) == ([], files.frames)
    assert packed.chunks >= files.chunks - 1  # a tail may be stored anew


def test_damaged_zip(sample: Make) -> None:
    path = sample("regular")
    chunk = Shard(path / "trajectory/atoms/y", 1).chunk(2)
    packed = Path(mrec.pack(path))
    data = bytearray(packed.read_bytes())
    data[data.index(chunk) + 5] ^= 1
    packed.write_bytes(data)
    mrec.open(packed).close()
    found = {finding.rule: finding for finding in mrec.verify(packed).findings}
    assert found.keys() == {"zip-crc", "checksum"}
    assert found["zip-crc"].array == "trajectory/atoms/y/c/1"
    assert (found["checksum"].shard, found["checksum"].chunk, found["checksum"].frame) == ("c/1", 2, 10)
    packed.write_bytes(data[:-1])
    assert [finding.rule for finding in mrec.verify(packed).findings] == ["zip"]


def test_progress(sample: Make) -> None:
    seen: list[tuple[int, int]] = []
    report = mrec.verify(sample("regular"), lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == list(range(1, report.chunks + 1))
    assert all(done <= total for done, total in seen)
    assert seen[-1][1] == report.chunks


def test_no_record(tmp_path: Path) -> None:
    with pytest.raises(RecordNotFound):
        mrec.verify(tmp_path / "none.mrec")
    with pytest.raises(NotARecord):
        mrec.verify(tmp_path)


@pytest.mark.parametrize("how", ["reopened", "packed"])
def test_a_shard_is_missed_whatever_was_done_since(tmp_path: Path, how: str) -> None:
    """Appending later, or packing what was never closed, leaves the documents by which mrec's arrays are known."""
    path = tmp_path / "a.mrec"
    schema = mrec.Schema().block("atoms").column("x", "f64")
    writer = mrec.TrajectoryWriter(path, schema)
    writer.append(0, atoms={"x": np.ones(3)})
    writer.flush()
    if how == "packed":
        shutil.copytree(path, tmp_path / "crashed.mrec")
    writer.close()
    if how == "packed":
        path = Path(mrec.unpack(mrec.pack(tmp_path / "crashed.mrec"), tmp_path / "b.mrec"))
    else:
        with mrec.TrajectoryWriter.open(path) as writer:
            writer.append(1, atoms={"x": np.ones(3)})
    assert mrec.verify(path).ok
    (path / "trajectory/atoms/x/c/0").unlink()
    (finding,) = mrec.verify(path).findings
    assert (finding.rule, finding.severity, finding.array) == ("missing-shard", "warning", "trajectory/atoms/x")


def test_a_node_without_its_document(sample: Make) -> None:
    """It reads as if it had never been. (Nothing reads those of the groups meta and _validity.)"""
    path = sample("changing")
    lost = [found for found in path.glob("trajectory/**/zarr.json") if found.parent.name not in ("meta", "_validity")]
    assert len(lost) > 10
    for document in lost:
        text = document.read_bytes()
        document.unlink()
        findings = mrec.verify(path).findings
        document.write_bytes(text)
        node = str(document.parent.relative_to(path))
        assert any((finding.array or "").removesuffix("/zarr.json") == node for finding in findings), node

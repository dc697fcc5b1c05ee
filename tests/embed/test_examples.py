# SPDX-License-Identifier: BSD-3-Clause
"""The simulators of examples/lennard_jones, built against the installed wheel, write what they compute."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import mrec
from tests.embed import liquid
from tests.embed.conftest import ROOT, Installed, libraries

SIDE, STEPS, EVERY = 5, 60, 3
COST = re.compile(r"(\d+) atoms, (\d+) steps: (\d+\.\d) us a step, output (\d+\.\d) us of it\n")


@pytest.fixture(scope="module")
def examples(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the examples, with the writer compiled."""
    folder = tmp_path_factory.mktemp("examples") / "lennard_jones"
    shutil.copytree(ROOT / "examples/lennard_jones", folder, ignore=shutil.ignore_patterns("*.so", "lj_cython.c"))
    installed.run("cc", "-O1", "-c", installed.include / "mrec.c", "-o", "mrec.o", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def cython_module(installed: Installed, examples: Path) -> Path:
    installed.run("python", "setup.py", "-q", "build_ext", "--inplace", cwd=examples)
    return examples


@pytest.fixture(scope="module")
def computed() -> list[tuple[float, np.ndarray]]:
    return list(liquid.frames(SIDE, STEPS))[::EVERY]


def check(path: Path, printed: str, computed: list[tuple[float, np.ndarray]]) -> None:
    cost = COST.fullmatch(printed)
    assert cost is not None, printed
    assert cost[1] == str(SIDE**3)
    assert cost[2] == str(STEPS)
    assert float(cost[3]) > float(cost[4]) > 0
    trajectory = mrec.open(path).trajectory
    assert trajectory.steps.tolist() == list(range(0, STEPS, EVERY))
    np.testing.assert_allclose(trajectory.times, liquid.TIME_STEP * trajectory.steps)
    np.testing.assert_allclose(trajectory.values("pe"), [pe for pe, _ in computed], rtol=1e-9)
    stored = trajectory.read("atoms", ["x", "y", "z"])
    np.testing.assert_allclose(stored, np.stack([r for _, r in computed]), rtol=0, atol=2**-11 + 1e-9)
    assert np.abs(stored[-1] - stored[0]).max() > 0.05
    np.testing.assert_allclose(trajectory[-1].box.lengths, liquid.start(SIDE)[0])
    assert trajectory[-1].box.periodic.all()
    assert mrec.verify(path).ok


def compile_c(installed: Installed, examples: Path, name: str, *flags: str) -> None:
    warnings = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", *flags, f"-I{installed.include}"]
    linked = ["mrec.o", *libraries(), "-pthread", "-lm"]
    installed.run("cc", *warnings, f"{name}.c", *linked, "-o", name, cwd=examples)


def test_in_c(installed: Installed, examples: Path, computed: list[tuple[float, np.ndarray]]) -> None:
    compile_c(installed, examples, "lj")
    printed = installed.run("./lj", "c.mrec", SIDE, STEPS, EVERY, cwd=examples)
    check(examples / "c.mrec", printed, computed)
    assert mrec.open(examples / "c.mrec").units == {"length": "sigma", "time": "tau", "energy": "epsilon"}


def test_in_c_with_threads(installed: Installed, examples: Path, computed: list[tuple[float, np.ndarray]]) -> None:
    probe = ["cc", "-fopenmp", "-x", "c", "-", "-o", str(examples / "probe")]
    if subprocess.run(probe, input="int main(void) { return 0; }", text=True, capture_output=True).returncode:
        pytest.skip("the compiler has no OpenMP")
    compile_c(installed, examples, "lj_openmp", "-fopenmp")
    printed = installed.run("./lj_openmp", "threads.mrec", SIDE, STEPS, EVERY, cwd=examples, OMP_NUM_THREADS=3)
    check(examples / "threads.mrec", printed, computed)


def test_in_cython_to_a_writer_of_python(
    installed: Installed, cython_module: Path, computed: list[tuple[float, np.ndarray]]
) -> None:
    code = f"""
import lj_cython, mrec
with mrec.TrajectoryWriter("python.mrec", lj_cython.schema({SIDE})) as writer:
    print(lj_cython.run(writer, side={SIDE}, steps={STEPS}, every={EVERY}))
    assert writer.nframes == {STEPS // EVERY} and writer.last_step == {STEPS - EVERY}
"""
    check(cython_module / "python.mrec", installed.python(code, cython_module), computed)


def test_in_cython_to_a_record_of_its_own(
    installed: Installed, cython_module: Path, computed: list[tuple[float, np.ndarray]]
) -> None:
    code = f"import lj_cython; print(lj_cython.run('own.mrec', side={SIDE}, steps={STEPS}, every={EVERY}))"
    check(cython_module / "own.mrec", installed.python(code, cython_module), computed)


def test_cython_gets_the_exceptions_of_mrec(installed: Installed, cython_module: Path) -> None:
    code = """
import lj_cython, mrec
with mrec.TrajectoryWriter("other.mrec", mrec.Schema().value("pe", "f64")) as writer:
    try:
        lj_cython.run(writer, side=3, steps=1)
    except mrec.errors.SchemaError as e:
        print(e)
    assert len(writer) == 0
try:
    lj_cython.run("nowhere/own.mrec", side=3, steps=1)
except FileNotFoundError as e:
    print(e.filename)
"""
    schema, path = installed.python(code, cython_module).splitlines()
    assert schema == "the writer has 0 blocks and 1 per-step values, not 1 and 1"
    assert path == str(cython_module / "nowhere/own.mrec")


def test_cython_writes_without_the_gil(installed: Installed, cython_module: Path) -> None:
    """A run without end, which only another thread of Python can leave: the frames come while that one looks."""
    code = """
import os, threading
import lj_cython, mrec
writer = mrec.TrajectoryWriter("endless.mrec", lj_cython.schema(3), flush_every=1, durable=False)
run = threading.Thread(target=lj_cython.run, args=(writer,), kwargs={"side": 3, "steps": 2**60}, daemon=True)
run.start()
trajectory = mrec.open("endless.mrec").trajectory
while len(trajectory) < 20:
    trajectory.refresh()
print(len(trajectory), flush=True)
os._exit(0)
"""
    seen = int(installed.python(code, cython_module))
    trajectory = mrec.open(cython_module / "endless.mrec").trajectory
    assert len(trajectory) >= seen >= 20
    assert trajectory.steps.tolist() == list(range(len(trajectory)))

# SPDX-License-Identifier: BSD-3-Clause
"""Extension modules in C and C++ that take the functions of the installed mrec."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import mrec
from tests.embed.conftest import ROOT, Installed, declared_functions

SOURCES = [Path(__file__).with_name(name) for name in ("probe.c", "append.c")]
WRITER = """
import os, gc
import numpy as np
import mrec, probe

def make(path, **options):
    return mrec.TrajectoryWriter(path, mrec.Schema().block("atoms", rows=3).column("x", "f64"), **options)

"""


@pytest.fixture(scope="module", params=["c", "c++"])
def probe(request: pytest.FixtureRequest, installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where Python finds the module `probe`, compiled in either language."""
    folder = tmp_path_factory.mktemp("probe")
    sources = SOURCES
    if request.param == "c++":
        if shutil.which("c++") is None:
            pytest.skip("there is no C++ compiler")
        sources = [folder / f"{path.stem}.cpp" for path in SOURCES]
        for path, copy in zip(SOURCES, sources, strict=True):
            shutil.copy(path, copy)
        shutil.copy(SOURCES[0].with_name("probe.h"), folder)
    installed.extension(folder, "probe", *sources, compiler="c++" if request.param == "c++" else "cc")
    return folder


def test_a_writer_of_python_takes_frames_from_both_sides(installed: Installed, probe: Path) -> None:
    code = """
with make("both.mrec") as writer:
    print(probe.declared(writer))
    print(probe.append(writer, 0, np.arange(3.0)))
    writer.append(1, atoms={"x": np.arange(3.0) + 1})
    print(probe.append(writer, 5, np.arange(4.0) + 5), writer.nframes, writer.last_step)
"""
    assert installed.python(WRITER + code, probe).splitlines() == ["('atoms', 'x')", "1", "3 3 5"]
    trajectory = mrec.open(probe / "both.mrec").trajectory
    assert trajectory.steps.tolist() == [0, 1, 5]
    assert [list(frame["atoms"]["x"]) for frame in trajectory] == [[0, 1, 2], [1, 2, 3], [5, 6, 7, 8]]


def test_a_record_of_its_own(installed: Installed, probe: Path) -> None:
    code = """
print(probe.alone('alone.mrec'))
try: probe.alone('alone.mrec')
except mrec.errors.RecordExists: print('there')
"""
    assert installed.python(WRITER + code, probe) == "(True, True)\nthere\n"
    trajectory = mrec.open(probe / "alone.mrec").trajectory
    assert trajectory.steps.tolist() == [7]
    assert trajectory.read("atoms", "x").tolist() == [[1, 2]]


def test_what_goes_wrong_is_an_exception(installed: Installed, probe: Path) -> None:
    code = """
writer = make("wrong.mrec")
probe.append(writer, 3, np.zeros(3))
for call in (
    lambda: probe.append(writer, 3, np.zeros(3)),
    lambda: probe.append(object(), 4, b""),
    lambda: probe.declared(None),
):
    try: call()
    except (mrec.errors.InvalidValue, TypeError) as e: print(type(e).__name__, e)
writer.close()
try: probe.append(writer, 4, np.zeros(3))
except mrec.errors.ClosedError as e: print(e)
"""
    step, thing, none, closed = installed.python(WRITER + code, probe).splitlines()
    assert step.startswith("InvalidValue frame 1: step 3")
    assert thing == "TypeError a mrec.TrajectoryWriter has a writer of the core, a object has none"
    assert none == "TypeError a mrec.TrajectoryWriter has a writer of the core, a NoneType has none"
    assert closed.endswith("wrong.mrec: the writer was closed")


def test_a_forked_child_has_no_writer(installed: Installed, probe: Path) -> None:
    code = """
with make("fork.mrec") as writer:
    probe.append(writer, 0, np.zeros(3))
    child = os.fork()
    if child == 0:
        try: probe.append(writer, 1, np.zeros(3))
        except mrec.errors.ForkedHandle: os._exit(7)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    probe.append(writer, 1, np.ones(3))
"""
    assert installed.python(WRITER + code, probe) == "7\n"
    assert mrec.open(probe / "fork.mrec").trajectory.steps.tolist() == [0, 1]


def test_every_function_of_the_header_is_in_the_table() -> None:
    capsule = (ROOT / "mrec/include/mrec_capi.h").read_text(encoding="utf-8")
    table = set(re.findall(r"^#define (mrec_\w+) \(mrec_capi_table->", capsule, re.M))
    assert table == {*declared_functions(), "mrec_writer_of"}
    cython = (ROOT / "mrec/capi.pxd").read_text(encoding="utf-8")
    assert set(re.findall(r"\b(mrec_\w+)\(", cython)) == {*table, "mrec_check"}


def headers(folder: Path, installed: Installed, pattern: str, to: str) -> Path:
    """The headers of another version of mrec."""
    made = folder / "include"
    shutil.copytree(installed.include, made)
    changed = 0
    for path in (made / "mrec.h", made / "mrec_capi.h"):
        text, n = re.subn(pattern, to, path.read_text(encoding="utf-8"))
        path.write_text(text, encoding="utf-8")
        changed += n
    assert changed == 1
    return made


TABLE_END = r"bool \(\*closed\)\(const mrec_writer \*\);\n"


@pytest.mark.parametrize(
    ("pattern", "to", "message"),
    [
        (
            r"(#define MREC_ABI_VERSION) 2\n",
            r"\1 3\n",
            "compiled for ABI 3 of mrec, and the mrec installed has 2; compile",
        ),
        (TABLE_END, r"\g<0>    void (*later)(void);\n", "compiled for a newer mrec than the one installed"),
    ],
)
def test_another_version_is_refused(pattern: str, to: str, message: str, installed: Installed, tmp_path: Path) -> None:
    include = headers(tmp_path, installed, pattern, to)
    installed.extension(tmp_path, "probe", *SOURCES, include=include)
    code = "try: import probe\nexcept ImportError as e: print(e)"
    assert message in installed.python(code, tmp_path)

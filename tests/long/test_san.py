# SPDX-License-Identifier: BSD-3-Clause
"""The tests of Python with the extension under the address and undefined-behaviour sanitizers; those of C under the
thread sanitizer, and under valgrind. The table goes to build/san.txt."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "san"
RESULTS = ROOT / "build" / "san.txt"
LIBRARIES = os.environ.get("MREC_LDFLAGS") or subprocess.check_output(
    ["pkg-config", "--libs", "libdeflate", "libzstd"], text=True
)
#: What calls into the core, without the tests that preload a library of their own.
SUITE = ["kernels", "zarr", "trajectory", "record", "pack", "flips", "test_frame.py", "test_box.py"]
NOT = ["--deselect=tests/pack/test_faults.py"]


@pytest.fixture(scope="module", autouse=True)
def table() -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("what                                | outcome\n")


def note(what: str, outcome: str) -> None:
    with open(RESULTS, "a") as out:
        print(f"{what:35} | {outcome}", file=out)


def run(what: str, command: list[str], **options: object) -> str:
    """Run a program that must succeed; what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    output = done.stdout + done.stderr
    if done.returncode:
        note(what, f"failed with {done.returncode}")
        pytest.fail(f"{what}:\n{output[-5000:]}")
    return output


def build_c(name: str, *flags: str) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    sources = [*map(str, (ROOT / "csrc").glob("*.c")), *map(str, (ROOT / "csrc" / "tests").glob("*.c"))]
    include = [f"-I{ROOT}/csrc/include", f"-I{ROOT}/csrc", *shlex.split(os.environ.get("MREC_CFLAGS", ""))]
    command = ["gcc", "-std=c11", "-O1", "-g", *flags, *include, *sources, *shlex.split(LIBRARIES), "-pthread", "-lm"]
    run(f"building {name}", [*command, "-o", str(BUILD / name)])
    return BUILD / name


def test_c_under_the_thread_sanitizer() -> None:
    program = build_c("tests-tsan", "-fsanitize=thread")
    run("C, thread sanitizer", [str(program)])
    note("C, thread sanitizer", "no report")


def test_c_under_valgrind() -> None:
    if shutil.which("valgrind") is None:
        note("C, valgrind", "not run: valgrind is missing")
        pytest.skip("valgrind is missing")
    program = build_c("tests-plain")
    options = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=all", "--fair-sched=yes"]
    output = run("C, valgrind", ["valgrind", *options, str(program)])
    errors = re.findall(r"ERROR SUMMARY: .*", output)
    note("C, valgrind", errors[-1])


def test_python_under_the_address_sanitizer(tmp_path: Path) -> None:
    tree = BUILD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__", "*.so")
    for name in ("mrec", "csrc", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignore)
    for name in ("setup.py", "pyproject.toml", "conftest.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    flags = "-g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
    environ = {**os.environ, "CC": "gcc", "CFLAGS": flags, "LDFLAGS": "-fsanitize=address,undefined"}
    run("building the extension", [sys.executable, "setup.py", "build_ext", "--inplace"], cwd=tree, env=environ)
    find = lambda name: subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()  # noqa: E731
    environ |= {
        "LD_PRELOAD": f"{find('libasan.so')} {find('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",  # the interpreter keeps what it has
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(tree),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"--basetemp={tmp_path}", "-p", "no:cacheprovider", *NOT]
    output = run("Python, address and UB", [*command, *(f"tests/{s}" for s in SUITE)], cwd=tree, env=environ)
    note("Python, address and UB", output.strip().splitlines()[-1].strip("= "))

# SPDX-License-Identifier: BSD-3-Clause
"""The tests of Python with the extension under the address and undefined-behaviour sanitizers; those of C under the
thread sanitizer, and under valgrind."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.long.results import save

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "san"
LIBRARIES = os.environ.get("MREC_LDFLAGS") or subprocess.check_output(
    ["pkg-config", "--libs", "libdeflate", "libzstd"], text=True
)
#: What calls into the core, without the tests that preload a library of their own.
SUITE = ["kernels", "zarr", "trajectory", "record", "collection", "pack", "flips", "test_frame.py", "test_box.py"]
NOT = [f"--ignore=tests/{name}.py" for name in ("pack/test_faults", "record/test_faults", "collection/test_kill")]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, str]]:
    """What was run -> what came of it; saved in the end."""
    started, found = time.monotonic(), {}
    yield found
    save("san", 0, time.monotonic() - started, {"outcomes": found})


def run(what: str, command: list[str], **options: Any) -> str:
    """Run a program that must succeed; what it printed."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    output = done.stdout + done.stderr
    assert done.returncode == 0, f"{what}: {done.returncode}\n{output[-5000:]}"
    return output


def build_c(name: str, *flags: str) -> Path:
    BUILD.mkdir(parents=True, exist_ok=True)
    sources = [*map(str, (ROOT / "csrc").glob("*.c")), *map(str, (ROOT / "csrc" / "tests").glob("*.c"))]
    include = [f"-I{ROOT}/csrc/include", f"-I{ROOT}/csrc", *shlex.split(os.environ.get("MREC_CFLAGS", ""))]
    command = ["gcc", "-std=c11", "-O1", "-g", *flags, *include, *sources, *shlex.split(LIBRARIES), "-pthread", "-lm"]
    run(f"building {name}", [*command, "-o", str(BUILD / name)])
    return BUILD / name


def test_c_under_the_thread_sanitizer(outcomes: dict[str, str]) -> None:
    program = build_c("tests-tsan", "-fsanitize=thread")
    run("the thread sanitizer", [str(program)])
    outcomes["C tests, thread sanitizer"] = "no report"


def test_c_under_valgrind(outcomes: dict[str, str]) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is missing")
    program = build_c("tests-plain")
    options = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=all", "--fair-sched=yes"]
    output = run("valgrind", ["valgrind", *options, str(program)])
    outcomes["C tests, valgrind"] = re.findall(r"ERROR SUMMARY: (.*)", output)[-1]


def test_python_under_the_address_sanitizer(tmp_path: Path, outcomes: dict[str, str]) -> None:
    tree = BUILD / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__", "*.so")
    for name in ("mrec", "csrc", "tests", "examples"):
        shutil.copytree(ROOT / name, tree / name, ignore=ignore)
    for name in ("setup.py", "pyproject.toml", "conftest.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    flags = "-g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
    environ = {**os.environ, "CC": "gcc", "CFLAGS": flags, "LDFLAGS": "-fsanitize=address,undefined"}
    run("building the extension", [sys.executable, "setup.py", "build_ext", "--inplace"], cwd=tree, env=environ)
    runtimes = [run("gcc", ["gcc", f"-print-file-name={name}"]).strip() for name in ("libasan.so", "libubsan.so")]
    environ |= {
        "LD_PRELOAD": " ".join(runtimes),
        # The interpreter keeps what it has; some tests measure what stays of what was freed.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:quarantine_size_mb=16",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(tree),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", f"--basetemp={tmp_path}", "-p", "no:cacheprovider", *NOT]
    output = run("the address sanitizer", [*command, *(f"tests/{s}" for s in SUITE)], cwd=tree, env=environ)
    outcomes["Python tests, address and undefined-behaviour sanitizers"] = output.strip().splitlines()[-1].strip("= ")

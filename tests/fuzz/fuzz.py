# SPDX-License-Identifier: BSD-3-Clause
"""Builds and runs the fuzz targets, in C and in Python, and tells what came of it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "fuzz"
#: Several threads ask for programs.
_BUILDING = threading.Lock()

FLAGS = [
    *("-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/csrc/include", f"-I{ROOT}/csrc"),
    *("-fsanitize=address,undefined", "-fno-sanitize-recover=all", *shlex.split(os.environ.get("MREC_CFLAGS", ""))),
]


@dataclass(frozen=True)
class Target:
    """A program to feed with inputs of at most `longest` bytes; memory: MiB that it may take in one piece (C).

    seconds: how long every day.
    """

    name: str
    longest: int = 4096
    memory: int = 0
    seconds: int = 60

    @property
    def in_c(self) -> bool:
        """Whether it is <name>.c, not <name>.py."""
        return self.memory > 0


TARGETS = [
    Target("document", 16384),
    Target("durable", 16384),
    Target("zip", 16384),
    Target("collection", 16384, seconds=20),
    Target("segment", memory=1, seconds=20),
    Target("packed", memory=1, seconds=20),
    Target("metrics", 4096, seconds=20),
    Target("stream", 4096, seconds=20),
    Target("array", 8192, seconds=20),
    Target("shard", memory=320),
    Target("codec", memory=4),
    Target("index", memory=1),
    Target("vlen", memory=1),
]


@dataclass(frozen=True)
class Run:
    """What one run of a target came to. finding: the input that did it and the end of the output; "" for none."""

    target: str
    cpu_seconds: float
    executions: int
    edges: int
    features: int
    finding: str


def command(target: Target) -> list[str]:
    """The program, built when it has to be. Skips the test where it can not be."""
    if target.in_c:
        with _BUILDING:
            program = _build(target.name)
        return [str(program), f"-malloc_limit_mb={target.memory}"]
    pytest.importorskip("atheris")
    return [sys.executable, "-m", "tests.fuzz.driver", target.name]


@cache
def _clang() -> str:
    """The compiler, once it is known to have libFuzzer."""
    clang = shutil.which("clang")
    if clang is None:
        pytest.skip("clang is missing")
    BUILD.mkdir(parents=True, exist_ok=True)
    probe = [clang, "-fsanitize=fuzzer", "-x", "c", "-", "-o", BUILD / "probe"]
    nothing = b"int LLVMFuzzerTestOneInput(const char *data, long n) { return data != 0 && n < 0; }"
    if subprocess.run(probe, input=nothing, capture_output=True).returncode:
        pytest.skip("clang has no libFuzzer (on Debian: libclang-rt-<version>-dev)")
    return clang


@cache
def _library() -> Path:
    """The core, compiled to be fuzzed."""
    objects = BUILD / "core"
    shutil.rmtree(objects, ignore_errors=True)
    objects.mkdir(parents=True)
    sources = sorted(map(str, (ROOT / "csrc").glob("*.c")))
    small = "-DMREC_LEFT_OUT=0"  # parts of chunks are read of the smallest, too
    subprocess.run([_clang(), *FLAGS, small, "-fsanitize=fuzzer-no-link", "-c", *sources], cwd=objects, check=True)
    library = objects / "core.a"
    subprocess.run(["ar", "rcs", library, *sorted(objects.glob("*.o"))], check=True)
    return library


@cache
def _build(name: str) -> Path:
    find = ["pkg-config", "--libs", "libdeflate", "libzstd"]
    found = os.environ.get("MREC_LDFLAGS") or subprocess.check_output(find, text=True)
    link = ["-fsanitize=fuzzer", "-Wl,--wrap=nanosleep", _library(), *shlex.split(found), "-pthread", "-lm"]
    subprocess.run([_clang(), *FLAGS, HERE / f"{name}.c", *link, "-o", BUILD / name], check=True)
    return BUILD / name


def run(target: Target, seconds: int, folder: Path, seed: int = 1) -> Run:
    """Fuzz for so long, from the corpus beside this file; nothing of what was found gets lost, it is in `folder`."""
    corpus, seeds = folder / "corpus", folder / "seeds"
    corpus.mkdir(parents=True)
    with zipfile.ZipFile(HERE / "corpus" / f"{target.name}.zip") as archive:
        archive.extractall(seeds)
    options = [f"-max_total_time={seconds}", f"-seed={seed}", f"-max_len={target.longest}", "-use_value_profile=1"]
    options += ["-timeout=20", "-rss_limit_mb=1500", "-print_final_stats=1", f"-artifact_prefix={folder}/"]
    log = folder / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen(
            [*command(target), *options, str(corpus), str(seeds)], cwd=ROOT, stdout=out, stderr=subprocess.STDOUT
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = log.read_text(errors="replace")
    finding = ""
    if process.returncode:
        inputs = sorted(p.name for p in folder.iterdir() if p.is_file() and p != log)
        finding = f"{target.name} ended with {process.returncode}, inputs {inputs} in {folder}:\n{text[-3000:]}"
    pulses = re.findall(r"^#(\d+)\s.* cov: (\d+) ft: (\d+)", text, re.M)
    executions, edges, features = map(int, pulses[-1]) if pulses else (0, 0, 0)
    return Run(target.name, usage.ru_utime + usage.ru_stime, executions, edges, features, finding)


def replay(target: Target, inputs: list[Path]) -> subprocess.CompletedProcess[str]:
    """Run single inputs."""
    options = ["-timeout=20", *map(str, inputs)]
    return subprocess.run([*command(target), *options], cwd=ROOT, capture_output=True, text=True)

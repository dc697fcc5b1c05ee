# SPDX-License-Identifier: BSD-3-Clause
"""The kernels with NEON: their C tests under an emulator, and the same frames as here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from mrec import _core
from mrec.bench.data import liquid
from mrec.bench.peer import rounded

ROOT = Path(__file__).parents[2]
COMPILER, EMULATOR = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
SOURCES = ["cpu", "crc32c", "fse", "huffman", "matches", "quantize", "runs", "shuffle", "zframe", "zsequences"]

pytestmark = pytest.mark.skipif(
    COMPILER is None or EMULATOR is None,
    reason="needs a cross compiler and an emulator: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> list[str]:
    folder = tmp_path_factory.mktemp("arm")
    (folder / "libdeflate.h").write_text(
        "#include <stddef.h>\n#include <stdint.h>\nuint32_t libdeflate_crc32(uint32_t, const void *, size_t);\n"
    )
    csrc = ROOT / "csrc"
    sources = [csrc / f"{name}.c" for name in SOURCES] + [
        csrc / "tests/test_kernels.c",
        Path(__file__).parent / "arm.c",
    ]
    include = [f"-I{path}" for path in (csrc, csrc / "include", csrc / "tests", folder)]
    options = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread"]
    subprocess.run([COMPILER, *options, *include, *sources, "-lm", "-o", folder / "kernels"], check=True)
    return [EMULATOR, str(folder / "kernels")]


def test_kernels(program):
    result = subprocess.run([*program, "kernels"], check=True, capture_output=True, text=True)
    assert int(result.stdout, 16) & 1  # with the processor's crc32 instructions too


@pytest.mark.parametrize("atoms", [99, 5001])
def test_the_same_frames(program, atoms):
    xyz = rounded(liquid(atoms, 21), 1e-3)
    for values in (np.ascontiguousarray(xyz[:, 0]), xyz[0], np.float32(xyz[0]), xyz[0] * 1.1):
        size = values.itemsize
        planes = _core.shuffle(values, size)
        codecs = [("bytes", {}), ("numcodecs.shuffle", {"elementsize": size}), ("zstd", {"level": 3})]
        made = subprocess.run([*program, "encode", str(size)], input=planes, check=True, capture_output=True).stdout
        assert made == _core.encode(codecs, values)

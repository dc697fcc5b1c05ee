# SPDX-License-Identifier: BSD-3-Clause
"""The writer without Python: as one C file, and as a library that pkg-config finds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mrec
from tests.embed.conftest import ROOT, Installed, declared_functions

HEADER = (ROOT / "csrc/include/mrec.h").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def prefix(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where make install has put the library."""
    folder = tmp_path_factory.mktemp("prefix") / "usr"
    installed.run("make", "install", f"PREFIX={folder}", cwd=installed.tree)
    return folder


def flags(prefix: Path, *options: str) -> list[str]:
    env = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig:{os.environ.get('PKG_CONFIG_PATH', '')}"}
    command = ["pkg-config", *options, "mrec"]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout.split()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_one_file_compiles_without_a_word(compiler: str, installed: Installed, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    options = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    installed.run(compiler, *options, "-c", installed.include / "mrec.c", "-o", "mrec.o", cwd=tmp_path)


def test_make_writes_the_file_that_the_wheel_has(installed: Installed, prefix: Path) -> None:
    made = installed.tree / "build/amalgamation"
    assert (made / "mrec.c").read_bytes() == (installed.include / "mrec.c").read_bytes()
    assert (made / "mrec.h").read_bytes() == (prefix / "include/mrec.h").read_bytes() == HEADER.encode()


@pytest.mark.parametrize("linking", ["shared", "static"])
def test_a_program_finds_it_by_pkg_config(linking: str, prefix: Path, installed: Installed, tmp_path: Path) -> None:
    linked = flags(prefix, "--libs") if linking == "shared" else flags(prefix, "--static", "--libs")
    if linking == "static":
        linked = [str(prefix / "lib/libmrec.a") if flag == "-lmrec" else flag for flag in linked]
    source = ROOT / "examples/lennard_jones/lj.c"
    installed.run("cc", "-O1", source, *flags(prefix, "--cflags"), *linked, "-lm", "-o", "lj", cwd=tmp_path)
    loaded = {} if linking == "static" else {"LD_LIBRARY_PATH": prefix / "lib", "DYLD_LIBRARY_PATH": prefix / "lib"}
    installed.run("./lj", "run.mrec", 3, 5, cwd=tmp_path, **loaded)
    trajectory = mrec.open(tmp_path / "run.mrec").trajectory
    assert trajectory.steps.tolist() == [0, 1, 2, 3, 4]
    assert trajectory.read("atoms", ["x", "y", "z"]).shape == (5, 27, 3)
    assert mrec.verify(tmp_path / "run.mrec").ok


def test_pkg_config_tells_the_version(prefix: Path, installed: Installed) -> None:
    (version,) = flags(prefix, "--modversion")
    assert f"mrec-{version}-" in installed.wheel.name


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("nm"), reason="reads the table of an ELF library")
def test_the_library_shows_what_the_header_declares(prefix: Path, installed: Installed) -> None:
    listed = installed.run("nm", "-D", "--defined-only", prefix / "lib/libmrec.so", cwd=prefix)
    shown = {line.split()[2] for line in listed.splitlines()}
    assert shown == declared_functions()


def test_a_name_in_two_files_is_refused(installed: Installed, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("csrc", "tools"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("LICENSE", "pyproject.toml"):
        shutil.copy(ROOT / name, tree / name)
    with (tree / "csrc/vlen.c").open("a", encoding="utf-8") as file:
        file.write("\nstatic int should_land(void) {\n    return 0;\n}\n")
    script = [sys.executable, "tools/amalgamate.py", "out"]
    done = subprocess.run(script, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "amalgamate: should_land is in vlen.c and in writer.c; give one of them another name\n"

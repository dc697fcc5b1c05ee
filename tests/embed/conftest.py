# SPDX-License-Identifier: BSD-3-Clause
"""A wheel of this tree, installed where nothing of the tree is on the path."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("csrc", "licenses", "mrec", "tools")
SOURCES = (*FOLDERS, "Makefile", "MANIFEST.in", "README.md", "LICENSE", "pyproject.toml", "setup.py")


@dataclass(frozen=True)
class Installed:
    """tree: what the wheel was built from. environment: a virtual environment that has it. include: its headers."""

    tree: Path
    environment: Path
    include: Path
    wheel: Path

    def run(self, *command: object, cwd: Path, **variables: object) -> str:
        """What a command prints, with this environment's Python first on the path."""
        env = apart()
        env |= {"PATH": f"{self.environment}/bin:{env['PATH']}", "CFLAGS": "-O0", "OMP_WAIT_POLICY": "passive"}
        env |= {name: str(value) for name, value in variables.items()}
        done = subprocess.run([*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code: str, cwd: Path) -> str:
        """What Python code prints."""
        return self.run("python", "-X", "dev", "-c", code, cwd=cwd)

    def extension(
        self, folder: Path, name: str, *sources: Path, compiler: str = "cc", include: Path | None = None
    ) -> None:
        """Compile an extension module into a folder."""
        paths = [f"-I{include or self.include}", f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        flags = ["-O0", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC"]
        flags += ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        self.run(compiler, *flags, *paths, *sources, "-o", f"{name}{suffix}", cwd=folder)


def declared_functions() -> set[str]:
    """The names of all functions of mrec.h."""
    header = (ROOT / "csrc/include/mrec.h").read_text(encoding="utf-8")
    return set(re.findall(r"^[A-Za-z][\w ]*[ *](mrec_\w+)\(", header, re.M))


def apart() -> dict[str, str]:
    """The environment variables, without what shows Python the tree."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def libraries() -> list[str]:
    """The linker's flags for what the writer is linked with."""
    if flags := os.environ.get("MREC_LDFLAGS"):
        return flags.split()
    command = ["pkg-config", "--libs", "libdeflate", "libzstd"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def build_wheel(tree: Path, folder: Path) -> Path:
    """Not optimized, which is most of the time that building takes."""
    flags = f"{os.environ.get('MREC_CFLAGS', '')} -O0"
    env = {**os.environ, "MREC_CFLAGS": flags, "MREC_LDFLAGS": " ".join(libraries())}
    options = [
        "--no-build-isolation",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
        "-q",
        "-w",
        str(folder),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, str(tree)], cwd=tree, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return next(folder.glob("mrec-*.whl"))


def make_environment(folder: Path, wheel: Path) -> Path:
    """The wheel, and behind it the packages of this interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    options = ["--no-deps", "--no-index", "--disable-pip-version-check", "-q"]
    python = f"{folder}/bin/python"
    command = [sys.executable, "-m", "pip", "--python", python, "install", *options, str(wheel)]
    subprocess.run(command, cwd=folder, env=apart(), check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    others = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "others.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in others))
    return packages


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    tree = folder / "tree"
    tree.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            made = shutil.ignore_patterns("*.so", "_core.c", "__pycache__")
            shutil.copytree(ROOT / name, tree / name, symlinks=True, ignore=made)
        else:
            shutil.copy(ROOT / name, tree / name)
    wheel = build_wheel(tree, folder / "dist")
    packages = make_environment(folder / "environment", wheel)
    return Installed(tree, folder / "environment", packages / "mrec/include", wheel)

# SPDX-License-Identifier: BSD-3-Clause
"""Builds the one extension module, mrec._core, from csrc/ and mrec/_core.pyx against the system's libdeflate and zstd.

The two libraries are found by pkg-config. To use others, set before building
    LIBDEFLATE_DIR, ZSTD_DIR     prefixes that hold include/ and lib/, either or both
    MREC_CFLAGS, MREC_LDFLAGS    the flags themselves; then nothing is searched
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from glob import glob
from pathlib import Path

import numpy
from Cython.Distutils import build_ext
from setuptools import Extension, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
LIBRARIES = {"libdeflate": ("LIBDEFLATE_DIR", "-ldeflate"), "libzstd": ("ZSTD_DIR", "-lzstd")}

MISSING = """mrec needs {0} with headers, found by pkg-config:
    Debian, Ubuntu    apt-get install pkg-config libdeflate-dev libzstd-dev
    Fedora, RHEL      dnf install pkgconf libdeflate-devel libzstd-devel
    macOS             brew install pkgconf libdeflate zstd
Where they lie elsewhere, set LIBDEFLATE_DIR and ZSTD_DIR, or MREC_CFLAGS and MREC_LDFLAGS."""


def pkg_config(what: str, library: str) -> list[str]:
    command = [os.environ.get("PKG_CONFIG", "pkg-config"), what, library]
    return shlex.split(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def library_flags() -> tuple[list[str], list[str]]:
    """What the compiler and the linker need to find libdeflate and libzstd."""
    if "MREC_LDFLAGS" in os.environ:
        return shlex.split(os.environ.get("MREC_CFLAGS", "")), shlex.split(os.environ["MREC_LDFLAGS"])
    compile_flags, link_flags, missing = [], [], []
    for library, (variable, link) in LIBRARIES.items():
        if prefix := os.environ.get(variable):
            compile_flags += [f"-I{prefix}/include"]
            link_flags += [f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib", link]
            continue
        try:
            compile_flags += pkg_config("--cflags", library)
            link_flags += pkg_config("--libs", library)
        except (OSError, subprocess.CalledProcessError):
            missing.append(library)
    if missing:
        sys.exit(MISSING.format(" and ".join(missing)))
    return compile_flags, link_flags


class BuildExtension(build_ext):
    """Looks for the libraries only when something is compiled, so that an sdist needs none of them."""

    def build_extensions(self) -> None:
        compile_flags, link_flags = library_flags()
        for extension in self.extensions:
            extension.cython_include_dirs = [str(ROOT)]
            extension.extra_compile_args += compile_flags
            extension.extra_link_args += link_flags
        super().build_extensions()


class BuildPackage(build_py):
    """Puts the writer as one C file beside the headers that the wheel carries."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            script = str(ROOT / "tools/amalgamate.py")
            subprocess.run([sys.executable, script, f"{self.build_lib}/mrec/include"], check=True)


if sys.platform == "win32":
    sys.exit("mrec does not build on Windows yet: its writer needs POSIX files and locks.")

setup(
    ext_modules=[
        Extension(
            "mrec._core",
            ["mrec/_core.pyx", *sorted(glob("csrc/*.c"))],
            depends=[*glob("csrc/*.h"), *glob("mrec/include/*.h"), *glob("mrec/core/*.pxi"), *glob("mrec/*.pxd")],
            include_dirs=["mrec/include", "csrc", numpy.get_include()],
            define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
            extra_compile_args=["-std=c11", "-O3", "-fvisibility=hidden", "-pthread"],
            extra_link_args=["-pthread"],
        )
    ],
    cmdclass={"build_ext": BuildExtension, "build_py": BuildPackage},
)

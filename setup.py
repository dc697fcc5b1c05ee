# SPDX-License-Identifier: BSD-3-Clause
"""Builds the one extension module, mrec._core, from csrc/ and mrec/_core.pyx against the system's libdeflate and zstd."""

from __future__ import annotations

from glob import glob

from Cython.Build import cythonize
from setuptools import Extension, setup

extension = Extension(
    "mrec._core",
    ["mrec/_core.pyx", *sorted(glob("csrc/*.c"))],
    include_dirs=["csrc/include", "csrc"],
    libraries=["deflate", "zstd"],
    extra_compile_args=["-std=c11", "-O3"],
)
setup(ext_modules=cythonize([extension], include_path=["mrec/core"]))

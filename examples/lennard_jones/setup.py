# SPDX-License-Identifier: BSD-3-Clause
"""python setup.py build_ext --inplace"""

from Cython.Build import cythonize
from setuptools import Extension, setup

import mrec

extension = Extension("lj_cython", ["lj_cython.pyx"], include_dirs=[mrec.get_include()])
setup(name="lj", ext_modules=cythonize([extension]))

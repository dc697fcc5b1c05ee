# SPDX-License-Identifier: BSD-3-Clause
"""preload.c: a library that a whole program is run with, so that one of its calls fails, is interrupted, or ends it."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KILL, FAIL, INTERRUPT = 1, 2, 3
DONE, FAILED, INTERRUPTED, WRONG = range(4)
ACTIONS = {"kill": KILL, "fail": FAIL, "interrupt": INTERRUPT}

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the faults are made by LD_PRELOAD")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, built."""
    folder = tmp_path_factory.mktemp("preload")
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("there is no C compiler")
    made = folder / "preload.so"
    source = Path(__file__).with_name("preload.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


def run(library: Path, module: str, *arguments: str) -> str:
    """What python -m MODULE prints when it runs with the library."""
    call = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": str(library)}
    done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded() -> ctypes.CDLL:
    """The library's functions, in a program that runs with it."""
    shim = ctypes.CDLL(None)
    shim.fault_fired.restype = ctypes.c_char_p
    shim.fault_arm.argtypes = ctypes.c_long, ctypes.c_int, ctypes.c_int
    return shim


def struck(shim: ctypes.CDLL, n: int, action: int, work: Callable[[], object]) -> tuple[int, str]:
    """Do the work with its n-th call hit: how it ended, and the call, "" when there were fewer."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    code = WRONG
    try:
        shim.fault_arm(n, action, errno.ENOSPC)
        work()
        code = DONE
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as e:
        code = FAILED if e.errno == errno.ENOSPC else WRONG
    finally:
        call = shim.fault_fired().decode()
        shim.fault_arm(-1, 0, 0)
    return code, call

# SPDX-License-Identifier: BSD-3-Clause
"""Single figures that no job gives: what a call costs, how many syncs a flush makes, how memory grows.

`python -m mrec.bench.probes NAME FOLDER` runs one in a process of its own and prints its figures as JSON.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import mrec
from mrec.bench import native
from mrec.bench.job import measured
from mrec.bench.peer import XYZ
from mrec.bench.report import Missing
from mrec.bench.worker import use_cores
from mrec.errors import MrecError

Figures = dict[str, float]

MODULE = "mrec.bench.probes"
CALLS = 4  # timed together: most of these complete no chunk
FLUSHES = 20
MARK = "/flush"  # a path that is looked up around each flush, and so stands in the trace


def append_call(folder: Path) -> Figures:
    """append() of 100 atoms from Python, and copying their 2400 bytes: nanoseconds, in runs that land nothing."""
    rng = np.random.default_rng(0)
    xyz = rng.uniform(0, 30, (64, 3, 100))
    frames = [dict(zip(XYZ, frame, strict=True)) for frame in xyz]
    found = {}
    for name, precision in (("raw", None), ("p=1e-3", 1e-3)):
        with _writer(folder / "call.mrec", 100, precision) as writer:
            times = []
            for i in range(0, 20000, CALLS):
                start = time.perf_counter_ns()
                for k in range(i, i + CALLS):
                    writer.append(k, atoms=frames[k % 64])
                times.append((time.perf_counter_ns() - start) / CALLS)
        found[f"{name}, ns"] = statistics.median(times)
        shutil.rmtree(folder / "call.mrec")
    copies, into = [], np.empty_like(xyz)
    for _ in range(200):
        start = time.perf_counter_ns()
        np.copyto(into, xyz)
        copies.append((time.perf_counter_ns() - start) / 64)
    return found | {"copy, ns": statistics.median(copies)}


def append_call_in_c(folder: Path) -> Figures:
    """The same from C."""
    program = native.build("call", folder)
    runs = []
    for _ in range(5):
        out = subprocess.run([program, folder / "call.mrec"], check=True, capture_output=True, text=True).stdout
        runs.append([float(word) for word in out.split()])
        shutil.rmtree(folder / "call.mrec")
    calls, copies = zip(*runs, strict=True)
    return {"raw, ns": statistics.median(calls), "copy, ns": statistics.median(copies)}


def open_closed(folder: Path) -> Figures:
    """Opening a closed record of ten arrays, and its trajectory, in milliseconds: of few frames and of many."""
    found = {}
    for frames in (100, 100_000):
        schema = mrec.Schema().block("atoms", rows=1)
        for k in range(8):
            schema.column(f"c{k}", "f64")
        schema.value("pe", "f64").value("temp", "f64")
        path = folder / "open.mrec"
        columns = {f"c{k}": np.zeros((frames, 1)) + np.arange(frames)[:, None] for k in range(8)}
        with mrec.TrajectoryWriter(path, schema, durable=False) as writer:
            values = np.arange(frames, dtype=np.float64)
            writer.append_many(np.arange(frames), atoms=columns, pe=values, temp=values)
        times = []
        for _ in range(50):
            start = time.perf_counter()
            record = mrec.open(path)
            assert len(record.trajectory) == frames
            times.append(1e3 * (time.perf_counter() - start))
            record.close()
        found[f"{frames} frames, ms"] = statistics.median(times)
        shutil.rmtree(path)
    return found


def durable_flush(folder: Path) -> Figures:
    """A durable flush of one frame of four columns: how many syncs, how many they may be, and how long it takes.

    May be: data files and documents that changed, new directories, and 4.
    """
    program = shutil.which("strace")
    if program is None:
        raise Missing("needs strace")
    trace = folder / "trace"
    calls = "fsync,fdatasync,sync_file_range,pwrite64,pwritev,rename,renameat,renameat2,mkdir,mkdirat,access,faccessat"
    command = [program, "-f", "-y", "-o", str(trace), "-e", f"trace={calls}", sys.executable, "-m", MODULE]
    subprocess.run([*command, "_flushes", str(folder)], check=True, env=_environment(), capture_output=True)
    parts = trace.read_text().split(f'"{MARK}"')[1::2]  # what stands between a mark and the next
    syncs, may = zip(*(_syncs(part) for part in parts[1:]), strict=True)  # the first one made files
    return _flushes(folder) | {"syncs": statistics.median(syncs), "syncs allowed": statistics.median(may)}


def _syncs(part: str) -> tuple[int, int]:
    """How many syncs one flush made, and how many it might."""
    made = len(re.findall(r"\b(?:fsync|fdatasync|sync_file_range)\(", part))
    data = set(re.findall(r"\bpwrite(?:64|v)\(\d+<([^>]*/c/\d+)>", part))
    documents = len(re.findall(r"\brename\w*\(.*zarr\.json", part)) + len(re.findall(r"\brename\w*\(.*\.durable", part))
    return made, len(data) + documents + len(re.findall(r"\bmkdir\w*\(", part)) + 4


def _flushes(folder: Path) -> Figures:
    """The flushes themselves, and fdatasync of a small change beside them, in turn: microseconds."""
    schema = mrec.Schema().block("atoms", rows=100)
    for name in ("x", "y", "z", "q"):
        schema.column(name, "f64")
    xyz = np.random.default_rng(0).uniform(0, 30, (FLUSHES, 4, 100))
    flushes, syncs = [], []
    file = os.open(folder / "synced", os.O_CREAT | os.O_WRONLY)
    with mrec.TrajectoryWriter(folder / "flush.mrec", schema, durable_every=None) as writer:
        for i, (x, y, z, q) in enumerate(xyz):
            writer.append(i, atoms={"x": x, "y": y, "z": z, "q": q})
            os.access(MARK, os.F_OK)
            start = time.perf_counter()
            writer.flush()
            flushes.append(1e6 * (time.perf_counter() - start))
            os.access(MARK, os.F_OK)
            os.pwrite(file, x, 800 * i)
            start = time.perf_counter()
            os.fdatasync(file)
            syncs.append(1e6 * (time.perf_counter() - start))
    os.close(file)
    shutil.rmtree(folder / "flush.mrec")
    return {"flush, us": statistics.median(flushes[1:]), "fdatasync, us": statistics.median(syncs[1:])}


def memory(folder: Path) -> Figures:
    """By how much memory rises at most while 5000 atoms are appended, for few frames and for ten times as many: MiB."""
    xyz = np.random.default_rng(0).uniform(0, 30, (16, 3, 5000))
    frames = [dict(zip(XYZ, frame, strict=True)) for frame in xyz]
    found = {}
    for name, precision in (("raw", None), ("p=1e-3", 1e-3)):
        for count in (100, 1000):
            path = folder / "memory.mrec"

            def work(path: Path = path, count: int = count, precision: float | None = precision) -> int:
                with _writer(path, 5000, precision) as writer:
                    for i in range(count):
                        writer.append(i, atoms=frames[i % 16])
                return count

            peak = measured(work).peak_bytes
            if peak is None:
                raise Missing("the system does not tell the peak of memory")
            found[f"{name}, {count} frames, MiB"] = peak / 2**20
            shutil.rmtree(path)
    return found


def instructions(folder: Path) -> Figures:
    """Of C programs, by callgrind: a frame that is appended (three columns), a megabyte of a column that is read."""
    append, read = native.build("append", folder), native.build("read", folder)
    found = {}
    for name, case in native.APPENDS.items():
        count = native.append_instructions(append, folder, case)
        found[f"append, {name}: a frame"] = count
        found[f"append, {name}: a MB"] = count * 1e6 / (24 * case[0])
    for name, reading in native.READS.items():
        count = native.read_instructions(append, read, folder, reading)
        found[f"read a column, {name}: a frame"] = count
        found[f"read a column, {name}: a MB"] = count * 1e6 / (8 * reading[0])
    return found


PROBES: dict[str, Callable[[Path], Figures]] = {
    "append call": append_call,
    "append call in C": append_call_in_c,
    "open": open_closed,
    "durable flush": durable_flush,
    "memory": memory,
    "instructions": instructions,
}


def run(name: str, folder: Path) -> dict[str, Any]:
    """One of them: {"about", "figures"}, or {"about", "missing": reason}.

    It runs in a process of its own, with a directory of its own in `folder`.
    """
    about = (PROBES[name].__doc__ or "").strip().partition("\n")[0]
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="probe-", dir=folder, ignore_cleanup_errors=True) as own:
        command = [sys.executable, "-m", MODULE, name, own]
        done = subprocess.run(command, capture_output=True, text=True, env=_environment(), check=False)
    if done.returncode:
        return {"about": about, "missing": (done.stderr.strip().splitlines() or ["it failed"])[-1]}
    answer: dict[str, Any] = json.loads(done.stdout)
    return {"about": about} | answer


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _writer(path: Path, atoms: int, precision: float | None) -> Any:
    schema = mrec.Schema().block("atoms", rows=atoms)
    for name in XYZ:
        schema.column(name, "f64", precision=precision)
    return mrec.TrajectoryWriter(path, schema, durable=False)


def main() -> None:
    """One probe, by its name."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    use_cores(1)
    if name == "_flushes":
        _flushes(folder)
        return
    try:
        print(json.dumps({"figures": PROBES[name](folder)}))
    except (Missing, MrecError) as e:
        print(json.dumps({"missing": str(e)}))


if __name__ == "__main__":
    main()

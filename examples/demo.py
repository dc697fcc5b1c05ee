# SPDX-License-Identifier: BSD-3-Clause
"""A real trajectory into a record and back, and a writer that is killed: `make demo`.

Rhodopsin, 5547 atoms, 51 frames (tests/data/rhodopsin). An XTC keeps coordinates to 0.01 angstrom; so does the record.
Leaves the records, the table and a picture in demo-out/.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import mrec
from mrec.cli import main as command
from mrec.cli.sizes import disk_usage, human
from mrec.interop import mdanalysis
from mrec.trajectory.reader import Trajectory

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "tests/data/rhodopsin"
XTC, GRO = DATA / "md_1u19.xtc", DATA / "md_1u19.gro"
OUT = ROOT / "demo-out"
PRECISION = 0.01  # angstrom, the grid of the XTC


def main() -> None:
    """Convert, compare, measure, draw."""
    OUT.mkdir(exist_ok=True)
    path = OUT / "rhodopsin.mrec"
    xtc, gro, made = map(os.path.relpath, (XTC, GRO, path))
    call = ["convert", xtc, "-t", gro, made, "--precision", str(PRECISION), "--overwrite"]
    print("$ mrec", *call)
    if command(call):
        sys.exit("the conversion failed")
    with mrec.open(path) as record:
        print(record.trajectory)
        trajectory = record.trajectory
        lines = [*sizes(path, trajectory), "", *compare(trajectory), "", *kill(path), "", *measure(record)]
    (OUT / "table.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(["", *lines]))
    print(f"\nleft in {OUT.name}/: rhodopsin.mrec, killed.mrec, table.txt, rhodopsin.png")


def sizes(path: Path, trajectory: Trajectory) -> Iterator[str]:
    """The same coordinates in three forms."""
    frames, rows = len(trajectory), trajectory[0]["atoms"].nrows
    raw = frames * rows * 3 * 4
    forms = {
        f"XTC, to {PRECISION} A": XTC.stat().st_size,
        "plain float32": raw,
        f"mrec, to {PRECISION} A": disk_usage(str(path / "trajectory"))[0],
        "mrec, with the topology": disk_usage(str(path))[0],
    }
    yield f"{'form':<26}{'size':>10}{'a frame':>10}{'of float32':>12}"
    for name, size in forms.items():
        yield f"{name:<26}{human(size):>10}{human(size / frames):>10}{size / raw:>12.1%}"


def compare(trajectory: Trajectory) -> Iterator[str]:
    """Every frame against the XTC; exits when anything is further off than stated."""
    worst, same_grid, count = 0.0, True, 0
    with mdanalysis.opened(str(XTC), str(GRO)) as source:
        for theirs, ours in zip(source.frames(), trajectory, strict=True):
            a, b = (np.stack([frame["atoms"][axis] for axis in "xyz"], 1) for frame in (theirs, ours))
            worst = max(worst, float(np.abs(a.astype(np.float64) - b).max()))
            same_grid &= np.array_equal(np.round(a.astype(np.float64) / PRECISION), np.round(b / PRECISION))
            count += a.size
            if (theirs.step, theirs.time, theirs.box) != (ours.step, ours.time, ours.box):
                sys.exit(f"frame {ours.index}: step, time or cell differ from the XTC")
    yield f"{count} coordinates read back: at most {worst:.5f} A from the XTC (stated: {PRECISION / 2} A)"
    yield "rounded to the grid of the XTC they are the XTC's own numbers, every one; steps, times and cells are equal"
    if worst > PRECISION / 2 or not same_grid:
        sys.exit(f"the record is {worst} A off, more than it states")


def kill(path: Path) -> Iterator[str]:
    """Kill a process that writes the frames over and over; exits when one that it had flushed is lost or wrong."""
    killed = path.with_name("killed.mrec")
    with subprocess.Popen([sys.executable, __file__, path, killed], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        flushed = next(n for n in map(int, writer.stdout) if n == 70)
        writer.kill()
    with mrec.open(path) as record, mrec.open(killed) as left:
        frames, source = left.trajectory, record.trajectory
        found = len(frames)
        if found < flushed or any(frame["atoms"] != source[i % len(source)]["atoms"] for i, frame in enumerate(frames)):
            sys.exit(f"{killed}: of {flushed} flushed frames {found} are there, or they are not what was written")
    with mrec.TrajectoryWriter.open(killed) as again:
        yield f"a writer was killed that had flushed {flushed} frames: {found} are there, each as it was written"
        yield f"opened again, it goes on at frame {again.nframes}, after step {again.last_step}"


def write(source: str, target: str) -> None:
    """Append and flush frames until killed, and say after each how many there are."""
    with mrec.open(source) as record:
        frames = list(record.trajectory)
        with mrec.TrajectoryWriter(target, record.trajectory.schema, overwrite=True) as writer:
            while True:
                frame = frames[writer.nframes % len(frames)]
                writer.append(writer.nframes, box=frame.box, atoms=frame["atoms"])
                writer.flush(durable=False)
                print(writer.nframes, flush=True)


def measure(record: mrec.Record) -> Iterator[str]:
    """Radius of gyration and RMSD of the alpha carbons, from the record alone."""
    alpha = np.flatnonzero(record.system["atoms"]["name"] == "CA")
    trajectory = record.trajectory
    xyz = trajectory.read("atoms", ["x", "y", "z"], rows=alpha)
    times, unit = trajectory.times, record.units["time"]
    centred = xyz - xyz.mean(axis=1, keepdims=True)
    gyration = np.sqrt((centred**2).sum(axis=2).mean(axis=1))
    deviation = np.array([superposed_rmsd(frame, centred[0]) for frame in centred])
    draw(times, gyration, deviation, unit)
    yield f"{len(alpha)} alpha carbons over {len(times)} frames, {times[0]:g} to {times[-1]:g} {unit}"
    yield f"radius of gyration  {gyration.mean():.2f} A, from {gyration.min():.2f} to {gyration.max():.2f}"
    yield f"RMSD from frame 0   {deviation[1:].mean():.2f} A, at the end {deviation[-1]:.2f}"


def superposed_rmsd(a: np.ndarray, b: np.ndarray) -> float:
    """The least root mean square distance of two centred point sets, (n, 3) each, over all rotations (Kabsch)."""
    spread = np.linalg.svd(a.T @ b, compute_uv=False)
    spread[2] *= np.sign(np.linalg.det(a.T @ b))
    return float(np.sqrt(max(0.0, (a**2).sum() + (b**2).sum() - 2 * spread.sum()) / len(a)))


def draw(times: np.ndarray, gyration: np.ndarray, deviation: np.ndarray, unit: str) -> None:
    """The picture."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 1, sharex=True, figsize=(7, 5), layout="constrained")
    for axis, values, label in zip(axes, (gyration, deviation), ("radius of gyration (Å)", "RMSD (Å)"), strict=True):
        axis.plot(times, values, marker=".")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_title("Rhodopsin, alpha carbons, read from rhodopsin.mrec")
    axes[1].set_xlabel(f"time ({unit})")
    figure.savefig(OUT / "rhodopsin.png", dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    if sys.argv[1:]:
        write(*sys.argv[1:])
    main()

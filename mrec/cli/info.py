# SPDX-License-Identifier: BSD-3-Clause
"""`mrec info`: what a record holds."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from typing import Any

from mrec.box import Box
from mrec.cli import collections
from mrec.cli.head import number
from mrec.cli.sizes import disk_usage, human
from mrec.display import counted
from mrec.frame import Frame


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("info", help="say what a record holds", description=__doc__)
    parser.add_argument("path", metavar="PATH", help="a record or a collection")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the summary."""
    if os.path.isfile(os.path.join(arguments.path, "output_manifest.json")):
        found = stream_summary(arguments.path)
        print(json.dumps(found, indent=1) if arguments.json else "\n".join(_stream_lines(arguments.path, found)))
        return
    if collections.is_collection(arguments.path):
        collections.info(arguments)
        return
    found = summary(arguments.path)
    if arguments.json:
        print(json.dumps(_as_json(found), indent=1, allow_nan=False))
    else:
        print("\n".join(_lines(arguments.path, found)))


def summary(path: str) -> dict[str, Any]:
    """What a record holds, as a JSON object: meta, bytes, files, sections, trajectory."""
    import mrec

    with mrec.open(path) as record:
        size, files = disk_usage(path)
        found: dict[str, Any] = {"bytes": size, "files": files, "meta": record.meta}
        for name in ("frame", "system"):
            section = getattr(record, name) if name in record else None
            if section is not None:
                found[name] = _section(section)
        if "trajectory" in record:
            found["trajectory"] = _trajectory(record.trajectory)
    return found


def stream_summary(path: str) -> dict[str, Any]:
    """What a stream holds, as a JSON object."""
    from mrec.stream import Stream

    size, files = disk_usage(path)
    m = Stream(path).manifest
    s = m.schema
    return {
        "bytes": size,
        "files": files,
        "manifest": m.version,
        "records": len(m.readable()),
        "last_t": m.last_t,
        "mode": s.mode_json()["kind"] + (" rotate" if s.mode.rotate else ""),
        "profile": s.profile,
        "dims": {d: m.n_records if d == s.time_dim else n for d, n in s.dims.items()},
        "variables": {n: {"dims": list(v.dims), "type": v.dtype} for n, v in s.variables.items()},
        "statics": {n: {"dims": list(v.dims), "type": v.dtype} for n, v in s.statics.items() if n in m.statics},
        "writers": len(m.writers),
        "epoch": m.epoch,
        "commit_seq": m.commit_seq,
        "attrs": m.attrs,
    }


def _stream_lines(path: str, found: dict[str, Any]) -> Iterator[str]:
    yield f"{path}: {human(found['bytes'])} in {counted(found['files'], 'file')}"
    last = "" if found["last_t"] is None else f", the last at {found['last_t']:.10g}"
    yield f"  stream ({found['mode']}, {found['profile']}): {counted(found['records'], 'record')} committed{last}"
    yield f"    {counted(found['writers'], 'writer')}, epoch {found['epoch']}, commit {found['commit_seq']}"
    yield "    " + ", ".join(f"{dim} {n}" for dim, n in found["dims"].items())
    for kind in ("variables", "statics"):
        for name, entry in found[kind].items():
            yield f"    {name} {entry['type']} ({', '.join(entry['dims'])})"
    for key, value in found["attrs"].items():
        yield f"  {key}: {json.dumps(value, ensure_ascii=False)}"


def _as_json(found: Any) -> Any:
    """The same with texts for the numbers that JSON has not: the angles of a flat cell."""
    if isinstance(found, dict):
        return {name: _as_json(value) for name, value in found.items()}
    if isinstance(found, list):
        return [_as_json(value) for value in found]
    return number(found) if isinstance(found, float) else found


def _section(frame: Frame) -> dict[str, Any]:
    blocks = {
        name: {"rows": block.nrows, "columns": {column: _type(values) for column, values in block.items()}}
        for name, block in frame.blocks.items()
    }
    return {"blocks": blocks, **({"cell": _cell(frame.box)} if frame.box is not None else {})}


def _type(values: Any) -> str:
    from mrec.dtypes import column_type

    return str(column_type(values.dtype)) + "".join(f"[{n}]" for n in values.shape[1:])


def _trajectory(trajectory: Any) -> dict[str, Any]:
    frames = len(trajectory)
    steps, times, schema = trajectory.steps, trajectory.times, trajectory.schema
    last = trajectory[-1] if frames else None
    found: dict[str, Any] = {"frames": frames, "schema": schema.to_json()}
    if frames:
        found["steps"] = [int(steps[0]), int(steps[-1])]
        found["times"] = None if times is None else [float(times[0]), float(times[-1])]
    if last is not None:
        found["rows"] = {name: block.nrows for name, block in last.blocks.items()}
        found["cell"] = None if last.box is None else _cell(last.box)
    if trajectory.recovered is not None:
        found["recovered"] = str(trajectory.recovered)
    return found


def _cell(box: Box) -> dict[str, Any] | None:
    if not box.defined:
        return None
    lengths, angles = box.lengths.tolist(), box.angles.tolist()
    return {"lengths": lengths, "angles": angles, "periodic": box.periodic.tolist(), "volume": box.volume}


def _lines(path: str, found: dict[str, Any]) -> Iterator[str]:
    yield f"{path}: {human(found['bytes'])} in {counted(found['files'], 'file')}"
    if "trajectory" in found:
        yield from _trajectory_lines(found["trajectory"])
    for name in ("frame", "system"):
        for block, entry in found.get(name, {}).get("blocks", {}).items():
            columns = ", ".join(f"{column} {kind}" for column, kind in entry["columns"].items())
            yield f"  {name}/{block}: {counted(entry['rows'], 'row')}: {columns or 'no columns'}"
    for key, value in found["meta"].items():
        yield f"  {key}: {json.dumps(value, ensure_ascii=False)}"


def _trajectory_lines(found: dict[str, Any]) -> Iterator[str]:
    from mrec.trajectory.schema import Schema

    yield f"  trajectory: {counted(found['frames'], 'frame')}" + "".join(
        f", {kind} {found[kind][0]:.10g} to {found[kind][1]:.10g}" for kind in ("steps", "times") if found.get(kind)
    )
    schema = Schema.from_json(found["schema"])
    for name, block in schema.blocks.items():
        block.rows = found.get("rows", {}).get(name, 0)
        yield f"    {block!r}"
    if schema.values:
        yield f"    per step: {', '.join(map(repr, schema.values.values()))}"
    if cell := found.get("cell"):
        yield f"    cell at the end: {_numbers(cell['lengths'])}, angles {_numbers(cell['angles'])}"
    if "recovered" in found:
        yield f"    {found['recovered']}"


def _numbers(values: list[float]) -> str:
    return " ".join(f"{value:.6g}" for value in values)

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec info`: what a record holds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from mrec.box import Box
from mrec.cli import collections
from mrec.cli.head import number
from mrec.cli.sizes import disk_usage, human
from mrec.frame import Frame


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("info", help="say what a record holds", description=__doc__)
    parser.add_argument("path", metavar="PATH", help="a record or a collection")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Print the summary."""
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

    size, files = disk_usage(path)
    with mrec.open(path) as record:
        found: dict[str, Any] = {"bytes": size, "files": files, "meta": dict(record.meta)}
        for name in ("frame", "system"):
            section = getattr(record, name) if name in record else None
            if section is not None:
                found[name] = _section(section)
        if "trajectory" in record:
            found["trajectory"] = _trajectory(record.trajectory)
    return found


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
    files = found["files"]
    yield f"{path}: {human(found['bytes'])} in {files} file{'s' if files != 1 else ''}"
    if "trajectory" in found:
        yield from _trajectory_lines(found["trajectory"])
    for name in ("frame", "system"):
        for block, entry in found.get(name, {}).get("blocks", {}).items():
            columns = ", ".join(f"{column} {kind}" for column, kind in entry["columns"].items())
            yield f"  {name}/{block}: {entry['rows']} rows: {columns or 'no columns'}"
    for key, value in found["meta"].items():
        yield f"  {key}: {json.dumps(value, ensure_ascii=False)}"


def _trajectory_lines(found: dict[str, Any]) -> Iterator[str]:
    from mrec.trajectory.schema import Schema

    yield f"  trajectory: {found['frames']} frames" + "".join(
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

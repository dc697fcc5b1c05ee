# SPDX-License-Identifier: BSD-3-Clause
"""What `mrec info`, `mrec ls` and `mrec verify` say of a collection."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from mrec.cli.sizes import human


def is_collection(path: str) -> bool:
    """Whether a directory holds a container."""
    return os.path.isfile(os.path.join(path, "data.atlas"))


def summary(path: str) -> dict[str, Any]:
    """A collection as a JSON object."""
    from mrec.collection import open_collection

    with open_collection(path) as found:
        variables = {}
        for name in found.variables:
            stats = found.stats(name)
            over = found.variable(name)
            variables[name] = {
                "datasets": len(over),
                "bytes": found.footer.segments[name][1],
                "min": None if stats is None else _plain(stats.min),
                "max": None if stats is None else _plain(stats.max),
                "elements": int(over.lengths.sum()),
            }
        keys = dict.fromkeys(key for schema in found.footer.schemas for key, _ in schema.attributes)
        return {
            "bytes": found.nbytes,
            "datasets": len(found),
            "deleted": len(found.deleted),
            "codec": found.codec,
            "created": str(found.created),
            "schemas": len(found.footer.schemas),
            "attributes": list(keys),
            "variables": variables,
        }


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and value - value != 0:
        return str(value)
    return value if value is None or isinstance(value, (int, float)) else str(value)


def info(arguments: argparse.Namespace) -> None:
    """`mrec info`."""
    found = summary(arguments.path)
    if arguments.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    deleted = f", {found['deleted']} deleted" if found["deleted"] else ""
    size = f"{human(found['bytes'])}, {found['codec']}"
    print(f"{arguments.path}: a collection of {found['datasets']} data sets{deleted}, {size}")
    for name, entry in found["variables"].items():
        print(
            f"  {name}: {entry['elements']} elements in {entry['datasets']} data sets, {entry['min']} to {entry['max']}"
        )
    if found["attributes"]:
        print(f"  attributes: {', '.join(found['attributes'])}")


def ls(arguments: argparse.Namespace) -> None:
    """`mrec ls`: every array of every data set."""
    rows = list(_rows(arguments.path))
    if arguments.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    for row in rows:
        print(row["dataset"])
        for name, entry in row["arrays"].items():
            print(f"  {name}  {entry['type']}  {'x'.join(map(str, entry['shape'])) or '1'}")


def _rows(path: str) -> Iterator[dict[str, Any]]:
    from mrec.collection import open_collection

    with open_collection(path) as found:
        for name, dataset in found.items():
            arrays = {key: {"type": array.type, "shape": list(array.shape)} for key, array in dataset.items()}
            yield {"dataset": name, "ordinal": dataset.ordinal, "arrays": arrays}


def verify(arguments: argparse.Namespace) -> int:
    """`mrec verify`: 0, or 1 when something is an error; a container that has no checksums is none."""
    from mrec.collection.verify import verify_collection

    findings = verify_collection(arguments.path)
    ok = not any(finding.startswith("error") for finding in findings)
    if arguments.json:
        print(json.dumps({"ok": ok, "findings": findings}, indent=1))
    elif not arguments.quiet:
        for finding in findings:
            print(finding, file=sys.stdout)
        print(f"{arguments.path}: {len(findings) or 'nothing'} found")
    return 0 if ok else 1

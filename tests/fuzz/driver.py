# SPDX-License-Identifier: BSD-3-Clause
"""Runs a target that is written in Python under libFuzzer: python -m tests.fuzz.driver document [its options] corpus.

A target is a module with `check(data)`, which raises nothing but what is wrong with mrec, and `IS_JSON`.
"""

from __future__ import annotations

import importlib
import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Bytes that may be taken beside what is there when a target begins. The fuzzer keeps some of it for its corpus.
BOUND = 512 << 20

#: What may stand at any place of a document.
ODDITIES: list[Any] = [
    *(-(2**63), None, True, False, 0, 1, -1, 2, 3, 255, 2**31, 2**62, 2**63 - 1, 2**63, 2**64, 10**30, 0.5, 1e308),
    *("", "a", "/", ".", "..", "\0", "é", "NaN", "-Infinity", "0x7ff8000000000001", "json", "f64x9", "string", "u64"),
    *("bytes", "crc32c", "gzip", "zstd", "numcodecs.shuffle", "vlen-utf8", "transpose", "sharding_indexed"),
    *([], [[]], [0], [1, 1], {}, {"": {}}, {"name": "gzip", "configuration": {"level": 9}}),
]  # fmt: skip
NAMES = [oddity for oddity in ODDITIES if isinstance(oddity, str)]


def main() -> None:
    """Fuzz the target that the first argument names."""
    import atheris

    time.sleep = lambda seconds: None  # as if damage were believed at once: nobody writes these records
    with atheris.instrument_imports(include=["mrec"]):
        target = importlib.import_module(f"tests.fuzz.{sys.argv[1]}")
    options = {"custom_mutator": mutate_json} if target.IS_JSON else {}
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target.check, **options)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + BOUND
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    atheris.Fuzz()


# ---- documents ---------------------------------------------------------------------------------------------------


def mutate_json(data: bytes, most: int, seed: int) -> bytes:
    """Change one place of a document, also inside a text that is a document; other bytes as libFuzzer does."""
    import atheris

    rng = random.Random(seed)
    if rng.random() < 0.7:
        try:
            changed = data[:1] + _changed(data[1:].decode(), rng).encode()
        except (ValueError, RecursionError):
            changed = b""
        if 0 < len(changed) <= most:
            return changed
    return bytes(atheris.Mutate(data, most))


def _changed(text: str, rng: random.Random) -> str:
    document = json.loads(text)
    places = list(_places(document))
    if not places:
        return json.dumps(rng.choice(ODDITIES))
    holder, key = rng.choice(places)
    _change(holder, key, rng)
    return json.dumps(document, ensure_ascii=False)


def _change(holder: Any, key: Any, rng: random.Random) -> None:
    value = holder[key]
    if isinstance(value, str) and value[:1] == "{" and rng.random() < 0.95:
        holder[key] = _changed(value, rng)
        return
    kind = rng.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[rng.choice(NAMES)] = value
    elif kind == 1:
        holder.insert(rng.randrange(len(holder) + 1), value)
    elif kind == 2:
        other_holder, other = rng.choice(list(_places(holder)))
        holder[key] = json.loads(json.dumps(other_holder[other]))
    elif kind == 3 and isinstance(value, (int, float)):
        holder[key] = value + rng.choice((-1, 1, 2, -2))
    else:
        holder[key] = json.loads(json.dumps(rng.choice(ODDITIES)))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


if __name__ == "__main__":
    main()

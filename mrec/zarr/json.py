# SPDX-License-Identifier: BSD-3-Clause
"""Strict JSON: UTF-8, no NaN literals, no key twice, no number that is not kept, depth bounded."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from mrec.dtypes import json_text
from mrec.errors import CorruptData, InvalidValue

MAX_DEPTH = 100
#: Of these, what is put around a document that is given.
AROUND = 10


def parse(raw: bytes | str, where: str) -> Any:
    """The JSON value that `raw` holds; CorruptData naming `where` when it is not strict JSON."""
    try:
        text = raw if isinstance(raw, str) else raw.decode("utf-8")
        value = _DECODER.decode(text)
        _check(value, text)
    except (ValueError, RecursionError) as e:
        raise CorruptData(f"{where}: not strict JSON: {e}") from None
    return value


def parse_object(raw: bytes | str, where: str) -> dict[str, Any]:
    """The same for a document that has to be an object."""
    value = parse(raw, where)
    if not isinstance(value, dict):
        raise CorruptData(f"{where}: a JSON object is needed, not {type(value).__name__}")
    return value


def checked(document: Any, what: str) -> dict[str, Any]:
    """A document as it reads back; InvalidValue when it is no object that strict JSON can hold. `what` names it."""
    if not isinstance(document, Mapping):
        raise InvalidValue(f"{what}: a document is a dict, not {document!r}")
    try:
        text = json_text(dict(document))
        found: dict[str, Any] = json.loads(text)
        _check(found, text, MAX_DEPTH - AROUND)
    except ValueError as e:
        raise InvalidValue(f"{what}: {e}") from None
    return found


def dump(value: Any, compact: bool = False) -> str:
    """The text of a document: indented, or without a blank as the core writes it; keys in their order.

    InvalidValue when it would not be read again.
    """
    indent, separators = (None, (",", ":")) if compact else (2, None)
    try:
        text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=False, allow_nan=False)
        _check(value, text)
    except (TypeError, ValueError, RecursionError) as e:
        raise InvalidValue(f"no JSON document: {e}") from None
    return text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


def _refuse(literal: str) -> Any:
    raise ValueError(f"{literal} is no JSON number")


def _float(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number[:40]} is beyond the range of f64")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_float)


def _check(value: Any, text: str, depth: int = MAX_DEPTH) -> None:
    """Depth, and strings that UTF-8 can hold; of most documents their text says so already."""
    if text.isascii() and "\\u" not in text and text.count("[") + text.count("{") < depth:
        return
    level = [value]
    for _ in range(depth):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                for key in item:
                    key.encode()
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
            elif isinstance(item, str):
                item.encode()
        if not below:
            return
        level = below
    raise ValueError(f"nested more than {depth} deep")

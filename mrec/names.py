# SPDX-License-Identifier: BSD-3-Clause
"""Which names blocks, columns and values may have."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable

from mrec.errors import SchemaError

TRAJECTORY_BLOCKS = frozenset({"step", "time", "meta", "box"})
TRAJECTORY_COLUMNS = frozenset({"offset", "step_index", "_validity"})
FRAME_BLOCKS = frozenset({"box"})
FRAME_COLUMNS = frozenset({"_validity"})
NO_NAMES: frozenset[str] = frozenset()

#: The sections that are made whole beside their places.
SECTIONS = ("meta", "frame", "system", "forcefield", "observables", "metrics", "status", "method")
_MADE = frozenset(f".{name}.tmp" for name in (*SECTIONS, "trajectory"))
_ASIDE = {f".{name}.old": name for name in SECTIONS}
#: A document, or a value of a store, that is about to get its name.
_ABOUT = re.compile(r"\.(zarr\.json|[0-9a-f]{16})\.tmp")


def check_name(name: object, what: str, reserved: Collection[str] = NO_NAMES) -> str:
    """`name`, when a node of a record may be called so; else SchemaError. `what` it names is said in the message."""
    if not isinstance(name, str):
        raise SchemaError(f"the name of a {what} is a string, not {name!r}")
    wrong = fault(name)
    if wrong:
        raise SchemaError(f"{name!r} cannot name a {what}: {wrong}; choose another name")
    if name in reserved:
        raise SchemaError(f"{name!r} cannot name a {what}: the format uses that name itself; choose another name")
    return name


def check_new_name(name: object, what: str, reserved: Collection[str] = NO_NAMES) -> str:
    """The same for a node that is to be written, which may not be called as a writer calls a file of its own."""
    checked = check_name(name, what, reserved)
    if is_own_file(checked):
        raise SchemaError(f"{name!r} cannot name a {what}: it is what a writer calls a file of its own; choose another")
    return checked


def is_own_file(name: str) -> bool:
    """Whether a writer keeps a file of this name beside the nodes of a group: legal to read, not to write."""
    return name == ".durable" or (name.startswith(".") and name.endswith(".tmp"))


def is_made(name: str) -> bool:
    """Whether a directory in a record is one that a section is made in, or was moved aside to."""
    return name in _MADE or name in _ASIDE


def is_temporary(key: str) -> bool:
    """Whether a file of a record is one that a writer had not finished."""
    first, last = key.partition("/")[0], key.rpartition("/")[2]
    return first in _MADE or bool(_ABOUT.fullmatch(last)) or (first == "trajectory" and is_own_file(last))


def in_place(key: str) -> str:
    """The key of a file, also of one in a section that a kill left aside."""
    first, slash, rest = key.partition("/")
    return f"{_ASIDE[first]}{slash}{rest}" if first in _ASIDE else key


def fault(name: str) -> str:
    """Why no node can be called so; empty when it can."""
    if not name:
        return "it is empty"
    if name in (".", "..", "zarr.json"):
        return "the store gives it another meaning"
    if name.startswith("__"):
        return "names that start with two underscores belong to Zarr"
    for character, label in (("/", "a slash"), ("\0", "a NUL")):
        if character in name:
            return f"it holds {label}"
    if any("\ud800" <= c <= "\udfff" for c in name):
        return "it holds a lone surrogate, which UTF-8 cannot store"
    return ""


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def warn_lookalikes(names: Iterable[str], what: str, beside: Iterable[str] = (), stacklevel: int = 3) -> None:
    """UserWarning for each name that differs only in case or normal form from an earlier one or from one `beside`."""
    seen = {_folded(name): name for name in beside}
    for name in names:
        first = seen.setdefault(_folded(name), name)
        if first != name:
            warnings.warn(
                f"the {what} names {first!r} and {name!r} differ only in case or Unicode form; "
                "some file systems take them for one",
                UserWarning,
                stacklevel=stacklevel,
            )

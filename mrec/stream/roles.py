# SPDX-License-Identifier: BSD-3-Clause
"""Who writes a stream: one alone, or an owner and contributors."""

from __future__ import annotations

from dataclasses import dataclass

from mrec.errors import InvalidValue


@dataclass(frozen=True)
class Single:
    """The only writer; its flush commits."""

    id = 0
    writers = 1
    owns = True

    def __str__(self) -> str:
        return "the single writer"


@dataclass(frozen=True)
class Owner:
    """Writer 0 of n: creates, commits, writes its region and what is not cut."""

    writers: int
    id = 0
    owns = True

    def __post_init__(self) -> None:
        _check(self.writers, "a number of writers", 1)

    def __str__(self) -> str:
        return "writer 0 (owner)"


@dataclass(frozen=True)
class Contributor:
    """Writer 1 ... n-1: joins, and writes its region."""

    id: int
    writers = 0
    owns = False

    def __post_init__(self) -> None:
        _check(self.id, "the number of a contributor", 1)

    def __str__(self) -> str:
        return f"writer {self.id}"


Role = Single | Owner | Contributor


def _check(value: int, what: str, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise InvalidValue(f"{what} is an integer from {low}, not {value!r}")

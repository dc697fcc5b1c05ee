# SPDX-License-Identifier: BSD-3-Clause
"""The attributes of a group or an array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Protocol


class Node(Protocol):
    """What has attributes."""

    @property
    def meta(self) -> Any:
        """The document."""

    def set_attrs(self, attributes: Mapping[str, Any]) -> None:
        """Replace the attributes."""


class Attributes(MutableMapping[str, Any]):
    """The attributes of a node, as stored; what is assigned or deleted is stored at once.

    A list or dict in it is a copy: assign it to store what was changed in it.
    """

    def __init__(self, node: Node) -> None:
        self._node = node

    def __getitem__(self, key: str) -> Any:
        return self._node.meta.attributes[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._node.meta.attributes)

    def __len__(self) -> int:
        return len(self._node.meta.attributes)

    def __setitem__(self, key: str, value: Any) -> None:
        self._node.set_attrs({**self._node.meta.attributes, key: value})

    def __delitem__(self, key: str) -> None:
        self[key]
        self._node.set_attrs({name: value for name, value in self.items() if name != key})

    def update(self, *others: Any, **named: Any) -> None:
        """Store several, all of them at once."""
        self._node.set_attrs({**self._node.meta.attributes, **dict(*others, **named)})

    def __repr__(self) -> str:
        return repr(self._node.meta.attributes)

# SPDX-License-Identifier: BSD-3-Clause
"""A model of a disk that loses power: recorded calls go in, the states that it may be left in come out.

What may be lost is kept as versions. Each 512-byte sector of a file, its length, and each name in a directory has the
version that was last synced and those after it, and the power loss picks one of them, for each by itself: so writes are
lost, kept, torn and reordered, a name is there without the bytes of its file, a removed file is back. fdatasync of a
file settles its sectors and its length; fsync of a directory settles its names. Nothing else settles anything.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

SECTOR = 512

#: Files (bytes) and directories (None) by path, relative to the model's root.
State = dict[str, bytes | None]

#: Picks one of n versions of a thing; 0 is the synced one.
Pick = Callable[[Any, int], int]


class Node:
    """A file, or a directory, whatever names it has."""

    def __init__(self, directory: bool, content: bytes = b"") -> None:
        self.directory = directory
        self.names: dict[str, Node] = {}
        self.content = bytearray(content)
        self.synced_names: dict[str, Node] = {}
        self.synced = bytes(content)
        self.versions: dict[Any, list[Any]] = {}  # of a name, a sector, or "length": those after the synced one

    def sync(self) -> None:
        """What is there now is there for good."""
        self.synced_names = dict(self.names)
        self.synced = bytes(self.content)
        self.versions.clear()

    def set_name(self, name: str, node: Node | None) -> None:
        """A name comes to be, changes what it names, or goes."""
        if node is None:
            del self.names[name]
        else:
            self.names[name] = node
        self.versions.setdefault(name, []).append(node)

    def write(self, offset: int, data: bytes) -> None:
        """Bytes at a place; a gap before it reads as zeros."""
        self.resize(max(len(self.content), offset + len(data)))
        self.content[offset : offset + len(data)] = data
        for sector in range(offset // SECTOR, -(-(offset + len(data)) // SECTOR)):
            start = sector * SECTOR
            self.versions.setdefault(sector, []).append(bytes(self.content[start : start + SECTOR]))

    def resize(self, size: int) -> None:
        """Another length."""
        if size == len(self.content):
            return
        gone = range(size // SECTOR, -(-len(self.content) // SECTOR))
        if size < len(self.content):
            del self.content[size:]
        else:
            self.content.extend(bytes(size - len(self.content)))
        self.versions.setdefault("length", []).append(size)
        for sector in gone:  # reads as zeros, should the file grow again
            self.versions.setdefault(sector, []).append(bytes(self.content[sector * SECTOR : size]))

    def bytes_after(self, pick: Pick) -> bytes:
        """The content that a power loss leaves."""
        if not self.versions:
            return self.synced
        lengths = [len(self.synced), *self.versions.get("length", [])]
        found = bytearray(self.synced)
        for key, versions in self.versions.items():
            chosen = pick((id(self), key), len(versions) + 1)
            if key == "length":
                length = lengths[chosen]
            elif chosen:
                data = versions[chosen - 1].ljust(SECTOR, b"\0")
                found[len(found) :] = bytes(max(0, key * SECTOR + SECTOR - len(found)))
                found[key * SECTOR : key * SECTOR + SECTOR] = data
        if "length" not in self.versions:
            length = len(self.synced)
        return bytes(found[:length].ljust(length, b"\0"))


class Disk:
    """The model. `root` is the directory that the recorded paths begin with."""

    def __init__(self, root: str, state: State | None = None) -> None:
        self.prefix = root.rstrip("/")
        self.root = Node(True)
        self.open: dict[int, Node] = {}
        for path, content in sorted((state or {}).items()):
            folder, _, name = path.rpartition("/")
            self.find(folder).names[name] = Node(content is None, content or b"")
        for node in self.nodes():
            node.sync()

    # ---- calls ---------------------------------------------------------------------------------------------------

    def find(self, path: str) -> Node:
        """The node that a path names now."""
        node = self.root
        for name in filter(None, path.split("/")):
            node = node.names[name]
        return node

    def parent(self, path: str) -> tuple[Node, str]:
        """The directory of a path, and the name in it."""
        folder, _, name = self.below(path).rpartition("/")
        return self.find(folder), name

    def below(self, path: str) -> str:
        """A recorded path as the model has it."""
        if not path.startswith(self.prefix):
            raise ValueError(path)
        return path[len(self.prefix) :].strip("/")

    def apply(self, op: str, fd: int, number: int, data: bytes) -> None:
        """One recorded call."""
        match op:
            case "o":
                self.open[fd] = self.opened(os.fsdecode(data), number)
            case "c":
                self.open.pop(fd, None)
            case "w":
                self.open[fd].write(number, data)
            case "t":
                self.open[fd].resize(number)
            case "s":
                self.open[fd].sync()
            case "m":
                folder, name = self.parent(os.fsdecode(data))
                folder.set_name(name, Node(True))
            case "u" | "d":
                folder, name = self.parent(os.fsdecode(data))
                folder.set_name(name, None)
            case "r":
                old, new = (self.parent(os.fsdecode(path)) for path in data.split(b"\0"))
                node = old[0].names[old[1]]
                new[0].set_name(new[1], node)
                old[0].set_name(old[1], None)

    def opened(self, path: str, flags: int) -> Node:
        """The node of a file that is opened, made when it is not there."""
        if not self.below(path):
            return self.root
        folder, name = self.parent(path)
        node = folder.names.get(name)
        if node is None:
            node = Node(False)
            folder.set_name(name, node)
        elif flags & os.O_TRUNC:
            node.resize(0)
        return node

    # ---- power loss ----------------------------------------------------------------------------------------------

    def nodes(self) -> Iterator[Node]:
        """Every node that may be there after a power loss."""
        seen, todo = set(), [self.root]
        while todo:
            node = todo.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            todo += node.names.values()
            todo += node.synced_names.values()
            todo += [v for versions in node.versions.values() for v in versions if isinstance(v, Node)]

    def choices(self) -> dict[Any, int]:
        """What a power loss can decide: thing -> number of versions."""
        return {(id(n), key): len(v) + 1 for n in self.nodes() for key, v in n.versions.items()}

    def after(self, pick: Pick) -> State:
        """The state that a power loss leaves."""
        state: State = {}

        def walk(node: Node, path: str) -> None:
            names = dict(node.synced_names)
            for name, versions in node.versions.items():
                chosen = pick((id(node), name), len(versions) + 1)
                if chosen:
                    names[name] = versions[chosen - 1]
            for name, child in names.items():
                if child is None:
                    continue
                state[path + name] = None if child.directory else child.bytes_after(pick)
                if child.directory:
                    walk(child, f"{path}{name}/")

        walk(self.root, "")
        return state

    def now(self) -> State:
        """What every process sees while the machine runs."""
        return self.after(lambda thing, n: n - 1)

    def losses(self, rng: random.Random, most: int) -> Iterator[State]:
        """At most `most` states that a power loss now may leave: all of them when there are no more, else a sample."""
        choices = self.choices()
        if prod(choices.values()) <= most:
            for combination in product(*(range(n) for n in choices.values())):
                chosen = dict(zip(choices, combination, strict=True))
                yield self.after(lambda thing, n, chosen=chosen: chosen[thing])
            return
        for _ in range(most):
            yield self.after(_random_pick(rng))


def _random_pick(rng: random.Random) -> Pick:
    """One way to lose. How much is kept differs, for all things or file by file, so that mixes of all and nothing, and
    lone losses and lone survivors, come up as often as even mixes do."""
    kept, between = rng.choice(((0.5, 0.5), (0.9, 0.5), (0.1, 0.5), (0.97, 1.0), (0.02, 0.0)))
    by_file = rng.random() < 0.5
    of_file: dict[int, float] = {}

    def pick(thing: Any, n: int) -> int:
        p = of_file.setdefault(thing[0], rng.choice((0.02, 0.5, 0.98))) if by_file else kept
        if rng.random() < p:
            return n - 1
        return rng.randrange(n) if rng.random() < between else 0

    return pick

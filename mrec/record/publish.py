# SPDX-License-Identifier: BSD-3-Clause
"""How a section takes its place in a record: made beside it, synced, and exchanged with what is there by one rename."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from mrec.errors import MrecError, RecordLocked
from mrec.names import SECTIONS
from mrec.zarr.metadata import GroupMeta, parse_group
from mrec.zarr.write import sync_directories, sync_directory, sync_file

#: Of renameat2 (Linux): the two names change places.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_NOT_KNOWN = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}

#: How often, and how long between, another one is waited for who only clears up.
_ATTEMPTS, _PAUSE = 5, 0.01


@contextmanager
def section(root: str, name: str, *, keep: bool = False) -> Iterator[str]:
    """A path at which to make the directory `name` of the record anew; it takes its place when nothing was raised.

    keep: it begins with the files that are there, as links to them: replace them, never write into one. Readers see the
    old section or the new one. RecordLocked when another program is at it.
    """
    target = os.path.join(root, name)
    with _place(root, name) as place:
        _restore(root, name)
        made = os.path.join(place, name)
        os.mkdir(made)
        if keep and os.path.isdir(target):
            _link_all(target, made)
        yield made
        sync_directories(made)  # the files were synced when they were written
        exchange(made, target)
        sync_directory(root)


def remove(root: str, name: str) -> None:
    """Take a section out of the record, at once."""
    with _place(root, name) as place:
        os.rename(os.path.join(root, name), os.path.join(place, name))
        sync_directory(root)


def clear(root: str, *, trajectory: bool = False) -> None:
    """Delete what kills left of sections that were being made; what somebody is making now stays.

    trajectory: that of a trajectory too; only for who holds the record's lock.
    """
    names = [f".{name}.tmp" for name in SECTIONS]
    with os.scandir(root) as entries:
        left = [entry.name for entry in entries if entry.name in names]
    for name in left:
        path = os.path.join(root, name)
        lock = _locked(path)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)
    if trajectory:
        shutil.rmtree(os.path.join(root, ".trajectory.tmp"), ignore_errors=True)


def document(root: str, name: str, attributes: dict[str, Any]) -> None:
    """Write the document of a group of the record; what else is in the group stays, and what others say there."""
    target = os.path.join(root, name)
    if not os.path.isdir(target):
        with section(root, name) as made:
            write_file(os.path.join(made, "zarr.json"), GroupMeta(attributes).document().encode())
        return
    with _place(root, name) as place:
        made = os.path.join(place, "zarr.json")
        write_file(made, _with_attributes(target, attributes))
        os.rename(made, os.path.join(target, "zarr.json"))
        sync_directory(target)


def _with_attributes(path: str, attributes: dict[str, Any]) -> bytes:
    """The text of a group's document with these attributes; keys of other programs stay, where they can be read."""
    try:
        before = read_group(path)
    except (FileNotFoundError, MrecError):
        before = GroupMeta()
    return replace(before, attributes=attributes).document().encode()


def read_group(path: str) -> GroupMeta:
    """The document of the group in a directory."""
    file = os.path.join(path, "zarr.json")
    with open(file, "rb") as stored:
        return parse_group(stored.read(), file)


def write_file(path: str, content: bytes) -> None:
    """A new file, synced."""
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


# ---- renaming ----------------------------------------------------------------------------------------------------


def exchange(made: str, target: str) -> None:
    """Rename `made` to `target`; what was there is at `made` afterwards.

    Where the system can not exchange two names, what was there first moves to `.<name>.old`: a kill between the two
    renames leaves it there, and the next writer of the section puts it back.
    """
    if not os.path.lexists(target):
        os.rename(made, target)
        return
    if _exchange(made, target):
        return
    parent, name = os.path.split(target)
    old = os.path.join(parent, f".{name}.old")
    os.rename(target, old)
    os.rename(made, target)
    os.rename(old, made)


def _exchange(a: str, b: str) -> bool:
    """Let two names change places. False: the system or the file system can not."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return False
    if renameat2(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NOT_KNOWN:
        return False
    raise OSError(code, os.strerror(code), b)


def _restore(root: str, name: str) -> None:
    """Put back what a kill between two renames left aside."""
    old, target = os.path.join(root, f".{name}.old"), os.path.join(root, name)
    if not os.path.isdir(old):
        return
    if os.path.lexists(target):
        shutil.rmtree(old)
    else:
        os.rename(old, target)


@contextmanager
def _place(root: str, name: str) -> Iterator[str]:
    """An empty directory beside a section, locked; it is gone afterwards, with what is in it then."""
    clear(root)
    path = os.path.join(root, f".{name}.tmp")
    lock = _new_directory(path, name)
    try:
        _empty(path)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


def _new_directory(path: str, name: str) -> int:
    """The lock of a directory that is made where it is not there."""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE)
        with suppress(FileExistsError):
            os.mkdir(path)
        lock = _locked(path)
        if lock is not None:
            return lock
    raise RecordLocked(f"the section {name!r} is being written by another program; try again when it is done")


def try_lock(fd: int) -> bool:
    """Lock a file or directory as long as the descriptor is open; False while another has it.

    On a file system without locks everything is free.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _locked(path: str) -> int | None:
    """The lock of a directory, as long as the descriptor is open; None while another has it, or when it is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    if not try_lock(fd):
        os.close(fd)
        return None
    try:
        same = os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        same = False
    if not same:  # another was here before, and deleted it
        os.close(fd)
        return None
    return fd


@contextmanager
def held_log(root: str) -> Iterator[None]:
    """While inside, nobody logs into the record, as it is taken away. RecordLocked when somebody does already."""
    try:
        fd = os.open(os.path.join(root, "metrics", "metrics.jsonl"), os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield
        return
    try:
        if not try_lock(fd):
            raise RecordLocked(f"{root}: a MetricsLog is open in it; close that first")
        yield
    finally:
        os.close(fd)


def _empty(path: str) -> None:
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)


# ---- trees -------------------------------------------------------------------------------------------------------


def _link_all(source: str, target: str) -> None:
    """The files of a directory in another, as links to the same bytes; copies where the file system has no links."""
    for directory, names, files in os.walk(source):
        there = os.path.join(target, os.path.relpath(directory, source))
        for name in names:
            os.mkdir(os.path.join(there, name))
        for name in files:
            link_or_copy(os.path.join(directory, name), os.path.join(there, name))


def link_or_copy(source: str, target: str) -> None:
    """The same file under another name, or a synced copy of it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        sync_file(target)


def remove_tree(path: str) -> None:
    """Delete a directory with what is in it, where there is one."""
    if os.path.lexists(path):
        shutil.rmtree(path)

# SPDX-License-Identifier: BSD-3-Clause
"""How a section takes its place in a record: made beside it, synced, and exchanged with what is there by one rename."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mrec.errors import RecordLocked
from mrec.zarr.metadata import GroupMeta, parse_group
from mrec.zarr.write import sync_directories, sync_directory, sync_file

#: Of renameat2 (Linux): the two names change places.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_NOT_KNOWN = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}


@contextmanager
def section(root: str, name: str, *, keep: bool = False) -> Iterator[str]:
    """A path at which to make the directory `name` of the record anew; it takes its place when nothing was raised.

    keep: it begins with the files that are there, as links to them: replace them, never write into one. Readers see the
    old section or the new one. RecordLocked when another program is at it.
    """
    made, target = os.path.join(root, f".{name}.tmp"), os.path.join(root, name)
    _restore(root, name)
    lock = _new_directory(made, name)
    try:
        if keep and os.path.isdir(target):
            _link_all(target, made)
        yield made
        sync_directories(made)  # the files were synced when they were written
        exchange(made, target)
        sync_directory(root)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def remove(root: str, name: str) -> None:
    """Take a section out of the record, at once."""
    made, target = os.path.join(root, f".{name}.tmp"), os.path.join(root, name)
    lock = _new_directory(made, name)
    try:
        os.rename(target, os.path.join(made, name))
        sync_directory(root)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def document(root: str, name: str, attributes: dict[str, Any]) -> None:
    """Write the document of a group of the record; what else is in the group stays."""
    target = os.path.join(root, name)
    text = GroupMeta(attributes).document().encode()
    if not os.path.isdir(target):
        with section(root, name) as made:
            write_file(os.path.join(made, "zarr.json"), text)
        return
    replace_file(os.path.join(target, "zarr.json"), text)


def group_attributes(path: str) -> dict[str, Any]:
    """The attributes of the group in a directory."""
    file = os.path.join(path, "zarr.json")
    with open(file, "rb") as stored:
        return parse_group(stored.read(), file).attributes


def write_file(path: str, content: bytes) -> None:
    """A new file, synced."""
    with open(path, "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: str, content: bytes) -> None:
    """Put a file in place of one that is there: a temporary one beside it, synced, renamed, the directory synced."""
    parent, name = os.path.split(path)
    temporary = os.path.join(parent, f".{name}.tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)
    sync_directory(parent)


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


def _new_directory(made: str, name: str) -> int:
    """An empty directory, locked as long as the descriptor is open; one that a kill left goes first."""
    if os.path.isdir(made):
        left = _locked(made, name)
        try:
            shutil.rmtree(made)
        finally:
            os.close(left)
    try:
        os.mkdir(made)
    except FileExistsError:
        raise _busy(name) from None
    return _locked(made, name)


def _locked(path: str, name: str) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise _busy(name) from None
    except OSError:
        pass  # a file system without locks
    return fd


def _busy(name: str) -> RecordLocked:
    return RecordLocked(f"the section {name!r} is being written by another program; try again when it is done")


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

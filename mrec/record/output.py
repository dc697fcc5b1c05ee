# SPDX-License-Identifier: BSD-3-Clause
"""What is made whole or not at all: in a private directory beside its place, renamed there when it is finished."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from mrec.errors import MrecError, NotARecord, RecordExists, RecordLocked
from mrec.record.publish import held_log
from mrec.trajectory.options import flag_option
from mrec.zarr.write import sync_directory, sync_file


@contextmanager
def new_record(output: str, overwrite: bool) -> Iterator[str]:
    """A path to make a record at; it becomes `output` at the end, when nothing was raised.

    RecordExists, unless overwrite and there is a record; RecordLocked when that one is being written.
    """
    output = os.path.normpath(output)
    if not output.endswith(".mrec"):
        packing = "; `mrec pack` makes one file of it" if output.endswith(".mrec.zip") else ""
        raise MrecError(f"{output}: the name of a record ends in .mrec{packing}")
    _check_place(output, overwrite)
    if os.path.isfile(os.path.join(os.path.dirname(output), "zarr.json")):
        raise MrecError(f"{output} would lie within a record, or within a group of one")
    if os.path.lexists(output) and not os.path.isfile(os.path.join(output, "zarr.json")):
        raise NotARecord(f"{output} is there and is no record; only records are replaced")
    with _private(output) as private, _told_of(output, private) as made:
        yield made
        _check_place(output, overwrite)  # a rename would replace what appeared meanwhile
        _place_record(made, output, private)
        sync_directory(os.path.dirname(output) or ".")


@contextmanager
def new_file(output: str, overwrite: bool) -> Iterator[str]:
    """The same for a file."""
    output = os.path.normpath(output)
    _check_place(output, overwrite)
    if os.path.isdir(output):
        raise MrecError(f"{output} is a directory; only files are replaced")
    with _private(output) as private, _told_of(output, private) as made:
        yield made
        sync_file(made)
        os.replace(made, output)
        sync_directory(os.path.dirname(output) or ".")


def _check_place(output: str, overwrite: bool) -> None:
    if not os.path.isdir(os.path.dirname(output) or "."):
        raise FileNotFoundError(2, "there is no such directory", os.path.dirname(output))
    if not flag_option("overwrite", overwrite) and os.path.lexists(output):
        raise RecordExists(f"{output} is there already; pass --overwrite (overwrite=True) to replace it")


def _private(output: str) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=os.path.dirname(output) or ".", prefix=".mrec-")


@contextmanager
def _told_of(output: str, private: str) -> Iterator[str]:
    """The private place of an output; an error that is about it is told of the output."""
    made = os.path.join(private, os.path.basename(output))
    try:
        yield made
    except MrecError as e:
        if made not in str(e):
            raise
        raise type(e)(str(e).replace(made, output)) from e
    except OSError as e:
        e.filename = e.filename.replace(made, output) if isinstance(e.filename, str) else e.filename or output
        raise


def _place_record(made: str, output: str, private: str) -> None:
    """Give the finished record its name. One that is there moves into the private directory, and goes with it."""
    if not os.path.lexists(output):
        os.rename(made, output)
        return
    directory = os.open(output, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as a writer holds it
        with held_log(output):
            old = os.path.join(private, "replaced")
            os.rename(output, old)
            try:
                os.rename(made, output)
            except OSError:
                os.rename(old, output)
                raise
    except RecordLocked:
        raise
    except BlockingIOError:
        raise RecordLocked(f"{output} is being written; it stays as it is") from None
    finally:
        os.close(directory)

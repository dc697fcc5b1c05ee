# SPDX-License-Identifier: BSD-3-Clause
"""Streams: several writers, one array, one commit. docs/streams.md."""

from mrec.stream.manifest import Manifest
from mrec.stream.opening import create, join, resume
from mrec.stream.place import MemoryStore
from mrec.stream.read import Stream, read_blob, read_manifest, read_record, read_static
from mrec.stream.roles import Contributor, Owner, Single
from mrec.stream.schema import StreamSchema, TimeMode, Variable, append, indexed
from mrec.stream.token import Receipt, Token
from mrec.stream.writer import StreamWriter

__all__ = [
    "Contributor",
    "Manifest",
    "MemoryStore",
    "Owner",
    "Receipt",
    "Single",
    "Stream",
    "StreamSchema",
    "StreamWriter",
    "TimeMode",
    "Token",
    "Variable",
    "append",
    "create",
    "indexed",
    "join",
    "read_blob",
    "read_manifest",
    "read_record",
    "read_static",
    "resume",
]

# SPDX-License-Identifier: BSD-3-Clause
"""Molecular trajectory records in Zarr V3."""

from os.path import dirname as _dirname
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from mrec import errors
from mrec.box import Box
from mrec.errors import MrecError
from mrec.frame import Block, Frame
from mrec.pack import pack, unpack
from mrec.record import MetricsLog, Observable, Record, create, open
from mrec.repair import repair
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import TrajectoryWriter
from mrec.verify import verify

__version__ = "0.1.0"

if _TYPE_CHECKING:
    from mrec.collection import CollectionWriter, open_collection

__all__ = [
    "Block",
    "Box",
    "CollectionWriter",
    "Frame",
    "MetricsLog",
    "MrecError",
    "Observable",
    "Record",
    "Schema",
    "TrajectoryWriter",
    "create",
    "errors",
    "get_include",
    "open",
    "open_collection",
    "pack",
    "repair",
    "unpack",
    "verify",
]


def get_include() -> str:
    """The directory of mrec.h, mrec.c and mrec_capi.h, for the compiler of what embeds the writer."""
    return f"{_dirname(__file__)}/include"


def __getattr__(name: str) -> _Any:
    if name in ("CollectionWriter", "open_collection"):
        from mrec import collection

        return getattr(collection, name)
    raise AttributeError(f"module 'mrec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if not name.startswith("_")), "__version__"})

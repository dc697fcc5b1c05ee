# SPDX-License-Identifier: BSD-3-Clause
"""Molecular trajectory records in Zarr V3."""

from mrec import errors
from mrec.box import Box
from mrec.errors import MrecError
from mrec.frame import Block, Frame
from mrec.pack import pack, unpack
from mrec.record import Record, open
from mrec.trajectory.schema import Schema
from mrec.trajectory.writer import TrajectoryWriter
from mrec.verify import verify

__all__ = [
    "Block",
    "Box",
    "Frame",
    "MrecError",
    "Record",
    "Schema",
    "TrajectoryWriter",
    "errors",
    "open",
    "pack",
    "unpack",
    "verify",
]

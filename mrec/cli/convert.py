# SPDX-License-Identifier: BSD-3-Clause
"""`mrec convert`: into a record, out of one, and from one to another."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from mrec.cli.choice import WrongCall, add_frames, add_overwrite, checked, is_record, names, positive
from mrec.trajectory.options import chunk_option, compression_option

_DESCRIPTION = """Convert a trajectory that MDAnalysis reads into a record; a record into XTC, TRR, DCD, NCDF, H5MD, XYZ
or PDB; or a record into a smaller one."""
_EPILOG = """Into a record: coordinates, velocities, forces and cell go to the trajectory, names, masses, bonds ... to
system/. Lengths are in angstrom and times in ps where the format says what its own are. Without --precision every
number is kept bit for bit. Out of one: units are converted as the format has them, from those the record says; what the
format has no place for is said on stderr. From record to record: everything beside the trajectory is carried over byte
for byte, compression and chunks stay unless said otherwise. Nothing is left at OUT unless the whole conversion
succeeds."""
_ONLY_INTO = {"topology": "--topology", "format": "--format"}
_ONLY_REWRITE = {"keep": "--keep", "drop": "--drop", "rows": "--rows", "compression": "--compression"}
_ONLY_REWRITE |= {"frames_per_chunk": "--frames-per-chunk"}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "convert", help="convert trajectories to records and back, and records to smaller ones",
        description=_DESCRIPTION, epilog=_EPILOG,
    )  # fmt: skip
    parser.add_argument("input", metavar="IN", help="a trajectory or a record")
    parser.add_argument("output", metavar="OUT", help="a name that ends in .mrec, or as the format to write")
    add_frames(parser)
    parser.add_argument("--select", metavar="SELECTION", help="take these atoms only (MDAnalysis's selection language)")
    parser.add_argument(
        "--precision", type=float, metavar="P",
        help="store coordinates to within P/2: in their own unit in a record, in angstrom in an XTC file",
    )  # fmt: skip
    parser.add_argument(
        "--chunk", metavar="SIZE",
        help='how much of a column is compressed at a time, as "256KiB": more makes less, and coarser access',
    )  # fmt: skip
    add_overwrite(parser)
    reading = parser.add_argument_group("into a record")
    reading.add_argument("-t", "--topology", help="a file that names the atoms (default: IN)")
    reading.add_argument("--format", help="MDAnalysis's name of IN's format, when its file name does not tell it")
    _add_rewriting(parser.add_argument_group("from record to record"))
    parser.set_defaults(run=run)


def _add_rewriting(group: Any) -> None:
    group.add_argument(
        "--keep", action="extend", type=names, default=[], metavar="NAMES",
        help="keep only these, separated by commas: BLOCK, BLOCK/COLUMN, or a per-step value",
    )  # fmt: skip
    group.add_argument("--drop", action="extend", type=names, default=[], metavar="NAMES", help="leave these out")
    group.add_argument(
        "--rows", action="append", default=[], metavar="BLOCK=START:STOP[:STRIDE]", help="take these rows of a block"
    )
    group.add_argument("--frames-per-chunk", type=positive, metavar="N", help="the same as a number of frames")
    group.add_argument(
        "--compression", metavar="C", help="of float columns: none, gzip:N, zstd:N or shuffle+zstd:N with a level N"
    )


def run(arguments: argparse.Namespace) -> None:
    """Convert in the direction that the names say."""
    into, out_of = is_record(arguments.output), is_record(arguments.input)
    if not into and not out_of:
        raise WrongCall(f"neither {arguments.input} nor {arguments.output} ends in .mrec; one of them is a record")
    if out_of:
        _refuse(arguments, _ONLY_INTO, "into a record")
    if not (into and out_of):
        _refuse(arguments, _ONLY_REWRITE, "from record to record")
    if not into and arguments.chunk:
        raise WrongCall("--chunk is for converting into a record")
    checked(compression_option, arguments.compression)
    checked(chunk_option, arguments.chunk, arguments.frames_per_chunk)
    if arguments.precision is not None and not arguments.precision > 0:
        raise WrongCall(f"--precision is {arguments.precision:g}; it is above 0")
    module = "rewrite" if into and out_of else "read_in" if into else "write_out"
    import_module(f"mrec.cli.{module}").run(arguments)


def _refuse(arguments: argparse.Namespace, options: dict[str, str], where: str) -> None:
    for name, option in options.items():
        if getattr(arguments, name):
            raise WrongCall(f"{option} is for converting {where}")

# SPDX-License-Identifier: BSD-3-Clause
"""`mrec export`: frames of a record as text."""

from __future__ import annotations

import argparse
import os
from typing import Any

from mrec.cli.choice import add_frames, add_overwrite, check_ending, chosen, frames, note
from mrec.cli.progress import progress
from mrec.cli.sizes import human
from mrec.display import counted
from mrec.record.output import new_file

_DESCRIPTION = "Write frames as text: extended XYZ (.extxyz) or PDB (.pdb)."
_EPILOG = """Extended XYZ takes every column of the atoms, the cell, step, time and per-step values, with all digits.
Its lengths are in angstrom, times in fs, velocities in angstrom/fs, forces in eV/angstrom. PDB takes positions to 0.001
angstrom, names, residues and bonds from system/, and the first cell. What is dropped is said."""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "export", help="write frames as text: extended XYZ or PDB", description=_DESCRIPTION, epilog=_EPILOG
    )
    parser.add_argument("path", metavar="PATH", help="a record")
    parser.add_argument("output", metavar="OUT", help="a file that ends in .extxyz or .pdb")
    add_frames(parser)
    parser.add_argument("--select", metavar="SELECTION", help="take these atoms only (MDAnalysis's selection language)")
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Export, then say what was made."""
    import mrec
    from mrec.interop.atoms import AtomSource
    from mrec.interop.text import write_extxyz, write_pdb

    writers = {".extxyz": write_extxyz, ".pdb": write_pdb}
    instead = "export writes .extxyz and .pdb; `mrec convert` writes other formats"
    ending = check_ending(arguments.output, writers, instead)
    with mrec.open(arguments.path) as record, new_file(arguments.output, arguments.overwrite) as made:
        source = AtomSource(record, chosen(arguments.path, record.trajectory, frames(arguments)))
        if arguments.select is not None:
            source.select(arguments.select)
        with open(made, "x", encoding="utf-8") as file:
            taken = writers[ending](file, source, progress(source, len(source), "frames"))
    for text in source.notes:
        note(text)
    print(f"{arguments.output}: {counted(taken, 'frame')}, {human(os.path.getsize(arguments.output))}")

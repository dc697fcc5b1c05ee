# SPDX-License-Identifier: BSD-3-Clause
"""`mrec convert` out of a record: into what MDAnalysis writes."""

from __future__ import annotations

import argparse
import os

from mrec.cli.choice import checked, chosen, frames, note
from mrec.cli.progress import progress
from mrec.cli.sizes import human
from mrec.display import counted
from mrec.interop import mdanalysis_out
from mrec.interop.atoms import AtomSource
from mrec.record.output import new_file


def run(arguments: argparse.Namespace) -> None:
    """Convert, then say what was made, and what was lost."""
    import mrec

    form = checked(mdanalysis_out.format_of, arguments.output)
    checked(mdanalysis_out.decimals, form, arguments.precision)
    with mrec.open(arguments.input) as record, new_file(arguments.output, arguments.overwrite) as made:
        source = AtomSource(record, chosen(arguments.input, record.trajectory, frames(arguments)))
        if arguments.select is not None:
            source.select(arguments.select)
        reading = progress(source, len(source), "frames")
        taken = mdanalysis_out.write(source, made, reading, arguments.precision)
    for text in source.notes:
        note(text)
    print(f"{arguments.output}: {counted(taken, 'frame')}, {human(os.path.getsize(arguments.output))}")

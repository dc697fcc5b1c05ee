# SPDX-License-Identifier: BSD-3-Clause
"""The topology of a record, for MDAnalysis."""

from __future__ import annotations

from typing import Any

from MDAnalysis.topology.base import TopologyReaderBase

import mrec
from mrec.interop.atoms import AtomSource, constant_atoms
from mrec.interop.coordinates import names_record
from mrec.interop.mdanalysis_out import universe


class MrecParser(TopologyReaderBase):
    """Reads what a record says of its atoms: its `system`, and columns of the trajectory that stay as they are.

    A column that is another in the last frame than in the first is no topology, and left out.
    """

    format = "MREC"

    @staticmethod
    def _format_hint(thing: Any) -> bool:
        return names_record(thing)

    def parse(self, **kwargs: Any) -> Any:
        """The topology."""
        record = mrec.open(self.filename)
        source = AtomSource(record, record.trajectory)
        made = universe(source, constant_atoms(source))
        if "segment" not in source.columns:
            made.segments.segids = ["SYSTEM"] * len(made.segments)  # as MDAnalysis's own parsers say
        return made._topology

# SPDX-License-Identifier: BSD-3-Clause
"""The peers; each of these modules imports the programs themselves only when a peer is made."""

from __future__ import annotations

from mrec.bench.peer import Peer
from mrec.bench.peers import arrays, floors, formats, hdf5, records

PEERS: dict[str, type[Peer]] = {
    peer.name: peer
    for peer in (
        records.Mrec,
        records.MrecCoarse,
        records.MrecDense,
        records.Molrs,
        arrays.ZarrPython,
        arrays.Zarrs,
        arrays.TensorStore,
        hdf5.H5md,
        hdf5.NetCdf,
        formats.XtcMdtraj,
        formats.XtcMdanalysis,
        formats.XtcChemfiles,
        formats.TrrMdtraj,
        formats.TrrMdanalysis,
        formats.TrrChemfiles,
        formats.DcdMdtraj,
        formats.DcdMdanalysis,
        formats.DcdChemfiles,
        formats.Gsd,
        floors.Zstandard,
        floors.Plain,
    )
}

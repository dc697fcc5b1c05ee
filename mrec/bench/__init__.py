# SPDX-License-Identifier: BSD-3-Clause
"""mrec and its peers side by side: `mrec bench` (`pip install 'mrec[bench]'`).

A *run* takes every *peer* (a program that writes and reads trajectories) through every *job* (append, read ...) on
every *data set*, round after round, and gives a *report*. Jobs and peers of your own join by name, `module:object`.
"""

from mrec.bench.data import DataSet
from mrec.bench.job import Job, Place, Sample, measured
from mrec.bench.peer import Peer, RowPeer, Unsupported
from mrec.bench.report import Report
from mrec.bench.run import Run

__all__ = ["DataSet", "Job", "Peer", "Place", "Report", "RowPeer", "Run", "Sample", "Unsupported", "measured"]

# SPDX-License-Identifier: BSD-3-Clause
"""Records in mdtraj: `import mrec.interop.mdtraj`, and its `load`, `iterload`, `save` ... know them.

>>> import mdtraj
>>> import mrec.interop.mdtraj
>>> mdtraj.load("water.mrec")  # doctest: +ELLIPSIS
<mdtraj.Trajectory with 10 frames, 3 atoms, 1 residues, without unitcells at ...>
"""

from mrec.extras import extra

with extra("mdtraj", __name__):
    import mdtraj as _library

from mrec.interop.mdtraj import hook as _hook
from mrec.interop.mdtraj.file import MrecTrajectoryFile, load_mrec
from mrec.interop.mdtraj.topology import load_topology
from mrec.interop.mdtraj.writer import save_mrec

__all__ = ["MrecTrajectoryFile", "load_mrec", "load_topology", "save_mrec"]

_hook.install(_library)

# SPDX-License-Identifier: BSD-3-Clause
"""Records in ASE: `ase.io.read` and `write` with format="mrec", and `MrecTrajectory` for dynamics and optimisers.

ASE finds the format through an entry point of the installed package; importing this module makes it known too.
"""

from mrec.extras import extra

with extra("ase", __name__):
    from ase.io import formats as _formats

from mrec.interop.ase.reader import read_mrec
from mrec.interop.ase.writer import MrecTrajectory, write_mrec
from mrec.interop.ase_format import FORMAT as _FORMAT

__all__ = ["MrecTrajectory", "read_mrec", "write_mrec"]

if "mrec" not in _formats.ioformats:
    _formats.define_io_format("mrec", **_FORMAT._asdict(), external=True)

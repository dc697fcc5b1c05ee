# SPDX-License-Identifier: BSD-3-Clause
"""Records in MDAnalysis: `import mrec.interop.mda`, and `Universe`, `Writer` and `AtomGroup.write` know them.

>>> import MDAnalysis
>>> import mrec.interop.mda
>>> MDAnalysis.Universe("water.mrec", to_guess=()).trajectory
<MrecReader water.mrec with 10 frames of 3 atoms>
"""

from mrec.extras import extra

with extra("mdanalysis", __name__):
    import MDAnalysis as _library

from mrec.interop.mda.parser import MrecParser
from mrec.interop.mda.reader import MrecReader
from mrec.interop.mda.writer import MrecWriter

__all__ = ["MrecParser", "MrecReader", "MrecWriter"]

# Each format is asked in turn whether a file is its own, and some look for libraries to answer: a millisecond a file.
for _hints in (_library._READER_HINTS, _library._PARSER_HINTS):
    _others = {name: hint for name, hint in _hints.items() if name != "MREC"}
    for _name in _others:
        _hints[_name] = _hints.pop(_name)

# SPDX-License-Identifier: BSD-3-Clause
"""What the entry point `ase.ioformats` names; ASE loads it when it is imported, so it brings in nothing else."""

from ase.utils.plugins import ExternalIOFormat

FORMAT = ExternalIOFormat(
    desc="mrec record", code="+S", module="mrec.interop.ase", glob=["*.mrec", "*.mrec.zip"], ext="mrec"
)

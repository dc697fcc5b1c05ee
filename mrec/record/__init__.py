# SPDX-License-Identifier: BSD-3-Clause
"""Records: the sections of an `*.mrec` directory."""

from mrec.record.record import Record, open

__all__ = ["Record", "open"]

# SPDX-License-Identifier: BSD-3-Clause
"""Tests for programs that embed the writer; needs hypothesis (`pip install mrec[testing]`).

`WriterMachine` takes a writer through any turn of calls, kills and power losses, and reads the record by every route.
Its parts serve by themselves: `schemas` and `frames` make what goes in, `Model` says what has to come out,
`assert_reads` compares.
"""

from mrec.extras import extra

with extra("testing", __name__):
    import hypothesis as _hypothesis  # noqa: F401

from mrec.testing.machine import WriterMachine
from mrec.testing.model import Model, assert_same_frame
from mrec.testing.routes import assert_reads
from mrec.testing.strategies import frames, schemas

__all__ = ["Model", "WriterMachine", "assert_reads", "assert_same_frame", "frames", "schemas"]

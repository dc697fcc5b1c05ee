# SPDX-License-Identifier: BSD-3-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, embedsignature=True
"""The C core, one family of functions an included file: convert, call without the GIL, convert."""

include "core/status.pxi"
include "core/kernels.pxi"
include "core/archive.pxi"
include "core/reader.pxi"
include "core/encode.pxi"
include "core/faults.pxi"
include "core/slots.pxi"
include "core/plain.pxi"
include "core/frames.pxi"
include "core/writer.pxi"
include "core/reopen.pxi"
include "core/capi.pxi"

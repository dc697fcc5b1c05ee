# SPDX-License-Identifier: BSD-3-Clause
"""mrec and its peers side by side, in one interleaved run: `make bench`."""

# SPDX-License-Identifier: BSD-3-Clause
"""What `mrec bench` runs, from a checkout, with programs in C and pages that are written anew: `make bench`."""

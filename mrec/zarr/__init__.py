# SPDX-License-Identifier: BSD-3-Clause
"""Zarr V3: metadata, stores, groups and arrays."""

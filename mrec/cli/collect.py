# SPDX-License-Identifier: BSD-3-Clause
"""`mrec collect`: many small data sets in one file."""

from __future__ import annotations

import argparse
from typing import Any

from mrec.cli.sizes import human


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "collect",
        help="make one collection of records, NetCDF files and Zarr stores",
        description="Make one collection of records (a data set for each frame), NetCDF files, Zarr stores, or "
        "folders of these.",
    )
    parser.add_argument("sources", metavar="SOURCE", nargs="+", help="a record, a NetCDF file, a Zarr store, a folder")
    parser.add_argument("-o", "--output", metavar="PATH", required=True, help="the collection to make")
    parser.add_argument("--codec", choices=("zstd", "lz4", "none"), default="zstd")
    parser.add_argument("--overwrite", action="store_true", help="replace a collection that is there")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Collect, then say what was made."""
    from mrec.collection import open_collection
    from mrec.collection.collect import collect

    collect(arguments.output, arguments.sources, codec=arguments.codec, overwrite=arguments.overwrite)
    made = open_collection(arguments.output)
    print(f"{arguments.output}: {len(made)} data sets, {human(made.nbytes)}")

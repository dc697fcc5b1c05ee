# SPDX-License-Identifier: BSD-3-Clause
"""Collections: many small data sets in one file. Reads and writes ATLAS containers (format 8)."""

from mrec.collection.collect import collect
from mrec.collection.dataset import DatasetWriter
from mrec.collection.merge import compact, merge
from mrec.collection.reader import ArrayView, Collection, Dataset, open_collection
from mrec.collection.statistics import Statistics
from mrec.collection.variable import Variable
from mrec.collection.writer import CollectionWriter

__all__ = [
    "ArrayView",
    "Collection",
    "CollectionWriter",
    "Dataset",
    "DatasetWriter",
    "Statistics",
    "Variable",
    "collect",
    "compact",
    "merge",
    "open_collection",
]

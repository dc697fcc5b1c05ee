# SPDX-License-Identifier: BSD-3-Clause
"""The rules, by the names that findings give them."""

from __future__ import annotations

#: Name -> what has to hold.
RULES: dict[str, str] = {
    # bytes
    "read": "the system can read it",
    "zip": "a packed record is a zip file that does not contradict itself, nothing in it compressed or encrypted",
    "zip-crc": "each entry of a zip file has its CRC-32",
    "index-size": "a shard file is at least as long as its index",
    "index-checksum": "the index of a shard has its CRC-32C (of an open record, the last write of one may be torn)",
    "index-entry": "a chunk lies inside its file and outside the index",
    "overlap": "no two chunks of a shard lie over each other",
    "checksum": "a chunk has its CRC-32C",
    "decode": "the codecs of a chunk can be undone, and give exactly its elements",
    "string": "a string chunk holds as many strings as it has elements, all UTF-8",
    "bool": "a flag is 0 or 1",
    "missing-shard": "mrec stores every shard of a trajectory; other programs leave out what is fill",
    "missing-chunk": "the same for a chunk",
    # documents
    "document": "a zarr.json is strict JSON and describes a node that mrec knows, an array or a group as needed",
    "version": "molrec_version is 1 or 2",
    "name": "a name is one that a node may have",
    "type": "an array has its declared type and trailing axes; its type is a column type",
    "canonical": "a canonical column or value has its one type",
    "sharding": "every array of a trajectory is sharded",
    "fill": "the fill value is that of the type",
    "backed": "the files of an array can hold the rows that are claimed; what is more is not gone through",
    "missing-array": "what has rows has its array",
    "length": "an array has at least the rows that are claimed; mrec leaves no more when it closes",
    # trajectory
    "schema": "the declaration has the form it has to have",
    "marker": "nstep and mrec_nstep are numbers of frames, the second beside .durable; no progression without nstep",
    "durable": ".durable has its form, and documents of the state it names",
    "durable-shape": "the lengths in .durable are exact",
    "durable-tail": "the bytes that .durable names are there; they are the last chunk of each array",
    "step-progression": "start and stride are integers; the steps ascend within 64 bits",
    "step-order": "steps ascend",
    "time-progression": "start and stride are finite numbers, and so is every time",
    "meta-dtype": "meta_dtype of a per-step value is its declared tag",
    "json-text": "a json value is compact, strict JSON",
    "regular": "uniform_rows and dense_updates stand both or not at all, never for a block without columns",
    "update-index": "the frames of updates ascend, below nstep",
    "offset": "offsets start at 0 and do not fall",
    "structural-shape": "an update has the rows of structural_shape",
    "carry-forward": "an update differs from the one before",
    "precision": "the values of a column with a precision lie on its grid, null rows aside",
    "mask": "a mask is bool, one flag for each row of a column; mrec gives every nullable column one",
    "targets": "a declared reference is u64 and reaches a row of its target, at every frame",
    "reference": "atomi ... atoml reach a row of atoms where they are given, also undeclared",
    "aligned": "an aligned block has the rows of its partner at every frame, and no column in common with it",
    "system": "a block in system/ and trajectory/ has the same rows in both, no column in common but an equal id",
    "box": "a cell has its arrays or attributes in their form; an undefined one has no periodic axis",
    # streams
    "manifest": "the manifest is strict JSON of version 1 or 2, and does not contradict itself",
    "stream-document": "the documents of the arrays agree with the manifest",
    "stream-shape": "an array is as long as what is committed",
    "stream-coverage": "the regions of the writers are disjoint and cover the stream",
    "stream-object": "an object that is committed in every record has its size and CRC-32C",
    "stream-read": "every committed record, static and time can be read",
    # other sections
    "count": "a block says how many rows it has",
    "meta-types": "each value of a frame's document fits its tag",
    "incomplete": "status has a state; method a type, a description, and an engine with a name",
    "observable": "an observable has its array and its document, with kind, description and time_dependent",
}

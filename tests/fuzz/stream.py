# SPDX-License-Identifier: BSD-3-Clause
"""Streams: any text as a token, a receipt or the manifest, of which the last is read and resumed.

The first byte says which. What is refused changes nothing; a manifest that is taken says the same when it was written.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from mrec import stream
from mrec.errors import CommitError
from mrec.stream.manifest import KEY, parse_manifest
from tests.flips.stores import ERRORS

IS_JSON = True
THIS = b"0123456789abcdef0123456789abcdef"  # in an input, in the place of what is drawn for each stream
REGIONS = [{"x": (0, 2)}, {"x": (2, 4)}]


def schema() -> stream.StreamSchema:
    return stream.StreamSchema(
        dims={"x": 4},
        variables={"a": stream.Variable(("time", "x"), "f64"), "b": stream.Variable(("time",), "i16")},
        statics={"s": stream.Variable(("x",), "u8")},
        chunk={"time": 1, "x": 2},
        shard={"time": 2, "x": 2},
    )


class Writers:
    """Two writers of a stream in memory, with a commit behind them and flushed records before them."""

    def __init__(self) -> None:
        self.base = stream.MemoryStore()
        self.owner = stream.create(self.base, schema(), stream.Owner(2), REGIONS[0])
        self.other = stream.join(self.base, stream.Contributor(1), REGIONS[1])
        self.write(0)
        receipt = self.owner.commit([self.owner.flush(), self.other.flush()])
        self.other.acknowledge(receipt)
        self.write(1)
        for writer in (self.owner, self.other):
            writer.write_static("s", np.ones(2, "u1"))
            writer.write_blob(1, "k", b"blob")
        self.tokens = [self.owner.flush(), self.other.flush()]

    def write(self, i: int) -> None:
        self.owner.write_record(float(i), self.arrays(i))
        self.other.write_record(float(i), {"a": np.full(2, float(i))})

    def arrays(self, i: int) -> dict[str, np.ndarray]:
        return {"a": np.full(2, float(i)), "b": np.array(i, "i2")}


@cache
def writers() -> list[Writers]:
    return [Writers()]


def check(data: bytes) -> None:
    """Give it to who takes it."""
    what, text = (data[0] if data else 0) % 4, data[1:]
    found = writers()[0]
    text = text.replace(THIS, found.owner.stream_id.encode())
    before = dict(found.base.values)
    try:
        if what == 0:
            found.owner.commit([found.tokens[0], text])
        elif what == 1:
            found.other.acknowledge(text)
        elif what == 2:
            read(found, text)
        else:
            resume(found, text)
    except CommitError:
        assert found.base.values == before
    else:
        if found.base.values != before or found.owner.base != 1 or found.other.base != 1:
            writers()[0] = Writers()


def read(found: Writers, text: bytes) -> None:
    """Parse, write and parse again; then read what it names."""
    try:
        manifest = parse_manifest(text, KEY)
    except ERRORS:
        return
    if manifest.version == 2:
        assert parse_manifest(manifest.text().encode(), KEY).text() == manifest.text()
    other = stream.MemoryStore()
    other.values.update({**found.base.values, KEY: text})
    reader = stream.Stream(other)
    for act in (
        reader.times,
        *(lambda name=name: reader.read_record(name, 0) for name in list(manifest.schema.variables)[:4]),
        *(lambda name=name: reader.read_static(name) for name in list(manifest.schema.statics)[:4]),
        *(lambda b=b: reader.read_blob("static" if b[0] is None else b[0], *b[1:]) for b in list(manifest.blobs)[:4]),
    ):
        try:
            act()
        except (*ERRORS, MemoryError):
            pass


def resume(found: Writers, text: bytes) -> None:
    """Go on from it, in a copy."""
    other = stream.MemoryStore()
    other.values.update({**found.base.values, KEY: text})
    try:
        writer = stream.resume(other, stream.Owner(2), REGIONS[0])
        writer.write_record(1e9, found.arrays(3))
        writer.flush()
    except (*ERRORS, MemoryError):
        pass

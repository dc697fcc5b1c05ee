"""Hypothesis strategies: any array that the page of the array layer names, and what may be selected of it."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

TYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 string".split()
)
CRC = {"name": "crc32c"}


def bytes_codec(endian):
    return {"name": "bytes", "configuration": {"endian": endian}}


@st.composite
def pipelines(draw, name, ndim):
    """The codecs of a chunk without shards: array to array, array to bytes, bytes to bytes."""
    codecs = [transpose(draw, ndim) for _ in range(draw(st.integers(0, 2)) if ndim else 0)]
    codecs.append({"name": "vlen-utf8"} if name == "string" else bytes_codec(draw(st.sampled_from(["little", "big"]))))
    size = 1 if name == "string" else np.dtype(name).itemsize
    if draw(st.booleans()) and name != "string":
        codecs.append({"name": "numcodecs.shuffle", "configuration": {"elementsize": size}})
    for _ in range(draw(st.integers(0, 2))):
        codecs.append(draw(st.sampled_from([
            CRC,
            {"name": "gzip", "configuration": {"level": 1}},
            {"name": "zstd", "configuration": {"level": 3, "checksum": True}},
            {"name": "zstd", "configuration": {"level": 0, "checksum": False}},
        ])))  # fmt: skip
    return codecs


def transpose(draw, ndim):
    return {"name": "transpose", "configuration": {"order": draw(st.permutations(range(ndim)))}}


@st.composite
def layouts(draw, name, shape):
    """The chunk grid and the codecs of an array: shards in up to two levels, what may stand around them."""
    chunk = tuple(draw(st.integers(1, max(2, n))) for n in shape)
    codecs = draw(pipelines(name, len(shape)))
    for _ in range(draw(st.sampled_from([0, 0, 1, 1, 1, 2]))):
        index = [bytes_codec(draw(st.sampled_from(["little", "big"]))), *([CRC] if draw(st.booleans()) else [])]
        location = draw(st.sampled_from(["start", "end"]))
        conf = {"chunk_shape": list(chunk), "codecs": codecs, "index_codecs": index, "index_location": location}
        chunk = tuple(n * draw(st.integers(1, 3)) for n in chunk)
        codecs = [{"name": "sharding_indexed", "configuration": conf}]
        if draw(st.integers(0, 3)) == 0:
            codecs.append(draw(st.sampled_from([CRC, {"name": "gzip", "configuration": {"level": 1}}])))
        if shape and draw(st.integers(0, 2)) == 0:  # a shard of turned elements: what it holds is turned too
            order = draw(st.permutations(range(len(shape))))
            codecs.insert(0, {"name": "transpose", "configuration": {"order": order}})
            turned = list(chunk)
            for i, axis in enumerate(order):
                turned[axis] = chunk[i]
            chunk = tuple(turned)
    return chunk, codecs


def values_of(name, shape, seed, fill):
    """Values with stretches of fill; floats of any bits."""
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape, dtype=int))
    if name == "string":
        words = ["", "a", "héliß", "水" * 9, "\0x", str(fill)]
        found = np.array([words[i] for i in rng.integers(0, len(words), n)], np.dtypes.StringDType())
    elif name == "bool":
        found = rng.random(n) < 0.5
    else:
        found = np.frombuffer(rng.bytes(n * np.dtype(name).itemsize), name).copy()
    if n and rng.random() < 0.5:
        a, b = sorted(rng.integers(0, n + 1, 2))
        found[a:b] = fill
    return found.reshape(shape)


FILLS = {
    "bool": [False, True], "string": ["", "none", "ü"],
    "f": [0.0, -0.0, 1.5, np.nan, np.inf, -np.inf], "c": [0j, complex(np.nan, -0.0), complex(-np.inf, 2)],
    "i": [0, 7, -3], "u": [0, 255],
}  # fmt: skip


@st.composite
def arrays(draw):
    """(data type, values, fill, chunk grid, codecs, separator)."""
    name = draw(st.sampled_from(TYPES))
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 5, 7, 8]), max_size=4)))
    fill = draw(st.sampled_from(FILLS[name if name in FILLS else np.dtype(name).kind]))
    fill = fill if name == "string" else np.dtype(name).type(fill)
    grid, codecs = draw(layouts(name, shape))
    values = values_of(name, shape, draw(st.integers(0, 2**32)), fill)
    return name, values, fill, grid, codecs, draw(st.sampled_from("/."))


@st.composite
def basic(draw, shape):
    """Integers, slices with steps, an ellipsis."""
    keys = []
    for n in shape:
        if n and draw(st.integers(0, 3)) == 0:
            keys.append(draw(st.integers(-n, n - 1)))
        else:
            keys.append(draw(st.slices(n)))
    cut = draw(st.integers(0, len(keys)))
    if cut < len(keys):
        keys[cut:] = [Ellipsis]
    return tuple(keys)


@st.composite
def advanced(draw, shape):
    """The same with arrays and lists of integers that repeat to one shape, boolean ones of some axes, and new axes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    together = draw(st.sampled_from([(), (0,), (1,), (3,), (2, 1), (1, 3), (2, 3), (0, 3)]))
    keys, i = [], 0
    while i < len(shape):
        kind, n, axes = draw(st.sampled_from(["new", "mask", "list", "list", "slice", "slice", "scalar"])), shape[i], 1
        if kind == "mask":
            axes = min(draw(st.integers(1, 2)), len(shape) - i)
            keys.append(rng.random(shape[i : i + axes]) < rng.choice([0, 0.3, 1]))
        elif kind == "list" and n:
            size = draw(st.sampled_from([together, together[1:], (1,) * len(together)]))
            found = rng.integers(-n, n, size).astype(draw(st.sampled_from(["i1", ">i4", "i8"])))
            keys.append(found.tolist() if draw(st.booleans()) else found)
        elif kind == "scalar" and n:
            keys.append(draw(st.sampled_from([int, np.int8, np.array]))(rng.integers(-n, n)))
        else:
            keys.append(draw(st.slices(n)))
        if kind == "new":
            keys.insert(-1, None)
        i += axes
        if draw(st.integers(0, 9)) == 0:
            keys.append(Ellipsis)
            break
    return keys[0] if len(keys) == 1 and draw(st.booleans()) else tuple(keys)

# SPDX-License-Identifier: BSD-3-Clause
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize

import numpy as _np

from mrec.errors import CorruptData as _CorruptData, InvalidValue as _InvalidValue
from mrec.errors import UnsupportedCodec as _UnsupportedCodec


cdef extern from "buffer.h" nogil:
    ctypedef struct mrec_buffer:
        uint8_t *data
        size_t size
        size_t capacity

    void mrec_buffer_free(mrec_buffer *buffer)

cdef extern from "cpu.h" nogil:
    unsigned mrec_cpu()
    void mrec_cpu_allow(unsigned features)

cdef extern from "crc32c.h" nogil:
    uint32_t mrec_crc32c(uint32_t crc, const void *bytes, size_t n)
    uint32_t mrec_crc32(uint32_t crc, const void *bytes, size_t n)

cdef extern from "shuffle.h" nogil:
    void mrec_shuffle(const uint8_t *src, uint8_t *dst, size_t n, size_t size)
    void mrec_unshuffle(const uint8_t *src, uint8_t *dst, size_t n, size_t size)

cdef extern from "quantize.h" nogil:
    bint mrec_grid(double precision, double *q)
    void mrec_quantize(const double *src, double *dst, size_t n, double q)

cdef extern from "vlen.h" nogil:
    bint mrec_utf8_valid(const void *bytes, size_t n)
    mrec_status mrec_vlen_walk(const void *chunk, size_t n, uint64_t count, uint64_t *ends, mrec_error *error)

cdef extern from "codec.h" nogil:
    ctypedef enum mrec_codec_kind:
        MREC_CODEC_BYTES
        MREC_CODEC_VLEN_UTF8
        MREC_CODEC_SHUFFLE
        MREC_CODEC_GZIP
        MREC_CODEC_ZSTD
        MREC_CODEC_CRC32C

    ctypedef struct mrec_codec:
        mrec_codec_kind kind
        int level
        uint32_t elementsize
        bint big
        bint checksum
        bint unchecked

    enum:
        MREC_MAX_CODECS

    ctypedef struct mrec_pipeline:
        uint32_t n
        mrec_codec codecs[8]

    ctypedef struct mrec_coder:
        pass

    mrec_status mrec_coder_new(mrec_coder **coder, mrec_error *error)
    void mrec_coder_free(mrec_coder *coder)
    mrec_status mrec_encode(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n,
                            mrec_buffer *out, mrec_error *error)
    mrec_status mrec_decode(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n, void *out,
                            size_t size, mrec_error *error)
    mrec_status mrec_decode_any(mrec_coder *coder, const mrec_pipeline *pipeline, const void *bytes, size_t n,
                                size_t limit, mrec_buffer *out, mrec_error *error)


cdef class _Input:
    """The bytes of any object with a buffer, in C order; copied only when they do not lie so."""

    cdef Py_buffer view

    def __cinit__(self, data):
        try:
            PyObject_GetBuffer(data, &self.view, PyBUF_SIMPLE)
        except (BufferError, ValueError):
            PyObject_GetBuffer(memoryview(data).tobytes(), &self.view, PyBUF_SIMPLE)

    def __dealloc__(self):
        PyBuffer_Release(&self.view)


def crc32c(data, uint32_t crc=0) -> int:
    """CRC-32C of the bytes of `data`, going on from `crc`."""
    cdef _Input source = _Input(data)
    with nogil:
        crc = mrec_crc32c(crc, source.view.buf, source.view.len)
    return crc


def crc32(data, uint32_t crc=0) -> int:
    """CRC-32 (zip, gzip) of the bytes of `data`, going on from `crc`."""
    cdef _Input source = _Input(data)
    with nogil:
        crc = mrec_crc32(crc, source.view.buf, source.view.len)
    return crc


cdef bytes _shuffled(data, size_t size, bint forward):
    cdef _Input source = _Input(data)
    if size == 0 or source.view.len % size != 0:
        raise _InvalidValue(f"{source.view.len} bytes are no whole number of elements of {size} bytes")
    cdef bytes result = PyBytes_FromStringAndSize(NULL, source.view.len)
    cdef uint8_t *out = <uint8_t *>PyBytes_AS_STRING(result)
    with nogil:
        if forward:
            mrec_shuffle(<const uint8_t *>source.view.buf, out, source.view.len, size)
        else:
            mrec_unshuffle(<const uint8_t *>source.view.buf, out, source.view.len, size)
    return result


def shuffle(data, size_t size) -> bytes:
    """Byte b of element i of `size` bytes goes to b * count + i."""
    return _shuffled(data, size, True)


def unshuffle(data, size_t size) -> bytes:
    """The inverse of `shuffle`."""
    return _shuffled(data, size, False)


def grid(double precision) -> float:
    """The largest power of two not above `precision`: values are rounded to its multiples."""
    cdef double q
    if not mrec_grid(precision, &q):
        raise _InvalidValue(f"a precision is a number from 2^-1000 to 2^1000, not {precision!r}")
    return q


def quantize(array, double precision):
    """A new float64 array with every value rounded to the nearest multiple of `grid(precision)`, halves to the even one.

    Values that are not finite, and those so large that they stand on no finer grid, stay as they are.
    """
    cdef double q = grid(precision)
    result = _np.array(array, dtype=_np.float64, order="C")
    cdef double[::1] flat = result.reshape(-1)
    cdef size_t n = flat.shape[0]
    if n > 0:
        with nogil:
            mrec_quantize(&flat[0], &flat[0], n, q)
    return result


def is_utf8(data) -> bool:
    """True when the bytes of `data` are UTF-8: no overlong form, no surrogate, nothing above U+10FFFF."""
    cdef _Input source = _Input(data)
    return mrec_utf8_valid(source.view.buf, source.view.len)


def vlen_ends(data, size_t count):
    """The position in a decoded vlen-utf8 chunk after each of its `count` strings, as uint64.

    String i begins 4 bytes after the end of string i - 1, the first at byte 8. CorruptData unless the chunk holds
    exactly so many strings of valid UTF-8.
    """
    cdef _Input source = _Input(data)
    cdef mrec_error error
    if count > <size_t>source.view.len:  # each takes four bytes; keeps the array below small
        raise _CorruptData(f"{source.view.len} bytes cannot hold {count} strings")
    result = _np.empty(count, _np.uint64)
    cdef uint64_t[::1] ends = result
    cdef uint64_t *first = &ends[0] if count > 0 else NULL
    with nogil:
        check(mrec_vlen_walk(source.view.buf, source.view.len, count, first, &error), &error)
    return result


def cpu_allow(unsigned features=0xffffffff) -> int:
    """For tests: use only these features of the processor (0: portable C); what is in use is returned."""
    mrec_cpu_allow(features)
    return mrec_cpu() & 0xff


# The options that each codec may have; elementsize of bytes comes from the array's data type.
cdef dict _CODECS = {
    "bytes": (MREC_CODEC_BYTES, {"endian", "elementsize"}),
    "vlen-utf8": (MREC_CODEC_VLEN_UTF8, set()),
    "numcodecs.shuffle": (MREC_CODEC_SHUFFLE, {"elementsize"}),
    "gzip": (MREC_CODEC_GZIP, {"level"}),
    "zstd": (MREC_CODEC_ZSTD, {"level", "checksum"}),
    "crc32c": (MREC_CODEC_CRC32C, set()),
}
cdef str _HINT = "open the array through zarr-python"


cdef object _option(str name, options, str key, default, type kind, low=None, high=None):
    value = options.get(key, default)
    if type(value) is not kind or (low is not None and not low <= value <= high):
        raise _CorruptData(f"codec {name!r}: {key} is {value!r}")
    return value


cdef int _fill_codec(mrec_codec *codec, str name, options) except -1:
    if name not in _CODECS:
        raise _UnsupportedCodec(f"codec {name!r} is not supported; {_HINT}")
    kind, known = _CODECS[name]
    unknown = set(options) - known
    if unknown:
        raise _UnsupportedCodec(f"codec {name!r} with the option {min(unknown)!r} is not supported; {_HINT}")
    codec.kind = kind
    codec.level = 0
    codec.elementsize = 1
    codec.big = codec.checksum = codec.unchecked = False
    if name == "gzip":
        codec.level = _option(name, options, "level", 1, int, 0, 9)
    elif name == "zstd":
        codec.level = _option(name, options, "level", 0, int, -(1 << 17), 22)
        codec.checksum = _option(name, options, "checksum", False, bool)
    elif name == "bytes":
        codec.elementsize = _option(name, options, "elementsize", 1, int, 1, 16)
        endian = _option(name, options, "endian", "little", str)
        if endian not in ("little", "big"):
            raise _CorruptData(f"codec 'bytes': endian is {endian!r}")
        codec.big = endian == "big"
    elif name == "numcodecs.shuffle":
        codec.elementsize = _option(name, options, "elementsize", 4, int, 1, 0xffffffff)
    return 0


cdef int fill_pipeline(mrec_pipeline *pipeline, codecs) except -1:
    """Fill *pipeline from (name, options) pairs in the order of the metadata, for example
    [("bytes", {"endian": "little", "elementsize": 8}), ("zstd", {"level": 3}), ("crc32c", {})]: the codecs of
    zarr.json, and for bytes the size of an element (of half of it when it is complex)."""
    cdef list pairs = list(codecs)
    if len(pairs) > MREC_MAX_CODECS:
        raise _UnsupportedCodec(f"a pipeline of {len(pairs)} codecs is not supported; {_HINT}")
    pipeline.n = 0
    for name, options in pairs:
        _fill_codec(&pipeline.codecs[pipeline.n], name, options)
        pipeline.n += 1
    return 0


cdef class _Coder:
    """Working memory for one thread."""

    cdef mrec_coder *coder
    cdef mrec_buffer out

    def __cinit__(self):
        cdef mrec_error error
        check(mrec_coder_new(&self.coder, &error), &error)

    def __dealloc__(self):
        mrec_coder_free(self.coder)
        mrec_buffer_free(&self.out)

    cdef bytes taken(self):
        return PyBytes_FromStringAndSize(<char *>self.out.data, self.out.size)


def encode(codecs, data) -> bytes:
    """The bytes of `data` through the pipeline `codecs` (see fill_pipeline)."""
    cdef mrec_pipeline pipeline
    cdef mrec_error error
    cdef _Input source = _Input(data)
    cdef _Coder coder = _Coder()
    fill_pipeline(&pipeline, codecs)
    with nogil:
        check(mrec_encode(coder.coder, &pipeline, source.view.buf, source.view.len, &coder.out, &error), &error)
    return coder.taken()


def decode(codecs, data, size=None, size_t limit=1 << 30) -> bytes:
    """The chunk of exactly `size` bytes that `data` encodes; without a size (strings) one of at most `limit` bytes."""
    cdef mrec_pipeline pipeline
    cdef mrec_error error
    cdef _Input source = _Input(data)
    cdef _Coder coder = _Coder()
    cdef size_t n
    cdef bytes result
    cdef uint8_t *out
    fill_pipeline(&pipeline, codecs)
    if size is None:
        with nogil:
            check(mrec_decode_any(coder.coder, &pipeline, source.view.buf, source.view.len, limit, &coder.out, &error),
                  &error)
        return coder.taken()
    n = size
    result = PyBytes_FromStringAndSize(NULL, n)
    out = <uint8_t *>PyBytes_AS_STRING(result)
    with nogil:
        check(mrec_decode(coder.coder, &pipeline, source.view.buf, source.view.len, out, n, &error), &error)
    return result

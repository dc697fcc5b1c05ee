# SPDX-License-Identifier: BSD-3-Clause
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

cdef extern from "Python.h":
    PyObject *_new_bytes "PyBytes_FromStringAndSize"(const char *, Py_ssize_t) except NULL
    int _PyBytes_Resize(PyObject **, Py_ssize_t) except -1

cdef extern from "bytes.h" nogil:
    uint32_t mrec_load_u32(const uint8_t *)

cdef extern from "zstd.h" nogil:
    size_t ZSTD_compressBound(size_t)
    size_t ZSTD_compress(void *, size_t, const void *, size_t, int)
    size_t ZSTD_decompress(void *, size_t, const void *, size_t)
    unsigned ZSTD_isError(size_t)

    ctypedef struct ZSTD_DCtx:
        pass

    ctypedef struct ZSTD_inBuffer:
        const void *src
        size_t size
        size_t pos

    ctypedef struct ZSTD_outBuffer:
        void *dst
        size_t size
        size_t pos

    ZSTD_DCtx *ZSTD_createDCtx()
    size_t ZSTD_freeDCtx(ZSTD_DCtx *)
    unsigned long long ZSTD_getFrameContentSize(const void *, size_t)
    size_t ZSTD_findFrameCompressedSize(const void *, size_t)
    size_t ZSTD_decompressStream(ZSTD_DCtx *, ZSTD_outBuffer *, ZSTD_inBuffer *)

cdef extern from "buffer.h" nogil:
    mrec_status mrec_buffer_reserve(mrec_buffer *, size_t, mrec_error *)

cdef extern from "lz4.h" nogil:
    size_t mrec_lz4_bound(size_t n)
    size_t mrec_lz4_encode(const void *bytes, size_t n, uint8_t *out)
    bint mrec_lz4_decode(const void *bytes, size_t n, uint8_t *out, size_t size)

cdef extern from "extent.h" nogil:
    ctypedef enum mrec_number:
        MREC_NUMBER_I8

    ctypedef struct mrec_extent:
        uint64_t min
        uint64_t max
        uint64_t nulls
        uint64_t count

    mrec_extent mrec_measure(mrec_number type, const void *elements, size_t n, const uint64_t *fill)
    mrec_extent mrec_extent_join(mrec_number type, mrec_extent a, mrec_extent b)

cdef extern from "segment.h" nogil:
    ctypedef enum mrec_block_codec:
        MREC_BLOCK_NONE
        MREC_BLOCK_ZSTD
        MREC_BLOCK_LZ4


def block_encode(int codec, int level, data) -> bytes:
    """A block as it is stored: codec 0 none, 1 zstd, 2 lz4."""
    cdef _Input source = _Input(data)
    cdef size_t n = source.view.len, size, room
    cdef PyObject *whole
    cdef uint8_t *out
    if n >= 1 << 31 and codec == MREC_BLOCK_LZ4:
        raise _InvalidValue("a block for lz4 is smaller than 2 GiB; choose smaller chunks or zstd")
    if codec == MREC_BLOCK_NONE:
        return PyBytes_FromStringAndSize(<char *>source.view.buf, n)
    room = ZSTD_compressBound(n) if codec == MREC_BLOCK_ZSTD else mrec_lz4_bound(n) + 4
    whole = _new_bytes(NULL, room)
    out = <uint8_t *>PyBytes_AS_STRING(<object>whole)
    with nogil:
        if codec == MREC_BLOCK_ZSTD:
            size = ZSTD_compress(out, room, source.view.buf, n, level)
        else:
            out[0], out[1], out[2], out[3] = n & 255, n >> 8 & 255, n >> 16 & 255, n >> 24
            size = 4 + mrec_lz4_encode(source.view.buf, n, out + 4)
    if codec == MREC_BLOCK_ZSTD and ZSTD_isError(size):
        Py_DECREF(<object>whole)
        raise MemoryError("zstd could not compress a block")
    _PyBytes_Resize(&whole, size)  # gives back the rest without a copy
    made = <object>whole
    Py_DECREF(made)  # `made` has its own
    return made


def block_decode(int codec, data, size_t raw) -> bytes:
    """The `raw` bytes of a stored block. CorruptData."""
    cdef _Input source = _Input(data)
    cdef size_t n = source.view.len
    cdef bytes result = PyBytes_FromStringAndSize(NULL, raw)
    cdef uint8_t *out = <uint8_t *>PyBytes_AS_STRING(result)
    cdef const uint8_t *stored = <const uint8_t *>source.view.buf
    cdef bint fits
    with nogil:
        if codec == MREC_BLOCK_ZSTD:
            fits = ZSTD_decompress(out, raw, stored, n) == raw
        elif codec == MREC_BLOCK_LZ4:
            fits = n >= 4 and mrec_load_u32(stored) == raw and mrec_lz4_decode(stored + 4, n - 4, out, raw)
        else:
            fits = n == raw
            if fits:
                memcpy(out, stored, raw)
    if not fits:
        raise _CorruptData(f"a block of {n} bytes does not hold the {raw} that it should")
    return result


cdef mrec_status _decode_frame(ZSTD_DCtx *context, const void *bytes, size_t n, size_t limit, mrec_buffer *out,
                               bint *whole, mrec_error *error) noexcept nogil:
    """Grows as it goes, because the frame need not say how long it is."""
    cdef ZSTD_inBuffer source
    cdef ZSTD_outBuffer target
    cdef size_t left = 1
    cdef mrec_status status
    source.src, source.size, source.pos = bytes, n, 0
    while left != 0 and out.size <= limit:
        status = mrec_buffer_reserve(out, out.size + (1 << 16), error)
        if status != MREC_OK:
            return status
        target.dst, target.size, target.pos = out.data + out.size, out.capacity - out.size, 0
        left = ZSTD_decompressStream(context, &target, &source)
        if ZSTD_isError(left) or (target.pos == 0 and source.pos == source.size and left != 0):
            break
        out.size += target.pos
    whole[0] = left == 0 and source.pos == source.size and out.size <= limit
    return MREC_OK


def frame_decode(bytes data not None, size_t ratio=4096) -> bytes:
    """The content of the one zstd frame that `data` is; CorruptData also when it is 2^20 + `ratio` times as long."""
    cdef mrec_buffer out
    cdef mrec_error error
    cdef mrec_status status
    cdef bint whole = False
    cdef const char *stored = PyBytes_AS_STRING(data)
    cdef size_t n = len(data), limit = n * ratio + (1 << 20)
    cdef unsigned long long size = ZSTD_getFrameContentSize(stored, n)  # a huge number when it is not known
    if size <= limit and ZSTD_findFrameCompressedSize(stored, n) == n:
        return block_decode(MREC_BLOCK_ZSTD, data, size)
    cdef ZSTD_DCtx *context = ZSTD_createDCtx()
    if context == NULL:
        raise MemoryError()
    memset(&out, 0, sizeof(out))
    try:
        with nogil:
            status = _decode_frame(context, stored, n, limit, &out, &whole, &error)
        check(status, &error)
        if not whole:
            raise _CorruptData("the footer is no whole zstd frame")
        return PyBytes_FromStringAndSize(<char *>out.data, out.size)
    finally:
        ZSTD_freeDCtx(context)
        mrec_buffer_free(&out)


def measure(int number, data, size_t width, fill=None) -> tuple:
    """(min, max, nulls, count) of the elements of `data` (csrc/extent.h); min and max as bits, None without values."""
    cdef _Input source = _Input(data)
    cdef uint64_t bits = 0 if fill is None else fill
    cdef const uint64_t *filled = NULL if fill is None else &bits
    cdef mrec_extent found
    with nogil:
        found = mrec_measure(<mrec_number>number, source.view.buf, source.view.len // width, filled)
    return _extent_of(found)


cdef tuple _extent_of(mrec_extent found):
    if found.nulls == found.count:
        return None, None, found.nulls, found.count
    return found.min, found.max, found.nulls, found.count


def join_extents(int number, parts) -> tuple:
    """(min, max, nulls, count) of several such with their counts."""
    cdef mrec_extent all, one
    all.min = all.max = all.nulls = all.count = 0
    for part in parts:
        one.min, one.max, one.nulls, one.count = part
        all = mrec_extent_join(<mrec_number>number, all, one)
    return all.min, all.max, all.nulls, all.count

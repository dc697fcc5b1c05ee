# SPDX-License-Identifier: BSD-3-Clause
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8

cdef extern from "Python.h":
    PyObject *_new_bytes "PyBytes_FromStringAndSize"(const char *, Py_ssize_t) except NULL
    int _PyBytes_Resize(PyObject **, Py_ssize_t) except -1

cdef extern from "string.h" nogil:
    int memcmp(const void *, const void *, size_t)

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

cdef extern from "msgpack.h" nogil:
    ctypedef enum mrec_packed_kind:
        MREC_PACKED_NIL
        MREC_PACKED_BOOL
        MREC_PACKED_INT
        MREC_PACKED_UINT
        MREC_PACKED_FLOAT
        MREC_PACKED_TEXT
        MREC_PACKED_BYTES
        MREC_PACKED_ARRAY
        MREC_PACKED_MAP

    ctypedef struct mrec_packed_item:
        mrec_packed_kind kind
        uint64_t number
        const uint8_t *bytes
        size_t size

    mrec_status mrec_msgpack_next(const uint8_t *, size_t, size_t *, mrec_packed_item *, mrec_error *)

cdef extern from "segment.h" nogil:
    ctypedef struct mrec_text:
        const uint8_t *bytes
        size_t n

    ctypedef enum mrec_block_codec:
        MREC_BLOCK_NONE
        MREC_BLOCK_ZSTD
        MREC_BLOCK_LZ4

    ctypedef struct mrec_segment_block:
        uint64_t offset
        uint64_t stored
        uint64_t raw
        mrec_block_codec codec

    ctypedef struct mrec_segment_value:
        int kind
        bint textual
        uint64_t bits
        mrec_text text

    ctypedef struct mrec_segment_table:
        uint64_t n

    ctypedef struct mrec_segment_array:
        mrec_text name
        unsigned dtype
        uint64_t rank
        const uint8_t *shape
        const uint8_t *chunk_shape
        mrec_segment_table dims
        mrec_segment_table chunks
        mrec_segment_table attributes
        mrec_segment_value fill
        mrec_segment_value min
        mrec_segment_value max
        bint counted
        uint64_t nulls
        uint64_t rows

    ctypedef struct mrec_segment_chunk:
        const uint8_t *coordinate
        uint32_t block
        uint32_t offset
        uint32_t size

    ctypedef struct mrec_segment_attribute:
        unsigned tag
        uint64_t bits
        const uint8_t *bytes
        uint64_t n

    ctypedef struct mrec_segment:
        mrec_segment_table blocks
        mrec_segment_table strings
        mrec_segment_table values
        mrec_segment_table arrays

    mrec_status mrec_segment_open(mrec_segment *, const void *, size_t, uint64_t, mrec_error *)
    mrec_status mrec_segment_block_at(const mrec_segment *, uint64_t, mrec_segment_block *, mrec_error *)
    mrec_status mrec_segment_string_at(const mrec_segment *, uint64_t, mrec_text *, mrec_error *)
    mrec_status mrec_segment_value_at(const mrec_segment *, uint64_t, mrec_segment_attribute *, mrec_error *)
    mrec_status mrec_segment_array_at(const mrec_segment *, uint64_t, mrec_segment_array *, mrec_error *)
    mrec_status mrec_segment_dim(const mrec_segment *, const mrec_segment_array *, uint64_t, mrec_text *, mrec_error *)
    mrec_status mrec_segment_chunk_at(const mrec_segment *, const mrec_segment_array *, uint64_t, mrec_segment_chunk *,
                                      mrec_error *)
    mrec_status mrec_segment_pair(const mrec_segment *, const mrec_segment_array *, uint64_t, uint32_t *, uint32_t *,
                                  mrec_error *)
    mrec_status mrec_segment_binary(const mrec_segment *, const mrec_segment_attribute *, uint64_t, mrec_text *,
                                    mrec_error *)
    unsigned mrec_segment_width(unsigned tag)

    ctypedef struct mrec_built_attribute:
        mrec_text key
        mrec_text value

    ctypedef struct mrec_built_chunk:
        const uint32_t *coordinate
        uint32_t block
        uint32_t offset
        uint32_t size

    ctypedef struct mrec_built_array:
        uint64_t order
        mrec_text name
        unsigned dtype
        uint32_t rank
        const uint32_t *shape
        const uint32_t *chunk_shape
        const mrec_text *dims
        const mrec_built_chunk *chunks
        uint32_t nchunks
        const mrec_built_attribute *attributes
        uint32_t nattributes
        mrec_segment_value fill
        mrec_segment_value min
        mrec_segment_value max
        uint64_t nulls
        uint64_t rows

    ctypedef struct mrec_builder:
        pass

    mrec_status mrec_builder_new(mrec_builder **, mrec_error *)
    void mrec_builder_free(mrec_builder *)
    mrec_status mrec_builder_block(mrec_builder *, const mrec_segment_block *, uint32_t *, mrec_error *)
    mrec_status mrec_builder_array(mrec_builder *, const mrec_built_array *, mrec_error *)
    size_t mrec_builder_bytes(const mrec_builder *)
    mrec_status mrec_builder_write(mrec_builder *, mrec_buffer *, mrec_buffer *, mrec_error *)


# ---- blocks and numbers -------------------------------------------------------------------------------------------


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


# ---- MessagePack --------------------------------------------------------------------------------------------------


cdef object _unpack(const uint8_t *bytes, size_t n, size_t *at, int depth):
    cdef mrec_packed_item item
    cdef mrec_error error
    cdef size_t i
    cdef list items
    cdef double number
    check(mrec_msgpack_next(bytes, n, at, &item, &error), &error)
    if item.kind == MREC_PACKED_UINT:
        return item.number
    if item.kind == MREC_PACKED_TEXT:
        return PyUnicode_DecodeUTF8(<const char *>item.bytes, item.size, NULL)
    if item.kind == MREC_PACKED_ARRAY:
        if depth == 0:
            raise _CorruptData("the footer is nested too deep")
        items = []
        for i in range(item.size):
            items.append(_unpack(bytes, n, at, depth - 1))
        return items
    if item.kind == MREC_PACKED_MAP:
        if depth == 0:
            raise _CorruptData("the footer is nested too deep")
        return {_key(_unpack(bytes, n, at, 0)): _unpack(bytes, n, at, depth - 1) for i in range(item.size)}
    if item.kind == MREC_PACKED_INT:
        return <int64_t>item.number
    if item.kind == MREC_PACKED_BOOL:
        return item.number == 1
    if item.kind == MREC_PACKED_FLOAT:
        memcpy(&number, &item.number, sizeof(number))
        return number
    return item.bytes[:item.size] if item.kind == MREC_PACKED_BYTES else None


cdef object _key(key):
    if not isinstance(key, str):
        raise _CorruptData("the footer has a map whose key is no text")
    return key


cdef size_t _array_head(const uint8_t *bytes, size_t n, size_t *at, str what) except? 0:
    cdef mrec_packed_item item
    cdef mrec_error error
    check(mrec_msgpack_next(bytes, n, at, &item, &error), &error)
    if item.kind != MREC_PACKED_ARRAY:
        raise _CorruptData(f"the footer is damaged: {what}")
    return item.size


def unpack_catalogue(bytes data):
    """The footer of a container: (its first seven parts, names of the data sets, numbers of their schemas). CorruptData.

    The data sets, of which there may be many, go straight into two lists.
    """
    cdef size_t at = 0, i, n = len(data)
    cdef const uint8_t *bytes = <const uint8_t *>PyBytes_AS_STRING(data)
    cdef mrec_packed_item item
    cdef mrec_error error
    cdef list names = [], numbers = []
    if _array_head(bytes, n, &at, "it has not eight parts") != 8:
        raise _CorruptData("the footer is damaged: it has not eight parts")
    head = [_unpack(bytes, n, &at, 7) for i in range(7)]
    for i in range(_array_head(bytes, n, &at, "the data sets")):
        if _array_head(bytes, n, &at, "a data set") != 2:
            raise _CorruptData("the footer is damaged: a data set")
        check(mrec_msgpack_next(bytes, n, &at, &item, &error), &error)
        if item.kind != MREC_PACKED_TEXT:
            raise _CorruptData("the footer is damaged: the name of a data set")
        names.append(PyUnicode_DecodeUTF8(<const char *>item.bytes, item.size, NULL))
        check(mrec_msgpack_next(bytes, n, &at, &item, &error), &error)
        if item.kind != MREC_PACKED_UINT:
            raise _CorruptData("the footer is damaged: the schema of a data set")
        numbers.append(item.number)
    if at != n:
        raise _CorruptData(f"{n - at} bytes follow the footer's item")
    return head, names, numbers


# ---- footers of segments ------------------------------------------------------------------------------------------


cdef inline str _text(mrec_text text):
    return PyUnicode_DecodeUTF8(<const char *>text.bytes, text.n, NULL)


cdef inline bytes _bytes_of(mrec_text text):
    return PyBytes_FromStringAndSize(<const char *>text.bytes, text.n)


cdef tuple _numbers_of(const uint8_t *numbers, uint64_t n):
    cdef uint64_t i
    return tuple([mrec_load_u32(numbers + 4 * i) for i in range(n)])


cdef object _bound(mrec_segment_value value):
    if value.kind < 0:
        return None
    return (value.kind, _bytes_of(value.text) if value.textual else value.bits)


cdef class SegmentFooter:
    """The footer of a segment, read in place (csrc/segment.h); whatever is damaged is CorruptData."""

    cdef mrec_segment segment
    cdef bytes kept
    cdef list strings, values

    def __cinit__(self, bytes data not None, uint64_t before):
        """data: the footer. before: bytes of blocks in front of it."""
        cdef mrec_error error
        self.kept = data
        check(mrec_segment_open(&self.segment, PyBytes_AS_STRING(data), len(data), before, &error), &error)
        self.strings = self.values = None

    def __len__(self):
        return self.segment.arrays.n

    @property
    def nblocks(self):
        """How many blocks there are."""
        return self.segment.blocks.n

    def block(self, uint64_t i):
        """(offset, stored size, raw size, codec) of block i."""
        cdef mrec_segment_block block
        cdef mrec_error error
        check(mrec_segment_block_at(&self.segment, i, &block, &error), &error)
        return block.offset, block.stored, block.raw, <int>block.codec

    cdef int _array(self, uint64_t i, mrec_segment_array *array) except -1:
        cdef mrec_error error
        check(mrec_segment_array_at(&self.segment, i, array, &error), &error)
        return 0

    def names(self):
        """The names of the arrays, which are those of their data sets."""
        cdef mrec_segment_array array
        cdef list found = []
        for i in range(self.segment.arrays.n):
            self._array(i, &array)
            found.append(_text(array.name))
        return found

    def array(self, uint64_t i):
        """(dtype, shape, dims, chunk shape, fill, chunks) of array i; fill: None or (kind, bits or bytes)."""
        cdef mrec_segment_array array
        cdef mrec_error error
        cdef mrec_text dim
        cdef list dims = []
        self._array(i, &array)
        for k in range(array.rank):
            check(mrec_segment_dim(&self.segment, &array, k, &dim, &error), &error)
            dims.append(_text(dim))
        shape, chunk = _numbers_of(array.shape, array.rank), _numbers_of(array.chunk_shape, array.rank)
        return array.dtype, shape, tuple(dims), chunk, _bound(array.fill), array.chunks.n

    def statistics(self, uint64_t i):
        """(min, max, nulls, rows) of array i; min and max: None or (kind, bits or bytes). None without."""
        cdef mrec_segment_array array
        self._array(i, &array)
        if not array.counted:
            return None
        return _bound(array.min), _bound(array.max), array.nulls, array.rows

    def layout(self):
        """(dtype, elements, block, offset, size) of every array, as numpy arrays; block: -1 without a chunk, -2 when the
        array is not in one chunk."""
        cdef mrec_segment_array array
        cdef mrec_segment_chunk chunk
        cdef mrec_error error
        cdef uint64_t i, k, count, n = self.segment.arrays.n
        dtypes, elements = _np.empty(n, _np.uint8), _np.empty(n, _np.uint64)
        blocks, offsets, sizes = _np.empty(n, _np.int64), _np.zeros(n, _np.uint64), _np.zeros(n, _np.uint64)
        cdef uint8_t[::1] dtype = dtypes
        cdef uint64_t[::1] element = elements, offset = offsets, size = sizes
        cdef int64_t[::1] block = blocks
        for i in range(n):
            self._array(i, &array)
            dtype[i], block[i], count = array.dtype, -1 if array.chunks.n == 0 else -2, 1
            for k in range(array.rank):
                length = mrec_load_u32(array.shape + 4 * k)
                if length != 0 and count > (<uint64_t>1 << 62) // length:
                    raise _CorruptData("the footer of a segment is damaged: an array is too large")
                count *= length
            element[i] = count
            if array.chunks.n == 1:
                check(mrec_segment_chunk_at(&self.segment, &array, 0, &chunk, &error), &error)
                for k in range(array.rank):
                    if mrec_load_u32(array.chunk_shape + 4 * k) < mrec_load_u32(array.shape + 4 * k):
                        break
                else:
                    block[i], offset[i], size[i] = chunk.block, chunk.offset, chunk.size
        return dtypes, elements, blocks, offsets, sizes

    def chunks(self, uint64_t i):
        """[(coordinate, block, offset in the block, size)] of array i."""
        cdef mrec_segment_array array
        cdef mrec_segment_chunk chunk
        cdef mrec_error error
        cdef list found = []
        self._array(i, &array)
        for k in range(array.chunks.n):
            check(mrec_segment_chunk_at(&self.segment, &array, k, &chunk, &error), &error)
            found.append((_numbers_of(chunk.coordinate, array.rank), chunk.block, chunk.offset, chunk.size))
        return found

    cdef object _string(self, uint64_t i):
        cdef mrec_text text
        cdef mrec_error error
        if self.strings is None:
            self.strings = [None] * self.segment.strings.n
        found = self.strings[i] if i < <uint64_t>len(self.strings) else None
        if found is None:
            check(mrec_segment_string_at(&self.segment, i, &text, &error), &error)
            found = self.strings[i] = _text(text)
        return found

    def pairs(self, uint64_t i):
        """[(key, value)] of array i: value as csrc/segment_build.c has it in one piece."""
        cdef mrec_segment_array array
        cdef mrec_error error
        cdef uint32_t key, value
        cdef list found = []
        self._array(i, &array)
        for k in range(array.attributes.n):
            check(mrec_segment_pair(&self.segment, &array, k, &key, &value, &error), &error)
            found.append((self._string(key), self._value(value)))
        return found

    cdef object _value(self, uint32_t i):
        if self.values is None:
            self.values = [None] * self.segment.values.n
        found = self.values[i]
        if found is None:
            found = self.values[i] = self._packed_value(i)
        return found

    cdef tuple _plain(self, uint32_t i):
        """(tag, value) as `values_of` has them."""
        cdef mrec_segment_attribute value
        cdef mrec_error error
        cdef float narrow
        cdef double wide
        cdef unsigned shift
        check(mrec_segment_value_at(&self.segment, i, &value, &error), &error)
        if value.tag == 0:
            return 0, value.bits != 0
        if value.tag <= 4:
            shift = 64 - 8 * mrec_segment_width(value.tag)
            return value.tag, <int64_t>(value.bits << shift) >> shift
        if value.tag <= 8:
            return value.tag, value.bits
        if value.tag == 9:
            memcpy(&narrow, &value.bits, sizeof(narrow))
            return value.tag, <double>narrow
        if value.tag == 10:
            memcpy(&wide, &value.bits, sizeof(wide))
            return value.tag, wide
        return value.tag, self._string(value.bits) if value.tag == 11 else self._value(i)

    cdef bytes _packed_value(self, uint64_t i):
        cdef mrec_segment_attribute value
        cdef mrec_error error
        cdef mrec_text text
        cdef list parts
        cdef uint32_t size
        cdef uint64_t k
        cdef bytes element
        check(mrec_segment_value_at(&self.segment, i, &value, &error), &error)
        cdef bytes tag = bytes((value.tag,))
        if value.tag <= 10:
            return tag + PyBytes_FromStringAndSize(<const char *>&value.bits, mrec_segment_width(value.tag))
        if value.tag == 11:
            return tag + (<str>self._string(value.bits)).encode()
        if value.tag < 24:
            width = 1 if value.tag == 12 else mrec_segment_width(value.tag)
            return tag + PyBytes_FromStringAndSize(<const char *>value.bytes, value.n * width)
        parts = [tag]
        for k in range(value.n):
            if value.tag == 24:
                element = (<str>self._string(mrec_load_u32(value.bytes + 4 * k))).encode()
            else:
                check(mrec_segment_binary(&self.segment, &value, k, &text, &error), &error)
                element = _bytes_of(text)
            size = len(element)
            parts.append(PyBytes_FromStringAndSize(<const char *>&size, sizeof(size)))
            parts.append(element)
        return b"".join(parts)

    def values_of(self, str key):
        """[(number of the array, tag, value)] of those that have an attribute of this key.

        value: as Python has it for a bool, a number or a string; in one piece for others.
        """
        cdef mrec_segment_array array
        cdef mrec_error error
        cdef mrec_text text
        cdef bytes wanted = key.encode()
        cdef const char *bytes = PyBytes_AS_STRING(wanted)
        cdef size_t n = len(wanted)
        cdef uint64_t i, k, number = self.segment.strings.n
        cdef uint32_t at, value
        cdef list found = []
        cdef dict known = {}
        for i in range(self.segment.strings.n):
            check(mrec_segment_string_at(&self.segment, i, &text, &error), &error)
            if text.n == n and memcmp(text.bytes, bytes, n) == 0:
                number = i
                break
        else:
            return found
        for i in range(self.segment.arrays.n):
            self._array(i, &array)
            for k in range(array.attributes.n):
                check(mrec_segment_pair(&self.segment, &array, k, &at, &value, &error), &error)
                if at == number:
                    plain = known.get(value)
                    if plain is None:
                        plain = known[value] = self._plain(value)
                    found.append((i, (<tuple>plain)[0], (<tuple>plain)[1]))
                    break
        return found


# ---- building them ------------------------------------------------------------------------------------------------


cdef mrec_text _text_of(bytes text):
    cdef mrec_text made
    made.bytes = <const uint8_t *>PyBytes_AS_STRING(text)
    made.n = len(text)
    return made


cdef mrec_segment_value _value_of(value):
    """None, or (kind, bits or bytes)."""
    cdef mrec_segment_value made
    memset(&made, 0, sizeof(made))
    made.kind = -1
    if value is not None:
        made.kind, what = value
        made.textual = isinstance(what, bytes)
        if made.textual:
            made.text = _text_of(what)
        else:
            made.bits = what
    return made


def pack_plain(value):
    """(type, value in one piece) of a str, float, bool or an int of 64 bits, as attributes are stored, and of a list of
    such floats or ints; None for others."""
    cdef char room[9]
    cdef int64_t whole
    cdef double real
    kind = type(value)
    if kind is str:
        try:
            return "string", b"\x0b" + (<str>value).encode("utf-8")
        except UnicodeEncodeError:
            return None
    if kind is float:
        room[0], real = 10, value
        memcpy(room + 1, &real, 8)
        return "float64", PyBytes_FromStringAndSize(room, 9)
    if kind is bool:
        return "bool", b"\x00\x01" if value else b"\x00\x00"
    if kind is int:
        try:
            room[0], whole = 4, value
        except OverflowError:
            return None
        memcpy(room + 1, &whole, 8)
        return "int64", PyBytes_FromStringAndSize(room, 9)
    return _pack_numbers(value) if kind is list and value else None


cdef tuple _pack_numbers(list items):
    cdef int64_t whole
    cdef double real
    cdef Py_ssize_t i, n = len(items)
    cdef bytes made = PyBytes_FromStringAndSize(NULL, 1 + 8 * n)
    cdef char *out = PyBytes_AS_STRING(made)
    kind = type(items[0])
    if kind is not int and kind is not float:
        return None
    for i in range(n):
        if type(items[i]) is not kind:
            return None
        if kind is float:
            real = items[i]
            memcpy(out + 1 + 8 * i, &real, 8)
            continue
        try:
            whole = items[i]
        except OverflowError:
            return None
        memcpy(out + 1 + 8 * i, &whole, 8)
    out[0] = 23 if kind is float else 17
    return ("float64",) if kind is float else ("int64",), made


cdef class SegmentBuilder:
    """Blocks and arrays of a segment, until its footer is written (csrc/segment.h)."""

    cdef mrec_builder *builder

    def __cinit__(self):
        cdef mrec_error error
        check(mrec_builder_new(&self.builder, &error), &error)

    def __dealloc__(self):
        mrec_builder_free(self.builder)

    @property
    def nbytes(self):
        """Memory that it holds."""
        return mrec_builder_bytes(self.builder)

    def add_block(self, uint64_t offset, uint64_t stored, uint64_t raw, int codec):
        """The next block; returns its number."""
        cdef mrec_segment_block block
        cdef mrec_error error
        cdef uint32_t id
        block.offset, block.stored, block.raw, block.codec = offset, stored, raw, <mrec_block_codec>codec
        check(mrec_builder_block(self.builder, &block, &id, &error), &error)
        return id

    def add_array(self, uint64_t order, bytes name not None, unsigned dtype, tuple shape not None,
                  tuple chunk_shape not None, tuple dims not None, fill, list chunks not None, list pairs not None,
                  statistics not None):
        """dims: bytes. chunks: ascending (coordinate, block, offset, size). pairs: (key, value in one piece), bytes,
        ascending by key. fill, and min and max of statistics = (min, max, nulls, rows): None or (kind, bits or bytes).
        """
        cdef mrec_built_array array
        cdef mrec_error error
        cdef _Memory memory = None
        cdef size_t i, k, rank = len(shape), nnumbers = (2 + len(chunks)) * rank
        cdef uint32_t few_numbers[32]  # most arrays are small, and there may be very many
        cdef mrec_text few_texts[8]
        cdef mrec_built_chunk few_places[4]
        cdef mrec_built_attribute few_attributes[16]
        cdef uint32_t *numbers = few_numbers
        cdef mrec_text *texts = few_texts
        cdef mrec_built_chunk *places = few_places
        cdef mrec_built_attribute *attributes = few_attributes
        memset(&array, 0, sizeof(array))
        array.order, array.name, array.dtype, array.rank = order, _text_of(name), dtype, rank
        if nnumbers > 32 or rank > 8 or len(chunks) > 4 or len(pairs) > 16:
            memory = _Memory()
            numbers = <uint32_t *>memory.take(nnumbers, sizeof(uint32_t))
            texts = <mrec_text *>memory.take(rank, sizeof(mrec_text))
            places = <mrec_built_chunk *>memory.take(len(chunks), sizeof(mrec_built_chunk))
            attributes = <mrec_built_attribute *>memory.take(len(pairs), sizeof(mrec_built_attribute))
        for i in range(rank):
            numbers[i], numbers[rank + i], texts[i] = shape[i], chunk_shape[i], _text_of(dims[i])
        array.shape, array.chunk_shape, array.dims = numbers, numbers + rank, texts
        for k in range(len(chunks)):
            coordinate, places[k].block, places[k].offset, places[k].size = chunks[k]
            places[k].coordinate = numbers + (2 + k) * rank
            for i in range(rank):
                numbers[(2 + k) * rank + i] = (<tuple>coordinate)[i]
        array.chunks, array.nchunks = places, len(chunks)
        for k in range(len(pairs)):
            attributes[k].key, attributes[k].value = _text_of((<tuple>pairs[k])[0]), _text_of((<tuple>pairs[k])[1])
        array.attributes, array.nattributes = attributes, len(pairs)
        low, high, array.nulls, array.rows = statistics
        array.fill, array.min, array.max = _value_of(fill), _value_of(low), _value_of(high)
        check(mrec_builder_array(self.builder, &array, &error), &error)

    def write(self):
        """The footer, as two pieces of bytes; once, and nothing is added after it."""
        cdef mrec_buffer head, table
        cdef mrec_error error
        cdef mrec_status status
        memset(&head, 0, sizeof(head))
        memset(&table, 0, sizeof(table))
        with nogil:
            status = mrec_builder_write(self.builder, &head, &table, &error)
        try:
            check(status, &error)
            first = PyBytes_FromStringAndSize(<char *>head.data, head.size)
            mrec_buffer_free(&head)
            return first, PyBytes_FromStringAndSize(<char *>table.data, table.size)
        finally:
            mrec_buffer_free(&head)
            mrec_buffer_free(&table)

# SPDX-License-Identifier: BSD-3-Clause
cdef extern from "string.h" nogil:
    int memcmp(const void *, const void *, size_t)

cdef extern from "segment.h" nogil:
    ctypedef struct mrec_text:
        const uint8_t *bytes
        size_t n

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
        """(numbers of the arrays, tags, values) of those that have an attribute of this key, a list each.

        values: as Python has it for a bool, a number or a string; in one piece for others.
        """
        cdef mrec_segment_array array
        cdef mrec_error error
        cdef mrec_text text
        cdef bytes wanted = key.encode()
        cdef const char *bytes = PyBytes_AS_STRING(wanted)
        cdef size_t n = len(wanted)
        cdef uint64_t i, k, number = self.segment.strings.n
        cdef uint32_t at, value
        cdef list numbers = [], tags = [], values = []
        cdef dict known = {}
        for i in range(self.segment.strings.n):
            check(mrec_segment_string_at(&self.segment, i, &text, &error), &error)
            if text.n == n and memcmp(text.bytes, bytes, n) == 0:
                number = i
                break
        else:
            return numbers, tags, values
        for i in range(self.segment.arrays.n):
            self._array(i, &array)
            for k in range(array.attributes.n):
                check(mrec_segment_pair(&self.segment, &array, k, &at, &value, &error), &error)
                if at == number:
                    plain = known.get(value)
                    if plain is None:
                        plain = known[value] = self._plain(value)
                    numbers.append(i)
                    tags.append((<tuple>plain)[0])
                    values.append((<tuple>plain)[1])
                    break
        return numbers, tags, values

# SPDX-License-Identifier: BSD-3-Clause
cdef extern from "segment.h" nogil:
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

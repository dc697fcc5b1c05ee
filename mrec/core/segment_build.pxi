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


cdef mrec_segment_value _value_of(int kind, what):
    """Bits or bytes; None for none."""
    cdef mrec_segment_value made
    memset(&made, 0, sizeof(made))
    made.kind = -1
    if what is not None:
        made.kind = kind
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


cdef class ArrayForm:
    """What an array of a segment is declared to be: its form in C, made once for all data sets that declare the same.

    shape, chunk_shape: tuples. dims: bytes. fill: None or (kind, bits or bytes). dtype: of numpy, where chunks are its
    bytes; else None. number: for `measure`.
    """

    cdef mrec_built_array array
    cdef _Memory memory
    cdef object fill  # C points into it, where it is text
    cdef object dtype
    cdef int bound, number
    cdef tuple whole  # the coordinate of its chunk, when it has one; else None

    def __init__(self, unsigned code, int bound, tuple shape not None, tuple chunk_shape not None,
                 tuple dims not None, fill, uint64_t rows, dtype=None, int number=-1):
        cdef size_t i, rank = len(shape)
        self.memory = _Memory()
        cdef uint32_t *numbers = <uint32_t *>self.memory.take(2 * rank, sizeof(uint32_t))
        cdef mrec_text *texts = <mrec_text *>self.memory.take(rank, sizeof(mrec_text))
        for i in range(rank):
            numbers[i], numbers[rank + i] = shape[i], chunk_shape[i]
            texts[i].n = len(dims[i])
            texts[i].bytes = <const uint8_t *>self.memory.text(dims[i])
        memset(&self.array, 0, sizeof(self.array))
        self.array.dtype, self.array.rank, self.array.rows = code, rank, rows
        self.array.shape, self.array.chunk_shape, self.array.dims = numbers, numbers + rank, texts
        kind, self.fill = (0, None) if fill is None else fill
        self.array.fill = _value_of(kind, self.fill)
        self.bound, self.dtype, self.number = bound, dtype, number
        self.whole = (0,) * rank if rows and all([n <= c for n, c in zip(shape, chunk_shape)]) else None

    cdef bint fits(self, start, values):
        """Whether these are all its values, as they are stored."""
        cdef size_t i
        cdef _cnp.ndarray array
        if self.whole is None or type(values) is not _cnp.ndarray:
            return False
        if type(start) is not list and type(start) is not tuple:
            return False
        array = <_cnp.ndarray>values
        if <object>_cnp.PyArray_DESCR(array) is not self.dtype or not _cnp.PyArray_IS_C_CONTIGUOUS(array):
            return False
        if <size_t>_cnp.PyArray_NDIM(array) != self.array.rank or <size_t>len(start) != self.array.rank:
            return False
        for i in range(self.array.rank):
            if <uint64_t>_cnp.PyArray_DIM(array, i) != self.array.shape[i] or start[i] is not _ZERO:
                return False
        return True


_ZERO = 0  # there is one of it


cdef class OpenBlock:
    """Chunks back to back, until they are enough for block `number` of a variable. A buffer once it is sealed.

    limit: bytes that a whole block may have. For any thread that holds the GIL.
    """

    cdef mrec_buffer bytes
    cdef bint sealed
    cdef size_t limit
    cdef readonly object variable, number

    def __cinit__(self, variable, number, size_t limit):
        self.variable, self.number, self.limit = variable, number, limit

    def __dealloc__(self):
        mrec_buffer_free(&self.bytes)

    def __len__(self):
        return self.bytes.size

    def __getbuffer__(self, Py_buffer *view, int flags):
        if not self.sealed:
            raise BufferError("a block that is not sealed grows")
        PyBuffer_FillInfo(view, self, self.bytes.data, self.bytes.size, 1, flags)

    def seal(self):
        """Nothing is appended any more. Whether it was still open."""
        was, self.sealed = not self.sealed, True
        return was

    def append(self, data):
        """Keep the bytes of a chunk: (block, offset in it, size). None when the block is sealed. InvalidValue."""
        cdef _Input source = _Input(data)
        return None if self.sealed else (self.number, *self.add(source.view.buf, source.view.len))

    cdef tuple add(self, const void *data, size_t n):
        cdef mrec_error error
        cdef size_t offset = self.bytes.size, most = 0xffffffff
        if n > most or offset > most or offset + n > self.limit:
            raise _InvalidValue(
                f"{self.variable!r}: a chunk of {n} bytes is too large for the format; choose smaller ones")
        check(mrec_buffer_add(&self.bytes, data, n, &error), &error)
        return offset, n

    def read(self, size_t offset, size_t size):
        """A part of it."""
        if offset > self.bytes.size or size > self.bytes.size - offset:
            raise IndexError(offset)
        return PyBytes_FromStringAndSize(<char *>self.bytes.data + offset, size)

    def append_whole(self, ArrayForm form not None, start, values):
        """((coordinate, block, offset, size), extent) of an array that is written at once and as it is stored; None for
        others, and when the block is sealed."""
        cdef mrec_extent extent
        cdef size_t n
        cdef const void *data
        cdef const uint64_t *fill = NULL if form.array.fill.kind < 0 else &form.array.fill.bits
        if self.sealed or not form.fits(start, values):
            return None
        data, n = _cnp.PyArray_DATA(<_cnp.ndarray>values), _cnp.PyArray_NBYTES(<_cnp.ndarray>values)
        if n < 1 << 16:
            extent = mrec_measure(<mrec_number>form.number, data, form.array.rows, fill)
        else:
            with nogil:
                extent = mrec_measure(<mrec_number>form.number, data, form.array.rows, fill)
            if self.sealed:
                return None
        offset, size = self.add(data, n)
        return (form.whole, self.number, offset, size), _extent_of(extent)


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

    def add_array(self, uint64_t order, bytes name not None, ArrayForm form not None, chunks not None,
                  list pairs not None, tuple extent not None):
        """chunks: ascending (coordinate, block, offset, size). pairs: (key, value in one piece), bytes, ascending by
        key. extent: (min, max, nulls), the first two None or bits or bytes.
        """
        cdef mrec_built_array array = form.array
        cdef mrec_error error
        cdef _Memory memory = None
        cdef size_t i, k, rank = array.rank, nchunks = len(chunks), npairs = len(pairs)
        cdef uint32_t few_numbers[8]  # most arrays are small, and there may be very many
        cdef mrec_built_chunk few_places[4]
        cdef mrec_built_attribute few_attributes[16]
        cdef uint32_t *numbers = few_numbers
        cdef mrec_built_chunk *places = few_places
        cdef mrec_built_attribute *attributes = few_attributes
        if nchunks * rank > 8 or nchunks > 4 or npairs > 16:
            memory = _Memory()
            numbers = <uint32_t *>memory.take(nchunks * rank, sizeof(uint32_t))
            places = <mrec_built_chunk *>memory.take(nchunks, sizeof(mrec_built_chunk))
            attributes = <mrec_built_attribute *>memory.take(npairs, sizeof(mrec_built_attribute))
        for k in range(nchunks):
            coordinate, places[k].block, places[k].offset, places[k].size = chunks[k]
            places[k].coordinate = numbers + k * rank
            for i in range(rank):
                numbers[k * rank + i] = (<tuple>coordinate)[i]
        for k in range(npairs):
            attributes[k].key, attributes[k].value = _text_of((<tuple>pairs[k])[0]), _text_of((<tuple>pairs[k])[1])
        array.order, array.name = order, _text_of(name)
        array.chunks, array.nchunks, array.attributes, array.nattributes = places, nchunks, attributes, npairs
        low, high, array.nulls = extent
        array.min, array.max = _value_of(form.bound, low), _value_of(form.bound, high)
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

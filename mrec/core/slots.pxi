# SPDX-License-Identifier: BSD-3-Clause
cimport numpy as _cnp
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from mrec.errors import ForkedHandle as _ForkedHandle
from mrec.errors import WriterBusy as _WriterBusy

_cnp.import_array()


cdef extern from "mrec.h" nogil:
    void mrec_options_init(mrec_options *options)
    mrec_status mrec_append(mrec_writer *writer, const mrec_frame *frame, mrec_error *error)
    mrec_status mrec_flush(mrec_writer *writer, bint durable, mrec_error *error)
    mrec_status mrec_close(mrec_writer *writer, mrec_error *error)
    bint mrec_closed(const mrec_writer *writer)
    void mrec_free(mrec_writer *writer)
    uint64_t mrec_nframes(const mrec_writer *writer)
    uint64_t mrec_npublished(const mrec_writer *writer)
    uint64_t mrec_ndurable(const mrec_writer *writer)
    bint mrec_last_step(const mrec_writer *writer, int64_t *step)
    bint mrec_has_times(const mrec_writer *writer)

cdef extern from "writer.h" nogil:
    mrec_status mrec_create_on(mrec_vfs *, const char *path, const mrec_schema *, const char *schema_json,
                               const mrec_options *, mrec_writer **, mrec_error *)
    void mrec_writer_wait(mrec_writer *)


cdef class _Memory:
    """C memory, zeroed, that lives as long as this object; and Python objects that C points into."""

    cdef list blocks
    cdef list kept

    def __cinit__(self):
        self.blocks = []
        self.kept = []

    cdef void *take(self, size_t n, size_t size) except NULL:
        cdef void *memory = calloc(n + 1, size)
        if memory == NULL:
            raise MemoryError()
        self.blocks.append(<size_t>memory)
        return memory

    cdef const char *text(self, value) except NULL:
        cdef bytes encoded = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
        self.kept.append(encoded)
        return encoded

    cdef const uint64_t *axes(self, lengths) except NULL:
        cdef uint64_t *out = <uint64_t *>self.take(len(lengths), sizeof(uint64_t))
        cdef Py_ssize_t i
        for i in range(len(lengths)):
            out[i] = lengths[i]
        return out

    def __dealloc__(self):
        for block in self.blocks:
            free(<void *><size_t>block)


cdef class _Declaration:
    """A Schema (mrec/trajectory/schema.py) as the core takes it."""

    cdef _Memory memory
    cdef mrec_schema schema

    def __cinit__(self, schema):
        from mrec.trajectory.coerce import fill_bytes

        self.memory = _Memory()
        cdef mrec_block *blocks = <mrec_block *>self.memory.take(len(schema.blocks), sizeof(mrec_block))
        cdef mrec_value *values = <mrec_value *>self.memory.take(len(schema.values), sizeof(mrec_value))
        self.schema.nblocks = len(schema.blocks)
        self.schema.blocks = blocks
        self.schema.nvalues = len(schema.values)
        self.schema.values = values
        for i, block in enumerate(schema.blocks.values()):
            self._fill_block(&blocks[i], block)
        for i, value in enumerate(schema.values.values()):
            values[i].name = self.memory.text(value.name)
            values[i].dtype = <mrec_dtype><int>value.tag.dtype.code
            values[i].width = value.tag.width
            values[i].json = value.tag.json
            if value.has_fill:
                fill = fill_bytes(value)
                values[i].fill_json = self.memory.text(value.fill_json)
                values[i].fill = self.memory.text(fill)
                values[i].fill_size = len(fill)

    cdef int _fill_block(self, mrec_block *out, block) except -1:
        cdef mrec_column *columns = <mrec_column *>self.memory.take(len(block.columns), sizeof(mrec_column))
        out.name = self.memory.text(block.name)
        out.ncolumns = len(block.columns)
        out.columns = columns
        out.rows = block.rows
        shape = block.structural_shape or ()
        out.nstructural = len(shape)
        out.structural = self.memory.axes(shape)
        for i, column in enumerate(block.columns.values()):
            columns[i].name = self.memory.text(column.name)
            columns[i].dtype = <mrec_dtype><int>column.dtype.code
            columns[i].ntrailing = len(column.trailing)
            columns[i].trailing = self.memory.axes(column.trailing)
            columns[i].precision = column.precision or 0.0
            columns[i].nullable = column.nullable
        return 0


cdef int _fill_options(mrec_options *out, dict options, _Memory memory) except -1:
    mrec_options_init(out)
    out.compression = <mrec_compression><int>options.get("compression", 0)
    out.level = options.get("level", 0)
    out.frames_per_chunk = options.get("frames_per_chunk", 0)
    out.chunks_per_shard = options.get("chunks_per_shard", 0)
    out.chunk_bytes = options.get("chunk_bytes", 0)
    out.flush_frames = options.get("flush_frames", 0)
    out.flush_bytes = options.get("flush_bytes", 0)
    out.flush_seconds = options.get("flush_seconds", 0.0)
    out.durable_seconds = options.get("durable_seconds", 0.0)
    out.no_durable = options.get("no_durable", False)
    out.overwrite = options.get("overwrite", False)
    out.threads = options.get("threads", 0)
    if options.get("meta_json") is not None:
        out.meta_json = memory.text(options["meta_json"])
    return 0


cdef class _FrameSlots:
    """One mrec_frame with room for every block, column and value of a schema, filled anew for each frame.

    It points into the arrays it was filled from: those must outlive its use.
    """

    cdef _Memory memory
    cdef mrec_frame frame
    cdef mrec_cell cell
    cdef mrec_block_data *blocks
    cdef mrec_column_data *columns  # of all blocks, one after another
    cdef mrec_value_data *values
    cdef Py_ssize_t nblocks, nvalues

    def __cinit__(self, schema):
        self.memory = _Memory()
        counts = [len(block.columns) for block in schema.blocks.values()]
        self.nblocks = len(counts)
        self.nvalues = len(schema.values)
        self.blocks = <mrec_block_data *>self.memory.take(self.nblocks, sizeof(mrec_block_data))
        self.columns = <mrec_column_data *>self.memory.take(sum(counts), sizeof(mrec_column_data))
        self.values = <mrec_value_data *>self.memory.take(self.nvalues, sizeof(mrec_value_data))
        cdef mrec_column_data *at = self.columns
        for i, n in enumerate(counts):
            self.blocks[i].columns = at
            at += <Py_ssize_t>n
        self.frame.blocks = self.blocks
        self.frame.values = self.values

    cdef int fill(self, step, time, box, list blocks, list values, int lead) except -1:
        """blocks: None or (rows, columns) for each block of the schema; values: bytes, arrays, Text or None."""
        cdef Py_ssize_t i, k
        cdef mrec_column_data *at = self.columns
        self.frame.step = step
        self.frame.has_time = time is not None
        self.frame.time = 0.0 if time is None else time
        self.frame.cell = NULL
        if box is not None:
            self._fill_cell(box)
        for i in range(self.nblocks):
            block = blocks[i]
            at = <mrec_column_data *>self.blocks[i].columns
            self.blocks[i].present = block is not None
            if block is None:
                continue
            rows, columns = <tuple>block
            self.blocks[i].rows = rows
            k = 0
            for data, valid in <list>columns:
                self._fill_column(&at[k], data, valid, lead)
                k += 1
        for i in range(self.nvalues):
            value = values[i]
            self.values[i].data = NULL if value is None else <const char *><bytes>value
            self.values[i].size = 0 if value is None else len(<bytes>value)
        return 0

    cdef int _fill_column(self, mrec_column_data *out, data, valid, int lead) except -1:
        out.f32 = False
        out.offsets = NULL
        out.valid = NULL if valid is None else <const uint8_t *>_cnp.PyArray_DATA(<_cnp.ndarray>valid)
        if isinstance(data, _cnp.ndarray):
            out.data = _cnp.PyArray_DATA(<_cnp.ndarray>data)
            out.stride = _cnp.PyArray_STRIDE(<_cnp.ndarray>data, lead - 1)
            out.f32 = _cnp.PyArray_TYPE(<_cnp.ndarray>data) == _cnp.NPY_FLOAT32
        else:
            text, offsets = data
            out.data = <const char *><bytes>text
            out.stride = 0
            out.offsets = <const uint64_t *>_cnp.PyArray_DATA(<_cnp.ndarray>offsets)
        return 0

    cdef int _fill_cell(self, box) except -1:
        cdef _cnp.ndarray vectors = _np.ascontiguousarray(box.vectors, _np.float64)
        cdef _cnp.ndarray origin = _np.ascontiguousarray(box.origin, _np.float64)
        cdef _cnp.ndarray periodic = _np.ascontiguousarray(box.periodic, _np.uint8)
        if vectors.size != 9 or origin.size != 3 or periodic.size != 3:
            raise ValueError("a cell has nine vector components, three of the origin, three flags")
        self.cell.defined = box.defined
        memcpy(self.cell.vectors, _cnp.PyArray_DATA(vectors), sizeof(self.cell.vectors))
        memcpy(self.cell.origin, _cnp.PyArray_DATA(origin), sizeof(self.cell.origin))
        memcpy(self.cell.periodic, _cnp.PyArray_DATA(periodic), sizeof(self.cell.periodic))
        self.frame.cell = &self.cell
        return 0

# SPDX-License-Identifier: BSD-3-Clause
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.unicode cimport PyUnicode_AsUTF8AndSize

cdef extern from "stdbool.h" nogil:
    ctypedef unsigned char c_bool "bool"

cdef extern from "buffer.h" nogil:
    mrec_status mrec_buffer_add(mrec_buffer *, const void *, size_t, mrec_error *)

cdef extern from "vlen.h" nogil:
    ctypedef struct mrec_ref:
        const uint8_t *text
        uint64_t size

cdef extern from "pool.h" nogil:
    ctypedef struct mrec_pool:
        pass

    mrec_status mrec_pool_new(unsigned workers, mrec_pool **, mrec_error *)
    void mrec_pool_free(mrec_pool *)

cdef extern from "encode.h" nogil:
    ctypedef struct mrec_encoding:
        uint32_t ndim
        uint64_t *grid
        uint64_t *chunk
        bint sharded
        bint index_at_end
        bint index_checked
        bint index_big
        uint32_t *order
        mrec_pipeline pipeline
        size_t unit
        const void *fill
        bint skip_fill

    ctypedef struct mrec_elements:
        const void *data
        uint64_t *n
        ptrdiff_t *strides
        const uint8_t *present

    ctypedef struct mrec_partial:
        mrec_buffer file
        mrec_buffer index
        size_t kept
        uint64_t rows
        uint32_t crc32c

    mrec_status mrec_encode_file(
        mrec_coder *, mrec_pool *, const mrec_encoding *, const mrec_elements *, mrec_buffer *, c_bool *, mrec_error *
    )
    mrec_status mrec_partial_add(
        mrec_coder *, mrec_pool *, const mrec_encoding *, const mrec_elements *, mrec_partial *, mrec_error *
    )
    mrec_status mrec_partial_file(
        mrec_coder *, mrec_pool *, const mrec_encoding *, const mrec_elements *, mrec_partial *, uint32_t *, mrec_error *
    )


cdef class _EncodingBench(_Coder):
    """A coder, what it makes, and threads beside it: for one call at a time."""

    cdef mrec_pool *pool
    cdef unsigned forks

    def __init__(self, unsigned threads):
        cdef mrec_error error
        self.forks = mrec_fork_count()
        if threads > 1:
            check(mrec_pool_new(threads - 1, &self.pool, &error), &error)

    def __dealloc__(self):
        if self.forks == mrec_fork_count():  # in a forked child there are no such threads to wait for
            mrec_pool_free(self.pool)


cdef class Encoder:
    """Files of an array, each whole: a shard, or a chunk of its own.

    `spec` holds what `mrec_encoding` (csrc/encode.h) does, by the names that Source has for them: grid, chunk, order,
    sharded, index_at_end, index_checked, index_big, pipeline, fill. `dtype` is the numpy type. skip_fill: chunks that
    are all fill, bit for bit, are left out. threads: that encode the chunks of one shard. Thread-safe.
    """

    cdef dict spec
    cdef object dtype
    cdef mrec_encoding form
    cdef bytes fill
    cdef mrec_ref fill_ref
    cdef bint is_string
    cdef unsigned threads
    cdef list benches

    def __init__(self, dict spec, dtype, bint skip_fill=False, unsigned threads=1):
        cdef Py_ssize_t i, n = len(spec["grid"])
        self.dtype = _np.dtype(dtype)
        self.is_string = self.dtype.kind == "T"
        self.fill = spec["fill"]
        self.threads = threads
        self.benches = []
        if n > MREC_MAX_AXES:
            raise _InvalidValue(f"{n} axes; at most {MREC_MAX_AXES} are encoded")
        if not self.is_string and len(self.fill) != self.dtype.itemsize:
            raise _InvalidValue(f"a fill of {len(self.fill)} bytes for {self.dtype}")
        self.form.ndim = <uint32_t>n
        for i in range(n):
            self.form.grid[i] = spec["grid"][i]
            self.form.chunk[i] = spec["chunk"][i]
            self.form.order[i] = spec["order"][i]
        self.form.sharded = spec["sharded"]
        self.form.index_at_end = spec["index_at_end"]
        self.form.index_checked = spec["index_checked"]
        self.form.index_big = spec["index_big"]
        self.form.skip_fill = skip_fill
        fill_pipeline(&self.form.pipeline, spec["pipeline"])
        self.form.unit = sizeof(mrec_ref) if self.is_string else self.dtype.itemsize
        self.fill_ref.text = <const uint8_t *>PyBytes_AS_STRING(self.fill)
        self.fill_ref.size = len(self.fill)
        self.form.fill = <const void *>&self.fill_ref if self.is_string else PyBytes_AS_STRING(self.fill)

    def encode(self, values, present=None):
        """The bytes of one file, or None when nothing is to be stored.

        values: the elements of the file that are inside the array, of the encoder's type and at any stride; strings
        also as objects. present: a bool for each chunk of the shard, in C order; those that are False stay missing.
        """
        self.check_axes(values)
        cdef mrec_elements elements
        cdef const uint8_t[::1] chunks
        cdef uint64_t nchunks = 1
        cdef uint32_t i
        for i in range(self.form.ndim):
            nchunks *= self.form.grid[i] // self.form.chunk[i]
        elements.present = NULL
        if present is not None:
            present = _np.ascontiguousarray(present, _np.bool_).reshape(-1).view(_np.uint8)
            if <uint64_t>len(present) != nchunks:
                raise _InvalidValue(f"{len(present)} flags for {nchunks} chunks")
            chunks = present
            elements.present = &chunks[0]
        return self.encode_strings(values, &elements) if self.is_string else self.encode_numbers(values, &elements)

    cdef int check_axes(self, values) except -1:
        if values.ndim != self.form.ndim:
            raise _InvalidValue(f"values have {values.ndim} axes, not {self.form.ndim}")
        return 0

    cdef object encode_numbers(self, values, mrec_elements *elements):
        cdef Py_buffer view
        self.look_at(values, &view, elements)
        try:
            return self.run(elements)
        finally:
            PyBuffer_Release(&view)

    cdef int look_at(self, values, Py_buffer *view, mrec_elements *elements) except -1:
        """The numbers of an array, for as long as the view is held."""
        cdef int i
        if values.dtype != self.dtype:
            raise _InvalidValue(f"values are {values.dtype}, the array is {self.dtype}")
        PyObject_GetBuffer(values, view, PyBUF_STRIDES)
        elements.data = view.buf
        for i in range(view.ndim):
            elements.n[i] = view.shape[i]
            elements.strides[i] = view.strides[i]
        return 0

    cdef object encode_strings(self, values, mrec_elements *elements):
        cdef list texts = values.ravel().tolist()
        cdef Py_ssize_t i, size, n = len(texts), stride = sizeof(mrec_ref)
        cdef mrec_ref *refs = <mrec_ref *>PyMem_Calloc(n + 1, sizeof(mrec_ref))
        if refs == NULL:
            raise MemoryError
        try:
            for i in range(n):
                if not isinstance(texts[i], str):
                    raise _InvalidValue(f"{texts[i]!r} is no string")
                refs[i].text = <const uint8_t *>PyUnicode_AsUTF8AndSize(texts[i], &size)
                refs[i].size = size
            elements.data = refs
            for i in range(values.ndim - 1, -1, -1):
                elements.n[i] = values.shape[i]
                elements.strides[i] = stride
                stride *= values.shape[i]
            return self.run(elements)
        finally:
            PyMem_Free(refs)

    cdef object run(self, mrec_elements *elements):
        cdef _EncodingBench bench = self.bench()
        cdef mrec_error error
        cdef mrec_status status
        cdef c_bool any_chunk
        with nogil:
            status = mrec_encode_file(
                bench.coder, bench.pool, &self.form, elements, &bench.out, &any_chunk, &error
            )
        check(status, &error)
        found = bench.taken() if any_chunk else None
        self.benches.append(bench)
        return found

    cdef _EncodingBench bench(self):
        cdef _EncodingBench bench
        try:
            bench = self.benches.pop()
        except IndexError:
            return _EncodingBench(self.threads)
        return bench if bench.forks == mrec_fork_count() else _EncodingBench(self.threads)


cdef class _FileBytes:
    """A buffer that others may look into."""

    cdef mrec_buffer buffer
    cdef Py_ssize_t exports

    def __dealloc__(self):
        mrec_buffer_free(&self.buffer)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.buffer.data, <Py_ssize_t>self.buffer.size, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer *view):
        self.exports -= 1


cdef struct _Rows:
    const mrec_encoding *form
    mrec_elements elements
    mrec_partial *shard
    Py_buffer view


cdef class PartialShard:
    """A shard that grows along its first axis, by `add_rows`. One thread at a time.

    What was added is encoded at once, and once. `kept` can be set to an earlier value: what came after it is forgotten.
    """

    cdef Encoder encoder
    cdef mrec_partial shard  # whose file is that of `bytes` while it is at work, and nobody's otherwise
    cdef _FileBytes bytes
    cdef bint at_work

    def __init__(self, Encoder encoder):
        self.encoder = encoder
        self.bytes = _FileBytes()

    def __dealloc__(self):
        mrec_buffer_free(&self.shard.index)

    @property
    def kept(self):
        """What is in the shard: rows of chunks along the first axis, their bytes, and the checksum of these."""
        return self.shard.rows, self.shard.kept, self.shard.crc32c

    @kept.setter
    def kept(self, tuple earlier):
        rows, nbytes, crc32c = earlier
        if rows > self.shard.rows or nbytes > self.shard.kept:
            raise _InvalidValue("a shard does not go back to more than it has")
        self.shard.rows, self.shard.kept, self.shard.crc32c = rows, nbytes, crc32c

    def seal(self, values):
        """The file of what was added and of these elements (or none), which do not stay; and its checksum. The bytes
        are the shard's own: nobody changes them who still looks at them, but then the shard needs others."""
        cdef uint32_t crc32c
        cdef _EncodingBench bench = self.encoder.bench()
        cdef mrec_error error
        cdef mrec_status status
        cdef _Rows rows
        self.begin(values, &rows)
        with nogil:
            status = mrec_partial_file(
                bench.coder, bench.pool, rows.form, &rows.elements, rows.shard, &crc32c, &error
            )
        self.end(&rows)
        check(status, &error)
        self.encoder.benches.append(bench)
        return memoryview(self.bytes), crc32c

    cdef int begin(self, values, _Rows *rows) except -1:
        """The shard is at work on these elements, until `end`."""
        self.encoder.check_axes(values)
        if self.at_work:
            raise _InvalidValue("a shard takes one thing at a time")
        if self.bytes.exports:
            self.leave_bytes()
        self.encoder.look_at(values, &rows.view, &rows.elements)
        rows.elements.present = NULL
        rows.form, rows.shard = &self.encoder.form, &self.shard
        self.shard.file = self.bytes.buffer
        self.at_work = True
        return 0

    cdef void end(self, _Rows *rows):
        self.bytes.buffer = self.shard.file
        self.at_work = False
        PyBuffer_Release(&rows.view)

    cdef int leave_bytes(self) except -1:
        cdef mrec_error error
        cdef _FileBytes own = _FileBytes()
        check(mrec_buffer_add(&own.buffer, self.bytes.buffer.data, self.shard.kept, &error), &error)
        self.bytes = own
        return 0


def add_rows(list rows):
    """Put elements behind those that are there, from the next row of chunks on.

    rows: pairs of a PartialShard, each once, and its elements. After an error some may have theirs: see `kept`.
    """
    cdef Py_ssize_t i, n = len(rows), begun = 0
    cdef mrec_error error
    cdef mrec_status status = MREC_OK
    cdef PartialShard shard
    cdef _EncodingBench bench
    if n == 0:
        return
    cdef _Rows *work = <_Rows *>PyMem_Calloc(n, sizeof(_Rows))
    if work == NULL:
        raise MemoryError
    try:
        for shard, values in rows:
            shard.begin(values, &work[begun])
            begun += 1
        bench = shard.encoder.bench()
        with nogil:
            for i in range(n):
                status = mrec_partial_add(
                    bench.coder, bench.pool, work[i].form, &work[i].elements, work[i].shard, &error
                )
                if status != MREC_OK:
                    break
        check(status, &error)
        shard.encoder.benches.append(bench)
    finally:
        for i in range(begun):
            shard = rows[i][0]
            shard.end(&work[i])
        PyMem_Free(work)

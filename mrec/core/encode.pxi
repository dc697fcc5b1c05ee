# SPDX-License-Identifier: BSD-3-Clause
from cpython.unicode cimport PyUnicode_AsUTF8AndSize

cdef extern from "stdbool.h" nogil:
    ctypedef unsigned char c_bool "bool"

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

    mrec_status mrec_encode_file(
        mrec_coder *, mrec_pool *, const mrec_encoding *, const mrec_elements *, mrec_buffer *, c_bool *, mrec_error *
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
        if values.ndim != self.form.ndim:
            raise _InvalidValue(f"values have {values.ndim} axes, not {self.form.ndim}")
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

    cdef object encode_numbers(self, values, mrec_elements *elements):
        cdef Py_buffer view
        cdef int i
        if values.dtype != self.dtype:
            raise _InvalidValue(f"values are {values.dtype}, the array is {self.dtype}")
        PyObject_GetBuffer(values, &view, PyBUF_STRIDES)
        try:
            elements.data = view.buf
            for i in range(view.ndim):
                elements.n[i] = view.shape[i]
                elements.strides[i] = view.strides[i]
            return self.run(elements)
        finally:
            PyBuffer_Release(&view)

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
        cdef _EncodingBench bench
        cdef mrec_error error
        cdef mrec_status status
        cdef c_bool any_chunk
        try:
            bench = self.benches.pop()
        except IndexError:
            bench = None
        if bench is None or bench.forks != mrec_fork_count():
            bench = _EncodingBench(self.threads)
        with nogil:
            status = mrec_encode_file(
                bench.coder, bench.pool, &self.form, elements, &bench.out, &any_chunk, &error
            )
        check(status, &error)
        found = bench.taken() if any_chunk else None
        self.benches.append(bench)
        return found

# SPDX-License-Identifier: BSD-3-Clause
from mrec.dtypes import room as _room
from cpython.buffer cimport PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.unicode cimport PyUnicode_DecodeUTF8


cdef extern from "reader.h" nogil:
    ctypedef struct mrec_cache:
        pass

    ctypedef struct mrec_source:
        pass

    enum:
        MREC_MAX_AXES

    ctypedef struct mrec_array_spec:
        const char *path
        mrec_dtype dtype
        uint32_t ndim
        uint64_t *shape
        uint64_t *grid
        uint64_t *chunk
        bint sharded
        bint index_at_end
        bint index_checked
        bint index_big
        uint32_t *order
        char separator
        bint v2_keys
        mrec_pipeline pipeline
        uint8_t *fill
        const char *fill_text
        size_t fill_text_size
        bint absent_is_loss
        bint fixed
        bint unverified
        uint64_t tail_shard, tail_chunk, tail_offset, tail_nbytes
        uint32_t tail_crc32c
        mrec_cache *cache

    mrec_status mrec_cache_new(mrec_vfs *, size_t, size_t, mrec_cache **, mrec_error *)
    void mrec_cache_free(mrec_cache *)
    mrec_status mrec_source_open(mrec_vfs *, const mrec_array_spec *, mrec_source **, mrec_error *)
    void mrec_source_free(mrec_source *)
    mrec_status mrec_source_refresh(mrec_source *, uint64_t, mrec_error *)
    mrec_status mrec_source_read(mrec_source *, uint64_t, uint64_t, void *, ptrdiff_t, mrec_error *)
    mrec_status mrec_source_gather(
        mrec_source *, const int64_t *, uint64_t, uint64_t, void *, ptrdiff_t, ptrdiff_t, mrec_error *
    )
    mrec_status mrec_source_read_box(mrec_source *, const uint64_t *, const uint64_t *, void *, mrec_error *)
    mrec_status mrec_source_read_strings(
        mrec_source *, const uint64_t *, const uint64_t *, mrec_buffer *, mrec_buffer *, mrec_error *
    )


@cython.no_gc_clear  # its files are closed through the archive
cdef class Cache:
    """Open files (at most `files`), parsed indexes and decoded chunks (at most `nbytes`) of the arrays of one store.

    The files are the entries of an archive, the objects of a store, or those of the operating system.
    """

    cdef mrec_cache *cache
    cdef Archive archive
    cdef Objects objects
    cdef unsigned forks
    cdef size_t files, nbytes

    def __init__(self, size_t files=0, size_t nbytes=0, Archive archive=None, Objects objects=None):
        self.archive = archive
        self.objects = objects
        self.files = files
        self.nbytes = nbytes
        self.make()

    cdef mrec_vfs *vfs(self) noexcept:
        if self.archive is not None:
            return mrec_archive_vfs(self.archive.archive)
        return mrec_vfs_posix() if self.objects is None else &self.objects.calls.vfs

    cdef int make(self) except -1:
        cdef mrec_error error
        cdef mrec_cache *made = NULL
        check(mrec_cache_new(self.vfs(), self.files, self.nbytes, &made, &error), &error)
        self.cache = made
        self.forks = mrec_fork_count()
        return 0

    def __dealloc__(self):
        # In a forked child another thread's lock may be held for ever: what came over the fork is left alone.
        if self.cache != NULL and self.forks == mrec_fork_count():
            mrec_cache_free(self.cache)


@cython.no_gc_clear  # it lets go of what it has in the cache
cdef class Source:
    """One array of a directory, for reading.

    `spec` holds what `mrec_array_spec` (csrc/reader.h) does, by the same names: path, code, shape, grid, chunk, order,
    sharded, index_at_end, index_checked, index_big, separator, v2_keys, pipeline (pairs, see fill_pipeline), fill (bytes
    of an element, or of a string's text), absent_is_loss, fixed, tail (None, or shard, chunk, offset, nbytes, crc32c), verify.
    `dtype` is the numpy type. Thread-safe; opens itself anew after a fork.
    """

    cdef mrec_source *source
    cdef Cache cache
    cdef unsigned forks
    cdef dict spec
    cdef readonly object dtype
    cdef readonly tuple shape
    cdef Py_ssize_t itemsize
    cdef bint is_string

    def __init__(self, dict spec, dtype, Cache cache=None):
        self.spec = spec
        self.dtype = _np.dtype(dtype)
        self.itemsize = self.dtype.itemsize
        self.is_string = self.dtype.kind == "T"
        self.shape = tuple(spec["shape"])
        self.cache = Cache() if cache is None else cache
        self.open()

    def __dealloc__(self):
        if self.source != NULL and self.forks == mrec_fork_count():
            mrec_source_free(self.source)

    cdef int open(self) except -1:
        cdef mrec_array_spec c
        cdef mrec_error error
        cdef mrec_source *made = NULL
        cdef bytes path = _os.fsencode(self.spec["path"])
        cdef bytes fill = self.spec["fill"]
        cdef Py_ssize_t i, n = len(self.shape)
        if self.cache.forks != mrec_fork_count():
            self.cache.make()
        if n > MREC_MAX_AXES:
            raise _CorruptData(f"{self.spec['path']}: {n} axes; at most {MREC_MAX_AXES} are read")
        if b"\0" in path:
            raise _InvalidValue(f"a path cannot hold a NUL: {self.spec['path']!r}")
        c.path = path
        c.dtype = <mrec_dtype><int>self.spec["code"]
        c.ndim = <uint32_t>n
        for i in range(n):
            c.shape[i] = self.shape[i]
            c.grid[i] = self.spec["grid"][i]
            c.chunk[i] = self.spec["chunk"][i]
            c.order[i] = self.spec["order"][i]
        c.sharded = self.spec["sharded"]
        c.index_at_end = self.spec["index_at_end"]
        c.index_checked = self.spec["index_checked"]
        c.index_big = self.spec["index_big"]
        c.separator = <char><int>ord(self.spec["separator"])
        c.v2_keys = self.spec["v2_keys"]
        fill_pipeline(&c.pipeline, self.spec["pipeline"])
        c.fill_text = NULL
        c.fill_text_size = 0
        if self.is_string:
            c.fill_text = fill
            c.fill_text_size = len(fill)
        elif len(fill) == self.itemsize <= 16:
            memcpy(c.fill, <const char *>fill, self.itemsize)
        else:
            raise _InvalidValue(f"a fill of {len(fill)} bytes for {self.dtype}")
        c.absent_is_loss = self.spec["absent_is_loss"]
        c.fixed = self.spec["fixed"]
        c.unverified = not self.spec["verify"]
        tail = self.spec["tail"] or (0, 0, 0, 0, 0)
        c.tail_shard, c.tail_chunk, c.tail_offset, c.tail_nbytes, c.tail_crc32c = tail
        c.cache = self.cache.cache
        check(mrec_source_open(self.cache.vfs(), &c, &made, &error), &error)
        self.source = made
        self.forks = mrec_fork_count()
        return 0

    def read(self, uint64_t start, uint64_t stop, out=None):
        """Rows [start, stop) as an array, or into `out`: same type, rows at any stride, trailing axes close together.

        An array without axes has the rows [0, 1), and `out` is 1-d.
        """
        cdef Py_buffer view
        cdef mrec_error error
        cdef mrec_status status
        if self.forks != mrec_fork_count():
            self.open()
        if self.is_string:
            strings = self.read_strings(start, stop)
            if out is None:
                return strings
            out[...] = strings
            return out
        if stop < start:
            raise _InvalidValue(f"rows {start} to {stop}")
        if out is None:
            out = _room((stop - start, *self.shape[1:]), self.dtype)
        elif out.dtype != self.dtype:
            raise _InvalidValue(f"out is {out.dtype}, the array is {self.dtype}")
        PyObject_GetBuffer(out, &view, PyBUF_STRIDES | PyBUF_WRITABLE)
        try:
            self.check_out(&view, 1)
            if <uint64_t>view.shape[0] != stop - start:
                raise _InvalidValue(f"out holds {view.shape[0]} rows, not {stop - start}")
            with nogil:
                status = mrec_source_read(self.source, start, stop, view.buf, view.strides[0], &error)
            check(status, &error)
        finally:
            PyBuffer_Release(&view)
        return out

    cdef int check_out(self, Py_buffer *view, int leading) except -1:
        """The axes after the leading ones are the array's trailing ones, close together."""
        cdef Py_ssize_t close = self.itemsize
        cdef int axis = max(<int>len(self.shape), 1) - 1
        cdef int at = leading + axis - 1
        cdef bint fits = view.ndim == at + 1
        while fits and axis > 0:
            fits = view.shape[at] == self.shape[axis] and (view.strides[at] == close or view.shape[at] <= 1)
            close *= view.shape[at]
            axis -= 1
            at -= 1
        if not fits:
            raise _InvalidValue(f"out is no array of rows {self.shape[1:]}, each in C order")
        return 0

    def gather(self, int64_t[::1] starts, out):
        """Many stretches of rows into `out` (stretches, rows, ...): stretch i begins at row starts[i].

        out: the array's type, its first two axes at any stride, trailing axes close together.
        """
        cdef Py_buffer view
        cdef mrec_error error
        cdef mrec_status status
        if self.forks != mrec_fork_count():
            self.open()
        if self.is_string:
            for i in range(len(starts)):
                out[i] = self.read_strings(starts[i], starts[i] + out.shape[1])
            return
        if out.dtype != self.dtype:
            raise _InvalidValue(f"out is {out.dtype}, the array is {self.dtype}")
        PyObject_GetBuffer(out, &view, PyBUF_STRIDES | PyBUF_WRITABLE)
        try:
            self.check_out(&view, 2)
            if view.shape[0] != starts.shape[0]:
                raise _InvalidValue(f"out holds {view.shape[0]} stretches, not {starts.shape[0]}")
            if view.shape[0] > 0 and view.shape[1] > 0:
                with nogil:
                    status = mrec_source_gather(
                        self.source, &starts[0], view.shape[0], view.shape[1], view.buf, view.strides[0],
                        view.strides[1], &error,
                    )
                check(status, &error)
        finally:
            PyBuffer_Release(&view)

    def read_strings(self, uint64_t start, uint64_t stop):
        """The same for strings, as an array of numpy's StringDType."""
        return self.string_box([start, *[0] * (len(self.shape) - 1)], [stop, *self.shape[1:]])

    def read_box(self, low, high):
        """The elements from low[i] up to high[i] of each axis as a new array; only chunks that these meet are read."""
        cdef uint64_t lows[MREC_MAX_AXES]
        cdef uint64_t highs[MREC_MAX_AXES]
        cdef mrec_error error
        cdef mrec_status status
        cdef Py_buffer view
        if self.forks != mrec_fork_count():
            self.open()
        if self.is_string:
            return self.string_box(low, high)
        self.fill_box(low, high, lows, highs)
        out = _room([b - a for a, b in zip(low, high)], self.dtype)
        PyObject_GetBuffer(out, &view, PyBUF_STRIDES | PyBUF_WRITABLE)
        try:
            with nogil:
                status = mrec_source_read_box(self.source, lows, highs, view.buf, &error)
            check(status, &error)
        finally:
            PyBuffer_Release(&view)
        return out

    cdef int fill_box(self, low, high, uint64_t *lows, uint64_t *highs) except -1:
        cdef Py_ssize_t i, n = len(self.shape)
        if len(low) != n or len(high) != n:
            raise _InvalidValue(f"a box of {len(low)} axes in an array of {n}")
        for i in range(n):
            lows[i] = low[i]
            highs[i] = high[i]
            if lows[i] > highs[i] or highs[i] > <uint64_t>self.shape[i]:
                raise _InvalidValue(f"{lows[i]} to {highs[i]} of {self.shape[i]} in axis {i}")
        return 0

    cdef object string_box(self, low, high):
        cdef uint64_t lows[MREC_MAX_AXES]
        cdef uint64_t highs[MREC_MAX_AXES]
        cdef mrec_buffer text, ends
        cdef mrec_error error
        cdef mrec_status status
        if self.forks != mrec_fork_count():
            self.open()
        memset(&text, 0, sizeof(text))
        memset(&ends, 0, sizeof(ends))
        if self.shape:
            self.fill_box(low, high, lows, highs)
        try:
            with nogil:
                status = mrec_source_read_strings(self.source, lows, highs, &text, &ends, &error)
            check(status, &error)
            found = _np.array(self.decode(&text, &ends), self.dtype)
        finally:
            mrec_buffer_free(&text)
            mrec_buffer_free(&ends)
        return found.reshape([b - a for a, b in zip(low, high)])

    cdef list decode(self, mrec_buffer *text, mrec_buffer *ends):
        cdef const uint64_t *end = <const uint64_t *>ends.data
        cdef Py_ssize_t i, n = ends.size // sizeof(uint64_t)
        cdef uint64_t at = 0
        cdef list found = [None] * n
        try:
            for i in range(n):
                found[i] = PyUnicode_DecodeUTF8(<const char *>text.data + at, end[i] - at, NULL) if end[i] > at else ""
                at = end[i]
        except UnicodeDecodeError as e:
            raise _CorruptData(f"{self.spec['path']}: a string is not UTF-8: {e}") from None
        return found

    def refresh(self, uint64_t length):
        """Forget what can still change; the first axis now has `length` entries."""
        cdef mrec_error error
        if self.forks == mrec_fork_count():
            with nogil:  # a reader may hold the array, and wait for Python's lock
                check(mrec_source_refresh(self.source, length, &error), &error)
        self.shape = (length, *self.shape[1:])


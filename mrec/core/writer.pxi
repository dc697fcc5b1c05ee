# SPDX-License-Identifier: BSD-3-Clause
cimport cython
from cpython.exc cimport PyErr_CheckSignals

# Frames of one call, after which it looks whether a signal came.
cdef Py_ssize_t BETWEEN_SIGNALS = 64


@cython.no_gc_clear
cdef class Writer:
    """A writer of the core. Made by `create` and `reopen` (mrec.trajectory.writer is the public face)."""

    cdef mrec_writer *writer
    cdef FaultFiles files  # outlives the writer
    cdef _FrameSlots slots
    cdef _PlainFrame plain
    cdef str where
    cdef bint inside
    cdef unsigned forks

    @staticmethod
    def create(path, schema, dict options not None, schema_json=None):
        """A new record at `path`. options: the members of mrec_options, in its units.

        schema_json: the declaration as it is stored, when it says more than the core knows of.
        """
        cdef Writer self = Writer.__new__(Writer)
        cdef _Declaration declaration = _Declaration(schema)
        cdef _Memory memory = _Memory()
        cdef mrec_options filled
        cdef mrec_error error
        _fill_options(&filled, options, memory)
        cdef const char *where = memory.text(path)
        cdef const char *declared = NULL if schema_json is None else memory.text(schema_json)
        cdef mrec_vfs *vfs = vfs_in_use()
        self.files = _files
        with nogil:
            check(mrec_create_on(vfs, where, &declaration.schema, declared, &filled, &self.writer, &error), &error)
        self._prepare(schema, path)
        return self

    cdef int _prepare(self, schema, path) except -1:
        self.where = _os.fsdecode(path)
        self.slots = _FrameSlots(schema)
        self.plain = _PlainFrame(schema)
        self.forks = mrec_fork_count()
        return 0

    def __dealloc__(self):
        if not (self.inside and self.forked):  # forked in the middle of a call: it may be in any state
            with nogil:  # it may wait for a thread that waits for the disk
                mrec_free(self.writer)

    cdef int _enter(self) except -1:
        if self.inside and self.forked:
            raise _ForkedHandle(f"{self.where}: this writer belongs to the parent process; only it can append")
        if self.inside:
            raise _WriterBusy(f"{self.where}: the writer is inside another call; one writer serves one thread at a time")
        self.inside = True
        return 0

    def append(self, step, time, box, list blocks not None, list values not None):
        """One frame. blocks and values in the order of the schema, coerced (mrec/trajectory/coerce.py)."""
        cdef mrec_error error
        self._enter()
        try:
            self.slots.fill(step, time, box, blocks, values, 1)
            with nogil:
                check(mrec_append(self.writer, &self.slots.frame, &error), &error)
        finally:
            self.inside = False

    def append_plain(self, step, time, box, dict named not None) -> bool:
        """The same for a frame whose arrays need no conversion; False, and nothing done, for another.

        box: a Box or None; named: blocks (dicts) and per-step values together.
        """
        cdef mrec_error error
        cdef int overflow
        cdef int64_t number
        if type(step) is not int or not (time is None or PyFloat_CheckExact(time)):
            return False
        number = PyLong_AsLongLongAndOverflow(step, &overflow)
        if overflow:
            return False
        self._enter()
        try:
            if not self.plain.fill(number, time, box, named):
                return False
            with nogil:
                check(mrec_append(self.writer, &self.plain.slots.frame, &error), &error)
        finally:
            self.inside = False
        return True

    def append_many(self, const int64_t[::1] steps not None, times, boxes, list blocks not None, list values not None):
        """Many frames, checked by the caller, so that only I/O can fail in the middle.

        times: float64 array or None; boxes: one a frame, or None; blocks: None or (rows, [(data, valid)]) with a
        leading frame axis, strings as Text over all frames; values: a list of bytes or None a frame, each.
        """
        cdef mrec_error error
        cdef Py_ssize_t f = 0, some, n = steps.shape[0]
        if n == 0:
            return
        self._enter()
        cdef _Frames frames
        try:
            frames = _Frames(self.slots, steps, times, boxes, blocks, values)
            while f < n:
                some = min(f + BETWEEN_SIGNALS, n)
                with nogil:
                    while f < some:
                        frames.point_at(f)
                        check(mrec_append(self.writer, &self.slots.frame, &error), &error)
                        f += 1
                PyErr_CheckSignals()
        finally:
            self.inside = False

    def flush(self, bint durable):
        """Publish every frame taken so far."""
        cdef mrec_error error
        self._enter()
        try:
            with nogil:
                check(mrec_flush(self.writer, durable, &error), &error)
        finally:
            self.inside = False

    def wait(self):
        """Until a thread behind the writer has done all it was given: for tests that look at what is on disk."""
        with nogil:
            mrec_writer_wait(self.writer)

    def close(self):
        """Land what waits and end the live form of the record."""
        cdef mrec_error error
        self._enter()
        try:
            with nogil:
                check(mrec_close(self.writer, &error), &error)
        finally:
            self.inside = False

    @property
    def forked(self):
        """Whether it is that of a parent process."""
        return self.forks != mrec_fork_count()

    @property
    def closed(self):
        return mrec_closed(self.writer)

    @property
    def nframes(self):
        return mrec_nframes(self.writer)

    @property
    def npublished(self):
        return mrec_npublished(self.writer)

    @property
    def ndurable(self):
        return mrec_ndurable(self.writer)

    @property
    def last_step(self):
        cdef int64_t step
        return step if mrec_last_step(self.writer, &step) else None

    @property
    def has_times(self):
        return mrec_has_times(self.writer)

# SPDX-License-Identifier: BSD-3-Clause


cdef class _Frames:
    """Many frames of one call: the slots are filled for the first, and pointed at one after another without Python."""

    cdef _FrameSlots slots
    cdef _Memory memory
    cdef const int64_t *steps
    cdef const double *times  # or NULL
    cdef mrec_cell *cells  # one a frame, or NULL
    cdef mrec_column_data **columns  # of the blocks that are given; what follows is how far a frame moves each
    cdef Py_ssize_t *data
    cdef Py_ssize_t *offsets
    cdef Py_ssize_t *valid
    cdef Py_ssize_t ncolumns
    cdef mrec_value_data *values  # value i of frame f at i * n + f
    cdef Py_ssize_t n
    cdef tuple kept

    def __cinit__(self, _FrameSlots slots, const int64_t[::1] steps, const double[::1] times, list boxes, list blocks,
                  list values):
        cdef Py_ssize_t f, i, k
        self.slots, self.memory, self.n = slots, _Memory(), steps.shape[0]
        self.kept = (steps, times, blocks, values)
        self.steps = &steps[0]
        self.times = NULL if times is None else &times[0]
        slots.fill(
            steps[0], None if times is None else times[0], None if boxes is None else boxes[0], blocks,
            [None] * slots.nvalues, 2,
        )
        if boxes is not None:
            self._take_cells(boxes)
        self._take_columns(blocks)
        self.values = <mrec_value_data *>self.memory.take(slots.nvalues * self.n, sizeof(mrec_value_data))
        for i in range(slots.nvalues):
            if values[i] is not None:
                for f in range(self.n):
                    self._take_value(&self.values[i * self.n + f], (<list>values[i])[f])

    cdef int _take_value(self, mrec_value_data *out, one) except -1:
        if one is not None:
            out.data = <const char *><bytes>one
            out.size = len(<bytes>one)
        return 0

    cdef int _take_cells(self, list boxes) except -1:
        cdef Py_ssize_t f
        self.cells = <mrec_cell *>self.memory.take(self.n, sizeof(mrec_cell))
        for f in range(self.n):
            if f == 0 or boxes[f] is not boxes[f - 1]:
                self.slots._fill_cell(boxes[f])
            self.cells[f] = self.slots.cell
        return 0

    cdef int _take_columns(self, list blocks) except -1:
        cdef Py_ssize_t i, k
        total = sum(0 if block is None else len(block[1]) for block in blocks)
        self.columns = <mrec_column_data **>self.memory.take(total, sizeof(void *))
        self.data = <Py_ssize_t *>self.memory.take(total, sizeof(Py_ssize_t))
        self.offsets = <Py_ssize_t *>self.memory.take(total, sizeof(Py_ssize_t))
        self.valid = <Py_ssize_t *>self.memory.take(total, sizeof(Py_ssize_t))
        for i in range(self.slots.nblocks):
            if blocks[i] is None:
                continue
            rows, columns = <tuple>blocks[i]
            for k in range(len(<list>columns)):
                data = (<tuple>(<list>columns)[k])[0]
                self.columns[self.ncolumns] = <mrec_column_data *>&self.slots.blocks[i].columns[k]
                self.valid[self.ncolumns] = rows
                if isinstance(data, _np.ndarray):
                    self.data[self.ncolumns] = _cnp.PyArray_STRIDE(<_cnp.ndarray>data, 0)
                else:  # the text of all frames together
                    self.offsets[self.ncolumns] = (len(data[1]) - 1) // self.n
                self.ncolumns += 1
        return 0

    cdef void point_at(self, Py_ssize_t f) noexcept nogil:
        """Fill the slots for frame f, after frame f - 1."""
        cdef Py_ssize_t i
        cdef mrec_column_data *column
        cdef mrec_frame *frame = &self.slots.frame
        frame.step = self.steps[f]
        if self.times != NULL:
            frame.time = self.times[f]
        if self.cells != NULL:
            frame.cell = &self.cells[f]
        for i in range(self.slots.nvalues):
            self.slots.values[i] = self.values[i * self.n + f]
        for i in range(self.ncolumns if f > 0 else 0):
            column = self.columns[i]
            if column.offsets != NULL:
                column.offsets += self.offsets[i]
            else:
                column.data = <const char *>column.data + self.data[i]
            if column.valid != NULL:
                column.valid += self.valid[i]

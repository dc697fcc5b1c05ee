# SPDX-License-Identifier: BSD-3-Clause
# The short way of a frame whose arrays the core can read as they stand. Whatever is out of the ordinary, an error
# included, is left to mrec/trajectory/writer.py, which looks at everything again.
from cpython.dict cimport PyDict_GetItem
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.object cimport PyObject

cdef object _F32 = _np.dtype(_np.float32)


cdef class _PlainColumn:
    """What an array has to be to serve as a column without a look into it."""

    cdef str name
    cdef object dtype
    cdef bint takes_f32
    cdef tuple shape  # of a row

    def __cinit__(self, column):
        self.name = column.name
        self.dtype = None if column.dtype.name == "string" else column.dtype.numpy
        self.takes_f32 = column.takes_f32
        self.shape = column.trailing

    cdef Py_ssize_t fill(self, mrec_column_data *out, value):
        """The number of rows, or -1 when the array is not plain."""
        if type(value) is not _cnp.ndarray:
            return -1
        cdef _cnp.ndarray array = <_cnp.ndarray>value
        cdef int ndim = _cnp.PyArray_NDIM(array)
        dtype = <object>_cnp.PyArray_DESCR(array)
        out.f32 = dtype is _F32
        if not (dtype is self.dtype or (out.f32 and self.takes_f32)):
            return -1
        if ndim != 1 + len(self.shape) or not _cnp.PyArray_ISALIGNED(array):
            return -1
        if ndim > 1 and not (_cnp.PyArray_IS_C_CONTIGUOUS(array) and (<object>array).shape[1:] == self.shape):
            return -1
        out.stride = _cnp.PyArray_STRIDE(array, 0)
        if out.stride == 0:
            return -1
        out.data = _cnp.PyArray_DATA(array)
        out.offsets = NULL
        out.valid = NULL
        return _cnp.PyArray_DIM(array, 0)


cdef class _PlainBlock:
    cdef Py_ssize_t index
    cdef list columns
    cdef Py_ssize_t rows  # that structural_shape asks for, or -1

    def __cinit__(self, index, block):
        self.index = index
        self.columns = [_PlainColumn(column) for column in block.columns.values()]
        self.rows = block.rows if block.structural_shape is not None else -1

    cdef bint fill(self, mrec_block_data *out, data):
        if type(data) is not dict or len(<dict>data) != len(self.columns) or not self.columns:
            return False
        cdef mrec_column_data *at = <mrec_column_data *>out.columns
        cdef Py_ssize_t k, found, rows = self.rows
        cdef PyObject *value
        for k in range(len(self.columns)):
            column = <_PlainColumn>self.columns[k]
            value = PyDict_GetItem(<dict>data, column.name)
            if value == NULL:
                return False
            found = column.fill(&at[k], <object>value)
            if found < 0 or (rows >= 0 and found != rows):
                return False
            rows = found
        out.present = True
        out.rows = rows
        return True


cdef class _PlainFrame:
    """The slots of a writer, and how a plain frame goes into them."""

    cdef _FrameSlots slots
    cdef dict blocks  # name -> _PlainBlock
    cdef dict values  # name -> number of a per-step value that one float is
    cdef double *numbers
    cdef object box  # whose numbers the cell of the slots has

    def __cinit__(self, schema):
        self.slots = _FrameSlots(schema)
        self.numbers = <double *>self.slots.memory.take(len(schema.values), sizeof(double))
        both = schema.blocks.keys() & schema.values.keys()
        self.blocks = {n: _PlainBlock(i, b) for i, (n, b) in enumerate(schema.blocks.items()) if n not in both}
        self.values = {
            name: i for i, (name, value) in enumerate(schema.values.items())
            if name not in both and value.tag.name == "f64"
        }

    cdef bint fill(self, int64_t step, time, box, dict named) except -1:
        cdef Py_ssize_t i
        cdef PyObject *found
        self.slots.frame.step = step
        self.slots.frame.has_time = time is not None
        self.slots.frame.time = 0.0 if time is None else PyFloat_AS_DOUBLE(time)
        self.slots.frame.cell = NULL if box is None else &self.slots.cell
        if box is not None and box is not self.box:
            self.slots._fill_cell(box)
            self.box = box  # a Box does not change
        for i in range(self.slots.nblocks):
            self.slots.blocks[i].present = False
        for i in range(self.slots.nvalues):
            self.slots.values[i].data = NULL
        for name, data in named.items():
            found = PyDict_GetItem(self.blocks, name)
            if found != NULL:
                i = (<_PlainBlock>found).index
                if not (<_PlainBlock>found).fill(&self.slots.blocks[i], data):
                    return False
                continue
            found = PyDict_GetItem(self.values, name)
            if found == NULL or not PyFloat_CheckExact(data):
                return False
            i = <object>found
            self.numbers[i] = PyFloat_AS_DOUBLE(data)
            self.slots.values[i].data = &self.numbers[i]
            self.slots.values[i].size = sizeof(double)
        return True

# SPDX-License-Identifier: BSD-3-Clause
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A Lennard-Jones liquid in reduced units that appends to a record without the GIL.

>>> import lj_cython, mrec
>>> with mrec.TrajectoryWriter("lj.mrec", lj_cython.schema(7)) as writer:
...     print(lj_cython.run(writer, side=7, steps=100))

`run` also takes a path; then the record is made, and closed, without Python.
"""

import os

from libc.math cimport cbrt, rint
from libc.stdint cimport int64_t
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

import numpy as np

import mrec
from mrec cimport capi

capi.import_mrec()

cdef double TIME_STEP = 0.002


cdef double seconds() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return t.tv_sec + 1e-9 * t.tv_nsec


cdef class System:
    """side^3 atoms on a cubic lattice, with the same velocities in every run."""

    cdef double[:, ::1] r, v, f
    cdef Py_ssize_t n
    cdef double length, pe

    def __init__(self, Py_ssize_t side):
        self.n = side**3
        self.length = cbrt(self.n / 0.8)
        lattice = np.indices((side, side, side)).reshape(3, -1).T
        self.r = np.ascontiguousarray(lattice * (self.length / side))
        seeds = np.empty(3 * self.n, np.uint64)
        seed = 1
        for i in range(3 * self.n):
            seeds[i] = seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        self.v = 2.0 * ((seeds >> 11) / 2.0**53).reshape(-1, 3) - 1.0
        self.f = np.zeros((self.n, 3))

    cdef void pull(self) noexcept nogil:
        """Every force, and the energy."""
        cdef double d[3]
        cdef double square, inverse, six, per_length = 1.0 / self.length
        cdef Py_ssize_t i, j, k
        self.pe = 0
        self.f[:] = 0
        for i in range(self.n):
            for j in range(i):
                square = 0
                for k in range(3):
                    d[k] = self.r[i, k] - self.r[j, k]
                    d[k] -= self.length * rint(d[k] * per_length)
                    square += d[k] * d[k]
                if square >= 2.5 * 2.5:
                    continue
                inverse = 1.0 / square
                six = inverse * inverse * inverse
                self.pe += 4.0 * six * (six - 1.0)
                for k in range(3):
                    d[k] *= 24.0 * six * (2.0 * six - 1.0) * inverse
                    self.f[i, k] += d[k]
                    self.f[j, k] -= d[k]

    cdef void move(self) noexcept nogil:
        cdef Py_ssize_t i, k
        for i in range(self.n):
            for k in range(3):
                self.v[i, k] += TIME_STEP * self.f[i, k]
                self.r[i, k] += TIME_STEP * self.v[i, k]


cdef class Output:
    """A record of positions to 0.001, the energy, and the cell; and the seconds that writing them took."""

    cdef capi.mrec_column columns[3]
    cdef capi.mrec_block block
    cdef capi.mrec_value value
    cdef capi.mrec_schema schema
    cdef capi.mrec_writer *writer
    cdef object owner  # the TrajectoryWriter that has it, None when it is ours to close and free
    cdef double seconds

    def __cinit__(self, record, System system):
        for i, name in enumerate((b"x", b"y", b"z")):
            self.columns[i].name = name  # the constant outlives us
            self.columns[i].dtype = capi.MREC_F64
            self.columns[i].precision = 1e-3
        self.block.name = b"atoms"
        self.block.ncolumns = 3
        self.block.columns = self.columns
        self.block.rows = system.n
        self.value.name = b"pe"
        self.value.dtype = capi.MREC_F64
        self.value.width = 1
        self.schema.nblocks = 1
        self.schema.blocks = &self.block
        self.schema.nvalues = 1
        self.schema.values = &self.value
        cdef capi.mrec_options options
        cdef capi.mrec_error error
        cdef const char *path
        if isinstance(record, mrec.TrajectoryWriter):
            self.owner = record
            self.writer = capi.mrec_writer_of(record)
            capi.mrec_check(capi.mrec_check_schema(self.writer, &self.schema, &error), &error)
        else:
            encoded = os.fsencode(record)
            path = encoded
            with nogil:
                capi.mrec_options_init(&options)
                options.overwrite = True
                capi.mrec_check(capi.mrec_create(path, &self.schema, &options, &self.writer, &error), &error)

    def __dealloc__(self):
        if self.owner is None:
            capi.mrec_free(self.writer)

    cdef int append(self, System system, int64_t step) except -1 nogil:
        cdef capi.mrec_column_data columns[3]
        cdef capi.mrec_block_data atoms
        cdef capi.mrec_value_data pe
        cdef capi.mrec_cell cell
        cdef capi.mrec_frame frame
        cdef capi.mrec_error error
        cdef double start = seconds()
        cdef int k
        memset(columns, 0, sizeof(columns))
        memset(&cell, 0, sizeof(cell))
        for k in range(3):
            columns[k].data = &system.r[0, k]
            columns[k].stride = system.r.strides[0]
            cell.vectors[4 * k] = system.length
            cell.periodic[k] = 1
        cell.defined = True
        atoms.present = True
        atoms.rows = system.n
        atoms.columns = columns
        pe.data = &system.pe
        pe.size = sizeof(double)
        frame.step = step
        frame.has_time = True
        frame.time = TIME_STEP * step
        frame.cell = &cell
        frame.blocks = &atoms
        frame.values = &pe
        capi.mrec_check(capi.mrec_append(self.writer, &frame, &error), &error)
        self.seconds += seconds() - start
        return 0

    cdef int close(self) except -1 nogil:
        cdef capi.mrec_error error
        return capi.mrec_check(capi.mrec_close(self.writer, &error), &error)


def schema(side):
    """What the frames of `run` hold, for a TrajectoryWriter."""
    atoms = mrec.Schema().block("atoms", rows=side**3)
    for name in "xyz":
        atoms.column(name, "f64", precision=1e-3)
    return atoms.value("pe", "f64")


def run(record, *, int side=7, long steps=1000, long every=1):
    """Simulate side^3 atoms, and append a frame every so many steps; what it cost, as text.

    record: a TrajectoryWriter with `schema(side)`, which stays open, or the path of a record to make
    or replace.
    """
    cdef System system = System(side)
    cdef Output out = Output(record, system)
    cdef double elapsed, start = seconds()
    cdef long step
    with nogil:
        for step in range(steps):
            system.pull()
            if step % every == 0:
                out.append(system, step)
            system.move()
        elapsed = seconds() - start
        if out.owner is None:
            out.close()
    return (
        f"{system.n} atoms, {steps} steps: {1e6 * elapsed / steps:.1f} us a step, "
        f"output {1e6 * out.seconds / steps:.1f} us of it"
    )

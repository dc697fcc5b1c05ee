# SPDX-License-Identifier: BSD-3-Clause
# The functions of mrec.h in the installed package, for Cython; the contract of each is in the header.
#
#     from mrec cimport capi
#     capi.import_mrec()      # once, in each module, before any other call
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint64_t

from mrec cimport *


cdef extern from "mrec_capi.h":
    int import_mrec() except -1

    mrec_writer *mrec_writer_of(object writer) except NULL

    int mrec_check(mrec_status status, const mrec_error *error) except -1 nogil

cdef extern from "mrec_capi.h" nogil:
    const char *mrec_status_name(mrec_status status)
    size_t mrec_dtype_size(mrec_dtype dtype)
    void mrec_options_init(mrec_options *options)
    mrec_status mrec_create(const char *path, const mrec_schema *schema, const mrec_options *options,
                            mrec_writer **writer, mrec_error *error)
    mrec_status mrec_append(mrec_writer *writer, const mrec_frame *frame, mrec_error *error)
    mrec_status mrec_flush(mrec_writer *writer, bint durable, mrec_error *error)
    mrec_status mrec_close(mrec_writer *writer, mrec_error *error)
    bint mrec_closed(const mrec_writer *writer)
    void mrec_free(mrec_writer *writer)
    const mrec_schema *mrec_writer_schema(const mrec_writer *writer)
    mrec_status mrec_check_schema(const mrec_writer *writer, const mrec_schema *schema, mrec_error *error)
    uint64_t mrec_nframes(const mrec_writer *writer)
    uint64_t mrec_npublished(const mrec_writer *writer)
    uint64_t mrec_ndurable(const mrec_writer *writer)
    bint mrec_last_step(const mrec_writer *writer, int64_t *step)
    bint mrec_has_times(const mrec_writer *writer)

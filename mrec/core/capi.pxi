# SPDX-License-Identifier: BSD-3-Clause
# The table that mrec_capi.h takes the functions from.
from cpython.pycapsule cimport PyCapsule_New


cdef extern from *:
    """
    #define MREC_CAPI_TABLE_ONLY
    #include "mrec_capi.h"

    static mrec_capi capi_table = {
        .abi_version = MREC_ABI_VERSION,
        .struct_size = sizeof(mrec_capi),
        .status_name = mrec_status_name,
        .dtype_size = mrec_dtype_size,
        .options_init = mrec_options_init,
        .create = mrec_create,
        .append = mrec_append,
        .flush = mrec_flush,
        .close = mrec_close,
        .closed = mrec_closed,
        .free = mrec_free,
        .writer_schema = mrec_writer_schema,
        .check_schema = mrec_check_schema,
        .nframes = mrec_nframes,
        .npublished = mrec_npublished,
        .ndurable = mrec_ndurable,
        .last_step = mrec_last_step,
        .has_times = mrec_has_times,
    };
    """

    ctypedef struct mrec_capi:
        mrec_writer *(*writer_of)(object) except NULL
        int (*raise_ "raise")(const mrec_error *) except -1

    mrec_capi capi_table


cdef mrec_writer *_writer_of(object writer) except NULL:
    core = getattr(writer, "_core", None)
    if not isinstance(core, Writer):
        raise TypeError(f"a mrec.TrajectoryWriter has a writer of the core, a {type(writer).__name__} has none")
    return (<Writer>core).writer


capi_table.writer_of = _writer_of
capi_table.raise_ = _raise
_C_API = PyCapsule_New(&capi_table, "mrec._core._C_API", NULL)

# SPDX-License-Identifier: BSD-3-Clause
cimport cython
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from mrec cimport (
    MREC_OK,
    mrec_block,
    mrec_block_data,
    mrec_cell,
    mrec_column,
    mrec_column_data,
    mrec_compression,
    mrec_dtype,
    mrec_error,
    mrec_frame,
    mrec_options,
    mrec_schema,
    mrec_status,
    mrec_value,
    mrec_value_data,
    mrec_writer,
)

from mrec.errors import MrecError as _MrecError, from_status as _from_status


cdef int _raise(const mrec_error *error) except -1 with gil:
    cause = _failures.__dict__.pop("exception", None) if error.sys_errno != 0 else None
    if isinstance(cause, _MrecError) or not isinstance(cause, (Exception, type(None))):
        raise cause
    raise _from_status(
        <int>error.status,
        error.sys_errno,
        (<bytes>error.path).decode("utf-8", "replace"),
        (<bytes>error.message).decode("utf-8", "replace"),
    ) from cause


cdef inline int check(mrec_status status, mrec_error *error) except -1 nogil:
    """Success costs one comparison; a failure becomes the exception that mrec/errors.py names for it."""
    if status == MREC_OK:
        return 0
    return _raise(error)

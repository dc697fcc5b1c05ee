# SPDX-License-Identifier: BSD-3-Clause
# What mrec.h declares, its functions apart: those are in mrec.capi, which takes them from the installed package.
from libc.stddef cimport ptrdiff_t, size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "mrec.h" nogil:
    enum:
        MREC_ABI_VERSION

    ctypedef enum mrec_status:
        MREC_OK
        MREC_E_IO
        MREC_E_MEMORY
        MREC_E_CORRUPT
        MREC_E_CODEC
        MREC_E_SCHEMA
        MREC_E_VALUE
        MREC_E_LOCKED
        MREC_E_EXISTS
        MREC_E_CLOSED
        MREC_E_BUSY
        MREC_E_FORKED

    ctypedef struct mrec_error:
        mrec_status status
        int sys_errno
        char path[1024]
        char message[1024]

    ctypedef enum mrec_dtype:
        MREC_BOOL
        MREC_I8
        MREC_I16
        MREC_I32
        MREC_I64
        MREC_U8
        MREC_U16
        MREC_U32
        MREC_U64
        MREC_F64
        MREC_C64
        MREC_C128
        MREC_STRING
        MREC_F32
        MREC_F16

    ctypedef struct mrec_column:
        const char *name
        mrec_dtype dtype
        size_t ntrailing
        const uint64_t *trailing
        double precision
        bint nullable

    ctypedef struct mrec_block:
        const char *name
        size_t ncolumns
        const mrec_column *columns
        uint64_t rows
        size_t nstructural
        const uint64_t *structural

    ctypedef struct mrec_value:
        const char *name
        mrec_dtype dtype
        uint32_t width
        bint json
        const char *fill_json
        const void *fill
        size_t fill_size

    ctypedef struct mrec_schema:
        size_t nblocks
        const mrec_block *blocks
        size_t nvalues
        const mrec_value *values

    ctypedef enum mrec_compression:
        MREC_COMPRESS_DEFAULT
        MREC_COMPRESS_NONE
        MREC_COMPRESS_GZIP
        MREC_COMPRESS_ZSTD
        MREC_COMPRESS_SHUFFLE_ZSTD

    ctypedef struct mrec_options:
        mrec_compression compression
        int level
        uint64_t frames_per_chunk
        uint64_t chunks_per_shard
        uint64_t flush_frames
        uint64_t flush_bytes
        double flush_seconds
        double durable_seconds
        bint no_durable
        bint overwrite
        unsigned threads
        const char *meta_json
        uint64_t chunk_bytes

    ctypedef struct mrec_column_data:
        const void *data
        ptrdiff_t stride
        bint f32
        const uint64_t *offsets
        const uint8_t *valid

    ctypedef struct mrec_block_data:
        bint present
        uint64_t rows
        const mrec_column_data *columns

    ctypedef struct mrec_cell:
        bint defined
        double vectors[9]
        double origin[3]
        uint8_t periodic[3]

    ctypedef struct mrec_value_data:
        const void *data
        size_t size

    ctypedef struct mrec_frame:
        int64_t step
        bint has_time
        double time
        const mrec_cell *cell
        const mrec_block_data *blocks
        const mrec_value_data *values

    ctypedef struct mrec_writer:
        pass

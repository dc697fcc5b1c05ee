/* SPDX-License-Identifier: BSD-3-Clause
 * One file of an array, whole, from elements in memory: a shard, or a chunk of its own. No I/O. Distinct coders and
 * pools may be used from distinct threads at the same time. */
#ifndef MREC_ENCODE_H
#define MREC_ENCODE_H

#include "pool.h"
#include "strided.h"
#include "vlen.h"

/* What zarr.json says of a file and of the chunks in it. */
typedef struct mrec_encoding {
    uint32_t ndim;                 /* 0 ... MREC_MAX_AXES */
    uint64_t grid[MREC_MAX_AXES];  /* elements of the file along each axis */
    uint64_t chunk[MREC_MAX_AXES]; /* of a chunk in it; divides grid, and equals it when not sharded */
    bool sharded;
    bool index_at_end;
    bool index_checked;            /* the index ends in a crc32c */
    bool index_big;                /* its entries are big-endian */
    uint32_t order[MREC_MAX_AXES]; /* transpose: axis order[i] of the array is axis i of the stored chunk */
    mrec_pipeline pipeline;        /* of a chunk */
    size_t unit;                   /* bytes of an element; strings: sizeof(mrec_ref) */
    const void *fill;              /* one element */
    bool skip_fill;                /* a chunk that is all fill, bit for bit, is left out */
} mrec_encoding;

/* The elements of a file that are inside the array; what is behind them is stored as fill. */
typedef struct mrec_elements {
    const void *data;                 /* the first one; strings: mrec_ref */
    uint64_t n[MREC_MAX_AXES];        /* along each axis, at most the grid */
    ptrdiff_t strides[MREC_MAX_AXES]; /* bytes from one to the next */
    const uint8_t *present; /* one for each chunk, in C order: 0 leaves it out of the shard. NULL: none is left out */
} mrec_elements;

/* Put the bytes of the file in *out, replacing what is there. *any = false (and *out empty): every chunk is left out,
 * so there is to be no file. Chunks without an element inside the array are left out of a shard. Chunks stand in C
 * order, close together. `pool` (NULL: none) encodes beside this thread where chunks are compressed; it has no job
 * before, and none afterwards. VALUE when the encoding contradicts itself, CODEC when sizes do not fit. */
mrec_status mrec_encode_file(mrec_coder *coder, mrec_pool *pool, const mrec_encoding *, const mrec_elements *,
                             mrec_buffer *out, bool *any, mrec_error *error);

#endif

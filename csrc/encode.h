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

/* A shard that grows along its first axis, chunks of which are called a row here. {0} is empty; what was in one is
 * forgotten by kept = rows = crc32c = 0, and by earlier values of the three what came after them. */
typedef struct mrec_partial {
    mrec_buffer file;  /* the chunks of the rows, then what mrec_partial_file put behind them */
    mrec_buffer index; /* as it stands at the end of the file */
    size_t kept;       /* bytes of the chunks of the rows */
    uint64_t rows;
    uint32_t crc32c; /* of these bytes */
} mrec_partial;

/* Put elements behind those of the shard: they begin a row of their own. After an error the shard is as before. The
 * form is that of the whole shard, its index at the end; VALUE when there is no room for the rows. */
mrec_status mrec_partial_add(mrec_coder *, mrec_pool *, const mrec_encoding *, const mrec_elements *, mrec_partial *,
                             mrec_error *);

/* Make shard->file the bytes that mrec_encode_file gives for all elements that were added and these, which do not stay
 * (n[0] = 0: there are none); *crc32c is their checksum. */
mrec_status mrec_partial_file(mrec_coder *, mrec_pool *, const mrec_encoding *, const mrec_elements *, mrec_partial *,
                              uint32_t *crc32c, mrec_error *);

void mrec_partial_free(mrec_partial *);

#endif

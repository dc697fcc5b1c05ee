/* SPDX-License-Identifier: BSD-3-Clause
 * An open array from within: reader.c cuts what is asked for into chunks, chunk.c gets them. */
#ifndef MREC_SOURCE_H
#define MREC_SOURCE_H

#include "index.h"
#include "reader.h"
#include "vlen.h"

#include <pthread.h>
#include <stdatomic.h>

struct mrec_source {
    mrec_vfs *vfs;
    mrec_cache *cache;
    bool own_cache;
    mrec_array_spec spec;
    char *path, *fill_text;
    mrec_index_form form;
    mrec_pipeline pipeline;                 /* as chunks are decoded: unverified, their checksums are not looked at */
    bool plain;                             /* a chunk is stored as it is in memory, before `trailer` bytes */
    size_t trailer;                         /* 0, or the 4 bytes of a checksum */
    size_t unit;                            /* bytes of an element as it is copied: a string is an mrec_ref */
    uint64_t row_elements;                  /* of all axes after the first */
    uint64_t chunk_bytes;                   /* decoded */
    uint64_t chunks_per_row;                /* chunks that cover the axes after the first */
    bool in_rows;                           /* chunks follow one another as their rows do, also in a shard */
    bool close_rows;                        /* the rows of a decoded chunk are rows of the array, close together */
    ptrdiff_t chunk_strides[MREC_MAX_AXES]; /* of the array's axes in a decoded chunk */
    _Atomic uint64_t reached;               /* the chunk along the first axis that the last call ended in */
    pthread_rwlock_t lock;                  /* the length, which a refresh changes */
};

/* A chunk by its coordinates in the grid of chunks. */
typedef struct mrec_chunk {
    uint64_t at[MREC_MAX_AXES];
    uint64_t number; /* in C order over all chunks */
    uint64_t shard;  /* in C order over all files */
    uint64_t inner;  /* in C order over the chunks of its file */
} mrec_chunk;

static inline bool mrec_source_is_string(const mrec_source *source) {
    return source->spec.dtype == MREC_STRING;
}

static inline mrec_item_kind mrec_source_kind(const mrec_source *source) {
    return source->plain ? MREC_ITEM_PLAIN : MREC_ITEM_CHUNK;
}

static inline uint64_t mrec_ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

/* Forget what is kept of this source from a chunk and a shard on. */
void mrec_source_forget(mrec_source *source, uint64_t chunk, uint64_t shard);

/* Fill the numbers of a chunk from its coordinates. */
void mrec_chunk_locate(const mrec_source *source, mrec_chunk *c);

/* Bytes of neighbouring chunks that are read in one call. */
#define MREC_AHEAD ((size_t)256 << 10)

/* What is asked of a chunk, and what came of it. */
typedef struct mrec_fetch {
    mrec_worker *worker;
    uint64_t ahead;    /* chunks in a row that will be asked for, this one included */
    void *to;          /* where the whole of it goes; NULL: it is only looked at */
    uint64_t straight; /* chunks in a row that go to `to`, one behind the other, this one included */
    bool keep;         /* as an item */
    bool part;         /* of an unverified plain array: only the bytes [skip, skip + size) are wanted */
    uint64_t skip, size;
    bool found;           /* false: it reads as fill */
    uint64_t done;        /* chunks that went to `to` */
    const uint8_t *bytes; /* without `to`: decoded, from `skip` on; good until the worker's next chunk or, with an item,
                             as long as that is held */
    mrec_item *item;      /* held by the caller; of strings always: refs */
} mrec_fetch;

/* CORRUPT names array, shard and chunk. */
mrec_status mrec_chunk_fetch(mrec_source *source, const mrec_chunk *c, mrec_fetch *fetch, mrec_error *error);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * An open array from within: reader.c cuts what is asked for into chunks, chunk.c gets them. */
#ifndef MREC_SOURCE_H
#define MREC_SOURCE_H

#include "index.h"
#include "reader.h"

#include <pthread.h>

struct mrec_source {
    mrec_vfs *vfs;
    mrec_cache *cache;
    bool own_cache;
    mrec_array_spec spec;
    char *path, *fill_text;
    mrec_index_form form;
    size_t unit;                            /* bytes of an element as it is copied: a string is an mrec_ref */
    uint64_t row_elements;                  /* of all axes after the first */
    uint64_t chunk_bytes;                   /* decoded */
    uint64_t chunks_per_row;                /* chunks that cover the axes after the first */
    bool close_rows;                        /* the rows of a decoded chunk are rows of the array, close together */
    ptrdiff_t chunk_strides[MREC_MAX_AXES]; /* of the array's axes in a decoded chunk */
    pthread_rwlock_t lock;                  /* the length, which a refresh changes */
};

/* A string of a decoded chunk, or the fill. */
typedef struct mrec_ref {
    const uint8_t *text;
    uint64_t size;
} mrec_ref;

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

static inline uint64_t mrec_ceil_div(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}

/* Forget what is kept of this source from a chunk and a shard on. */
void mrec_source_forget(mrec_source *source, uint64_t chunk, uint64_t shard);

/* Fill the numbers of a chunk from its coordinates. */
void mrec_chunk_locate(const mrec_source *source, mrec_chunk *c);

/* The chunk, decoded into `to` or a new item that the caller holds (strings: refs, always an item); *found = false
 * when it reads as fill. */
mrec_status mrec_chunk_fetch(mrec_source *source, const mrec_chunk *c, void *to, mrec_item **item, bool *found,
                             mrec_error *error);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * What a growing array is: type, extents of chunks and shards, codecs (storage.md, Codecs and Extents), and the text
 * of its zarr.json. Safe from any thread. */
#ifndef MREC_LAYOUT_H
#define MREC_LAYOUT_H

#include "codec.h"

/* Fixed at the array's creation. */
typedef struct mrec_layout {
    mrec_dtype dtype;
    size_t ntrailing;
    uint64_t trailing[6];
    uint64_t rows_per_chunk;   /* > 0 */
    uint64_t chunks_per_shard; /* > 0 */
    mrec_pipeline pipeline;
    uint8_t fill[16]; /* one element: what a chunk that another program left out holds */
} mrec_layout;

/* VALUE: an option out of its range, or meta_json that is no JSON. */
mrec_status mrec_layout_check_options(const mrec_options *, mrec_error *);

/* Rows per chunk of all columns of a block: by the extents rule, or options->frames_per_chunk. SCHEMA when the product
 * does not fit. */
mrec_status mrec_layout_rows(const mrec_block *, const mrec_options *, uint64_t *rows, mrec_error *);

/* A column whose block has rows_per_chunk, and its mask. */
mrec_status mrec_layout_column(const mrec_column *, uint64_t rows_per_chunk, const mrec_options *, mrec_layout *,
                               mrec_error *);
void mrec_layout_mask(uint64_t rows_per_chunk, const mrec_options *, mrec_layout *);

/* A dense array: one row of ntrailing axes a frame or update. */
void mrec_layout_dense(mrec_dtype, size_t ntrailing, const uint64_t *trailing, mrec_layout *);

/* Elements of one row. SCHEMA when the extents are zero or a chunk is beyond memory. */
mrec_status mrec_layout_check(const mrec_layout *, const char *key, size_t *row_items, mrec_error *);

/* zarr.json is *prefix, the length, *suffix (both to be freed). attributes: a JSON object, or NULL. */
mrec_status mrec_layout_document(const mrec_layout *, const char *attributes, char **prefix, char **suffix,
                                 mrec_error *);

/* The name of a type in zarr.json ("float64") and in a declaration ("f64"). */
const char *mrec_dtype_zarr(mrec_dtype);
const char *mrec_dtype_name(mrec_dtype);

#endif

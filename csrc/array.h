/* SPDX-License-Identifier: BSD-3-Clause
 * One growing array under a writer: rows go to a tail buffer, whole chunks to shard files. Not thread-safe. */
#ifndef MREC_ARRAY_H
#define MREC_ARRAY_H

#include "document.h"
#include "layout.h"
#include "pool.h"
#include "shard.h"

/* The length on disk of an array that has no zarr.json yet. */
#define MREC_NO_DOCUMENT UINT64_MAX

/* Where the arrays of one writer live and what they share. */
typedef struct mrec_store {
    mrec_files files;
    mrec_coder *coder;
    mrec_pool *pool; /* encodes whole chunks; NULL: they are encoded as they come */
    char *root;      /* the record's directory */
    bool never_sync; /* full shards are let go unsynced */
} mrec_store;

typedef struct mrec_array {
    mrec_store *store;
    mrec_document doc;
    mrec_layout layout;
    size_t row_items;      /* elements of a row */
    size_t row_bytes;      /* 0 for strings */
    char *prefix, *suffix; /* zarr.json is prefix, length, suffix */
    uint64_t length;       /* rows taken */
    uint64_t landed;       /* of these, rows that the last landing put on disk */
    uint64_t doc_length;   /* shape[0] in zarr.json on disk, or MREC_NO_DOCUMENT */
    mrec_buffer tail;      /* rows of the open chunk; strings: u32 count, then u32 length + bytes each */
    mrec_shard **shards;   /* those not yet synced and the last one, ascending */
    size_t nshards;
    uint64_t last_shard; /* number of shards[nshards - 1] */
} mrec_array;

/* Where the last chunk stands, for the durable file. */
typedef struct mrec_tail {
    uint64_t shard, chunk;
    mrec_place place;
    uint32_t crc32c;
} mrec_tail;

/* Put every chunk that the pool has into its shard. */
mrec_status mrec_store_settle(mrec_store *, mrec_error *);

/* An array without rows at `key` of the record. The directory of the array is made when the first bytes are
 * written, or by mrec_array_write_document. prefix and suffix may be NULL: then they are made from the layout
 * and `attributes` (a JSON object, or NULL). All strings are copied. */
mrec_status mrec_array_new(mrec_store *, const char *key, const mrec_layout *, const char *prefix, const char *suffix,
                           const char *attributes, mrec_array **, mrec_error *);
void mrec_array_free(mrec_array *);

/* Make an array that mrec_array_new gave the one on disk, with `length` rows in force: its last shard and the rows of
 * its open chunk are read. `durable`: the place of its last chunk is taken from there, not from the index. */
mrec_status mrec_array_load(mrec_array *, uint64_t length, const mrec_tail *durable, mrec_error *);

/* Append rows: nrows * row_bytes bytes, or for strings nrows * row_items times u32 length + bytes, n bytes in all.
 * Whole chunks go out as they fill. */
mrec_status mrec_array_append(mrec_array *, const void *rows, uint64_t nrows, size_t n, mrec_error *);

/* The last chunk of an array whose length is a number of whole chunks and not 0, decoded: *out holds nothing else. */
mrec_status mrec_array_last_chunk(mrec_array *, mrec_buffer *out, mrec_error *);

/* Put the open chunk and all indexes on disk. The document is not touched. The store is settled before. */
mrec_status mrec_array_land(mrec_array *, mrec_error *);

/* fdatasync what was written, and fsync the directories of new shard files. Shards that are full are let go. */
mrec_status mrec_array_sync(mrec_array *, mrec_error *);

/* Close the shard files: some file systems tell only then that a write failed. */
mrec_status mrec_array_close(mrec_array *, mrec_error *);

/* Append the text of zarr.json with this length. */
mrec_status mrec_array_document(const mrec_array *, uint64_t length, mrec_buffer *out, mrec_error *);

/* Write zarr.json when its length is not the present one. `ahead`, when it is not 0: it may be longer, and is made
 * longer by an eighth and more, in multiples of so many rows. */
mrec_status mrec_array_write_document(mrec_array *, uint64_t ahead, mrec_replacements *synced, mrec_error *);

/* The last chunk of an array with rows that has landed. */
mrec_status mrec_array_tail(mrec_array *, mrec_tail *, mrec_error *);

/* The durable file on disk now names the last chunk: its place is not reused. */
void mrec_array_set_durable(mrec_array *);

/* Drop, on disk and synced, index entries, shard files and bytes past the present length. Before the first append. */
mrec_status mrec_array_trim(mrec_array *, mrec_error *);

#endif

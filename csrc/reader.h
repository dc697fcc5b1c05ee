/* SPDX-License-Identifier: BSD-3-Clause
 * Reading one array of a directory: a regular chunk grid, sharded or not, whose metadata the caller has parsed. */
#ifndef MREC_READER_H
#define MREC_READER_H

#include "cache.h"
#include "codec.h"
#include "strided.h"
#include "vfs.h"

/* What zarr.json says of an array. Copied by mrec_source_open. */
typedef struct mrec_array_spec {
    const char *path; /* the array's directory */
    mrec_dtype dtype;
    uint32_t ndim; /* 0 ... MREC_MAX_AXES */
    uint64_t shape[MREC_MAX_AXES];
    uint64_t grid[MREC_MAX_AXES];  /* chunk_shape of the chunk grid: one file each */
    uint64_t chunk[MREC_MAX_AXES]; /* inner chunk shape, divides grid; equal to grid when not sharded */
    bool sharded;
    bool index_at_end;
    bool index_checked;            /* index codecs end in crc32c */
    bool index_big;                /* index entries big-endian */
    uint32_t order[MREC_MAX_AXES]; /* transpose: axis order[i] of the array is axis i of the stored chunk */
    char separator;                /* '/' or '.' */
    bool v2_keys;                  /* keys without the leading "c" */
    mrec_pipeline pipeline;        /* of the (inner) chunk */
    uint8_t fill[16];              /* one element; strings: always "" unless fill_text */
    const char *fill_text;         /* strings, NULL: "" */
    size_t fill_text_size;
    bool absent_is_loss; /* a chunk that is not there is CORRUPT, not fill */
    bool fixed;          /* nobody changes its files: an index that was read stands */
    bool unverified;     /* the crc32c of chunks is not looked at, but where an index fails its own */
    /* The last chunk as the durable file has it (storage.md, Commit); tail_nbytes 0: by the index alone. */
    uint64_t tail_shard, tail_chunk, tail_offset, tail_nbytes;
    uint32_t tail_crc32c; /* the chunk's last four bytes when its pipeline ends in crc32c, otherwise of all its bytes */
    mrec_cache *cache;    /* shared with other arrays, outlives them; NULL: one of its own */
} mrec_array_spec;

/* An open array. Thread-safe: any number of threads may read from one source at the same time. Files and parsed
 * indexes are opened when first needed and kept; decoded chunks are kept within the budget. */
typedef struct mrec_source mrec_source;

/* No I/O. VALUE when the spec contradicts itself, SCHEMA/CORRUPT when its sizes overflow. */
mrec_status mrec_source_open(mrec_vfs *, const mrec_array_spec *, mrec_source **, mrec_error *);
void mrec_source_free(mrec_source *);

/* Forget indexes and decoded chunks that can still change (a live record was refreshed); the array now has `length`
 * along its first axis. */
mrec_status mrec_source_refresh(mrec_source *, uint64_t length, mrec_error *);

/* Elements of rows [start, stop) of the first axis, all of the other axes, C order, to out: row r at
 * out + (r - start) * stride bytes (stride 0: close together). ndim 0: start 0, stop 1. Every checksum is verified,
 * unless the spec says otherwise: damage may then come out as values, and nothing worse.
 * Damage names array, shard and chunk; a torn index (its own checksum fails, twice) serves the entries whose chunk
 * verifies. VALUE when the range is outside the shape. */
mrec_status mrec_source_read(mrec_source *, uint64_t start, uint64_t stop, void *out, ptrdiff_t stride, mrec_error *);

/* Many stretches of `rows` rows: the i-th of n begins at row starts[i], and its row r goes to
 * out + i * item + r * stride bytes (stride 0: rows close together). A chunk that neighbouring stretches share is
 * decoded once. */
mrec_status mrec_source_gather(mrec_source *, const int64_t *starts, uint64_t n, uint64_t rows, void *out,
                               ptrdiff_t item, ptrdiff_t stride, mrec_error *);

/* A box of the array: low[i] to high[i] of each axis, in C order close together to out. VALUE when it is outside the
 * shape. Only the chunks that it meets are read. */
mrec_status mrec_source_read_box(mrec_source *, const uint64_t *low, const uint64_t *high, void *out, mrec_error *);

/* The same for strings: appends to *text the bytes of every string, and to *ends (as u64) the position in *text after
 * each. */
mrec_status mrec_source_read_strings(mrec_source *, const uint64_t *low, const uint64_t *high, mrec_buffer *text,
                                     mrec_buffer *ends, mrec_error *);

#endif

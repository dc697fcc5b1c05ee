/* SPDX-License-Identifier: BSD-3-Clause
 * The footer of a segment of an ATLAS container (format 8): which chunks of which arrays lie in which blocks. Read in
 * place, everything checked when it is looked at; and built. Offsets in it are relative to where they stand. */
#ifndef MREC_SEGMENT_H
#define MREC_SEGMENT_H

#include "buffer.h"

#define MREC_SEGMENT_VERSION 6
#define MREC_SEGMENT_END 12 /* bytes behind the footer: its size and "ARRF" */

/* Bytes that belong to somebody else. */
typedef struct mrec_text {
    const uint8_t *bytes;
    size_t n;
} mrec_text;

typedef enum mrec_block_codec { MREC_BLOCK_NONE, MREC_BLOCK_ZSTD, MREC_BLOCK_LZ4 } mrec_block_codec;

typedef struct mrec_segment_block {
    uint64_t offset, stored, raw; /* from the segment's start */
    mrec_block_codec codec;
} mrec_segment_block;

/* dtype: as in the file. ATLAS has more; these are what an array may have. */
enum {
    MREC_SEG_BOOL = 0,
    MREC_SEG_FLOAT32 = 9,
    MREC_SEG_FLOAT64 = 10,
    MREC_SEG_STRING = 11,
    MREC_SEG_BINARY = 12,
    MREC_SEG_TIMESTAMP = 15,
    MREC_SEG_DTYPES = 16
};

/* A fill, a minimum or a maximum: kind -1 for none; text when `textual`, otherwise the bits of a number. */
typedef struct mrec_segment_value {
    int kind;
    bool textual;
    uint64_t bits;
    mrec_text text;
} mrec_segment_value;

enum { MREC_FILL_BOOL, MREC_FILL_INT, MREC_FILL_UINT, MREC_FILL_FLOAT, MREC_FILL_STRING, MREC_FILL_TIMESTAMP };
enum { MREC_BOUND_INT, MREC_BOUND_UINT, MREC_BOUND_FLOAT, MREC_BOUND_BYTES, MREC_BOUND_TIMESTAMP };

/* Tables inside a footer: where, and how many. */
typedef struct mrec_segment_table {
    size_t at;
    uint64_t n;
} mrec_segment_table;

typedef struct mrec_segment_array {
    mrec_text name;
    unsigned dtype;
    uint64_t rank;
    const uint8_t *shape, *chunk_shape; /* u32 each */
    mrec_segment_table dims, chunks, attributes;
    mrec_segment_value fill, min, max;
    bool counted; /* has statistics */
    uint64_t nulls, rows;
} mrec_segment_array;

typedef struct mrec_segment_chunk {
    const uint8_t *coordinate; /* u32 each */
    uint32_t block, offset, size;
} mrec_segment_chunk;

/* An attribute's value: tag, and for scalars the bits (also of a string: its number in `strings`), for others n
 * elements at `bytes`. */
typedef struct mrec_segment_attribute {
    unsigned tag;
    uint64_t bits;
    const uint8_t *bytes;
    uint64_t n;
} mrec_segment_attribute;

/* A footer that is read in place. Read-only once it is open: safe from any thread. */
typedef struct mrec_segment {
    const uint8_t *bytes;
    size_t n;
    uint64_t data; /* bytes of blocks before it */
    mrec_segment_table blocks, strings, values, arrays;
} mrec_segment;

/* Look at the root of n bytes, which must live as long. All below are CORRUPT when what is asked for does not fit in
 * the footer, the blocks, or one another; i is checked too. */
mrec_status mrec_segment_open(mrec_segment *, const void *footer, size_t n, uint64_t data, mrec_error *);
mrec_status mrec_segment_block_at(const mrec_segment *, uint64_t i, mrec_segment_block *, mrec_error *);
mrec_status mrec_segment_string_at(const mrec_segment *, uint64_t i, mrec_text *, mrec_error *);
mrec_status mrec_segment_value_at(const mrec_segment *, uint64_t i, mrec_segment_attribute *, mrec_error *);
mrec_status mrec_segment_array_at(const mrec_segment *, uint64_t i, mrec_segment_array *, mrec_error *);
mrec_status mrec_segment_dim(const mrec_segment *, const mrec_segment_array *, uint64_t i, mrec_text *, mrec_error *);
mrec_status mrec_segment_chunk_at(const mrec_segment *, const mrec_segment_array *, uint64_t i, mrec_segment_chunk *,
                                  mrec_error *);
/* The numbers of a key in `strings` and of a value in `values`, both there. */
mrec_status mrec_segment_pair(const mrec_segment *, const mrec_segment_array *, uint64_t i, uint32_t *key,
                              uint32_t *value, mrec_error *);
/* Element i of a list of binary values. */
mrec_status mrec_segment_binary(const mrec_segment *, const mrec_segment_attribute *, uint64_t i, mrec_text *,
                                mrec_error *);

/* Bytes of an element of a numeric or bool list, or of a scalar of this tag; 0 for strings and binary. */
unsigned mrec_segment_width(unsigned tag);

/* ---- building ------------------------------------------------------------------------------------------------- */

/* What an array of a segment is. Attributes: `value` in one piece, see mrec_segment_build.c. */
typedef struct mrec_built_attribute {
    mrec_text key, value;
} mrec_built_attribute;

typedef struct mrec_built_chunk {
    const uint32_t *coordinate;
    uint32_t block, offset, size;
} mrec_built_chunk;

typedef struct mrec_built_array {
    uint64_t order; /* arrays stand in this order */
    mrec_text name;
    unsigned dtype;
    uint32_t rank;
    const uint32_t *shape, *chunk_shape;
    const mrec_text *dims;
    const mrec_built_chunk *chunks; /* ascending by coordinate */
    uint32_t nchunks;
    const mrec_built_attribute *attributes; /* ascending by key */
    uint32_t nattributes;
    mrec_segment_value fill, min, max;
    uint64_t nulls, rows;
} mrec_built_array;

/* Blocks and arrays of a segment, a few bytes each, until its footer is written. Not thread-safe. */
typedef struct mrec_builder mrec_builder;

mrec_status mrec_builder_new(mrec_builder **, mrec_error *);
void mrec_builder_free(mrec_builder *);

/* The next block; id: its number. */
mrec_status mrec_builder_block(mrec_builder *, const mrec_segment_block *, uint32_t *id, mrec_error *);

/* What is given is copied. */
mrec_status mrec_builder_array(mrec_builder *, const mrec_built_array *, mrec_error *);

/* Memory that it holds. */
size_t mrec_builder_bytes(const mrec_builder *);

/* Append the footer in two parts, one to follow the other: *head, and *table with the array table and the root. Once:
 * the builder may only be freed then. */
mrec_status mrec_builder_write(mrec_builder *, mrec_buffer *head, mrec_buffer *table, mrec_error *);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include "segment.h"

#include "bytes.h"
#include "vlen.h"

#include <string.h>

static mrec_status seg_bad(mrec_error *error, const char *what) {
    return mrec_fail(error, MREC_E_CORRUPT, NULL, "the footer of a segment is damaged: %s", what);
}

/* A place inside, that a relative offset stands for. */
static bool seg_target(const mrec_segment *seg, size_t field, uint64_t offset, size_t *at) {
    uint64_t target = (uint64_t)field + offset; /* two's complement: wraps to what is meant, or out of range */
    if (target > seg->n)
        return false;
    *at = (size_t)target;
    return true;
}

/* A vector {offset, count} at `field`, whose elements have `width` bytes. */
static mrec_status seg_vector(const mrec_segment *seg, size_t field, size_t width, mrec_segment_table *table,
                              mrec_error *error) {
    table->n = mrec_load_u64(seg->bytes + field + 8);
    if (!seg_target(seg, field, mrec_load_u64(seg->bytes + field), &table->at) ||
        table->n > (seg->n - table->at) / width)
        return seg_bad(error, "a table lies outside of it");
    return MREC_OK;
}

/* A 16-byte string at `field`; also binary when not `utf8`. */
static mrec_status seg_string(const mrec_segment *seg, size_t field, mrec_text *text, mrec_error *error) {
    const uint8_t *bytes = seg->bytes + field;
    if ((bytes[0] & 0xc0) == 0x80) {
        uint64_t word = mrec_load_u64(bytes), n = (word & 0x3f) | (word >> 2 & ~UINT64_C(0x3f));
        size_t at;
        if (!seg_target(seg, field, mrec_load_u64(bytes + 8), &at) || n > seg->n - at)
            return seg_bad(error, "a string lies outside of it");
        *text = (mrec_text){seg->bytes + at, (size_t)n};
    } else {
        size_t n = 16;
        while (n > 0 && bytes[n - 1] == 0xff)
            n--;
        *text = (mrec_text){bytes, n};
    }
    return mrec_utf8_valid(text->bytes, text->n) ? MREC_OK : seg_bad(error, "a string is no UTF-8");
}

static mrec_status seg_slice(const mrec_segment *seg, size_t field, mrec_text *text, mrec_error *error) {
    mrec_segment_table table;
    MREC_TRY(seg_vector(seg, field, 1, &table, error));
    *text = (mrec_text){seg->bytes + table.at, (size_t)table.n};
    return MREC_OK;
}

mrec_status mrec_segment_open(mrec_segment *seg, const void *footer, size_t n, uint64_t data, mrec_error *error) {
    *seg = (mrec_segment){.bytes = footer, .n = n, .data = data};
    if (n < 72)
        return seg_bad(error, "it is too short");
    size_t root = n - 72;
    if (mrec_load_u32(seg->bytes + root) != MREC_SEGMENT_VERSION)
        return mrec_fail(error, MREC_E_CORRUPT, NULL, "the footer of a segment has version %lu, not %d",
                         (unsigned long)mrec_load_u32(seg->bytes + root), MREC_SEGMENT_VERSION);
    MREC_TRY(seg_vector(seg, root + 8, 56, &seg->blocks, error));
    MREC_TRY(seg_vector(seg, root + 24, 16, &seg->strings, error));
    MREC_TRY(seg_vector(seg, root + 40, 24, &seg->values, error));
    return seg_vector(seg, root + 56, 256, &seg->arrays, error);
}

mrec_status mrec_segment_block_at(const mrec_segment *seg, uint64_t i, mrec_segment_block *block, mrec_error *error) {
    if (i >= seg->blocks.n)
        return seg_bad(error, "there is no block of that number");
    size_t at = seg->blocks.at + (size_t)i * 56;
    const uint8_t *bytes = seg->bytes + at;
    block->offset = mrec_load_u64(bytes + 8);
    block->stored = mrec_load_u64(bytes + 16);
    block->raw = mrec_load_u64(bytes + 24);
    block->codec = MREC_BLOCK_NONE;
    if (mrec_load_u32(bytes) != i || bytes[32] > 1)
        return seg_bad(error, "a block has another number, or an unknown codec");
    if (bytes[32] == 1) {
        mrec_text name;
        MREC_TRY(seg_string(seg, at + 40, &name, error));
        if (name.n == 4 && memcmp(name.bytes, "zstd", 4) == 0)
            block->codec = MREC_BLOCK_ZSTD;
        else if (name.n == 3 && memcmp(name.bytes, "lz4", 3) == 0)
            block->codec = MREC_BLOCK_LZ4;
        else
            return mrec_fail(error, MREC_E_CODEC, NULL, "a block has the codec %.*s, which is not supported",
                             (int)(name.n < 64 ? name.n : 64), (const char *)name.bytes);
    }
    if (block->offset > seg->data || block->stored > seg->data - block->offset)
        return seg_bad(error, "a block lies outside of the segment");
    if (block->codec == MREC_BLOCK_NONE ? block->raw != block->stored
                                        : block->raw / (block->codec == MREC_BLOCK_LZ4 ? 255 : 65536) > block->stored)
        return seg_bad(error, "a block says that it holds more than it can");
    return MREC_OK;
}

mrec_status mrec_segment_string_at(const mrec_segment *seg, uint64_t i, mrec_text *text, mrec_error *error) {
    if (i >= seg->strings.n)
        return seg_bad(error, "there is no string of that number");
    return seg_string(seg, seg->strings.at + (size_t)i * 16, text, error);
}

unsigned mrec_segment_width(unsigned tag) {
    static const uint8_t widths[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0, 0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 0, 0};
    return tag < sizeof widths ? widths[tag] : 0;
}

mrec_status mrec_segment_value_at(const mrec_segment *seg, uint64_t i, mrec_segment_attribute *value,
                                  mrec_error *error) {
    if (i >= seg->values.n)
        return seg_bad(error, "there is no value of that number");
    size_t at = seg->values.at + (size_t)i * 24;
    unsigned tag = seg->bytes[at], width = mrec_segment_width(tag);
    *value = (mrec_segment_attribute){.tag = tag};
    if (tag > 25)
        return seg_bad(error, "a value has an unknown type");
    if (tag <= 10) {
        for (unsigned k = width; k-- > 0;)
            value->bits = value->bits << 8 | seg->bytes[at + width + k];
        return tag > 0 || value->bits <= 1 ? MREC_OK : seg_bad(error, "a bool is neither true nor false");
    }
    if (tag == 11) {
        value->bits = mrec_load_u32(seg->bytes + at + 4);
        return value->bits < seg->strings.n ? MREC_OK : seg_bad(error, "a value is a string that is not there");
    }
    width = tag == 24 ? 4 : tag == 25 ? 16 : tag == 12 ? 1 : width;
    mrec_segment_table table;
    MREC_TRY(seg_vector(seg, at + 8, width, &table, error));
    value->bytes = seg->bytes + table.at;
    value->n = table.n;
    return MREC_OK;
}

mrec_status mrec_segment_binary(const mrec_segment *seg, const mrec_segment_attribute *value, uint64_t i,
                                mrec_text *text, mrec_error *error) {
    if (value->tag != 25 || i >= value->n)
        return seg_bad(error, "there is no element of that number");
    return seg_slice(seg, (size_t)(value->bytes - seg->bytes) + (size_t)i * 16, text, error);
}

/* An Option of a fill or of a bound, whose payload is at `at` + 8. */
static mrec_status seg_option(const mrec_segment *seg, size_t at, bool bound, mrec_segment_value *value,
                              mrec_error *error) {
    const uint8_t *bytes = seg->bytes + at;
    *value = (mrec_segment_value){.kind = -1};
    if (bytes[0] == 0)
        return MREC_OK;
    if (bytes[0] > 1 || bytes[8] > (bound ? MREC_BOUND_TIMESTAMP : MREC_FILL_TIMESTAMP))
        return seg_bad(error, bound ? "a minimum or maximum has an unknown type" : "a fill has an unknown type");
    value->kind = bytes[8];
    value->textual = value->kind == (bound ? (int)MREC_BOUND_BYTES : (int)MREC_FILL_STRING);
    if (value->textual)
        return bound ? seg_slice(seg, at + 16, &value->text, error) : seg_string(seg, at + 16, &value->text, error);
    value->bits = !bound && value->kind == MREC_FILL_BOOL ? bytes[9] : mrec_load_u64(bytes + 16);
    return MREC_OK;
}

static mrec_status seg_shape(const mrec_segment *seg, size_t at, mrec_segment_array *array, mrec_error *error) {
    mrec_segment_table shape, chunk;
    MREC_TRY(seg_vector(seg, at + 40, 4, &shape, error));
    MREC_TRY(seg_vector(seg, at + 56, 16, &array->dims, error));
    MREC_TRY(seg_vector(seg, at + 72, 4, &chunk, error));
    MREC_TRY(seg_vector(seg, at + 88, 32, &array->chunks, error));
    if (chunk.n != shape.n || array->dims.n != shape.n)
        return seg_bad(error, "shape, chunk shape and dimensions of an array differ in number");
    array->rank = shape.n;
    array->shape = seg->bytes + shape.at;
    array->chunk_shape = seg->bytes + chunk.at;
    for (uint64_t i = 0; i < chunk.n; i++)
        if (mrec_load_u32(array->chunk_shape + 4 * i) == 0)
            return seg_bad(error, "a chunk has no length along an axis");
    return MREC_OK;
}

/* Whether the statistics count the elements that the shape has: a damaged shape may claim any number of them. */
static bool seg_counted(const mrec_segment_array *array) {
    uint64_t n = 1;
    for (uint64_t i = 0; i < array->rank; i++)
        if (mrec_load_u32(array->shape + 4 * i) == 0)
            return array->rows == 0;
    for (uint64_t i = 0; i < array->rank; i++) {
        uint64_t length = mrec_load_u32(array->shape + 4 * i);
        if (n > array->rows / length)
            return false;
        n *= length;
    }
    return n == array->rows;
}

mrec_status mrec_segment_array_at(const mrec_segment *seg, uint64_t i, mrec_segment_array *array, mrec_error *error) {
    if (i >= seg->arrays.n)
        return seg_bad(error, "there is no array of that number");
    size_t at = seg->arrays.at + (size_t)i * 256;
    const uint8_t *bytes = seg->bytes + at;
    MREC_TRY(seg_string(seg, at, &array->name, error));
    array->dtype = bytes[16];
    if (array->dtype >= MREC_SEG_DTYPES)
        return seg_bad(error, "an array has an unknown type");
    MREC_TRY(seg_shape(seg, at, array, error));
    MREC_TRY(seg_option(seg, at + 104, false, &array->fill, error));
    MREC_TRY(seg_vector(seg, at + 136, 8, &array->attributes, error));
    if (bytes[152] > 1)
        return seg_bad(error, "the statistics of an array are neither there nor not");
    array->counted = bytes[152] == 1;
    array->min = array->max = (mrec_segment_value){.kind = -1};
    array->nulls = array->rows = 0;
    if (!array->counted)
        return MREC_OK;
    MREC_TRY(seg_option(seg, at + 176, true, &array->min, error));
    MREC_TRY(seg_option(seg, at + 208, true, &array->max, error));
    array->nulls = mrec_load_u64(bytes + 240);
    array->rows = mrec_load_u64(bytes + 248);
    return seg_counted(array) ? MREC_OK : seg_bad(error, "the statistics of an array count other elements than it has");
}

mrec_status mrec_segment_dim(const mrec_segment *seg, const mrec_segment_array *array, uint64_t i, mrec_text *text,
                             mrec_error *error) {
    if (i >= array->dims.n)
        return seg_bad(error, "there is no dimension of that number");
    return seg_string(seg, array->dims.at + (size_t)i * 16, text, error);
}

mrec_status mrec_segment_chunk_at(const mrec_segment *seg, const mrec_segment_array *array, uint64_t i,
                                  mrec_segment_chunk *chunk, mrec_error *error) {
    if (i >= array->chunks.n)
        return seg_bad(error, "there is no chunk of that number");
    size_t at = array->chunks.at + (size_t)i * 32;
    mrec_segment_table coordinate;
    MREC_TRY(seg_vector(seg, at, 4, &coordinate, error));
    if (coordinate.n != array->rank)
        return seg_bad(error, "a chunk has more or fewer coordinates than its array axes");
    chunk->coordinate = seg->bytes + coordinate.at;
    for (uint64_t k = 0; k < coordinate.n; k++)
        if ((uint64_t)mrec_load_u32(chunk->coordinate + 4 * k) * mrec_load_u32(array->chunk_shape + 4 * k) >=
            mrec_load_u32(array->shape + 4 * k))
            return seg_bad(error, "a chunk lies outside of its array");
    chunk->block = mrec_load_u32(seg->bytes + at + 16);
    chunk->offset = mrec_load_u32(seg->bytes + at + 20);
    chunk->size = mrec_load_u32(seg->bytes + at + 24);
    mrec_segment_block block;
    MREC_TRY(mrec_segment_block_at(seg, chunk->block, &block, error));
    if ((uint64_t)chunk->offset + chunk->size > block.raw)
        return seg_bad(error, "a chunk lies outside of its block");
    return MREC_OK;
}

mrec_status mrec_segment_pair(const mrec_segment *seg, const mrec_segment_array *array, uint64_t i, uint32_t *key,
                              uint32_t *value, mrec_error *error) {
    if (i >= array->attributes.n)
        return seg_bad(error, "there is no attribute of that number");
    const uint8_t *pair = seg->bytes + array->attributes.at + (size_t)i * 8;
    *key = mrec_load_u32(pair);
    *value = mrec_load_u32(pair + 4);
    if (*key >= seg->strings.n || *value >= seg->values.n)
        return seg_bad(error, "an attribute is not there");
    return MREC_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * An attribute's value in one piece: its tag, then the elements as they stand in the file; of strings and binary, the
 * bytes, in lists each with its length (u32) before. */
#include "segment.h"

#include "bytes.h"
#include "intern.h"

#include <stdlib.h>
#include <string.h>

typedef struct built_place {
    uint64_t order;
    size_t at; /* in records */
} built_place;

struct mrec_builder {
    mrec_buffer blocks;  /* of mrec_segment_block */
    mrec_buffer places;  /* of built_place */
    mrec_buffer records; /* of the arrays, see mrec_builder_array */
    mrec_intern *dims, *keys, *values;
    mrec_intern *strings; /* of the footer */
};

/* The fixed part of a record. After it: fill, min and max where textual, name; shape, chunk shape, dims (u32 in dims);
 * per chunk its coordinate, block, offset, size; per attribute u32 in keys, u32 in values. */
typedef struct built_record {
    uint64_t nulls, rows, fill, min, max;
    uint32_t name, rank, nchunks, nattributes;
    int8_t fill_kind, min_kind, max_kind;
    uint8_t dtype;
} built_record;

mrec_status mrec_builder_new(mrec_builder **out, mrec_error *error) {
    mrec_builder *builder = *out = calloc(1, sizeof *builder);
    if (builder == NULL)
        return mrec_fail_memory(error);
    mrec_status status = mrec_intern_new(&builder->dims, error);
    if (status == MREC_OK)
        status = mrec_intern_new(&builder->keys, error);
    if (status == MREC_OK)
        status = mrec_intern_new(&builder->values, error);
    if (status == MREC_OK)
        status = mrec_intern_new(&builder->strings, error);
    if (status != MREC_OK) {
        mrec_builder_free(builder);
        *out = NULL;
    }
    return status;
}

void mrec_builder_free(mrec_builder *builder) {
    if (builder == NULL)
        return;
    mrec_buffer_free(&builder->blocks);
    mrec_buffer_free(&builder->places);
    mrec_buffer_free(&builder->records);
    mrec_intern_free(builder->dims);
    mrec_intern_free(builder->keys);
    mrec_intern_free(builder->values);
    mrec_intern_free(builder->strings);
    free(builder);
}

size_t mrec_builder_bytes(const mrec_builder *builder) {
    return builder->blocks.capacity + builder->places.capacity + builder->records.capacity +
           mrec_intern_bytes(builder->dims) + mrec_intern_bytes(builder->keys) + mrec_intern_bytes(builder->values);
}

mrec_status mrec_builder_block(mrec_builder *builder, const mrec_segment_block *block, uint32_t *id,
                               mrec_error *error) {
    size_t n = builder->blocks.size / sizeof *block;
    if (n >= UINT32_MAX)
        return mrec_fail(error, MREC_E_VALUE, NULL, "a segment has at most 2^32 - 1 blocks");
    *id = (uint32_t)n;
    return mrec_buffer_add(&builder->blocks, block, sizeof *block, error);
}

static mrec_status built_u32(mrec_buffer *out, uint32_t value, mrec_error *error) {
    return mrec_buffer_add(out, &value, sizeof value, error);
}

static mrec_status built_text(mrec_buffer *out, const mrec_segment_value *value, mrec_error *error) {
    if (value->kind < 0 || !value->textual)
        return MREC_OK;
    return mrec_buffer_add(out, value->text.bytes, value->text.n, error);
}

/* Fills, minima and maxima that are texts keep their length where numbers have their bits. */
static uint64_t built_bits(const mrec_segment_value *value) {
    return value->textual ? value->text.n : value->bits;
}

static mrec_status built_chunks(mrec_buffer *out, const mrec_built_array *array, mrec_error *error) {
    for (uint32_t i = 0; i < array->nchunks; i++) {
        const mrec_built_chunk *chunk = &array->chunks[i];
        uint32_t where[] = {chunk->block, chunk->offset, chunk->size};
        MREC_TRY(mrec_buffer_add(out, chunk->coordinate, 4 * (size_t)array->rank, error));
        MREC_TRY(mrec_buffer_add(out, where, sizeof where, error));
    }
    return MREC_OK;
}

static mrec_status built_add(mrec_builder *builder, const mrec_built_array *array, mrec_error *error) {
    mrec_buffer *out = &builder->records;
    built_record record = {
        .nulls = array->nulls,
        .rows = array->rows,
        .fill = built_bits(&array->fill),
        .min = built_bits(&array->min),
        .max = built_bits(&array->max),
        .name = (uint32_t)array->name.n,
        .rank = array->rank,
        .nchunks = array->nchunks,
        .nattributes = array->nattributes,
        .fill_kind = (int8_t)array->fill.kind,
        .min_kind = (int8_t)array->min.kind,
        .max_kind = (int8_t)array->max.kind,
        .dtype = (uint8_t)array->dtype,
    };
    MREC_TRY(mrec_buffer_add(out, &record, sizeof record, error));
    MREC_TRY(built_text(out, &array->fill, error));
    MREC_TRY(built_text(out, &array->min, error));
    MREC_TRY(built_text(out, &array->max, error));
    MREC_TRY(mrec_buffer_add(out, array->name.bytes, array->name.n, error));
    MREC_TRY(mrec_buffer_add(out, array->shape, 4 * (size_t)array->rank, error));
    MREC_TRY(mrec_buffer_add(out, array->chunk_shape, 4 * (size_t)array->rank, error));
    uint32_t id;
    for (uint32_t i = 0; i < array->rank; i++) {
        MREC_TRY(mrec_intern_add(builder->dims, array->dims[i].bytes, array->dims[i].n, &id, error));
        MREC_TRY(built_u32(out, id, error));
    }
    MREC_TRY(built_chunks(out, array, error));
    for (uint32_t i = 0; i < array->nattributes; i++) {
        const mrec_built_attribute *attribute = &array->attributes[i];
        MREC_TRY(mrec_intern_add(builder->keys, attribute->key.bytes, attribute->key.n, &id, error));
        MREC_TRY(built_u32(out, id, error));
        MREC_TRY(mrec_intern_add(builder->values, attribute->value.bytes, attribute->value.n, &id, error));
        MREC_TRY(built_u32(out, id, error));
    }
    return MREC_OK;
}

mrec_status mrec_builder_array(mrec_builder *builder, const mrec_built_array *array, mrec_error *error) {
    built_place place = {array->order, builder->records.size};
    if (array->name.n > UINT32_MAX)
        return mrec_fail(error, MREC_E_VALUE, NULL, "a name has at most 2^32 - 1 bytes");
    mrec_status status = built_add(builder, array, error);
    if (status == MREC_OK)
        status = mrec_buffer_add(&builder->places, &place, sizeof place, error);
    if (status != MREC_OK)
        builder->records.size = place.at;
    return status;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* A record, taken apart. */
typedef struct built_parts {
    built_record record;
    const uint8_t *fill, *min, *max, *name, *shape, *chunk_shape, *dims, *chunks, *attributes;
} built_parts;

static const uint8_t *built_skip(const uint8_t **at, uint64_t n) {
    const uint8_t *here = *at;
    *at += n;
    return here;
}

static built_parts built_take(const mrec_builder *builder, size_t i) {
    built_place place;
    built_parts parts;
    memcpy(&place, builder->places.data + i * sizeof place, sizeof place);
    const uint8_t *at = builder->records.data + place.at;
    memcpy(&parts.record, at, sizeof parts.record);
    const built_record *record = &parts.record;
    at += sizeof *record;
    parts.fill = built_skip(&at, record->fill_kind == MREC_FILL_STRING ? record->fill : 0);
    parts.min = built_skip(&at, record->min_kind == MREC_BOUND_BYTES ? record->min : 0);
    parts.max = built_skip(&at, record->max_kind == MREC_BOUND_BYTES ? record->max : 0);
    parts.name = built_skip(&at, record->name);
    parts.shape = built_skip(&at, 4 * (uint64_t)record->rank);
    parts.chunk_shape = built_skip(&at, 4 * (uint64_t)record->rank);
    parts.dims = built_skip(&at, 4 * (uint64_t)record->rank);
    parts.chunks = built_skip(&at, (4 * (uint64_t)record->rank + 12) * record->nchunks);
    parts.attributes = at;
    return parts;
}

static uint32_t built_load(const uint8_t *numbers, uint64_t i) {
    uint32_t value;
    memcpy(&value, numbers + 4 * i, sizeof value);
    return value;
}

static mrec_status built_align(mrec_buffer *out, size_t to, mrec_error *error) {
    static const uint8_t zeros[8];
    return mrec_buffer_add(out, zeros, -out->size & (to - 1), error);
}

/* n zeros at the end, to be filled in. */
static mrec_status built_zeros(mrec_buffer *out, size_t n, mrec_error *error) {
    MREC_TRY(mrec_buffer_reserve(out, out->size + n, error));
    if (n > 0)
        memset(out->data + out->size, 0, n);
    out->size += n;
    return MREC_OK;
}

static mrec_status built_numbers(mrec_buffer *out, const uint8_t *numbers, uint64_t n, mrec_error *error) {
    MREC_TRY(built_zeros(out, (size_t)n * 4, error));
    for (uint64_t i = 0; i < n; i++)
        mrec_store_u32(out->data + out->size - (n - i) * 4, built_load(numbers, i));
    return MREC_OK;
}

/* The bytes of a text that has no place in its 16; *at is where. */
static mrec_status built_long(mrec_buffer *out, const uint8_t *bytes, size_t n, size_t *at, mrec_error *error) {
    *at = out->size;
    return n > 16 ? mrec_buffer_add(out, bytes, n, error) : MREC_OK;
}

/* The 16 bytes of a string; `offset` of its bytes from here, when it is long. */
static void built_string(uint8_t *field, const uint8_t *bytes, size_t n, uint64_t offset) {
    if (n > 16) {
        mrec_store_u64(field, ((uint64_t)n & 0x3f) | 0x80 | ((uint64_t)n & ~UINT64_C(0x3f)) << 2);
        mrec_store_u64(field + 8, offset);
        return;
    }
    memset(field, 0xff, 16);
    if (n > 0)
        memcpy(field, bytes, n);
}

static void built_vector(uint8_t *field, uint64_t offset, uint64_t n) {
    mrec_store_u64(field, offset);
    mrec_store_u64(field + 8, n);
}

/* Strings: the bytes of the long ones, then the table. */
static mrec_status built_strings(mrec_buffer *out, const mrec_intern *pool, mrec_segment_table *table,
                                 mrec_error *error) {
    size_t at = out->size;
    table->n = mrec_intern_count(pool);
    for (uint32_t i = 0; i < table->n; i++) {
        mrec_text text = mrec_intern_text(pool, i);
        MREC_TRY(text.n > 16 ? mrec_buffer_add(out, text.bytes, text.n, error) : MREC_OK);
    }
    MREC_TRY(built_align(out, 8, error));
    table->at = out->size;
    MREC_TRY(built_zeros(out, (size_t)table->n * 16, error));
    for (uint32_t i = 0; i < table->n; i++) {
        mrec_text text = mrec_intern_text(pool, i);
        size_t field = table->at + (size_t)i * 16;
        built_string(out->data + field, text.bytes, text.n, (uint64_t)at - field);
        at += text.n > 16 ? text.n : 0;
    }
    return MREC_OK;
}

/* ---- attributes ------------------------------------------------------------------------------------------------- */

/* The next element of a list of strings or binary. */
static mrec_text built_element(mrec_text *rest) {
    uint32_t n = built_load(rest->bytes, 0);
    mrec_text element = {rest->bytes + 4, n};
    rest->bytes += 4 + (size_t)n;
    rest->n -= 4 + (size_t)n;
    return element;
}

/* Keys first, as met; then the strings of the values. */
static mrec_status built_pool(mrec_builder *builder, mrec_error *error) {
    uint32_t id;
    for (uint32_t i = 0; i < mrec_intern_count(builder->keys); i++) {
        mrec_text key = mrec_intern_text(builder->keys, i);
        MREC_TRY(mrec_intern_add(builder->strings, key.bytes, key.n, &id, error));
    }
    for (uint32_t i = 0; i < mrec_intern_count(builder->values); i++) {
        mrec_text value = mrec_intern_text(builder->values, i), rest = {value.bytes + 1, value.n - 1};
        if (value.bytes[0] == 11)
            MREC_TRY(mrec_intern_add(builder->strings, rest.bytes, rest.n, &id, error));
        while (value.bytes[0] == 24 && rest.n > 0) {
            mrec_text element = built_element(&rest);
            MREC_TRY(mrec_intern_add(builder->strings, element.bytes, element.n, &id, error));
        }
    }
    return MREC_OK;
}

static mrec_status built_list(mrec_builder *builder, mrec_buffer *out, mrec_text value, mrec_segment_table *table,
                              mrec_error *error) {
    unsigned tag = value.bytes[0], width = tag == 12 ? 1 : mrec_segment_width(tag);
    mrec_text rest = {value.bytes + 1, value.n - 1};
    table->n = 0;
    if (tag != 24 && tag != 25) {
        MREC_TRY(built_align(out, width, error));
        *table = (mrec_segment_table){out->size, rest.n / width};
        return mrec_buffer_add(out, rest.bytes, rest.n, error);
    }
    size_t bytes = out->size;
    for (mrec_text all = rest; all.n > 0; table->n++) {
        mrec_text element = built_element(&all);
        MREC_TRY(tag == 25 ? mrec_buffer_add(out, element.bytes, element.n, error) : MREC_OK);
    }
    MREC_TRY(built_align(out, tag == 25 ? 8 : 4, error));
    table->at = out->size;
    MREC_TRY(built_zeros(out, (size_t)table->n * (tag == 25 ? 16 : 4), error));
    for (uint64_t i = 0; i < table->n; i++) {
        mrec_text element = built_element(&rest);
        uint32_t id = 0;
        if (tag == 24) {
            MREC_TRY(mrec_intern_add(builder->strings, element.bytes, element.n, &id, error));
            mrec_store_u32(out->data + table->at + i * 4, id);
            continue;
        }
        size_t field = table->at + (size_t)i * 16;
        built_vector(out->data + field, (uint64_t)bytes - field, element.n);
        bytes += element.n;
    }
    return MREC_OK;
}

static mrec_status built_value(mrec_builder *builder, uint8_t *field, mrec_text value, mrec_error *error) {
    unsigned tag = value.bytes[0], width = mrec_segment_width(tag);
    field[0] = (uint8_t)tag;
    if (tag == 11) {
        uint32_t id;
        MREC_TRY(mrec_intern_add(builder->strings, value.bytes + 1, value.n - 1, &id, error));
        mrec_store_u32(field + 4, id);
    } else if (tag <= 10)
        memcpy(field + width, value.bytes + 1, width);
    return MREC_OK;
}

/* The payloads of the lists, then the table. */
static mrec_status built_values(mrec_builder *builder, mrec_buffer *out, mrec_segment_table *table, mrec_error *error) {
    table->n = mrec_intern_count(builder->values);
    mrec_buffer fields = {0}; /* offsets as places until it is known where they stand */
    mrec_status status = built_zeros(&fields, (size_t)table->n * 24, error);
    for (uint32_t i = 0; status == MREC_OK && i < table->n; i++) {
        mrec_text value = mrec_intern_text(builder->values, i);
        mrec_segment_table list;
        status = built_value(builder, fields.data + (size_t)i * 24, value, error);
        if (status != MREC_OK || value.bytes[0] <= 11)
            continue;
        status = built_list(builder, out, value, &list, error);
        if (status == MREC_OK)
            built_vector(fields.data + (size_t)i * 24 + 8, list.at, list.n);
    }
    if (status == MREC_OK)
        status = built_align(out, 8, error);
    table->at = out->size;
    for (uint32_t i = 0; status == MREC_OK && i < table->n; i++) {
        uint8_t *field = fields.data + (size_t)i * 24;
        if (field[0] > 11)
            mrec_store_u64(field + 8, mrec_load_u64(field + 8) - (table->at + (size_t)i * 24 + 8));
    }
    if (status == MREC_OK)
        status = mrec_buffer_add(out, fields.data, fields.size, error);
    mrec_buffer_free(&fields);
    return status;
}

/* ---- arrays ----------------------------------------------------------------------------------------------------- */

static mrec_status built_dims(mrec_builder *builder, mrec_buffer *out, const built_parts *parts, size_t *at,
                              mrec_error *error) {
    size_t bytes = out->size;
    uint32_t rank = parts->record.rank;
    for (uint32_t i = 0; i < rank; i++) {
        mrec_text dim = mrec_intern_text(builder->dims, built_load(parts->dims, i));
        MREC_TRY(dim.n > 16 ? mrec_buffer_add(out, dim.bytes, dim.n, error) : MREC_OK);
    }
    MREC_TRY(built_align(out, 8, error));
    *at = out->size;
    MREC_TRY(built_zeros(out, (size_t)rank * 16, error));
    for (uint32_t i = 0; i < rank; i++) {
        mrec_text dim = mrec_intern_text(builder->dims, built_load(parts->dims, i));
        size_t field = *at + (size_t)i * 16;
        built_string(out->data + field, dim.bytes, dim.n, (uint64_t)bytes - field);
        bytes += dim.n > 16 ? dim.n : 0;
    }
    return MREC_OK;
}

static mrec_status built_table(mrec_buffer *out, const built_parts *parts, size_t *at, mrec_error *error) {
    uint32_t rank = parts->record.rank, n = parts->record.nchunks;
    size_t each = 4 * (size_t)rank + 12;
    MREC_TRY(n > 0 ? built_align(out, 4, error) : MREC_OK);
    size_t coordinates = out->size;
    for (uint32_t i = 0; i < n; i++)
        MREC_TRY(built_numbers(out, parts->chunks + i * each, rank, error));
    MREC_TRY(built_align(out, 8, error));
    *at = out->size;
    MREC_TRY(built_zeros(out, (size_t)n * 32, error));
    for (uint32_t i = 0; i < n; i++) {
        size_t field = *at + (size_t)i * 32;
        const uint8_t *where = parts->chunks + i * each + 4 * (size_t)rank;
        built_vector(out->data + field, coordinates + 4 * (uint64_t)rank * i - field, rank);
        for (unsigned k = 0; k < 3; k++)
            mrec_store_u32(out->data + field + 16 + 4 * k, built_load(where, k));
    }
    return MREC_OK;
}

static mrec_status built_pairs(mrec_builder *builder, mrec_buffer *out, const built_parts *parts, mrec_error *error) {
    (void)builder; /* keys come first in the strings, so their numbers are the same */
    return built_numbers(out, parts->attributes, 2 * (uint64_t)parts->record.nattributes, error);
}

/* A minimum or maximum at `field`; its bytes, if it has some, go to *out. */
static mrec_status built_bound(mrec_buffer *out, uint8_t *field, int kind, uint64_t bits, const uint8_t *bytes,
                               mrec_error *error) {
    if (kind < 0)
        return MREC_OK;
    field[0] = 1;
    field[8] = (uint8_t)kind;
    if (kind != MREC_BOUND_BYTES) {
        mrec_store_u64(field + 16, bits);
        return MREC_OK;
    }
    built_vector(field + 16, out->size, bits);
    return mrec_buffer_add(out, bytes, (size_t)bits, error);
}

static mrec_status built_fill(mrec_buffer *out, uint8_t *field, const built_parts *parts, mrec_error *error) {
    const built_record *record = &parts->record;
    size_t at = 0;
    if (record->fill_kind < 0)
        return MREC_OK;
    field[0] = 1;
    field[8] = (uint8_t)record->fill_kind;
    if (record->fill_kind == MREC_FILL_STRING) {
        MREC_TRY(built_long(out, parts->fill, (size_t)record->fill, &at, error));
        built_string(field + 16, parts->fill, (size_t)record->fill, at);
    } else if (record->fill_kind == MREC_FILL_BOOL)
        field[9] = (uint8_t)record->fill;
    else
        mrec_store_u64(field + 16, record->fill);
    return MREC_OK;
}

/* The parts of an array to *out, and its 256 bytes with places instead of offsets. */
static mrec_status built_array(mrec_builder *builder, mrec_buffer *out, const built_parts *parts, uint8_t *entry,
                               mrec_error *error) {
    const built_record *record = &parts->record;
    size_t at;
    MREC_TRY(built_long(out, parts->name, record->name, &at, error));
    built_string(entry, parts->name, record->name, at);
    entry[16] = record->dtype;
    MREC_TRY(built_align(out, 4, error));
    built_vector(entry + 40, out->size, record->rank);
    MREC_TRY(built_numbers(out, parts->shape, record->rank, error));
    MREC_TRY(built_dims(builder, out, parts, &at, error));
    built_vector(entry + 56, at, record->rank);
    built_vector(entry + 72, out->size, record->rank);
    MREC_TRY(built_numbers(out, parts->chunk_shape, record->rank, error));
    MREC_TRY(built_table(out, parts, &at, error));
    built_vector(entry + 88, at, record->nchunks);
    MREC_TRY(built_fill(out, entry + 104, parts, error));
    MREC_TRY(built_align(out, 4, error));
    built_vector(entry + 136, out->size, record->nattributes);
    MREC_TRY(built_pairs(builder, out, parts, error));
    entry[152] = 1;
    MREC_TRY(built_long(out, parts->name, record->name, &at, error));
    built_string(entry + 160, parts->name, record->name, at);
    MREC_TRY(built_bound(out, entry + 176, record->min_kind, record->min, parts->min, error));
    MREC_TRY(built_bound(out, entry + 208, record->max_kind, record->max, parts->max, error));
    mrec_store_u64(entry + 240, record->nulls);
    mrec_store_u64(entry + 248, record->rows);
    return MREC_OK;
}

static void built_relative(uint8_t *entry, size_t field, uint64_t entry_at) {
    mrec_store_u64(entry + field, mrec_load_u64(entry + field) - (entry_at + field));
}

static void built_relative_string(uint8_t *entry, size_t field, uint64_t entry_at) {
    if ((entry[field] & 0xc0) == 0x80) /* counts from the string's start */
        mrec_store_u64(entry + field + 8, mrec_load_u64(entry + field + 8) - (entry_at + field));
}

/* Places become offsets, once it is known where the entry stands. */
static void built_settle(uint8_t *entry, uint64_t at) {
    static const uint8_t vectors[] = {40, 56, 72, 88, 136};
    for (size_t i = 0; i < sizeof vectors; i++)
        built_relative(entry, vectors[i], at);
    built_relative_string(entry, 0, at);
    built_relative_string(entry, 160, at);
    if (entry[104] && entry[112] == MREC_FILL_STRING)
        built_relative_string(entry, 120, at);
    for (size_t bound = 176; bound <= 208; bound += 32)
        if (entry[bound] && entry[bound + 8] == MREC_BOUND_BYTES)
            built_relative(entry, bound + 16, at);
}

static int built_compare(const void *a, const void *b) {
    const built_place *x = a, *y = b;
    return x->order < y->order ? -1 : x->order > y->order ? 1 : x->at < y->at ? -1 : x->at > y->at;
}

/* Attributes are numbered anew as they are met in the order of the arrays. */
static mrec_status built_renumber(mrec_builder *builder, size_t n, mrec_error *error) {
    mrec_intern *keys = builder->keys, *values = builder->values;
    mrec_intern *new_keys = NULL, *new_values = NULL;
    mrec_status status = mrec_intern_new(&new_keys, error);
    if (status == MREC_OK)
        status = mrec_intern_new(&new_values, error);
    for (size_t i = 0; status == MREC_OK && i < n; i++) {
        built_parts parts = built_take(builder, i);
        uint8_t *pairs = builder->records.data + (parts.attributes - builder->records.data);
        for (uint64_t k = 0; status == MREC_OK && k < 2 * (uint64_t)parts.record.nattributes; k++) {
            mrec_text text = mrec_intern_text(k & 1 ? values : keys, built_load(pairs, k));
            uint32_t id = 0;
            status = mrec_intern_add(k & 1 ? new_values : new_keys, text.bytes, text.n, &id, error);
            memcpy(pairs + 4 * k, &id, sizeof id);
        }
    }
    if (status == MREC_OK) {
        builder->keys = new_keys;
        builder->values = new_values;
        new_keys = keys;
        new_values = values;
    }
    mrec_intern_free(new_keys);
    mrec_intern_free(new_values);
    return status;
}

static mrec_status built_blocks(mrec_builder *builder, mrec_buffer *out, mrec_segment_table *table, mrec_error *error) {
    static const char *const names[] = {"", "zstd", "lz4"};
    mrec_segment_block block;
    *table = (mrec_segment_table){out->size, builder->blocks.size / sizeof block};
    MREC_TRY(built_zeros(out, (size_t)table->n * 56, error));
    for (size_t i = 0; i < table->n; i++) {
        uint8_t *entry = out->data + table->at + i * 56;
        memcpy(&block, builder->blocks.data + i * sizeof block, sizeof block);
        mrec_store_u32(entry, (uint32_t)i);
        mrec_store_u64(entry + 8, block.offset);
        mrec_store_u64(entry + 16, block.stored);
        mrec_store_u64(entry + 24, block.raw);
        if (block.codec == MREC_BLOCK_NONE)
            continue;
        entry[32] = 1;
        built_string(entry + 40, (const uint8_t *)names[block.codec], strlen(names[block.codec]), 0);
    }
    return MREC_OK;
}

static mrec_status built_arrays(mrec_builder *builder, mrec_buffer *head, mrec_buffer *table, size_t n,
                                mrec_error *error) {
    for (size_t i = 0; i < n; i++) {
        built_parts parts = built_take(builder, i);
        MREC_TRY(built_zeros(table, 256, error));
        MREC_TRY(built_array(builder, head, &parts, table->data + table->size - 256, error));
    }
    MREC_TRY(built_align(head, 8, error));
    for (size_t i = 0; i < n; i++)
        built_settle(table->data + i * 256, head->size + i * 256);
    return MREC_OK;
}

mrec_status mrec_builder_write(mrec_builder *builder, mrec_buffer *head, mrec_buffer *table, mrec_error *error) {
    mrec_segment_table blocks, strings, values;
    size_t n = builder->places.size / sizeof(built_place);
    if (n > 0)
        qsort(builder->places.data, n, sizeof(built_place), built_compare);
    MREC_TRY(built_renumber(builder, n, error));
    MREC_TRY(built_pool(builder, error));
    MREC_TRY(built_blocks(builder, head, &blocks, error));
    MREC_TRY(built_strings(head, builder->strings, &strings, error));
    MREC_TRY(built_values(builder, head, &values, error));
    MREC_TRY(mrec_buffer_reserve(table, n * 256 + 72, error));
    MREC_TRY(built_arrays(builder, head, table, n, error));
    size_t root = head->size + table->size;
    MREC_TRY(built_zeros(table, 72, error));
    uint8_t *entry = table->data + table->size - 72;
    mrec_store_u32(entry, MREC_SEGMENT_VERSION);
    built_vector(entry + 8, (uint64_t)blocks.at - (root + 8), blocks.n);
    built_vector(entry + 24, (uint64_t)strings.at - (root + 24), strings.n);
    built_vector(entry + 40, (uint64_t)values.at - (root + 40), values.n);
    built_vector(entry + 56, (uint64_t)head->size - (root + 56), n);
    return MREC_OK;
}

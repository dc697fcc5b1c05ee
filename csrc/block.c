/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "block.h"

#include "bytes.h"
#include "quantize.h"
#include "vlen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- making and freeing ---- */

/* "trajectory/<block>/<name>", or with a folder between. Free it. */
static char *key_of(const mrec_block *block, const char *folder, const char *name) {
    mrec_buffer key = {0};
    if (mrec_buffer_print(&key, NULL, "trajectory/%s%s/%s", block->name, folder, name) != MREC_OK)
        mrec_buffer_free(&key);
    return (char *)key.data;
}

mrec_status mrec_block_init(mrec_block_state *state, mrec_store *store, const mrec_block *block,
                            const char *other_attributes, mrec_error *error) {
    memset(state, 0, sizeof *state);
    state->store = store;
    state->block = block;
    state->columns = calloc(block->ncolumns + 1, sizeof *state->columns);
    state->other_attributes = strdup(other_attributes);
    char *key = mrec_path_join("trajectory", block->name), *masks = key ? mrec_path_join(key, "_validity") : NULL;
    mrec_status status = state->columns && state->other_attributes && masks ? MREC_OK : mrec_fail_memory(error);
    for (size_t i = 0; status == MREC_OK && i < block->ncolumns; i++) {
        state->columns[i].column = &block->columns[i];
        state->has_masks = state->has_masks || block->columns[i].nullable;
        if (block->columns[i].precision != 0)
            mrec_grid(block->columns[i].precision, &state->columns[i].grid);
    }
    if (status == MREC_OK)
        status = mrec_group_init(&state->group, store->root, key, error);
    if (status == MREC_OK)
        status = mrec_group_init(&state->mask_group, store->root, masks, error);
    if (status == MREC_OK)
        status = mrec_group_set(&state->mask_group, "", error);
    free(key);
    free(masks);
    return status == MREC_OK ? mrec_block_set_attributes(state, error) : status;
}

void mrec_block_free(mrec_block_state *state) {
    for (size_t i = 0; state->columns && i < state->block->ncolumns; i++) {
        mrec_column_state *column = &state->columns[i];
        mrec_array_free(column->rows);
        mrec_array_free(column->mask);
        mrec_buffer_free(&column->staged);
        mrec_buffer_free(&column->staged_mask);
        mrec_buffer_free(&column->last);
        mrec_buffer_free(&column->last_mask);
    }
    mrec_array_free(state->step_index);
    mrec_array_free(state->offset);
    mrec_group_free(&state->group);
    mrec_group_free(&state->mask_group);
    free(state->columns);
    free(state->other_attributes);
}

static mrec_status make_block_array(mrec_block_state *state, const char *folder, const char *name,
                                    const mrec_layout *layout, mrec_array **array, mrec_error *error) {
    char *key = key_of(state->block, folder, name);
    if (!key)
        return mrec_fail_memory(error);
    mrec_status status = mrec_array_new(state->store, key, layout, NULL, NULL, NULL, array, error);
    free(key);
    return status;
}

/* A mask that another program did not write: every row so far is valid. */
static mrec_status fill_mask(mrec_array *mask, uint64_t rows, mrec_error *error) {
    uint8_t ones[1024];
    memset(ones, 1, sizeof ones);
    while (rows > 0) {
        size_t n = rows < sizeof ones ? (size_t)rows : sizeof ones;
        MREC_TRY(mrec_array_append(mask, ones, n, n, error));
        rows -= n;
    }
    return MREC_OK;
}

mrec_status mrec_block_make_columns(mrec_block_state *state, const mrec_options *options, mrec_error *error) {
    uint64_t rows = 0;
    MREC_TRY(mrec_layout_rows(state->block, options, &rows, error));
    for (size_t i = 0; i < state->block->ncolumns; i++)
        if (state->columns[i].rows)
            rows = state->columns[i].rows->layout.rows_per_chunk;
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        mrec_column_state *column = &state->columns[i];
        mrec_layout layout;
        if (!column->rows) {
            MREC_TRY(mrec_layout_column(column->column, rows, options, &layout, error));
            MREC_TRY(make_block_array(state, "", column->column->name, &layout, &column->rows, error));
        }
        if (column->column->nullable && !column->mask) {
            mrec_layout_mask(rows, options, &layout);
            MREC_TRY(make_block_array(state, "/_validity", column->column->name, &layout, &column->mask, error));
            MREC_TRY(fill_mask(column->mask, column->rows->length, error));
        }
    }
    return MREC_OK;
}

mrec_status mrec_block_set_attributes(mrec_block_state *state, mrec_error *error) {
    mrec_buffer members = {0};
    mrec_status status = mrec_buffer_print(&members, error, "%s", state->other_attributes);
    if (status == MREC_OK && state->form == MREC_FORM_REGULAR)
        status = mrec_buffer_print(&members, error, "%s\"uniform_rows\":%" PRIu64 ",\"dense_updates\":true",
                                   members.size ? "," : "", state->uniform_rows);
    if (status == MREC_OK)
        status = mrec_group_set(&state->group, (char *)members.data, error);
    mrec_buffer_free(&members);
    return status;
}

/* ---- staging ---- */

typedef struct where {
    const mrec_block *block;
    const mrec_column *column;
    uint64_t frame;
} where;

static mrec_status refuse(const where *at, mrec_error *error, const char *what) {
    return mrec_fail(error, MREC_E_SCHEMA, NULL, "frame %" PRIu64 ", block '%s', column '%s': %s", at->frame,
                     at->block->name, at->column->name, what);
}

static mrec_status stage_mask(mrec_column_state *state, const mrec_column_data *data, uint64_t rows, const where *at,
                              mrec_error *error) {
    if (!state->column->nullable)
        return data->valid ? refuse(at, error, "null rows in a column that is not declared nullable") : MREC_OK;
    MREC_TRY(mrec_buffer_reserve(&state->staged_mask, (size_t)rows, error));
    state->staged_mask.size = (size_t)rows;
    for (uint64_t i = 0; i < rows; i++)
        state->staged_mask.data[i] = !data->valid || data->valid[i] != 0;
    return MREC_OK;
}

static void gather(uint8_t *out, const mrec_column_data *data, uint64_t rows, size_t row_bytes) {
    const uint8_t *in = data->data;
    if (data->stride == 0 || data->stride == (ptrdiff_t)row_bytes) {
        memcpy(out, in, (size_t)rows * row_bytes);
    } else if (row_bytes == 8) { /* a coordinate out of (rows, 3) */
        for (uint64_t i = 0; i < rows; i++)
            memcpy(out + i * 8, in + (ptrdiff_t)i * data->stride, 8);
    } else {
        for (uint64_t i = 0; i < rows; i++)
            memcpy(out + i * row_bytes, in + (ptrdiff_t)i * data->stride, row_bytes);
    }
}

static bool is_one_run_of_doubles(const mrec_column_data *data, size_t row_bytes) {
    return (data->stride == 0 || data->stride == (ptrdiff_t)row_bytes) && (uintptr_t)data->data % sizeof(double) == 0;
}

static void widen(double *out, const mrec_column_data *data, uint64_t rows, size_t per_row) {
    const uint8_t *in = data->data;
    ptrdiff_t stride = data->stride ? data->stride : (ptrdiff_t)(per_row * sizeof(float));
    for (uint64_t i = 0; i < rows; i++, in += stride) {
        for (size_t k = 0; k < per_row; k++) {
            float value; /* which need not be aligned */
            memcpy(&value, in + k * sizeof value, sizeof value);
            *out++ = (double)value;
        }
    }
}

/* Values under a false mask mean nothing: as zeros they neither differ nor leak memory. */
static void zero_null_rows(mrec_column_state *state, size_t row_bytes) {
    for (size_t i = 0; i < state->staged_mask.size; i++)
        if (!state->staged_mask.data[i])
            memset(state->staged.data + i * row_bytes, 0, row_bytes);
}

static mrec_status stage_fixed(mrec_column_state *state, const mrec_column_data *data, uint64_t rows, const where *at,
                               mrec_error *error) {
    size_t row_bytes = state->rows->row_bytes;
    uint64_t n;
    if (!mrec_mul(rows, row_bytes, &n) || n > SIZE_MAX / 2)
        return refuse(at, error, "more bytes than memory can address");
    if (rows && !data->data)
        return refuse(at, error, "no data");
    MREC_TRY(mrec_buffer_reserve(&state->staged, (size_t)n, error));
    state->staged.size = (size_t)n;
    if (rows == 0)
        return MREC_OK;
    if (data->f32 && state->column->dtype != MREC_F64)
        return refuse(at, error, "only an f64 column takes float data");
    double *values = (double *)(void *)state->staged.data;
    const double *unrounded = values;
    if (data->f32)
        widen(values, data, rows, row_bytes / sizeof(double));
    else if (state->grid != 0 && is_one_run_of_doubles(data, row_bytes))
        unrounded = data->data; /* rounding copies them */
    else
        gather(state->staged.data, data, rows, row_bytes);
    if (state->grid != 0)
        mrec_quantize(unrounded, values, (size_t)n / sizeof(double), state->grid);
    if (state->column->dtype == MREC_BOOL)
        for (size_t i = 0; i < n; i++)
            state->staged.data[i] = state->staged.data[i] != 0;
    zero_null_rows(state, row_bytes);
    return MREC_OK;
}

static mrec_status stage_strings(mrec_column_state *state, const mrec_column_data *data, uint64_t rows, const where *at,
                                 mrec_error *error) {
    const uint8_t *bytes = data->data;
    const size_t per_row = state->rows->row_items;
    uint64_t count;
    state->staged.size = 0;
    if ((rows && !data->offsets) || !mrec_mul(rows, per_row, &count))
        return refuse(at, error, "strings need offsets, and fewer of them than 2^64");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = data->offsets[i], stop = data->offsets[i + 1];
        bool null = state->staged_mask.size && !state->staged_mask.data[i / per_row];
        if (stop < start || stop - start > UINT32_MAX || (stop > start && !bytes))
            return refuse(at, error, "string offsets must ascend, by less than 4 GiB each");
        if (null)
            stop = start;
        if (stop > start && !mrec_utf8_valid(bytes + start, (size_t)(stop - start)))
            return refuse(at, error, "a string is not valid UTF-8");
        uint8_t length[4];
        mrec_store_u32(length, (uint32_t)(stop - start));
        MREC_TRY(mrec_buffer_add(&state->staged, length, 4, error));
        if (stop > start)
            MREC_TRY(mrec_buffer_add(&state->staged, bytes + start, (size_t)(stop - start), error));
    }
    return MREC_OK;
}

static mrec_status check_rows(const mrec_block *block, uint64_t rows, uint64_t frame, mrec_error *error) {
    uint64_t product = 1;
    for (size_t i = 0; i < block->nstructural; i++)
        if (!mrec_mul(product, block->structural[i], &product))
            product = UINT64_MAX;
    if (block->nstructural && rows != product)
        return mrec_fail(error, MREC_E_SCHEMA, NULL,
                         "frame %" PRIu64 ", block '%s': %" PRIu64 " rows, but its structural_shape has %" PRIu64,
                         frame, block->name, rows, product);
    return MREC_OK;
}

mrec_status mrec_block_stage(mrec_block_state *state, const mrec_block_data *data, uint64_t frame, mrec_error *error) {
    MREC_TRY(check_rows(state->block, data->rows, frame, error));
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        mrec_column_state *column = &state->columns[i];
        where at = {state->block, column->column, frame};
        MREC_TRY(stage_mask(column, &data->columns[i], data->rows, &at, error));
        MREC_TRY(column->column->dtype == MREC_STRING ? stage_strings(column, &data->columns[i], data->rows, &at, error)
                                                      : stage_fixed(column, &data->columns[i], data->rows, &at, error));
    }
    state->staged_rows = data->rows;
    return MREC_OK;
}

uint64_t mrec_block_staged_bytes(const mrec_block_state *state) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < state->block->ncolumns; i++)
        bytes += state->columns[i].staged.size;
    return bytes;
}

/* ---- applying ---- */

static bool same(const mrec_buffer *a, const mrec_buffer *b) {
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static bool changed(const mrec_block_state *state) {
    if (state->updates == 0 || state->staged_rows != state->last_rows)
        return true;
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        const mrec_column_state *column = &state->columns[i];
        if (!same(&column->staged, &column->last) || !same(&column->staged_mask, &column->last_mask))
            return true;
    }
    return false;
}

static void swap(mrec_buffer *a, mrec_buffer *b) {
    mrec_buffer t = *a;
    *a = *b;
    *b = t;
}

void mrec_block_prime(mrec_block_state *state) {
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        swap(&state->columns[i].staged, &state->columns[i].last);
        swap(&state->columns[i].staged_mask, &state->columns[i].last_mask);
    }
    state->last_rows = state->staged_rows;
}

static mrec_status append_u64(mrec_array *array, uint64_t value, mrec_error *error) {
    return mrec_array_append(array, &value, 1, sizeof value, error);
}

/* Both index arrays with the history of the regular form (none, when there was no update). */
static mrec_status make_index(mrec_block_state *state, mrec_error *error) {
    mrec_layout layout;
    mrec_layout_dense(MREC_U64, 0, NULL, &layout);
    MREC_TRY(make_block_array(state, "", "offset", &layout, &state->offset, error));
    MREC_TRY(make_block_array(state, "", "step_index", &layout, &state->step_index, error));
    MREC_TRY(append_u64(state->offset, 0, error));
    for (uint64_t j = 0; j < state->updates; j++) {
        MREC_TRY(append_u64(state->offset, (j + 1) * state->uniform_rows, error));
        MREC_TRY(append_u64(state->step_index, j, error));
    }
    state->form = MREC_FORM_INDEXED;
    return mrec_block_set_attributes(state, error);
}

/* Take or keep the form that can hold the staged update at this ordinal. */
static mrec_status settle_form(mrec_block_state *state, uint64_t ordinal, mrec_error *error) {
    if (state->form == MREC_FORM_NONE && ordinal == 0 && state->staged_rows > 0 && state->block->ncolumns > 0) {
        state->form = MREC_FORM_REGULAR;
        state->uniform_rows = state->staged_rows;
        return mrec_block_set_attributes(state, error);
    }
    bool fits =
        state->form == MREC_FORM_REGULAR && ordinal == state->updates && state->staged_rows == state->uniform_rows;
    return fits || state->form == MREC_FORM_INDEXED ? MREC_OK : make_index(state, error);
}

mrec_status mrec_block_apply(mrec_block_state *state, uint64_t ordinal, mrec_error *error) {
    if (!changed(state))
        return MREC_OK;
    MREC_TRY(settle_form(state, ordinal, error));
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        mrec_column_state *column = &state->columns[i];
        MREC_TRY(mrec_array_append(column->rows, column->staged.data, state->staged_rows, column->staged.size, error));
        if (column->mask)
            MREC_TRY(mrec_array_append(column->mask, column->staged_mask.data, state->staged_rows,
                                       column->staged_mask.size, error));
    }
    state->updates++;
    state->total_rows += state->staged_rows;
    if (state->form == MREC_FORM_INDEXED) {
        MREC_TRY(append_u64(state->step_index, ordinal, error));
        MREC_TRY(append_u64(state->offset, state->total_rows, error));
    }
    mrec_block_prime(state);
    return MREC_OK;
}

mrec_status mrec_block_visit(mrec_block_state *state, mrec_node_visit visit, void *arg, mrec_error *error) {
    MREC_TRY(mrec_visit_array(visit, arg, state->offset, error));
    MREC_TRY(mrec_visit_array(visit, arg, state->step_index, error));
    MREC_TRY(mrec_visit_group(visit, arg, &state->group, error));
    if (state->has_masks)
        MREC_TRY(mrec_visit_group(visit, arg, &state->mask_group, error));
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        MREC_TRY(mrec_visit_array(visit, arg, state->columns[i].mask, error));
        MREC_TRY(mrec_visit_array(visit, arg, state->columns[i].rows, error));
    }
    return MREC_OK;
}

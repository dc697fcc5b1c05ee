/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "stage.h"

#include "bytes.h"
#include "quantize.h"
#include "sequence.h"
#include "vlen.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- making and freeing ---- */

void mrec_staged_free(mrec_staged *staged) {
    if (!staged)
        return;
    for (size_t i = 0; staged->blocks && i < staged->nblocks; i++) {
        mrec_staged_column *columns = staged->blocks[i].columns;
        for (size_t k = 0; columns && k < staged->blocks[i].ncolumns; k++) {
            mrec_buffer_free(&columns[k].copy);
            mrec_buffer_free(&columns[k].mask);
        }
        free(columns);
    }
    for (size_t i = 0; staged->values && i < staged->nvalues; i++)
        mrec_buffer_free(&staged->values[i]);
    free(staged->blocks);
    free(staged->values);
    free(staged);
}

mrec_status mrec_staged_new(const mrec_schema *schema, mrec_staged **out, mrec_error *error) {
    mrec_staged *staged = *out = calloc(1, sizeof *staged);
    bool made = staged != NULL;
    if (made) {
        staged->nblocks = schema->nblocks;
        staged->nvalues = schema->nvalues;
        staged->blocks = calloc(schema->nblocks + 1, sizeof *staged->blocks);
        staged->values = calloc(schema->nvalues + 1, sizeof *staged->values);
        made = staged->blocks && staged->values;
    }
    for (size_t i = 0; made && i < schema->nblocks; i++) {
        staged->blocks[i].ncolumns = schema->blocks[i].ncolumns;
        staged->blocks[i].columns = calloc(schema->blocks[i].ncolumns + 1, sizeof *staged->blocks[i].columns);
        made = staged->blocks[i].columns != NULL;
    }
    if (made)
        return MREC_OK;
    mrec_staged_free(staged);
    *out = NULL;
    return mrec_fail_memory(error);
}

uint64_t mrec_staged_capacity(const mrec_staged *staged) {
    uint64_t capacity = 0;
    for (size_t i = 0; i < staged->nblocks; i++)
        for (size_t k = 0; k < staged->blocks[i].ncolumns; k++)
            capacity += staged->blocks[i].columns[k].copy.capacity + staged->blocks[i].columns[k].mask.capacity;
    for (size_t i = 0; i < staged->nvalues; i++)
        capacity += staged->values[i].capacity;
    return capacity;
}

/* ---- columns ---- */

typedef struct where {
    const mrec_block *block;
    const mrec_column *column;
    uint64_t frame;
} where;

static mrec_status refuse(const where *at, mrec_error *error, const char *what) {
    return mrec_fail(error, MREC_E_SCHEMA, NULL, "frame %" PRIu64 ", block '%s', column '%s': %s", at->frame,
                     at->block->name, at->column->name, what);
}

static mrec_status stage_mask(mrec_staged_column *staged, const mrec_column_data *data, uint64_t rows, const where *at,
                              mrec_error *error) {
    if (!at->column->nullable)
        return data->valid ? refuse(at, error, "null rows in a column that is not declared nullable") : MREC_OK;
    MREC_TRY(mrec_buffer_reserve(&staged->mask, (size_t)rows, error));
    staged->mask.size = (size_t)rows;
    for (uint64_t i = 0; i < rows; i++)
        staged->mask.data[i] = !data->valid || data->valid[i] != 0;
    return MREC_OK;
}

static bool is_one_run(const mrec_column_data *data, size_t row_bytes) {
    return data->stride == 0 || data->stride == (ptrdiff_t)row_bytes;
}

static void gather(uint8_t *out, const mrec_column_data *data, uint64_t rows, size_t row_bytes) {
    const uint8_t *in = data->data;
    if (is_one_run(data, row_bytes)) {
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
    return is_one_run(data, row_bytes) && (uintptr_t)data->data % sizeof(double) == 0;
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
static void zero_null_rows(mrec_staged_column *staged, size_t row_bytes) {
    for (size_t i = 0; i < staged->mask.size; i++)
        if (!staged->mask.data[i])
            memset(staged->copy.data + i * row_bytes, 0, row_bytes);
}

/* Whether the caller's rows are a chunk as they stand: one run, to be neither converted nor rounded. */
static bool is_chunk(const mrec_column_state *state, const mrec_column_data *data, uint64_t rows) {
    return rows == state->rows->layout.rows_per_chunk && !data->f32 && state->grid == 0 && !state->column->nullable &&
           state->column->dtype != MREC_BOOL && is_one_run(data, state->rows->row_bytes);
}

static mrec_status stage_fixed(const mrec_column_state *state, mrec_staged_column *staged, const mrec_column_data *data,
                               uint64_t rows, bool borrow, const where *at, mrec_error *error) {
    size_t row_bytes = state->rows->row_bytes;
    uint64_t n;
    if (!mrec_mul(rows, row_bytes, &n) || n > SIZE_MAX / 2)
        return refuse(at, error, "more bytes than memory can address");
    if (rows && !data->data)
        return refuse(at, error, "no data");
    staged->at = data->data;
    staged->size = (size_t)n;
    if (rows == 0 || (borrow && is_chunk(state, data, rows)))
        return MREC_OK;
    if (data->f32 && state->column->dtype != MREC_F64)
        return refuse(at, error, "only an f64 column takes float data");
    MREC_TRY(mrec_buffer_reserve(&staged->copy, (size_t)n, error));
    staged->copy.size = (size_t)n;
    staged->at = staged->copy.data;
    double *values = (double *)(void *)staged->copy.data;
    const double *unrounded = values;
    if (data->f32)
        widen(values, data, rows, row_bytes / sizeof(double));
    else if (state->grid != 0 && is_one_run_of_doubles(data, row_bytes))
        unrounded = data->data; /* rounding copies them */
    else
        gather(staged->copy.data, data, rows, row_bytes);
    if (state->grid != 0)
        mrec_quantize(unrounded, values, (size_t)n / sizeof(double), state->grid);
    if (state->column->dtype == MREC_BOOL)
        for (size_t i = 0; i < n; i++)
            staged->copy.data[i] = staged->copy.data[i] != 0;
    zero_null_rows(staged, row_bytes);
    return MREC_OK;
}

static mrec_status stage_strings(const mrec_column_state *state, mrec_staged_column *staged,
                                 const mrec_column_data *data, uint64_t rows, const where *at, mrec_error *error) {
    const uint8_t *bytes = data->data;
    const size_t per_row = state->rows->row_items;
    uint64_t count;
    staged->copy.size = 0;
    if ((rows && !data->offsets) || !mrec_mul(rows, per_row, &count))
        return refuse(at, error, "strings need offsets, and fewer of them than 2^64");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = data->offsets[i], stop = data->offsets[i + 1];
        bool null = staged->mask.size && !staged->mask.data[i / per_row];
        if (stop < start || stop - start > UINT32_MAX || (stop > start && !bytes))
            return refuse(at, error, "string offsets must ascend, by less than 4 GiB each");
        if (null)
            stop = start;
        if (stop > start && !mrec_utf8_valid(bytes + start, (size_t)(stop - start)))
            return refuse(at, error, "a string is not valid UTF-8");
        uint8_t length[4];
        mrec_store_u32(length, (uint32_t)(stop - start));
        MREC_TRY(mrec_buffer_add(&staged->copy, length, 4, error));
        if (stop > start)
            MREC_TRY(mrec_buffer_add(&staged->copy, bytes + start, (size_t)(stop - start), error));
    }
    staged->at = staged->copy.data;
    staged->size = staged->copy.size;
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

/* ---- blocks ---- */

static mrec_status stage_block(const mrec_block_state *state, const mrec_block_data *data, uint64_t frame, bool borrow,
                               mrec_staged_block *staged, mrec_error *error) {
    MREC_TRY(check_rows(state->block, data->rows, frame, error));
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        const mrec_column_state *column = &state->columns[i];
        where at = {state->block, column->column, frame};
        MREC_TRY(stage_mask(&staged->columns[i], &data->columns[i], data->rows, &at, error));
        MREC_TRY(column->column->dtype == MREC_STRING
                     ? stage_strings(column, &staged->columns[i], &data->columns[i], data->rows, &at, error)
                     : stage_fixed(column, &staged->columns[i], &data->columns[i], data->rows, borrow, &at, error));
    }
    staged->rows = data->rows;
    return MREC_OK;
}

uint64_t mrec_staged_bytes(const mrec_staged_block *staged) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < staged->ncolumns; i++)
        bytes += staged->columns[i].size;
    return bytes;
}

/* ---- the cell ---- */

/* An undefined cell is written as the identity, open on all sides (record.md, box/). */
static mrec_cell normal(const mrec_cell *cell) {
    mrec_cell out;
    memset(&out, 0, sizeof out); /* padding takes part in comparisons */
    out.defined = cell->defined;
    for (int i = 0; i < 9; i++)
        out.vectors[i] = cell->defined ? cell->vectors[i] : (i % 4 == 0);
    for (int i = 0; i < 3 && cell->defined; i++) {
        out.origin[i] = cell->origin[i];
        out.periodic[i] = cell->periodic[i] != 0;
    }
    return out;
}

static mrec_status stage_cell(const mrec_cell *cell, uint64_t frame, mrec_cell *staged, mrec_error *error) {
    *staged = normal(cell);
    for (int i = 0; i < 12; i++)
        if (!isfinite(i < 9 ? staged->vectors[i] : staged->origin[i - 9]))
            return mrec_fail(error, MREC_E_VALUE, NULL, "frame %" PRIu64 ": the cell holds a value that is not finite",
                             frame);
    return MREC_OK;
}

/* ---- per-step values ---- */

static mrec_status refuse_value(uint64_t frame, const mrec_value *value, mrec_error *error, const char *what) {
    return mrec_fail(error, MREC_E_SCHEMA, NULL, "frame %" PRIu64 ", per-step value '%s': %s", frame, value->name,
                     what);
}

static mrec_status stage_value(const mrec_sequence *seq, size_t i, const mrec_value_data *data, uint64_t frame,
                               mrec_buffer *staged, mrec_error *error) {
    const mrec_value *value = &seq->declared.schema.values[i];
    mrec_value_data fill = {value->fill, value->fill_size};
    if (!data || !data->data) {
        if (!value->fill_json)
            return refuse_value(frame, value, error, "it is declared without a fill, so every frame must give it");
        data = &fill;
    }
    staged->size = 0;
    if (value->dtype == MREC_STRING) {
        if (data->size > UINT32_MAX || !mrec_utf8_valid(data->data, data->size))
            return refuse_value(frame, value, error, "the text is not valid UTF-8, or above 4 GiB");
        uint8_t length[4];
        mrec_store_u32(length, (uint32_t)data->size);
        MREC_TRY(mrec_buffer_add(staged, length, 4, error));
    } else if (data->size != seq->values[i]->row_bytes) {
        return refuse_value(frame, value, error, "the data has another size than the declared type");
    }
    MREC_TRY(mrec_buffer_add(staged, data->data, data->size, error));
    if (value->dtype == MREC_BOOL)
        for (size_t k = 0; k < staged->size; k++)
            staged->data[k] = staged->data[k] != 0;
    return MREC_OK;
}

/* ---- frames ---- */

static mrec_status check_order(const mrec_taken *taken, const mrec_frame *frame, mrec_error *error) {
    if (taken->nframes == 0)
        return MREC_OK;
    if (frame->step <= taken->last_step)
        return mrec_fail(error, MREC_E_VALUE, NULL,
                         "frame %" PRIu64 ": step %" PRId64 " is not above the last step, %" PRId64, taken->nframes,
                         frame->step, taken->last_step);
    if (frame->has_time == taken->has_times)
        return MREC_OK;
    return mrec_fail(error, MREC_E_VALUE, NULL,
                     frame->has_time ? "frame %" PRIu64 ": a time is given, but the first frame had none; all frames "
                                       "have one or none has"
                                     : "frame %" PRIu64 ": no time is given, but the first frame had one; pass time=",
                     taken->nframes);
}

static mrec_status check_cell(const mrec_taken *taken, const mrec_staged *staged, mrec_error *error) {
    if (!staged->has_cell || !taken->has_cell || staged->cell.defined == taken->cell_defined)
        return MREC_OK;
    return mrec_fail(error, MREC_E_SCHEMA, NULL,
                     "frame %" PRIu64 ": the cell is %s, but it was %s in the frames before; a trajectory has one or "
                     "the other",
                     taken->nframes, staged->cell.defined ? "defined" : "undefined",
                     taken->cell_defined ? "defined" : "undefined");
}

mrec_status mrec_stage_content(const mrec_sequence *seq, const mrec_frame *frame, uint64_t number, mrec_staged *staged,
                               mrec_error *error) {
    staged->bytes = 0;
    for (size_t i = 0; i < staged->nblocks; i++) {
        staged->blocks[i].present = frame->blocks && frame->blocks[i].present;
        if (!staged->blocks[i].present)
            continue;
        MREC_TRY(stage_block(&seq->blocks[i], &frame->blocks[i], number, staged->borrows, &staged->blocks[i], error));
        staged->bytes += mrec_staged_bytes(&staged->blocks[i]);
    }
    staged->has_cell = frame->cell != NULL;
    return frame->cell ? stage_cell(frame->cell, number, &staged->cell, error) : MREC_OK;
}

mrec_status mrec_stage(const mrec_sequence *seq, const mrec_taken *taken, const mrec_frame *frame, mrec_staged *staged,
                       mrec_error *error) {
    MREC_TRY(check_order(taken, frame, error));
    MREC_TRY(mrec_stage_content(seq, frame, taken->nframes, staged, error));
    MREC_TRY(check_cell(taken, staged, error));
    for (size_t i = 0; i < staged->nvalues; i++)
        MREC_TRY(
            stage_value(seq, i, frame->values ? &frame->values[i] : NULL, taken->nframes, &staged->values[i], error));
    staged->step = frame->step;
    staged->has_time = frame->has_time;
    staged->time = frame->time;
    return MREC_OK;
}

void mrec_take(mrec_taken *taken, const mrec_staged *staged) {
    taken->last_step = staged->step;
    if (taken->nframes++ == 0)
        taken->has_times = staged->has_time;
    if (staged->has_cell && !taken->has_cell) {
        taken->has_cell = true;
        taken->cell_defined = staged->cell.defined;
    }
}

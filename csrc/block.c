/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "block.h"

#include "quantize.h"

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
    state->still = true;
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

/* ---- applying ---- */

/* What is kept of an update that can be read back: moving atoms differ from the update before in that. */
#define BEGINNING 4096

static bool same(const mrec_buffer *a, const mrec_buffer *b) {
    return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* As far as the update before is kept. */
static bool begin_alike(const mrec_staged_column *staged, const mrec_column_state *column) {
    const size_t n = column->last.size;
    return (column->cut ? n < staged->size : n == staged->size) &&
           (n == 0 || memcmp(staged->at, column->last.data, n) == 0) && same(&staged->mask, &column->last_mask);
}

/* Where they begin alike, the whole of the update before is read back. */
static mrec_status compare_rest(const mrec_staged_column *staged, mrec_column_state *column, bool *changed,
                                mrec_error *error) {
    if (!column->cut)
        return MREC_OK;
    MREC_TRY(mrec_array_last_chunk(column->rows, &column->last, error));
    column->cut = false;
    *changed = !begin_alike(staged, column);
    return MREC_OK;
}

static mrec_status compare(mrec_block_state *state, const mrec_staged_block *staged, bool *changed, mrec_error *error) {
    *changed = state->updates == 0 || staged->rows != state->last_rows;
    for (size_t i = 0; !*changed && i < state->block->ncolumns; i++)
        *changed = !begin_alike(&staged->columns[i], &state->columns[i]);
    state->still = state->updates == 0 || !*changed;
    for (size_t i = 0; !*changed && i < state->block->ncolumns; i++)
        MREC_TRY(compare_rest(&staged->columns[i], &state->columns[i], changed, error));
    return MREC_OK;
}

static void swap(mrec_buffer *a, mrec_buffer *b) {
    mrec_buffer t = *a;
    *a = *b;
    *b = t;
}

/* Whether the update is the last chunk, so that it can be read back, and the next will differ from it early. */
static bool need_not_be_kept(const mrec_column_state *column, const mrec_staged_column *now, uint64_t rows,
                             bool still) {
    const uint64_t chunk = column->rows->layout.rows_per_chunk;
    return !still && rows == chunk && column->rows->length % chunk == 0 && column->rows->length > 0 &&
           now->size > BEGINNING && column->column->dtype != MREC_STRING;
}

static mrec_status keep_update(mrec_column_state *column, mrec_staged_column *now, bool cut, mrec_error *error) {
    column->cut = cut;
    if (!cut && (now->size == 0 || now->at == now->copy.data)) {
        now->copy.size = now->size;
        swap(&now->copy, &column->last);
        return MREC_OK;
    }
    if (cut && column->last.capacity > 4 * BEGINNING)
        mrec_buffer_free(&column->last); /* it held an update whole */
    column->last.size = 0;
    return mrec_buffer_add(&column->last, now->at, cut ? BEGINNING : now->size, error);
}

mrec_status mrec_block_prime(mrec_block_state *state, mrec_staged_block *staged, mrec_error *error) {
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        mrec_column_state *column = &state->columns[i];
        mrec_staged_column *now = &staged->columns[i];
        swap(&now->mask, &column->last_mask);
        MREC_TRY(keep_update(column, now, need_not_be_kept(column, now, staged->rows, state->still), error));
    }
    state->last_rows = staged->rows;
    return MREC_OK;
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

/* Take or keep the form that can hold an update of so many rows at this ordinal. */
static mrec_status settle_form(mrec_block_state *state, uint64_t rows, uint64_t ordinal, mrec_error *error) {
    if (state->form == MREC_FORM_NONE && ordinal == 0 && rows > 0 && state->block->ncolumns > 0) {
        state->form = MREC_FORM_REGULAR;
        state->uniform_rows = rows;
        return mrec_block_set_attributes(state, error);
    }
    bool fits = state->form == MREC_FORM_REGULAR && ordinal == state->updates && rows == state->uniform_rows;
    return fits || state->form == MREC_FORM_INDEXED ? MREC_OK : make_index(state, error);
}

mrec_status mrec_block_apply(mrec_block_state *state, mrec_staged_block *staged, uint64_t ordinal, mrec_error *error) {
    bool changed;
    MREC_TRY(compare(state, staged, &changed, error));
    if (!changed)
        return MREC_OK;
    if (staged->rows > INT64_MAX - state->total_rows) /* without columns rows cost nothing */
        return mrec_fail(error, MREC_E_VALUE, NULL, "frame %" PRIu64 ": block '%s' comes to more than 2^63 rows",
                         ordinal, state->block->name);
    MREC_TRY(settle_form(state, staged->rows, ordinal, error));
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        const mrec_column_state *column = &state->columns[i];
        const mrec_staged_column *now = &staged->columns[i];
        MREC_TRY(mrec_array_append(column->rows, now->at, staged->rows, now->size, error));
        if (column->mask)
            MREC_TRY(mrec_array_append(column->mask, now->mask.data, staged->rows, now->mask.size, error));
    }
    state->updates++;
    state->total_rows += staged->rows;
    if (state->form == MREC_FORM_INDEXED) {
        MREC_TRY(append_u64(state->step_index, ordinal, error));
        MREC_TRY(append_u64(state->offset, state->total_rows, error));
    }
    return mrec_block_prime(state, staged, error);
}

mrec_status mrec_block_visit(mrec_block_state *state, uint64_t nframes, mrec_node_visit visit, void *arg,
                             mrec_error *error) {
    const bool dense = state->updates == nframes;
    const uint64_t rows = !dense ? 0 : state->form == MREC_FORM_REGULAR ? state->uniform_rows : 1;
    MREC_TRY(mrec_visit_array(visit, arg, state->offset, 0, error));
    MREC_TRY(mrec_visit_array(visit, arg, state->step_index, 0, error));
    MREC_TRY(mrec_visit_group(visit, arg, &state->group, error));
    if (state->has_masks)
        MREC_TRY(mrec_visit_group(visit, arg, &state->mask_group, error));
    for (size_t i = 0; i < state->block->ncolumns; i++) {
        MREC_TRY(mrec_visit_array(visit, arg, state->columns[i].mask, rows, error));
        MREC_TRY(mrec_visit_array(visit, arg, state->columns[i].rows, rows, error));
    }
    return MREC_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "cell.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

mrec_status mrec_cell_init(mrec_cell_state *state, mrec_store *store, const char *other_attributes, mrec_error *error) {
    memset(state, 0, sizeof *state);
    state->store = store;
    state->other_attributes = strdup(other_attributes);
    if (!state->other_attributes)
        return mrec_fail_memory(error);
    MREC_TRY(mrec_group_init(&state->group, store->root, "trajectory/box", error));
    return mrec_cell_set_attributes(state, error);
}

void mrec_cell_free(mrec_cell_state *state) {
    mrec_array_free(state->step_index);
    mrec_array_free(state->vectors);
    mrec_array_free(state->origin);
    mrec_array_free(state->boundary);
    mrec_group_free(&state->group);
    free(state->other_attributes);
}

/* ---- attributes ---- */

static bool is_default_origin(const mrec_cell *cell) {
    static const double zero[3];
    return memcmp(cell->origin, zero, sizeof zero) == 0;
}

static bool is_default_boundary(const mrec_cell *cell) {
    return cell->periodic[0] && cell->periodic[1] && cell->periodic[2];
}

static mrec_status print_row(mrec_buffer *out, const double *row, mrec_error *error) {
    for (int k = 0; k < 3; k++) {
        MREC_TRY(mrec_buffer_print(out, error, k ? "," : "["));
        MREC_TRY(mrec_json_f64(out, row[k], error));
    }
    return mrec_buffer_print(out, error, "]");
}

static mrec_status print_cell(mrec_buffer *out, const mrec_cell *cell, mrec_error *error) {
    for (int i = 0; i < 3; i++) {
        MREC_TRY(mrec_buffer_print(out, error, i ? "," : "\"vectors\":["));
        MREC_TRY(print_row(out, cell->vectors + 3 * i, error));
    }
    MREC_TRY(mrec_buffer_print(out, error, "]"));
    if (!is_default_origin(cell)) {
        MREC_TRY(mrec_buffer_print(out, error, ",\"origin\":"));
        MREC_TRY(print_row(out, cell->origin, error));
    }
    if (is_default_boundary(cell))
        return MREC_OK;
    return mrec_buffer_print(out, error, ",\"boundary\":[%s,%s,%s]", cell->periodic[0] ? "true" : "false",
                             cell->periodic[1] ? "true" : "false", cell->periodic[2] ? "true" : "false");
}

static mrec_status print_members(mrec_buffer *out, const mrec_cell_state *state, mrec_error *error) {
    MREC_TRY(mrec_buffer_print(out, error, "%s", state->other_attributes));
    if (state->form == MREC_FORM_REGULAR) {
        MREC_TRY(mrec_buffer_print(out, error, out->size ? "," : ""));
        MREC_TRY(print_cell(out, &state->last, error));
    }
    if (state->form == MREC_FORM_NONE || state->last.defined)
        return MREC_OK;
    return mrec_buffer_print(out, error, "%s\"cell_defined\":false", out->size ? "," : "");
}

mrec_status mrec_cell_set_attributes(mrec_cell_state *state, mrec_error *error) {
    mrec_buffer members = {0};
    mrec_status status = print_members(&members, state, error);
    if (status == MREC_OK)
        status = mrec_group_set(&state->group, (char *)members.data, error);
    mrec_buffer_free(&members);
    return status;
}

/* ---- updates ---- */

static mrec_status make_box_array(mrec_cell_state *state, const char *key, mrec_dtype dtype, size_t ntrailing,
                                  mrec_array **array, mrec_error *error) {
    static const uint64_t threes[] = {3, 3};
    mrec_layout layout;
    mrec_layout_dense(dtype, ntrailing, threes, &layout);
    return mrec_array_new(state->store, key, &layout, NULL, NULL, NULL, array, error);
}

static mrec_status append_update(mrec_cell_state *state, const mrec_cell *cell, uint64_t ordinal, mrec_error *error) {
    static const double zero[3];
    static const uint8_t ones[3] = {1, 1, 1};
    if (!state->origin && !is_default_origin(cell)) {
        MREC_TRY(make_box_array(state, "trajectory/box/origin", MREC_F64, 1, &state->origin, error));
        for (uint64_t j = 0; j < state->vectors->length; j++)
            MREC_TRY(mrec_array_append(state->origin, zero, 1, sizeof zero, error));
    }
    if (!state->boundary && !is_default_boundary(cell)) {
        MREC_TRY(make_box_array(state, "trajectory/box/boundary", MREC_BOOL, 1, &state->boundary, error));
        for (uint64_t j = 0; j < state->vectors->length; j++)
            MREC_TRY(mrec_array_append(state->boundary, ones, 1, sizeof ones, error));
    }
    MREC_TRY(mrec_array_append(state->step_index, &ordinal, 1, sizeof ordinal, error));
    MREC_TRY(mrec_array_append(state->vectors, cell->vectors, 1, sizeof cell->vectors, error));
    if (state->origin)
        MREC_TRY(mrec_array_append(state->origin, cell->origin, 1, sizeof cell->origin, error));
    return state->boundary ? mrec_array_append(state->boundary, cell->periodic, 1, sizeof cell->periodic, error)
                           : MREC_OK;
}

/* The arrays, with the fixed cell so far as update 0. */
static mrec_status make_box_arrays(mrec_cell_state *state, mrec_error *error) {
    bool had_cell = state->form == MREC_FORM_REGULAR;
    MREC_TRY(make_box_array(state, "trajectory/box/step_index", MREC_U64, 0, &state->step_index, error));
    MREC_TRY(make_box_array(state, "trajectory/box/vectors", MREC_F64, 2, &state->vectors, error));
    state->form = MREC_FORM_INDEXED;
    return had_cell ? append_update(state, &state->last, 0, error) : MREC_OK;
}

mrec_status mrec_cell_apply(mrec_cell_state *state, const mrec_cell *cell, uint64_t ordinal, mrec_error *error) {
    if (state->updates > 0 && memcmp(cell, &state->last, sizeof *cell) == 0)
        return MREC_OK;
    if (state->form == MREC_FORM_NONE && ordinal == 0)
        state->form = MREC_FORM_REGULAR;
    else if (state->form != MREC_FORM_INDEXED)
        MREC_TRY(make_box_arrays(state, error));
    if (state->form == MREC_FORM_INDEXED)
        MREC_TRY(append_update(state, cell, ordinal, error));
    state->last = *cell;
    state->updates++;
    return mrec_cell_set_attributes(state, error);
}

mrec_status mrec_cell_visit(mrec_cell_state *state, mrec_node_visit visit, void *arg, mrec_error *error) {
    MREC_TRY(mrec_visit_array(visit, arg, state->step_index, 0, error));
    MREC_TRY(mrec_visit_array(visit, arg, state->origin, 0, error));
    MREC_TRY(mrec_visit_array(visit, arg, state->boundary, 0, error));
    MREC_TRY(mrec_visit_array(visit, arg, state->vectors, 0, error));
    return mrec_visit_group(visit, arg, &state->group, error);
}

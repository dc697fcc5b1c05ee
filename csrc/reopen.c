/* SPDX-License-Identifier: BSD-3-Clause */
#include "reopen.h"

#include <stdlib.h>
#include <string.h>

mrec_status mrec_reopen_sync(mrec_vfs *vfs, const char *path, mrec_error *error) {
    MREC_TRY(mrec_tree_sync(vfs, path, error));
    return mrec_parent_sync(vfs, path, error);
}

/* ---- the sequence in memory ---- */

static mrec_status load_array(mrec_sequence *seq, const mrec_array_state *state, mrec_array **array,
                              mrec_error *error) {
    if (!state->key)
        return MREC_OK;
    MREC_TRY(mrec_array_new(&seq->store, state->key, &state->layout, state->prefix, state->suffix, NULL, array, error));
    (*array)->doc.on_disk = state->doc_length != MREC_NO_DOCUMENT;
    (*array)->doc_length = state->doc_length;
    return mrec_array_load(*array, state->length, state->has_tail ? &state->tail : NULL, error);
}

/* The text is as it should be already, but for what the writer changes later. */
static mrec_status load_group(mrec_group *group, const mrec_group_state *state, mrec_error *error) {
    group->doc.on_disk = state->on_disk;
    return mrec_group_set(group, state->members, error);
}

static mrec_status load_block(mrec_sequence *seq, size_t i, const mrec_block_standing *standing, mrec_error *error) {
    const mrec_block *block = &seq->declared.schema.blocks[i];
    mrec_block_state *state = &seq->blocks[i];
    MREC_TRY(mrec_block_init(state, &seq->store, block, standing->group.members, error));
    state->group.doc.on_disk = standing->group.on_disk;
    MREC_TRY(load_group(&state->mask_group, &standing->masks, error));
    state->form = standing->form;
    state->updates = standing->updates;
    state->total_rows = standing->rows;
    state->uniform_rows = standing->uniform_rows;
    for (size_t k = 0; k < block->ncolumns; k++) {
        MREC_TRY(load_array(seq, &standing->columns[k], &state->columns[k].rows, error));
        MREC_TRY(load_array(seq, &standing->valid[k], &state->columns[k].mask, error));
    }
    MREC_TRY(load_array(seq, &standing->step_index, &state->step_index, error));
    MREC_TRY(load_array(seq, &standing->offset, &state->offset, error));
    return mrec_block_set_attributes(state, error);
}

static mrec_status load_cell(mrec_sequence *seq, const mrec_standing *standing, mrec_error *error) {
    mrec_cell_state *cell = &seq->cell;
    MREC_TRY(mrec_cell_init(cell, &seq->store, standing->box.members, error));
    cell->group.doc.on_disk = standing->box.on_disk;
    cell->form = standing->cell_form;
    cell->updates = standing->cell_updates;
    MREC_TRY(load_array(seq, &standing->box_step_index, &cell->step_index, error));
    MREC_TRY(load_array(seq, &standing->box_vectors, &cell->vectors, error));
    MREC_TRY(load_array(seq, &standing->box_origin, &cell->origin, error));
    return load_array(seq, &standing->box_boundary, &cell->boundary, error);
}

static mrec_status load_ticks(mrec_sequence *seq, const mrec_standing *standing, mrec_error *error) {
    seq->nframes = standing->nframes;
    seq->steps.n = seq->times.n = standing->nframes;
    seq->steps.start = standing->step_start;
    seq->steps.stride = standing->step_stride;
    seq->steps.last = standing->last.step;
    seq->times.given = standing->last.has_time;
    seq->times.start = standing->time_start;
    seq->times.stride = standing->time_stride;
    MREC_TRY(load_array(seq, &standing->step, &seq->steps.array, error));
    return load_array(seq, &standing->time, &seq->times.array, error);
}

static mrec_status prime(mrec_sequence *seq, const mrec_frame *last, uint64_t number, mrec_error *error) {
    mrec_staged *staged;
    MREC_TRY(mrec_staged_new(&seq->declared.schema, &staged, error));
    mrec_status status = mrec_stage_content(seq, last, number, staged, error);
    if (status == MREC_OK)
        status = mrec_sequence_prime(seq, staged, error);
    mrec_staged_free(staged);
    return status;
}

static mrec_status load_sequence(mrec_sequence *seq, mrec_vfs *vfs, const mrec_lock *lock, const char *path,
                                 const mrec_schema *schema, const mrec_options *options, const mrec_standing *standing,
                                 mrec_error *error) {
    MREC_TRY(
        mrec_sequence_init(seq, vfs, lock, path, schema, standing->schema_json, standing->other_attributes, error));
    seq->marker.on_disk = true;
    seq->complete = standing->complete;
    seq->store.never_sync = options->no_durable;
    for (size_t i = 0; i < schema->nblocks; i++)
        MREC_TRY(load_block(seq, i, &standing->blocks[i], error));
    MREC_TRY(load_cell(seq, standing, error));
    MREC_TRY(load_ticks(seq, standing, error));
    MREC_TRY(load_group(&seq->values_group, &standing->values_group, error));
    for (size_t i = 0; i < schema->nvalues; i++)
        MREC_TRY(load_array(seq, &standing->values[i], &seq->values[i], error));
    MREC_TRY(mrec_sequence_make_arrays(seq, options, error));
    return standing->nframes ? prime(seq, &standing->last, standing->nframes - 1, error) : MREC_OK;
}

/* ---- the disk ---- */

static mrec_status land(void *arg, mrec_node node, mrec_error *error) {
    (void)arg;
    if (!node.array)
        return MREC_OK;
    MREC_TRY(mrec_array_land(node.array, error));
    return mrec_array_sync(node.array, error);
}

static mrec_status make_directory(void *arg, mrec_node node, mrec_error *error) {
    return node.group && !node.group->doc.on_disk ? mrec_dir_make(arg, node.group->doc.dir, error) : MREC_OK;
}

static mrec_status trim(void *arg, mrec_node node, mrec_error *error) {
    (void)arg;
    return node.array ? mrec_array_trim(node.array, error) : MREC_OK;
}

static mrec_status remove_dead(mrec_sequence *seq, const mrec_standing *standing, mrec_error *error) {
    mrec_vfs *vfs = seq->store.files.vfs;
    for (size_t i = 0; i < standing->ndead; i++) {
        char *path = mrec_path_join(seq->store.root, standing->dead[i]);
        mrec_status status = path ? mrec_tree_remove(vfs, path, error) : mrec_fail_memory(error);
        if (status == MREC_OK) {
            *strrchr(path, '/') = '\0';
            status = mrec_dir_sync(vfs, path, error);
        }
        free(path);
        MREC_TRY(status);
    }
    return MREC_OK;
}

static mrec_status restore_marker(mrec_sequence *seq, const char *text, mrec_error *error) {
    return mrec_commit_marker_text(seq, text, strlen(text), error);
}

/* (b): everything as .durable has it. Tails came into the indexes when the arrays were loaded. */
static mrec_status restore(mrec_sequence *seq, const mrec_standing *standing, mrec_error *error) {
    MREC_TRY(restore_marker(seq, standing->marker_text, error));
    MREC_TRY(mrec_sequence_visit(seq, land, NULL, error));
    MREC_TRY(mrec_commit_documents(seq, true, error));
    MREC_TRY(mrec_commit_directories(seq, true, error));
    return remove_dead(seq, standing, error);
}

static mrec_status settle(mrec_sequence *seq, const mrec_standing *standing, mrec_error *error) {
    MREC_TRY(mrec_lock_check(seq->store.files.lock, error));
    if (standing->marker_text)
        MREC_TRY(restore(seq, standing, error));
    MREC_TRY(mrec_sequence_visit(seq, make_directory, seq->store.files.vfs, error));
    MREC_TRY(mrec_sequence_visit(seq, land, NULL, error)); /* masks that another program did not write */
    MREC_TRY(mrec_commit_durable_file(seq, true, error));  /* (c) */
    if (standing->truncate || !standing->marker_text)
        MREC_TRY(mrec_commit_marker(seq, true, true, error));
    MREC_TRY(mrec_commit_documents(seq, true, error)); /* (d) */
    MREC_TRY(mrec_commit_directories(seq, true, error));
    MREC_TRY(remove_dead(seq, standing, error));
    return mrec_sequence_visit(seq, trim, NULL, error); /* (e), (f) */
}

static mrec_taken taken_of(const mrec_standing *standing) {
    const mrec_frame *last = &standing->last;
    return (mrec_taken){.nframes = standing->nframes,
                        .last_step = last->step,
                        .has_times = last->has_time,
                        .has_cell = standing->cell_form != MREC_FORM_NONE,
                        .cell_defined = last->cell && last->cell->defined};
}

mrec_status mrec_reopen(mrec_vfs *vfs, const char *path, mrec_lock *lock, const mrec_schema *schema,
                        const mrec_options *options, const mrec_standing *standing, mrec_writer **out,
                        mrec_error *error) {
    MREC_TRY(mrec_writer_new(lock, options, out, error));
    mrec_writer *writer = *out;
    mrec_status status = load_sequence(&writer->sequence, vfs, lock, path, schema, options, standing, error);
    if (status == MREC_OK)
        status = settle(&writer->sequence, standing, error);
    if (status == MREC_OK) {
        writer->published = writer->durable = writer->handed = standing->nframes;
        writer->taken = taken_of(standing);
        return MREC_OK;
    }
    mrec_free(writer);
    *out = NULL;
    return status;
}

mrec_lock *mrec_writer_release(mrec_writer *writer) {
    mrec_lock *lock = writer->lock;
    writer->lock = NULL;
    mrec_free(writer);
    return lock;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "sequence.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPEN_FILES 64

/* ---- making and freeing ---- */

/* Half of what the process may open, when that is little. */
static unsigned open_files(void) {
    long most = sysconf(_SC_OPEN_MAX);
    return most < 0 || most / 2 > OPEN_FILES ? OPEN_FILES : most < 4 ? 1 : (unsigned)(most / 2);
}

static mrec_status copy_text(const char *text, char **out, mrec_error *error) {
    *out = strdup(text ? text : "");
    return *out ? MREC_OK : mrec_fail_memory(error);
}

static mrec_status init_schema(mrec_sequence *seq, const mrec_schema *schema, const char *schema_json,
                               mrec_error *error) {
    MREC_TRY(mrec_schema_copy_init(&seq->declared, schema, error));
    if (schema_json)
        return copy_text(schema_json, &seq->schema_json, error);
    mrec_buffer text = {0};
    mrec_status status = mrec_schema_json(schema, &text, error);
    seq->schema_json = (char *)text.data;
    return status;
}

mrec_status mrec_sequence_init(mrec_sequence *seq, mrec_vfs *vfs, const mrec_lock *lock, const char *root,
                               const mrec_schema *schema, const char *schema_json, const char *other_attributes,
                               mrec_error *error) {
    memset(seq, 0, sizeof *seq);
    seq->store.files = (mrec_files){.vfs = vfs, .lock = lock, .budget = open_files()};
    MREC_TRY(copy_text(root, &seq->store.root, error));
    MREC_TRY(copy_text(other_attributes, &seq->other_attributes, error));
    MREC_TRY(mrec_coder_new(&seq->store.coder, error));
    MREC_TRY(init_schema(seq, schema, schema_json, error));
    schema = &seq->declared.schema;
    seq->blocks = calloc(schema->nblocks + 1, sizeof *seq->blocks);
    seq->values = calloc(schema->nvalues + 1, sizeof *seq->values);
    if (!seq->blocks || !seq->values)
        return mrec_fail_memory(error);
    seq->steps.store = seq->times.store = &seq->store;
    MREC_TRY(mrec_document_init(&seq->marker, root, "trajectory", error));
    MREC_TRY(mrec_group_init(&seq->values_group, root, "trajectory/meta", error));
    return mrec_group_set(&seq->values_group, "", error);
}

void mrec_sequence_free(mrec_sequence *seq) {
    const mrec_schema *schema = &seq->declared.schema;
    for (size_t i = 0; seq->blocks && i < schema->nblocks; i++)
        if (seq->blocks[i].block)
            mrec_block_free(&seq->blocks[i]);
    for (size_t i = 0; seq->values && i < schema->nvalues; i++)
        mrec_array_free(seq->values[i]);
    mrec_cell_free(&seq->cell);
    mrec_array_free(seq->steps.array);
    mrec_array_free(seq->times.array);
    mrec_document_free(&seq->marker);
    mrec_group_free(&seq->values_group);
    mrec_schema_copy_free(&seq->declared);
    mrec_coder_free(seq->store.coder);
    free(seq->blocks);
    free(seq->values);
    free(seq->schema_json);
    free(seq->other_attributes);
    free(seq->store.root);
}

char *mrec_value_key(const mrec_value *value) {
    return mrec_path_join("trajectory/meta", value->name);
}

static mrec_status make_value(mrec_sequence *seq, const mrec_value *value, mrec_array **array, mrec_error *error) {
    const uint64_t width = value->width;
    mrec_layout layout;
    mrec_buffer attributes = {0};
    char *key = mrec_value_key(value);
    mrec_layout_dense(value->dtype, width > 1, &width, &layout);
    mrec_status status = key ? mrec_buffer_print(&attributes, error, "{\"meta_dtype\":\"") : mrec_fail_memory(error);
    if (status == MREC_OK)
        status = mrec_value_tag(value, &attributes, error);
    if (status == MREC_OK)
        status = mrec_buffer_print(&attributes, error, "\"}");
    if (status == MREC_OK)
        status = mrec_array_new(&seq->store, key, &layout, NULL, NULL, (char *)attributes.data, array, error);
    mrec_buffer_free(&attributes);
    free(key);
    return status;
}

mrec_status mrec_sequence_make_arrays(mrec_sequence *seq, const mrec_options *options, mrec_error *error) {
    const mrec_schema *schema = &seq->declared.schema;
    for (size_t i = 0; i < schema->nblocks; i++)
        MREC_TRY(mrec_block_make_columns(&seq->blocks[i], options, error));
    for (size_t i = 0; i < schema->nvalues; i++)
        if (!seq->values[i])
            MREC_TRY(make_value(seq, &schema->values[i], &seq->values[i], error));
    return MREC_OK;
}

/* ---- frames ---- */

mrec_status mrec_sequence_apply(mrec_sequence *seq, mrec_staged *staged, mrec_error *error) {
    for (size_t i = 0; i < staged->nblocks; i++)
        if (staged->blocks[i].present)
            MREC_TRY(mrec_block_apply(&seq->blocks[i], &staged->blocks[i], seq->nframes, error));
    if (staged->has_cell)
        MREC_TRY(mrec_cell_apply(&seq->cell, &staged->cell, seq->nframes, error));
    for (size_t i = 0; i < staged->nvalues; i++)
        MREC_TRY(mrec_array_append(seq->values[i], staged->values[i].data, 1, staged->values[i].size, error));
    MREC_TRY(mrec_steps_append(&seq->steps, staged->step, error));
    MREC_TRY(mrec_times_append(&seq->times, staged->has_time, staged->time, error));
    seq->nframes++;
    return MREC_OK;
}

mrec_status mrec_sequence_prime(mrec_sequence *seq, mrec_staged *last, mrec_error *error) {
    for (size_t i = 0; i < last->nblocks; i++)
        if (last->blocks[i].present)
            MREC_TRY(mrec_block_prime(&seq->blocks[i], &last->blocks[i], error));
    if (last->has_cell)
        seq->cell.last = last->cell;
    return mrec_cell_set_attributes(&seq->cell, error);
}

/* ---- nodes and marker ---- */

mrec_status mrec_sequence_visit(mrec_sequence *seq, mrec_node_visit visit, void *arg, mrec_error *error) {
    const mrec_schema *schema = &seq->declared.schema;
    for (size_t i = 0; i < schema->nblocks; i++)
        MREC_TRY(mrec_block_visit(&seq->blocks[i], seq->nframes, visit, arg, error));
    MREC_TRY(mrec_cell_visit(&seq->cell, visit, arg, error));
    MREC_TRY(mrec_visit_array(visit, arg, seq->steps.array, 1, error));
    MREC_TRY(mrec_visit_array(visit, arg, seq->times.array, 1, error));
    MREC_TRY(mrec_visit_group(visit, arg, &seq->values_group, error));
    for (size_t i = 0; i < schema->nvalues; i++)
        MREC_TRY(mrec_visit_array(visit, arg, seq->values[i], 1, error));
    return MREC_OK;
}

mrec_status mrec_sequence_marker(const mrec_sequence *seq, bool live, mrec_buffer *out, mrec_error *error) {
    static const char head[] = "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"sequence_schema\":";
    MREC_TRY(mrec_buffer_add(out, head, strlen(head), error));
    MREC_TRY(mrec_buffer_add(out, seq->schema_json, strlen(seq->schema_json), error));
    MREC_TRY(mrec_buffer_print(out, error, ",\"nstep\":%" PRIu64, seq->nframes));
    if (live)
        MREC_TRY(mrec_buffer_print(out, error, ",\"mrec_nstep\":%" PRIu64, seq->nframes));
    MREC_TRY(mrec_steps_attribute(&seq->steps, out, error));
    MREC_TRY(mrec_times_attribute(&seq->times, out, error));
    return mrec_buffer_print(out, error, "%s%s}}", seq->other_attributes[0] ? "," : "", seq->other_attributes);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "commit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DURABLE_FORMAT 1

/* ---- the steps of a flush, each a walk over the nodes ---- */

typedef struct walk {
    mrec_vfs *vfs;
    bool durable, all, ahead;
    mrec_buffer *out; /* of the durable file */
    bool first;
} walk;

static mrec_status land(void *arg, mrec_node node, mrec_error *error) {
    (void)arg;
    return node.array ? mrec_array_land(node.array, error) : MREC_OK;
}

static mrec_status sync_data(void *arg, mrec_node node, mrec_error *error) {
    (void)arg;
    return node.array ? mrec_array_sync(node.array, error) : MREC_OK;
}

static mrec_status close_files(void *arg, mrec_node node, mrec_error *error) {
    (void)arg;
    return node.array ? mrec_array_close(node.array, error) : MREC_OK;
}

static mrec_status write_document(void *arg, mrec_node node, mrec_error *error) {
    const walk *w = arg;
    return node.array ? mrec_array_write_document(node.array, w->ahead ? node.every_frame : 0, w->durable, error)
                      : mrec_group_write(w->vfs, node.group, w->durable, error);
}

static mrec_status sync_dirs(void *arg, mrec_node node, mrec_error *error) {
    const walk *w = arg;
    mrec_document *doc = mrec_node_document(node);
    return w->all || doc->parent_unsynced ? mrec_document_sync_dirs(w->vfs, doc, error) : MREC_OK;
}

static mrec_status sync_document(void *arg, mrec_node node, mrec_error *error) {
    const walk *w = arg;
    return mrec_document_sync(w->vfs, mrec_node_document(node), error);
}

static mrec_status remember_places(void *arg, mrec_node node, mrec_error *error) {
    (void)arg;
    (void)error;
    if (node.array)
        mrec_array_set_durable(node.array);
    return MREC_OK;
}

/* ---- trajectory/.durable ---- */

static mrec_status print_document(walk *w, const char *key, const mrec_buffer *text, mrec_error *error) {
    mrec_buffer path = {0};
    mrec_status status = mrec_buffer_print(&path, error, "%s/zarr.json", key);
    if (status == MREC_OK && !w->first)
        status = mrec_buffer_print(w->out, error, ",");
    if (status == MREC_OK)
        status = mrec_buffer_json(w->out, (char *)path.data, path.size, error);
    if (status == MREC_OK)
        status = mrec_buffer_print(w->out, error, ":");
    if (status == MREC_OK)
        status = mrec_buffer_json(w->out, (const char *)text->data, text->size, error);
    w->first = false;
    mrec_buffer_free(&path);
    return status;
}

static mrec_status print_node_document(void *arg, mrec_node node, mrec_error *error) {
    if (node.group)
        return print_document(arg, node.group->doc.key, &node.group->text, error);
    mrec_buffer text = {0};
    mrec_status status = mrec_array_document(node.array, node.array->length, &text, error);
    if (status == MREC_OK)
        status = print_document(arg, node.array->doc.key, &text, error);
    mrec_buffer_free(&text);
    return status;
}

static mrec_status print_tail(void *arg, mrec_node node, mrec_error *error) {
    walk *w = arg;
    mrec_tail tail;
    if (!node.array || node.array->length == 0)
        return MREC_OK;
    MREC_TRY(mrec_array_tail(node.array, &tail, error));
    if (tail.place.offset == MREC_NO_PLACE)
        return MREC_OK;
    if (!w->first)
        MREC_TRY(mrec_buffer_print(w->out, error, ","));
    w->first = false;
    MREC_TRY(mrec_buffer_json(w->out, node.array->doc.key, strlen(node.array->doc.key), error));
    return mrec_buffer_print(w->out, error, ":[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 "]",
                             tail.shard, tail.chunk, tail.place.offset, tail.place.nbytes, tail.crc32c);
}

static mrec_status print_durable(mrec_sequence *seq, mrec_buffer *out, mrec_error *error) {
    char boot[64];
    mrec_boot_id(boot);
    walk w = {.out = out, .first = true};
    mrec_buffer marker = {0};
    MREC_TRY(mrec_buffer_print(
        out, error, "{\"format\":%d,\"boot_id\":\"%s\",\"nstep\":%" PRIu64 ",\"complete\":%s,\"documents\":{",
        DURABLE_FORMAT, boot, seq->nframes, seq->complete ? "true" : "false"));
    mrec_status status = mrec_sequence_marker(seq, true, &marker, error);
    if (status == MREC_OK)
        status = print_document(&w, "trajectory", &marker, error);
    mrec_buffer_free(&marker);
    MREC_TRY(status);
    MREC_TRY(mrec_sequence_visit(seq, print_node_document, &w, error));
    MREC_TRY(mrec_buffer_print(out, error, "},\"tails\":{"));
    w.first = true;
    MREC_TRY(mrec_sequence_visit(seq, print_tail, &w, error));
    return mrec_buffer_print(out, error, "}}\n");
}

mrec_status mrec_commit_durable_file(mrec_sequence *seq, bool durable, mrec_error *error) {
    mrec_buffer text = {0};
    char *path = mrec_path_join(seq->marker.dir, ".durable");
    mrec_status status = path ? print_durable(seq, &text, error) : mrec_fail_memory(error);
    if (status == MREC_OK)
        status = mrec_file_replace(seq->store.files.vfs, path, text.data, text.size, durable, error);
    if (status == MREC_OK && durable)
        status = mrec_dir_sync(seq->store.files.vfs, seq->marker.dir, error);
    if (status == MREC_OK)
        status = mrec_sequence_visit(seq, remember_places, NULL, error);
    mrec_buffer_free(&text);
    free(path);
    return status;
}

static mrec_status remove_durable_file(mrec_sequence *seq, bool durable, mrec_error *error) {
    char *path = mrec_path_join(seq->marker.dir, ".durable");
    mrec_status status = path ? mrec_file_remove(seq->store.files.vfs, path, error) : mrec_fail_memory(error);
    free(path);
    return status == MREC_OK && durable ? mrec_dir_sync(seq->store.files.vfs, seq->marker.dir, error) : status;
}

/* ---- marker and whole ---- */

mrec_status mrec_commit_marker(mrec_sequence *seq, bool live, bool durable, mrec_error *error) {
    mrec_buffer text = {0};
    mrec_vfs *vfs = seq->store.files.vfs;
    mrec_status status = mrec_sequence_marker(seq, live, &text, error);
    if (status == MREC_OK)
        status = mrec_document_write(vfs, &seq->marker, text.data, text.size, durable, error);
    if (status == MREC_OK && durable)
        status = mrec_document_sync_dirs(vfs, &seq->marker, error);
    mrec_buffer_free(&text);
    return status;
}

/* An unsynced landing need not replace what can stand longer: a document each would cost more than small frames do. */
static mrec_status write_documents(mrec_sequence *seq, bool durable, bool ahead, mrec_error *error) {
    walk w = {.vfs = seq->store.files.vfs, .durable = durable, .ahead = ahead};
    return mrec_sequence_visit(seq, write_document, &w, error);
}

static mrec_status let_go(void *arg, mrec_node node, mrec_error *error) {
    (void)arg;
    (void)error;
    for (size_t i = 0; node.array && i < node.array->nshards; i++)
        mrec_shard_close(node.array->shards[i], NULL);
    return MREC_OK;
}

void mrec_commit_close_files(mrec_sequence *seq) {
    mrec_sequence_visit(seq, let_go, NULL, NULL);
}

mrec_status mrec_commit_documents(mrec_sequence *seq, bool durable, mrec_error *error) {
    return write_documents(seq, durable, false, error);
}

mrec_status mrec_commit_directories(mrec_sequence *seq, bool all, mrec_error *error) {
    walk w = {.vfs = seq->store.files.vfs, .all = all};
    return mrec_sequence_visit(seq, sync_dirs, &w, error);
}

mrec_status mrec_commit(mrec_sequence *seq, mrec_commit_kind kind, mrec_error *error) {
    const bool closing = kind == MREC_COMMIT_CLOSE || kind == MREC_COMMIT_CLOSE_UNSYNCED;
    const bool durable = kind == MREC_COMMIT_DURABLE || kind == MREC_COMMIT_CLOSE;
    MREC_TRY(mrec_lock_check(seq->store.files.lock, error));
    MREC_TRY(mrec_store_settle(&seq->store, error));
    MREC_TRY(mrec_sequence_visit(seq, land, NULL, error));
    if (durable)
        MREC_TRY(mrec_sequence_visit(seq, sync_data, NULL, error));
    MREC_TRY(write_documents(seq, durable, kind == MREC_COMMIT_AUTO, error));
    if (durable)
        MREC_TRY(mrec_commit_directories(seq, closing, error));
    if (durable)
        MREC_TRY(mrec_commit_durable_file(seq, true, error));
    if (kind == MREC_COMMIT_CLOSE) {
        walk w = {.vfs = seq->store.files.vfs};
        MREC_TRY(mrec_sequence_visit(seq, sync_document, &w, error));
    }
    if (closing)
        MREC_TRY(mrec_sequence_visit(seq, close_files, NULL, error));
    MREC_TRY(mrec_commit_marker(seq, !closing, durable, error));
    return closing ? remove_durable_file(seq, durable, error) : MREC_OK;
}

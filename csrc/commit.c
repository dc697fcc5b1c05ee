/* SPDX-License-Identifier: BSD-3-Clause */
#include "commit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DURABLE_FORMAT 1

/* ---- the steps of a flush, each a walk over the nodes ---- */

typedef struct walk {
    mrec_vfs *vfs;
    bool all, ahead;
    mrec_buffer *out; /* of the durable file */
    bool first;
    mrec_replacements *synced; /* documents; NULL: unsynced ones */
    mrec_shard *shards[MREC_MAX_TOGETHER];
    size_t nshards;
} walk;

static mrec_status land(void *arg, mrec_node node, mrec_error *error) {
    (void)arg;
    return node.array ? mrec_array_land(node.array, error) : MREC_OK;
}

static mrec_status sync_collected(walk *w, mrec_error *error) {
    mrec_status status = mrec_shards_sync(w->shards, w->nshards, error);
    w->nshards = 0;
    return status;
}

/* Those whose files are open; sync_data opens the others, which may close these. */
static mrec_status collect_unsynced(void *arg, mrec_node node, mrec_error *error) {
    walk *w = arg;
    for (size_t i = 0; node.array && i < node.array->nshards; i++) {
        if (!mrec_shard_is_open_unsynced(node.array->shards[i]))
            continue;
        if (w->nshards == MREC_MAX_TOGETHER)
            MREC_TRY(sync_collected(w, error));
        w->shards[w->nshards++] = node.array->shards[i];
    }
    return MREC_OK;
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
    return node.array ? mrec_array_write_document(node.array, w->ahead ? node.every_frame : 0, w->synced, error)
                      : mrec_group_write(w->vfs, node.group, w->synced, error);
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

/* `synced` as of a document. */
static mrec_status write_durable_file(mrec_sequence *seq, mrec_replacements *synced, mrec_error *error) {
    mrec_vfs *vfs = seq->store.files.vfs;
    mrec_buffer text = {0};
    char *path = mrec_path_join(seq->marker.dir, ".durable");
    mrec_status status = path ? print_durable(seq, &text, error) : mrec_fail_memory(error);
    if (status == MREC_OK)
        status = synced ? mrec_file_prepare(vfs, path, text.data, text.size, synced, error)
                        : mrec_file_replace(vfs, path, text.data, text.size, error);
    mrec_buffer_free(&text);
    free(path);
    return status;
}

/* The next one that is settled is .durable. */
static mrec_status name_durable_file(mrec_sequence *seq, mrec_replacements *synced, mrec_error *error) {
    mrec_vfs *vfs = seq->store.files.vfs;
    MREC_TRY(mrec_files_name(vfs, synced, 1, error));
    MREC_TRY(mrec_dir_sync(vfs, seq->marker.dir, error));
    return mrec_sequence_visit(seq, remember_places, NULL, error);
}

mrec_status mrec_commit_durable_file(mrec_sequence *seq, bool durable, mrec_error *error) {
    mrec_vfs *vfs = seq->store.files.vfs;
    mrec_replacements synced = {0};
    mrec_status status = write_durable_file(seq, durable ? &synced : NULL, error);
    if (status == MREC_OK && durable)
        status = mrec_files_settle(vfs, &synced, error);
    if (status == MREC_OK)
        status =
            durable ? name_durable_file(seq, &synced, error) : mrec_sequence_visit(seq, remember_places, NULL, error);
    mrec_files_drop(vfs, &synced);
    return status;
}

static mrec_status remove_durable_file(mrec_sequence *seq, bool durable, mrec_error *error) {
    char *path = mrec_path_join(seq->marker.dir, ".durable");
    mrec_status status = path ? mrec_file_remove(seq->store.files.vfs, path, error) : mrec_fail_memory(error);
    free(path);
    return status == MREC_OK && durable ? mrec_dir_sync(seq->store.files.vfs, seq->marker.dir, error) : status;
}

/* ---- marker and whole ---- */

static mrec_status write_marker(mrec_sequence *seq, bool live, mrec_replacements *synced, mrec_error *error) {
    mrec_buffer text = {0};
    mrec_status status = mrec_sequence_marker(seq, live, &text, error);
    if (status == MREC_OK)
        status = mrec_document_write(seq->store.files.vfs, &seq->marker, text.data, text.size, synced, error);
    mrec_buffer_free(&text);
    return status;
}

/* The next one that is settled is the marker. */
static mrec_status name_marker(mrec_sequence *seq, mrec_replacements *synced, mrec_error *error) {
    mrec_vfs *vfs = seq->store.files.vfs;
    MREC_TRY(mrec_files_name(vfs, synced, 1, error));
    return mrec_document_sync_dirs(vfs, &seq->marker, error);
}

static mrec_status settle_marker(mrec_sequence *seq, mrec_replacements *synced, mrec_error *error) {
    MREC_TRY(mrec_files_settle(seq->store.files.vfs, synced, error));
    return name_marker(seq, synced, error);
}

mrec_status mrec_commit_marker_text(mrec_sequence *seq, const void *text, size_t n, mrec_error *error) {
    mrec_vfs *vfs = seq->store.files.vfs;
    mrec_replacements synced = {0};
    mrec_status status = mrec_document_write(vfs, &seq->marker, text, n, &synced, error);
    if (status == MREC_OK)
        status = settle_marker(seq, &synced, error);
    mrec_files_drop(vfs, &synced);
    return status;
}

mrec_status mrec_commit_marker(mrec_sequence *seq, bool live, bool durable, mrec_error *error) {
    mrec_replacements synced = {0};
    mrec_status status = write_marker(seq, live, durable ? &synced : NULL, error);
    if (status == MREC_OK && durable)
        status = settle_marker(seq, &synced, error);
    mrec_files_drop(seq->store.files.vfs, &synced);
    return status;
}

/* An unsynced landing need not replace what can stand longer: a document each would cost more than small frames do. */
static mrec_status write_documents(mrec_sequence *seq, mrec_replacements *synced, bool ahead, mrec_error *error) {
    walk w = {.vfs = seq->store.files.vfs, .synced = synced, .ahead = ahead};
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
    mrec_vfs *vfs = seq->store.files.vfs;
    mrec_replacements synced = {0};
    mrec_status status = write_documents(seq, durable ? &synced : NULL, false, error);
    if (status == MREC_OK)
        status = mrec_files_publish(vfs, &synced, error);
    mrec_files_drop(vfs, &synced);
    return status;
}

mrec_status mrec_commit_directories(mrec_sequence *seq, bool all, mrec_error *error) {
    walk w = {.vfs = seq->store.files.vfs, .all = all};
    return mrec_sequence_visit(seq, sync_dirs, &w, error);
}

/* What is open is synced together, then the rest, and the directories of new files. */
static mrec_status sync_all_data(mrec_sequence *seq, mrec_error *error) {
    walk w = {0};
    MREC_TRY(mrec_sequence_visit(seq, collect_unsynced, &w, error));
    MREC_TRY(sync_collected(&w, error));
    return mrec_sequence_visit(seq, sync_data, NULL, error);
}

static mrec_status name_in_order(mrec_sequence *seq, mrec_replacements *synced, bool closing, mrec_error *error) {
    walk w = {.vfs = seq->store.files.vfs};
    MREC_TRY(mrec_files_name(w.vfs, synced, synced->n - 2, error));
    MREC_TRY(mrec_commit_directories(seq, closing, error));
    MREC_TRY(name_durable_file(seq, synced, error));
    if (closing) {
        MREC_TRY(mrec_sequence_visit(seq, sync_document, &w, error));
        MREC_TRY(mrec_sequence_visit(seq, close_files, NULL, error));
    }
    return name_marker(seq, synced, error);
}

/* Documents, .durable and the marker are synced together, and get their names one after the other. */
static mrec_status publish_synced(mrec_sequence *seq, bool closing, mrec_error *error) {
    mrec_vfs *vfs = seq->store.files.vfs;
    mrec_replacements synced = {0};
    mrec_status status = write_documents(seq, &synced, false, error);
    if (status == MREC_OK)
        status = write_durable_file(seq, &synced, error);
    if (status == MREC_OK)
        status = write_marker(seq, !closing, &synced, error);
    if (status == MREC_OK)
        status = mrec_files_settle(vfs, &synced, error);
    if (status == MREC_OK)
        status = name_in_order(seq, &synced, closing, error);
    mrec_files_drop(vfs, &synced);
    return status;
}

mrec_status mrec_commit(mrec_sequence *seq, mrec_commit_kind kind, mrec_error *error) {
    const bool closing = kind == MREC_COMMIT_CLOSE || kind == MREC_COMMIT_CLOSE_UNSYNCED;
    const bool durable = kind == MREC_COMMIT_DURABLE || kind == MREC_COMMIT_CLOSE;
    MREC_TRY(mrec_lock_check(seq->store.files.lock, error));
    MREC_TRY(mrec_store_settle(&seq->store, error));
    MREC_TRY(mrec_sequence_visit(seq, land, NULL, error));
    if (durable) {
        MREC_TRY(sync_all_data(seq, error));
        MREC_TRY(publish_synced(seq, closing, error));
        return closing ? remove_durable_file(seq, true, error) : MREC_OK;
    }
    MREC_TRY(write_documents(seq, NULL, kind == MREC_COMMIT_AUTO, error));
    if (closing)
        MREC_TRY(mrec_sequence_visit(seq, close_files, NULL, error));
    MREC_TRY(write_marker(seq, !closing, NULL, error));
    return closing ? remove_durable_file(seq, false, error) : MREC_OK;
}

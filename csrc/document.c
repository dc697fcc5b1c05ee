/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "document.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

mrec_status mrec_document_init(mrec_document *doc, const char *root, const char *key, mrec_error *error) {
    memset(doc, 0, sizeof *doc);
    doc->dir = key[0] ? mrec_path_join(root, key) : strdup(root);
    doc->key = strdup(key);
    return doc->dir && doc->key ? MREC_OK : mrec_fail_memory(error);
}

void mrec_document_free(mrec_document *doc) {
    free(doc->dir);
    free(doc->key);
    doc->dir = doc->key = NULL;
}

static mrec_status with_zarr_json(const mrec_document *doc, char **path, mrec_error *error) {
    *path = mrec_path_join(doc->dir, "zarr.json");
    return *path ? MREC_OK : mrec_fail_memory(error);
}

mrec_status mrec_document_write(mrec_vfs *vfs, mrec_document *doc, const void *text, size_t n,
                                mrec_replacements *synced, mrec_error *error) {
    if (!doc->on_disk)
        MREC_TRY(mrec_dir_make(vfs, doc->dir, error));
    char *path;
    MREC_TRY(with_zarr_json(doc, &path, error));
    mrec_status status =
        synced ? mrec_file_prepare(vfs, path, text, n, synced, error) : mrec_file_replace(vfs, path, text, n, error);
    free(path);
    MREC_TRY(status);
    doc->parent_unsynced = doc->parent_unsynced || !doc->on_disk;
    doc->on_disk = true;
    doc->unsynced = synced == NULL;
    doc->dir_unsynced = true;
    return MREC_OK;
}

mrec_status mrec_document_sync_dirs(mrec_vfs *vfs, mrec_document *doc, mrec_error *error) {
    if (doc->dir_unsynced)
        MREC_TRY(mrec_dir_sync(vfs, doc->dir, error));
    if (doc->parent_unsynced)
        MREC_TRY(mrec_parent_sync(vfs, doc->dir, error));
    doc->dir_unsynced = doc->parent_unsynced = false;
    return MREC_OK;
}

mrec_status mrec_document_sync(mrec_vfs *vfs, mrec_document *doc, mrec_error *error) {
    if (!doc->unsynced)
        return MREC_OK;
    char *path;
    MREC_TRY(with_zarr_json(doc, &path, error));
    mrec_status status = mrec_path_sync(vfs, path, error);
    free(path);
    if (status == MREC_OK)
        doc->unsynced = false;
    return status;
}

mrec_status mrec_json_f64(mrec_buffer *out, double value, mrec_error *error) {
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    bool whole = true;
    for (char *at = text; *at; at++) {
        if (!strchr("0123456789-+e", *at))
            *at = '.'; /* the point of the locale */
        whole = whole && *at != '.' && *at != 'e';
    }
    return mrec_buffer_print(out, error, whole ? "%s.0" : "%s", text);
}

mrec_status mrec_json_axes(mrec_buffer *out, const uint64_t *axes, size_t n, mrec_error *error) {
    MREC_TRY(mrec_buffer_print(out, error, "["));
    for (size_t i = 0; i < n; i++)
        MREC_TRY(mrec_buffer_print(out, error, "%s%" PRIu64, i ? "," : "", axes[i]));
    return mrec_buffer_print(out, error, "]");
}

/* ---- groups ---- */

mrec_status mrec_group_init(mrec_group *group, const char *root, const char *key, mrec_error *error) {
    memset(group, 0, sizeof *group);
    return mrec_document_init(&group->doc, root, key, error);
}

void mrec_group_free(mrec_group *group) {
    mrec_document_free(&group->doc);
    mrec_buffer_free(&group->text);
}

mrec_status mrec_group_set(mrec_group *group, const char *members, mrec_error *error) {
    mrec_buffer text = {0};
    mrec_status status = mrec_buffer_print(&text, error, "{\"zarr_format\":3,\"node_type\":\"group\"%s%s%s}",
                                           members[0] ? ",\"attributes\":{" : "", members, members[0] ? "}" : "");
    if (status != MREC_OK || (text.size == group->text.size && memcmp(text.data, group->text.data, text.size) == 0)) {
        mrec_buffer_free(&text);
        return status;
    }
    mrec_buffer_free(&group->text);
    group->text = text;
    group->stale = true;
    return MREC_OK;
}

mrec_status mrec_group_write(mrec_vfs *vfs, mrec_group *group, mrec_replacements *synced, mrec_error *error) {
    if (!group->stale)
        return MREC_OK;
    MREC_TRY(mrec_document_write(vfs, &group->doc, group->text.data, group->text.size, synced, error));
    group->stale = false;
    return MREC_OK;
}

/* SPDX-License-Identifier: BSD-3-Clause
 * The zarr.json of one node of a record, and what of it is not yet durable. Not thread-safe. */
#ifndef MREC_DOCUMENT_H
#define MREC_DOCUMENT_H

#include "vfs.h"

typedef struct mrec_document {
    char *dir; /* the node's directory */
    char *key; /* the same from the record's root: "trajectory/atoms/x", "" for the root */
    bool on_disk;
    bool unsynced;        /* replaced without a sync of its bytes */
    bool dir_unsynced;    /* ... or of its name */
    bool parent_unsynced; /* the directory itself is new */
} mrec_document;

/* For the node `key` of the record at root; nothing is on disk yet. */
mrec_status mrec_document_init(mrec_document *, const char *root, const char *key, mrec_error *);
void mrec_document_free(mrec_document *);

/* Make zarr.json hold these n bytes, whole or not at all; the directory is made when it is missing. `synced`: it goes
 * there, and gets its name when those are settled; NULL: at once, and unsynced. */
mrec_status mrec_document_write(mrec_vfs *, mrec_document *, const void *text, size_t n, mrec_replacements *synced,
                                mrec_error *);

/* Sync the directories that a write changed: the node's, and its parent's when it is new. */
mrec_status mrec_document_sync_dirs(mrec_vfs *, mrec_document *, mrec_error *);

/* Sync the bytes of a zarr.json that was replaced without. */
mrec_status mrec_document_sync(mrec_vfs *, mrec_document *, mrec_error *);

/* A number as JSON that reads back to the same bits, whatever the locale; it must be finite. */
mrec_status mrec_json_f64(mrec_buffer *, double value, mrec_error *);

/* [1,2,3] */
mrec_status mrec_json_axes(mrec_buffer *, const uint64_t *axes, size_t n, mrec_error *);

/* A group: its zarr.json is made from the attributes. */
typedef struct mrec_group {
    mrec_document doc;
    mrec_buffer text; /* of zarr.json as it should be */
    bool stale;       /* ... and is not yet on disk */
} mrec_group;

mrec_status mrec_group_init(mrec_group *, const char *root, const char *key, mrec_error *);
void mrec_group_free(mrec_group *);

/* Attributes as the members of a JSON object, without its braces; "" for none. Marks the group stale when its text
 * changes. */
mrec_status mrec_group_set(mrec_group *, const char *members, mrec_error *);

/* Write zarr.json when it is stale, as mrec_document_write does. */
mrec_status mrec_group_write(mrec_vfs *, mrec_group *, mrec_replacements *synced, mrec_error *);

#endif

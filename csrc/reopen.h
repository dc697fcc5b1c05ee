/* SPDX-License-Identifier: BSD-3-Clause
 * Opening a record to append (storage.md, Opening for writing). The caller holds the lock, has synced what it found
 * (mrec_reopen_sync), has parsed the documents, and describes the state that stands. */
#ifndef MREC_REOPEN_H
#define MREC_REOPEN_H

#include "writer.h"

/* One array in force. */
typedef struct mrec_array_state {
    const char *key;             /* "trajectory/atoms/x"; NULL: the array is not there */
    const char *prefix, *suffix; /* its zarr.json around shape[0] */
    mrec_layout layout;
    uint64_t length;     /* rows in force */
    uint64_t doc_length; /* shape[0] as zarr.json on disk has it, or MREC_NO_DOCUMENT */
    bool has_tail;       /* the durable state stands: `tail` overrides the index */
    mrec_tail tail;
} mrec_array_state;

/* A group in force, whose attributes are kept. */
typedef struct mrec_group_state {
    bool on_disk;
    const char *members; /* of its attributes, less those that the writer sets; "" for none */
} mrec_group_state;

typedef struct mrec_block_standing {
    mrec_group_state group, masks;
    mrec_form form;
    uint64_t updates, rows, uniform_rows;
    const mrec_array_state *columns; /* schema order */
    const mrec_array_state *valid;   /* masks, schema order */
    mrec_array_state step_index, offset;
} mrec_block_standing;

typedef struct mrec_standing {
    const char *schema_json;
    const char *other_attributes; /* of trajectory/ */
    bool complete;                /* no chunk is left out */
    uint64_t nframes;
    mrec_frame last; /* the last frame, resolved; read only when nframes > 0 */
    int64_t step_start, step_stride;
    double time_start, time_stride;
    mrec_array_state step, time;
    const mrec_block_standing *blocks; /* schema order */
    mrec_group_state box;
    mrec_form cell_form;
    uint64_t cell_updates;
    mrec_array_state box_step_index, box_vectors, box_origin, box_boundary;
    mrec_group_state values_group;
    const mrec_array_state *values; /* schema order */
    size_t ndead;                   /* directories that are neither an array nor a group in force ... */
    const char *const *dead;        /* ... from the record's root, children before parents are not needed */
    const char *marker_text;        /* the durable state stands: trajectory/zarr.json from .durable, otherwise NULL */
    bool truncate;                  /* the standing is shorter than what is published: publish it first */
} mrec_standing;

/* Step (a): sync every file and directory of the record as found, and its own name. */
mrec_status mrec_reopen_sync(mrec_vfs *, const char *path, mrec_error *);

/* Steps (b)-(f). Takes the lock over, also on failure. On success the writer is ready to append. */
mrec_status mrec_reopen(mrec_vfs *, const char *path, mrec_lock *, const mrec_schema *, const mrec_options *,
                        const mrec_standing *, mrec_writer **, mrec_error *);

/* Free a writer without publishing, and hand its lock back. */
mrec_lock *mrec_writer_release(mrec_writer *);

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * The frames of a trajectory under a writer: blocks, cell, steps, times and per-step values in memory, with the arrays
 * they grow. Publishing is commit.h. Not thread-safe. */
#ifndef MREC_SEQUENCE_H
#define MREC_SEQUENCE_H

#include "cell.h"
#include "schema.h"
#include "ticks.h"

typedef struct mrec_sequence {
    mrec_store store;
    mrec_schema_copy declared;
    char *schema_json;
    char *other_attributes; /* of trajectory/, members that are not ours to change */
    mrec_document marker;   /* trajectory/zarr.json */
    mrec_group values_group;
    mrec_block_state *blocks;
    mrec_cell_state cell;
    mrec_steps steps;
    mrec_times times;
    mrec_array **values;
    uint64_t nframes;
    bool complete; /* every chunk was stored by us, so that a missing one is a loss */
} mrec_sequence;

/* Check and copy the schema and set up the groups; no array exists yet, nothing is written. The lock is that of the
 * record at root; NULL: nothing will be. schema_json and other_attributes may be NULL: made from the schema, and none.
 * Free it also after a failure. */
mrec_status mrec_sequence_init(mrec_sequence *, mrec_vfs *, const mrec_lock *, const char *root, const mrec_schema *,
                               const char *schema_json, const char *other_attributes, mrec_error *);
void mrec_sequence_free(mrec_sequence *);

/* Make the arrays of columns, masks and values that are missing. */
mrec_status mrec_sequence_make_arrays(mrec_sequence *, const mrec_options *, mrec_error *);

/* A staged frame becomes the last one; its rows are exchanged for those of the frame before. A failure leaves the
 * sequence unusable. */
mrec_status mrec_sequence_apply(mrec_sequence *, mrec_staged *, mrec_error *);

/* The last frame of a record that was there (resolved: every block that has an update so far is present) becomes what
 * the next frame is compared with. */
mrec_status mrec_sequence_prime(mrec_sequence *, mrec_staged *last, mrec_error *);

/* Every array and group below trajectory/ in the order in which their documents are replaced. */
mrec_status mrec_sequence_visit(mrec_sequence *, mrec_node_visit, void *arg, mrec_error *);

/* The text of trajectory/zarr.json as of the last frame; `live`: with mrec_nstep. */
mrec_status mrec_sequence_marker(const mrec_sequence *, bool live, mrec_buffer *out, mrec_error *);

/* "trajectory/meta/<name>" of a value; free it, NULL when memory ran out. */
char *mrec_value_key(const mrec_value *);

#endif

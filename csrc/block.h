/* SPDX-License-Identifier: BSD-3-Clause
 * One block of a trajectory under a writer: its updates, the change check, and the switch from regular to indexed
 * (trajectory.md, Updates). */
#ifndef MREC_BLOCK_H
#define MREC_BLOCK_H

#include "node.h"
#include "stage.h"

typedef enum mrec_form {
    MREC_FORM_NONE,    /* no update yet */
    MREC_FORM_REGULAR, /* update j sits at frame j, each of the same rows; a cell that never changed */
    MREC_FORM_INDEXED  /* step_index says where each update sits */
} mrec_form;

typedef struct mrec_column_state {
    const mrec_column *column;
    double grid; /* of the precision, 0 without */
    mrec_array *rows;
    mrec_array *mask;            /* NULL unless nullable */
    mrec_buffer last, last_mask; /* the update before, for the change check ... */
    bool cut;                    /* ... or only how it begins: all of it is the last chunk */
} mrec_column_state;

typedef struct mrec_block_state {
    mrec_store *store;
    const mrec_block *block;
    mrec_group group, mask_group; /* mask_group is used when has_masks */
    bool has_masks;
    char *other_attributes; /* members that are not ours to change */
    mrec_form form;
    uint64_t updates, total_rows;
    uint64_t uniform_rows; /* while REGULAR */
    uint64_t last_rows;
    bool still; /* the last update began like the one before, or is the first */
    mrec_column_state *columns;
    mrec_array *step_index, *offset; /* while INDEXED */
} mrec_block_state;

/* Groups and states for a block without updates; the arrays of the columns are the caller's to set. `block` and
 * `store` must outlive the state. */
mrec_status mrec_block_init(mrec_block_state *, mrec_store *, const mrec_block *block, const char *other_attributes,
                            mrec_error *);
void mrec_block_free(mrec_block_state *);

/* Make the arrays that are missing, by the layout rules. */
mrec_status mrec_block_make_columns(mrec_block_state *, const mrec_options *, mrec_error *);

/* What was staged becomes the update of frame `ordinal`, unless it equals the update before bit for bit. Its rows,
 * unless they are the caller's, are exchanged for those of the update before. A failure leaves the block unusable. */
mrec_status mrec_block_apply(mrec_block_state *, mrec_staged_block *, uint64_t ordinal, mrec_error *);

/* What was staged becomes the update before, without a trace on disk (opening to append). */
mrec_status mrec_block_prime(mrec_block_state *, mrec_staged_block *, mrec_error *);

/* The group's attributes for the present form. */
mrec_status mrec_block_set_attributes(mrec_block_state *, mrec_error *);

/* offset, step_index, the group, then masks and columns; of a trajectory of so many frames. */
mrec_status mrec_block_visit(mrec_block_state *, uint64_t nframes, mrec_node_visit, void *arg, mrec_error *);

#endif

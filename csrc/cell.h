/* SPDX-License-Identifier: BSD-3-Clause
 * The simulation cell over time under a writer: attributes while it never changed, arrays afterwards. */
#ifndef MREC_CELL_H
#define MREC_CELL_H

#include "block.h"

typedef struct mrec_cell_state {
    mrec_store *store;
    mrec_group group;
    char *other_attributes;
    mrec_form form; /* REGULAR: one cell since frame 0, in the attributes */
    uint64_t updates;
    mrec_cell last;
    mrec_array *step_index, *vectors, *origin, *boundary; /* while INDEXED; the last two when ever not the default */
} mrec_cell_state;

mrec_status mrec_cell_init(mrec_cell_state *, mrec_store *, const char *other_attributes, mrec_error *);
void mrec_cell_free(mrec_cell_state *);

/* The cell of frame `ordinal`, as it was staged. */
mrec_status mrec_cell_apply(mrec_cell_state *, const mrec_cell *, uint64_t ordinal, mrec_error *);

mrec_status mrec_cell_set_attributes(mrec_cell_state *, mrec_error *);

/* step_index, origin, boundary, vectors, then the group. */
mrec_status mrec_cell_visit(mrec_cell_state *, mrec_node_visit, void *arg, mrec_error *);

#endif

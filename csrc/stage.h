/* SPDX-License-Identifier: BSD-3-Clause
 * A frame on its way into a trajectory: checked whole, copied from the caller's arrays and rounded, before anything
 * changes. What a frame is checked against never changes after set-up, or stands in mrec_taken: so one thread may stage
 * while another applies what was staged before. */
#ifndef MREC_STAGE_H
#define MREC_STAGE_H

#include "buffer.h"
#include "mrec.h"

struct mrec_sequence;

/* The frames taken so far, as far as the next one has to agree with them. */
typedef struct mrec_taken {
    uint64_t nframes;
    int64_t last_step;
    bool has_times;    /* decided by the first frame */
    bool has_cell;     /* a frame had one ... */
    bool cell_defined; /* ... which decided this */
} mrec_taken;

typedef struct mrec_staged_column {
    const uint8_t *at; /* its bytes, in `copy` or where the caller has them; strings: u32 length + bytes each */
    size_t size;
    mrec_buffer copy;
    mrec_buffer mask; /* empty unless nullable */
} mrec_staged_column;

typedef struct mrec_staged_block {
    bool present;
    uint64_t rows;
    size_t ncolumns;
    mrec_staged_column *columns;
} mrec_staged_block;

typedef struct mrec_staged {
    int64_t step;
    double time;
    bool has_time, has_cell;
    mrec_cell cell; /* in its normal form: comparable byte by byte */
    size_t nblocks, nvalues;
    mrec_staged_block *blocks; /* schema order */
    mrec_buffer *values;
    uint64_t bytes; /* of its blocks */
    bool borrows;   /* it is applied before the caller's arrays change: what is a chunk as it stands is not copied */
} mrec_staged;

/* Room for frames of this schema. */
mrec_status mrec_staged_new(const mrec_schema *, mrec_staged **, mrec_error *);
void mrec_staged_free(mrec_staged *);

/* Check a frame against the declaration and what was taken before, and copy it. VALUE: a step that does not ascend, a
 * time or cell that contradicts the frames before; SCHEMA: data that does not fit. Nothing else changes. */
mrec_status mrec_stage(const struct mrec_sequence *, const mrec_taken *, const mrec_frame *, mrec_staged *,
                       mrec_error *);

/* Only the blocks and the cell, which need not agree with the frames before. */
mrec_status mrec_stage_content(const struct mrec_sequence *, const mrec_frame *, uint64_t number, mrec_staged *,
                               mrec_error *);

/* Bytes of its rows. */
uint64_t mrec_staged_bytes(const mrec_staged_block *);

/* Bytes of memory that its buffers hold, whatever is in them. */
uint64_t mrec_staged_capacity(const mrec_staged *);

/* What was staged counts as taken. */
void mrec_take(mrec_taken *, const mrec_staged *);

#endif

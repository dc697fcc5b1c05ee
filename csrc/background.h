/* SPDX-License-Identifier: BSD-3-Clause
 * The thread behind a writer. It takes staged frames and commits in the order in which they were given, so that the
 * caller's thread neither encodes nor waits for the disk. One thread gives; it alone calls these functions. */
#ifndef MREC_BACKGROUND_H
#define MREC_BACKGROUND_H

#include "commit.h"

typedef struct mrec_background mrec_background;

/* What the thread does, with `arg`. After the first that fails it does nothing more. */
typedef struct mrec_background_work {
    void *arg;
    mrec_status (*apply)(void *arg, mrec_staged *);
    mrec_status (*commit)(void *arg, mrec_commit_kind);
} mrec_background_work;

/* Frames of `schema`; while the caller waits, it helps the pool. Both outlive this. */
mrec_status mrec_background_new(const mrec_schema *, mrec_pool *, const mrec_background_work *, mrec_background **,
                                mrec_error *);

/* What is still queued is dropped, but for what the thread is at. NULL is allowed. */
void mrec_background_free(mrec_background *);

/* Room for the next frame; waits while the queue is full. It belongs to the caller until it is given, and comes back
 * here when it was not. */
mrec_status mrec_background_room(mrec_background *, mrec_staged **, mrec_error *);
void mrec_background_give(mrec_background *, mrec_staged *);

/* Queue a commit behind what was given so far. */
void mrec_background_commit(mrec_background *, mrec_commit_kind);

/* Until all that was given is done, or failed. */
void mrec_background_wait(mrec_background *);

#endif

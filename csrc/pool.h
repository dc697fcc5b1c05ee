/* SPDX-License-Identifier: BSD-3-Clause
 * Chunks on their way through the encoder, by several threads, taken back in the order in which they came. One thread
 * submits and takes back; one other may help. Nothing here does I/O. */
#ifndef MREC_POOL_H
#define MREC_POOL_H

#include "codec.h"

/* One chunk. What it is for is the submitter's to say. */
typedef struct mrec_job {
    void *owner;
    uint64_t chunk;
    const mrec_pipeline *pipeline; /* must outlive the job */
    mrec_buffer raw, encoded;
    mrec_status status;
    mrec_error error;
    bool done;
} mrec_job;

typedef struct mrec_pool mrec_pool;

/* `workers` threads that do nothing else, none at all among them. They see no signals. MEMORY also when the system
 * gives no more threads. */
mrec_status mrec_pool_new(unsigned workers, mrec_pool **, mrec_error *);

/* What is under way is dropped. */
void mrec_pool_free(mrec_pool *);

/* Whether another n bytes are too many: then the oldest job has to be taken back before. */
bool mrec_pool_full(mrec_pool *, size_t n);

/* A job with a copy of these bytes. Only when the pool is not full. */
mrec_status mrec_pool_submit(mrec_pool *, void *owner, uint64_t chunk, const mrec_pipeline *, const void *bytes,
                             size_t n, mrec_error *);

/* The job that is longest under way, encoded; until it is, this thread encodes too. NULL: there is none. */
mrec_job *mrec_pool_oldest(mrec_pool *, mrec_coder *);

/* The oldest is done with. */
void mrec_pool_end(mrec_pool *, mrec_job *);

/* Encode what there is and what comes, until another thread calls mrec_pool_release, now or before. */
void mrec_pool_help(mrec_pool *, mrec_coder *);
void mrec_pool_release(mrec_pool *);

#endif

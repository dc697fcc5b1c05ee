/* SPDX-License-Identifier: BSD-3-Clause
 * What is behind a mrec_writer. */
#ifndef MREC_WRITER_H
#define MREC_WRITER_H

#include "commit.h"
#include "lock.h"

#include <stdatomic.h>

struct mrec_writer {
    mrec_sequence sequence;
    mrec_options options;
    mrec_lock *lock;
    unsigned fork_count;
    atomic_flag busy;
    bool closed;
    mrec_error first;             /* what poisoned it; status MREC_OK while it is sound */
    uint64_t published;           /* frames */
    uint64_t durable;             /* frames */
    uint64_t waiting_bytes;       /* of frames not yet landed */
    uint64_t land_every;          /* frames; decided by the first frame, 0 before */
    double landed_at, durable_at; /* seconds of the monotonic clock */
};

/* mrec_create on other system calls; testing replaces them. */
mrec_status mrec_create_on(mrec_vfs *, const char *path, const mrec_schema *, const mrec_options *, mrec_writer **,
                           mrec_error *);

/* A writer around a sequence that is still to be set up: the lock is taken over, also on failure. */
mrec_status mrec_writer_new(mrec_lock *, const mrec_options *, mrec_writer **, mrec_error *);

#endif

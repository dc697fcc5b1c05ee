/* SPDX-License-Identifier: BSD-3-Clause
 * What is behind a mrec_writer. */
#ifndef MREC_WRITER_H
#define MREC_WRITER_H

#include "background.h"
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
    mrec_taken taken;
    mrec_staged *staged;          /* the next frame; without a thread behind the writer */
    mrec_background *background;  /* NULL: all is done by the caller's thread */
    mrec_error first;             /* what poisoned it */
    atomic_bool failed;           /* ... which stands there */
    _Atomic uint64_t published;   /* frames */
    _Atomic uint64_t durable;     /* frames */
    uint64_t handed;              /* frames that a landing was asked for */
    uint64_t waiting_bytes;       /* of the frames after these */
    uint64_t largest;             /* bytes of a frame so far, which decides: */
    uint64_t land_every;          /* frames; 0 before the first */
    double landed_at, durable_at; /* seconds of the monotonic clock */
};

/* mrec_create on other system calls; testing replaces them. schema_json: the declaration as it is stored, when it says
 * more than the schema, as what blocks owe each other, which the caller sees to; NULL: it is made from the schema. */
mrec_status mrec_create_on(mrec_vfs *, const char *path, const mrec_schema *, const char *schema_json,
                           const mrec_options *, mrec_writer **, mrec_error *);

/* A writer around a sequence that is still to be set up: the lock is taken over, also on failure. */
mrec_status mrec_writer_new(mrec_lock *, const mrec_options *, mrec_writer **, mrec_error *);

/* Until the thread behind the writer has done all it was given: for tests that look at what is on disk. */
void mrec_writer_wait(mrec_writer *);

#endif

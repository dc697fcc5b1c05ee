/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "background.h"

#include "thread.h"

#include <stdlib.h>

#define ENTRIES 1024                       /* queued at a time ... */
#define BYTES ((uint64_t)16 * 1024 * 1024) /* ... and of so many bytes together, but for a single larger one */
#define BATCH ((uint64_t)64 * 1024) /* the thread is woken for so many bytes: waking costs more than a small frame */

/* A frame, or a commit. */
typedef struct entry {
    mrec_staged *frame;
    mrec_commit_kind kind;
} entry;

/* What the caller waits for. */
typedef enum wish { NOTHING, ROOM, ALL } wish;

struct mrec_background {
    pthread_t thread;
    pthread_mutex_t mutex; /* of all up to nfree */
    pthread_cond_t work;
    entry ring[ENTRIES]; /* number n at n % ENTRIES */
    uint64_t done, given;
    uint64_t bytes, unseen; /* queued; and of these not yet called for */
    bool ending, sleeping;
    wish wanted;
    mrec_staged *free[ENTRIES]; /* the one used last on top, its memory is warm */
    size_t nfree;
    uint64_t held; /* capacity of these, at most BYTES, but for a single one */
    mrec_background_work to_do;
    bool failed; /* the thread's alone */
    mrec_pool *pool;
    const mrec_schema *schema; /* this and below: the caller's alone */
    mrec_coder *coder;
    mrec_staged *next;
};

/* Half empty, so that the two do not wake each other for every frame. */
static bool has(const mrec_background *b, wish wanted) {
    const uint64_t queued = b->given - b->done;
    return queued == 0 || (wanted == ROOM && queued <= ENTRIES / 2 && b->bytes <= BYTES / 2);
}

static void carry_out(mrec_background *b, const entry *e) {
    if (b->failed)
        return;
    const mrec_background_work *w = &b->to_do;
    b->failed = (e->frame ? w->apply(w->arg, e->frame) : w->commit(w->arg, e->kind)) != MREC_OK;
}

/* Under the mutex. A few large frames among many small ones must not leave every entry with their memory. */
static void give_back(mrec_background *b, mrec_staged *frame) {
    const uint64_t capacity = mrec_staged_capacity(frame);
    if (b->nfree > 0 && b->held + capacity > BYTES) {
        mrec_staged_free(frame);
        return;
    }
    b->held += capacity;
    b->free[b->nfree++] = frame;
}

static mrec_staged *take_free(mrec_background *b) {
    mrec_staged *frame = b->free[--b->nfree];
    b->held -= mrec_staged_capacity(frame);
    return frame;
}

static void *work(void *arg) {
    mrec_background *b = arg;
    pthread_mutex_lock(&b->mutex);
    while (!b->ending) {
        if (b->done == b->given) {
            b->sleeping = true;
            pthread_cond_wait(&b->work, &b->mutex);
            b->sleeping = false;
            continue;
        }
        entry e = b->ring[b->done % ENTRIES];
        pthread_mutex_unlock(&b->mutex);
        carry_out(b, &e);
        pthread_mutex_lock(&b->mutex);
        b->done++;
        if (e.frame) {
            b->bytes -= e.frame->bytes;
            give_back(b, e.frame);
        }
        if (b->wanted != NOTHING && has(b, b->wanted)) {
            b->wanted = NOTHING;
            mrec_pool_release(b->pool);
        }
    }
    pthread_mutex_unlock(&b->mutex);
    return NULL;
}

mrec_status mrec_background_new(const mrec_schema *schema, mrec_pool *pool, const mrec_background_work *to_do,
                                mrec_background **out, mrec_error *error) {
    mrec_background *b = *out = calloc(1, sizeof *b);
    if (!b)
        return mrec_fail_memory(error);
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->work, NULL);
    b->to_do = *to_do;
    b->schema = schema;
    b->pool = pool;
    mrec_status status = mrec_coder_new(&b->coder, error);
    if (status == MREC_OK)
        status = mrec_thread_start(&b->thread, work, b, error);
    if (status == MREC_OK)
        return MREC_OK;
    mrec_coder_free(b->coder);
    free(b);
    *out = NULL;
    return status;
}

void mrec_background_free(mrec_background *b) {
    if (!b)
        return;
    pthread_mutex_lock(&b->mutex);
    b->ending = true;
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->mutex);
    pthread_join(b->thread, NULL);
    for (; b->done < b->given; b->done++)
        mrec_staged_free(b->ring[b->done % ENTRIES].frame);
    while (b->nfree > 0)
        mrec_staged_free(b->free[--b->nfree]);
    mrec_staged_free(b->next);
    mrec_coder_free(b->coder);
    pthread_cond_destroy(&b->work);
    pthread_mutex_destroy(&b->mutex);
    free(b);
}

static void call(mrec_background *b) {
    b->unseen = 0;
    if (b->sleeping)
        pthread_cond_signal(&b->work);
}

/* Under the mutex. While it waits, this thread encodes for the other. */
static void wait_for(mrec_background *b, wish wanted) {
    if (has(b, wanted))
        return;
    b->wanted = wanted;
    call(b);
    pthread_mutex_unlock(&b->mutex);
    mrec_pool_help(b->pool, b->coder);
    pthread_mutex_lock(&b->mutex);
}

mrec_status mrec_background_room(mrec_background *b, mrec_staged **out, mrec_error *error) {
    pthread_mutex_lock(&b->mutex);
    if (b->given - b->done > ENTRIES - 2 || b->bytes >= BYTES) /* a frame may come with a commit */
        wait_for(b, ROOM);
    if (!b->next && b->nfree > 0)
        b->next = take_free(b);
    pthread_mutex_unlock(&b->mutex);
    if (!b->next)
        MREC_TRY(mrec_staged_new(b->schema, &b->next, error));
    *out = b->next;
    return MREC_OK;
}

static void give(mrec_background *b, entry e, bool urgent) {
    pthread_mutex_lock(&b->mutex);
    if (b->given - b->done == ENTRIES)
        wait_for(b, ROOM);
    b->ring[b->given++ % ENTRIES] = e;
    if (e.frame) {
        b->bytes += e.frame->bytes;
        b->unseen += e.frame->bytes;
    }
    if (urgent || b->unseen >= BATCH)
        call(b);
    pthread_mutex_unlock(&b->mutex);
}

void mrec_background_give(mrec_background *b, mrec_staged *frame) {
    b->next = NULL;
    give(b, (entry){.frame = frame}, false);
}

void mrec_background_commit(mrec_background *b, mrec_commit_kind kind) {
    give(b, (entry){.kind = kind}, true);
}

void mrec_background_wait(mrec_background *b) {
    pthread_mutex_lock(&b->mutex);
    wait_for(b, ALL);
    pthread_mutex_unlock(&b->mutex);
}

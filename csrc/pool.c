/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "pool.h"

#include "thread.h"

#include <stdlib.h>

#define JOBS 32                               /* under way at a time ... */
#define POOL_BYTES ((size_t)16 * 1024 * 1024) /* ... and of so many bytes together, but for a single larger one */
#define POOL_HELD (2 * POOL_BYTES)

struct mrec_pool {
    pthread_mutex_t mutex; /* of all up to `released`, and of what is in the jobs under way */
    pthread_cond_t work, done;
    mrec_job *ring[JOBS]; /* those under way: submission n at n % JOBS */
    uint64_t claimed, submitted;
    bool ending, released;
    /* The submitting thread's alone: */
    mrec_job jobs[JOBS];
    mrec_job *free[JOBS]; /* not under way; the one used last on top, its memory is warm */
    size_t nfree;
    uint64_t oldest;
    size_t bytes; /* under way */
    size_t held;  /* memory of the jobs that are not, at most POOL_HELD */
    unsigned nworkers;
    pthread_t *workers;
};

/* The next waiting job, which is now this thread's; NULL when there is none. Under the mutex. */
static mrec_job *claim(mrec_pool *pool) {
    if (pool->claimed == pool->submitted)
        return NULL;
    return pool->ring[pool->claimed++ % JOBS];
}

/* Encode a claimed job. Under the mutex, which is let go meanwhile. */
static void encode_job(mrec_pool *pool, mrec_job *job, mrec_coder *coder) {
    pthread_mutex_unlock(&pool->mutex);
    job->status = mrec_encode(coder, job->pipeline, job->raw.data, job->raw.size, &job->encoded, &job->error);
    pthread_mutex_lock(&pool->mutex);
    job->done = true;
    pthread_cond_broadcast(&pool->done);
}

/* Under the mutex. */
static void serve(mrec_pool *pool, mrec_coder *coder, const bool *enough) {
    while (!*enough) {
        mrec_job *job = claim(pool);
        if (job)
            encode_job(pool, job, coder);
        else
            pthread_cond_wait(&pool->work, &pool->mutex);
    }
}

static void *worker(void *arg) {
    mrec_pool *pool = arg;
    mrec_coder *coder = NULL;
    if (mrec_coder_new(&coder, NULL) != MREC_OK)
        return NULL; /* the others do it */
    pthread_mutex_lock(&pool->mutex);
    serve(pool, coder, &pool->ending);
    pthread_mutex_unlock(&pool->mutex);
    mrec_coder_free(coder);
    return NULL;
}

mrec_status mrec_pool_new(unsigned workers, mrec_pool **out, mrec_error *error) {
    mrec_pool *pool = *out = calloc(1, sizeof *pool);
    if (!pool)
        return mrec_fail_memory(error);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    for (size_t i = 0; i < JOBS; i++)
        pool->free[pool->nfree++] = &pool->jobs[i];
    pool->workers = calloc(workers + 1, sizeof *pool->workers);
    mrec_status status = pool->workers ? MREC_OK : mrec_fail_memory(error);
    while (status == MREC_OK && pool->nworkers < workers) {
        status = mrec_thread_start(&pool->workers[pool->nworkers], worker, pool, error);
        pool->nworkers += status == MREC_OK;
    }
    if (status != MREC_OK) {
        mrec_pool_free(pool);
        *out = NULL;
    }
    return status;
}

void mrec_pool_free(mrec_pool *pool) {
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->ending = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->nworkers; i++)
        pthread_join(pool->workers[i], NULL);
    for (size_t i = 0; i < JOBS; i++) {
        mrec_buffer_free(&pool->jobs[i].raw);
        mrec_buffer_free(&pool->jobs[i].encoded);
    }
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool->workers);
    free(pool);
}

static size_t capacity(const mrec_job *job) {
    return job->raw.capacity + job->encoded.capacity;
}

/* What is free, and how much is under way, is the submitting thread's alone. */
bool mrec_pool_full(mrec_pool *pool, size_t n) {
    return pool->nfree == 0 || (pool->bytes > 0 && (n > POOL_BYTES || pool->bytes > POOL_BYTES - n));
}

mrec_status mrec_pool_submit(mrec_pool *pool, void *owner, uint64_t chunk, const mrec_pipeline *pipeline,
                             const void *bytes, size_t n, mrec_error *error) {
    mrec_job *job = pool->free[pool->nfree - 1];
    pool->held -= capacity(job);
    job->raw.size = job->encoded.size = 0;
    mrec_status status = mrec_buffer_add(&job->raw, bytes, n, error);
    if (status != MREC_OK) {
        pool->held += capacity(job);
        return status;
    }
    job->owner = owner;
    job->chunk = chunk;
    job->pipeline = pipeline;
    job->done = false;
    pool->nfree--;
    pool->bytes += n;
    pthread_mutex_lock(&pool->mutex);
    pool->ring[pool->submitted++ % JOBS] = job;
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    return MREC_OK;
}

mrec_job *mrec_pool_oldest(mrec_pool *pool, mrec_coder *coder) {
    pthread_mutex_lock(&pool->mutex);
    mrec_job *oldest = pool->oldest < pool->submitted ? pool->ring[pool->oldest % JOBS] : NULL;
    while (oldest && !oldest->done) {
        mrec_job *job = claim(pool);
        if (job)
            encode_job(pool, job, coder);
        else
            pthread_cond_wait(&pool->done, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return oldest;
}

void mrec_pool_end(mrec_pool *pool, mrec_job *job) {
    pool->oldest++;
    pool->bytes -= job->raw.size;
    if (capacity(job) > POOL_HELD - pool->held) {
        mrec_buffer_free(&job->raw);
        mrec_buffer_free(&job->encoded);
    }
    pool->held += capacity(job);
    pool->free[pool->nfree++] = job;
}

void mrec_pool_help(mrec_pool *pool, mrec_coder *coder) {
    pthread_mutex_lock(&pool->mutex);
    serve(pool, coder, &pool->released);
    pool->released = false;
    pthread_mutex_unlock(&pool->mutex);
}

void mrec_pool_release(mrec_pool *pool) {
    pthread_mutex_lock(&pool->mutex);
    pool->released = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

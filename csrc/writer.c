/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAND_BYTES (4 * 1024 * 1024)
#define LAND_FRAMES 4096
#define LAND_SECONDS 10.0
#define DURABLE_SECONDS 60.0

static double now(void) {
    struct timespec t;
#if defined(CLOCK_MONOTONIC_COARSE)
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void mrec_options_init(mrec_options *options) {
    memset(options, 0, sizeof *options);
    options->flush_seconds = LAND_SECONDS;
    options->durable_seconds = DURABLE_SECONDS;
}

mrec_status mrec_writer_new(mrec_lock *lock, const mrec_options *options, mrec_writer **out, mrec_error *error) {
    mrec_writer *writer = calloc(1, sizeof *writer);
    *out = writer;
    if (!writer) {
        mrec_lock_free(lock);
        return mrec_fail_memory(error);
    }
    writer->lock = lock;
    writer->options = *options;
    if (writer->options.flush_seconds == 0)
        writer->options.flush_seconds = LAND_SECONDS;
    if (writer->options.durable_seconds == 0)
        writer->options.durable_seconds = DURABLE_SECONDS;
    writer->options.meta_json = NULL; /* the caller's */
    writer->fork_count = mrec_fork_count();
    atomic_flag_clear(&writer->busy);
    writer->landed_at = writer->durable_at = now();
    return MREC_OK;
}

static void end_threads(mrec_writer *writer) {
    mrec_background_free(writer->background);
    writer->background = NULL;
    mrec_pool_free(writer->sequence.store.pool);
    writer->sequence.store.pool = NULL;
}

void mrec_free(mrec_writer *writer) {
    if (!writer)
        return;
    if ((writer->background || writer->sequence.store.pool) && writer->fork_count != mrec_fork_count())
        return; /* a thread, which did not cross, may have been in the middle of anything */
    end_threads(writer);
    mrec_staged_free(writer->staged);
    mrec_sequence_free(&writer->sequence);
    mrec_lock_free(writer->lock);
    free(writer);
}

/* ---- one call at a time ---- */

static mrec_status repeat_error(const mrec_writer *writer, mrec_error *error) {
    if (error)
        *error = writer->first;
    return writer->first.status;
}

/* Every call that changes the writer stands between enter and leave. */
static mrec_status enter(mrec_writer *writer, mrec_error *error) {
    if (writer->fork_count != mrec_fork_count())
        return mrec_fail(error, MREC_E_FORKED, writer->sequence.store.root,
                         "this writer belongs to the parent process; only it can append");
    if (atomic_flag_test_and_set_explicit(&writer->busy, memory_order_acquire))
        return mrec_fail(error, MREC_E_BUSY, writer->sequence.store.root,
                         "the writer is inside another call; one writer serves one thread at a time");
    return MREC_OK;
}

static mrec_status leave(mrec_writer *writer, mrec_status status) {
    atomic_flag_clear_explicit(&writer->busy, memory_order_release);
    return status;
}

static bool failed(const mrec_writer *writer) {
    return atomic_load_explicit(&writer->failed, memory_order_acquire);
}

static mrec_status check_usable(const mrec_writer *writer, mrec_error *error) {
    if (failed(writer))
        return repeat_error(writer, error);
    if (writer->closed)
        return mrec_fail(error, MREC_E_CLOSED, writer->sequence.store.root, "the writer was closed");
    return MREC_OK;
}

/* ---- what the thread behind the writer does, or the caller's ---- */

/* Remember a failure after which memory and disk no longer agree. */
static mrec_status poison(mrec_writer *writer, mrec_status status, const mrec_error *local) {
    writer->first = *local;
    atomic_store_explicit(&writer->failed, true, memory_order_release);
    return status;
}

static mrec_status apply(void *arg, mrec_staged *staged) {
    mrec_writer *writer = arg;
    mrec_error local; /* a failure fills it: clearing 2 KB costs more than staging 100 atoms */
    mrec_status status = mrec_sequence_apply(&writer->sequence, staged, &local);
    return status == MREC_OK ? MREC_OK : poison(writer, status, &local);
}

static mrec_status commit(void *arg, mrec_commit_kind kind) {
    mrec_writer *writer = arg;
    const bool durable = kind == MREC_COMMIT_DURABLE || kind == MREC_COMMIT_CLOSE;
    const bool closing = kind == MREC_COMMIT_CLOSE || kind == MREC_COMMIT_CLOSE_UNSYNCED;
    if (!closing && (durable ? writer->durable : writer->published) == writer->sequence.nframes)
        return MREC_OK;
    mrec_error local;
    mrec_status status = mrec_commit(&writer->sequence, kind, &local);
    if (status != MREC_OK)
        return poison(writer, status, &local);
    writer->published = writer->sequence.nframes;
    if (durable)
        writer->durable = writer->sequence.nframes;
    return MREC_OK;
}

/* ---- handing over ---- */

static mrec_status stage_here(mrec_writer *writer, mrec_error *error) {
    MREC_TRY(mrec_staged_new(&writer->sequence.declared.schema, &writer->staged, error));
    writer->staged->borrows = true;
    return MREC_OK;
}

/* threads = 2: the caller's and one behind it, which both encode; more: others that do nothing but encode. */
static mrec_status start_threads(mrec_writer *writer, mrec_error *error) {
    mrec_sequence *seq = &writer->sequence;
    const mrec_background_work work = {.arg = writer, .apply = apply, .commit = commit};
    if (writer->options.threads < 2)
        return stage_here(writer, error);
    MREC_TRY(mrec_pool_new(writer->options.threads - 2, &seq->store.pool, error));
    mrec_status status = mrec_background_new(&seq->declared.schema, seq->store.pool, &work, &writer->background, error);
    if (status != MREC_OK)
        end_threads(writer);
    return status;
}

static mrec_status room_for_frame(mrec_writer *writer, mrec_staged **staged, mrec_error *error) {
    if (!writer->background && !writer->staged)
        MREC_TRY(start_threads(writer, error));
    *staged = writer->staged;
    return writer->background ? mrec_background_room(writer->background, staged, error) : MREC_OK;
}

static mrec_status hand_over(mrec_writer *writer, mrec_staged *staged, mrec_error *error) {
    if (writer->background)
        mrec_background_give(writer->background, staged);
    else if (apply(writer, staged) != MREC_OK)
        return repeat_error(writer, error);
    return MREC_OK;
}

static mrec_status ask_for(mrec_writer *writer, mrec_commit_kind kind, mrec_error *error) {
    writer->handed = writer->taken.nframes;
    writer->waiting_bytes = 0;
    if (writer->background)
        mrec_background_commit(writer->background, kind);
    else if (commit(writer, kind) != MREC_OK)
        return repeat_error(writer, error);
    writer->landed_at = now();
    if (kind == MREC_COMMIT_DURABLE)
        writer->durable_at = writer->landed_at;
    return MREC_OK;
}

void mrec_writer_wait(mrec_writer *writer) {
    if (writer->background)
        mrec_background_wait(writer->background);
}

/* ---- when to land ---- */

static const mrec_staged_block *largest_block(const mrec_staged *staged, size_t *at) {
    const mrec_staged_block *largest = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < staged->nblocks; i++) {
        const uint64_t bytes = staged->blocks[i].present ? mrec_staged_bytes(&staged->blocks[i]) : 0;
        if (bytes <= most)
            continue;
        most = bytes;
        largest = &staged->blocks[i];
        *at = i;
    }
    return largest;
}

/* The cadence rule of storage.md: 4 MiB of frames, in whole chunks of the block with the most bytes, at most 4096. */
static uint64_t cadence(const mrec_writer *writer, const mrec_staged *staged) {
    uint64_t frames = staged->bytes ? (LAND_BYTES + staged->bytes - 1) / staged->bytes : LAND_FRAMES;
    uint64_t per_chunk = 1;
    size_t at = 0;
    const mrec_staged_block *most = largest_block(staged, &at);
    if (most)
        per_chunk = writer->sequence.blocks[at].columns[0].rows->layout.rows_per_chunk / most->rows;
    if (per_chunk < 1 || per_chunk > LAND_FRAMES)
        per_chunk = per_chunk < 1 ? 1 : LAND_FRAMES;
    uint64_t limit = LAND_FRAMES / per_chunk * per_chunk;
    if (frames > limit)
        return limit;
    return (frames + per_chunk - 1) / per_chunk * per_chunk;
}

static bool should_land(const mrec_writer *writer) {
    const mrec_options *options = &writer->options;
    uint64_t waiting = writer->taken.nframes - writer->handed;
    if (options->flush_frames && waiting >= options->flush_frames)
        return true;
    if (options->flush_bytes && writer->waiting_bytes >= options->flush_bytes)
        return true;
    if (!options->flush_frames && !options->flush_bytes && waiting >= writer->land_every)
        return true;
    return now() - writer->landed_at >= options->flush_seconds;
}

static mrec_status land_when_due(mrec_writer *writer, mrec_error *error) {
    if (!should_land(writer))
        return MREC_OK;
    bool durable = !writer->options.no_durable && now() - writer->durable_at >= writer->options.durable_seconds;
    return ask_for(writer, durable ? MREC_COMMIT_DURABLE : MREC_COMMIT_AUTO, error);
}

/* ---- calls ---- */

static mrec_status append(mrec_writer *writer, const mrec_frame *frame, mrec_error *error) {
    mrec_staged *staged;
    MREC_TRY(check_usable(writer, error));
    MREC_TRY(room_for_frame(writer, &staged, error));
    MREC_TRY(mrec_stage(&writer->sequence, &writer->taken, frame, staged, error));
    if (staged->bytes > writer->largest || writer->land_every == 0) {
        writer->largest = staged->bytes;
        writer->land_every = cadence(writer, staged);
    }
    writer->waiting_bytes += staged->bytes;
    mrec_take(&writer->taken, staged);
    MREC_TRY(hand_over(writer, staged, error));
    return land_when_due(writer, error);
}

mrec_status mrec_append(mrec_writer *writer, const mrec_frame *frame, mrec_error *error) {
    MREC_TRY(enter(writer, error));
    return leave(writer, append(writer, frame, error));
}

/* Ask, and wait for what came of it. */
static mrec_status commit_now(mrec_writer *writer, mrec_commit_kind kind, mrec_error *error) {
    MREC_TRY(ask_for(writer, kind, error));
    mrec_writer_wait(writer);
    return failed(writer) ? repeat_error(writer, error) : MREC_OK;
}

static mrec_status flush(mrec_writer *writer, bool durable, mrec_error *error) {
    MREC_TRY(check_usable(writer, error));
    durable = durable && !writer->options.no_durable;
    return commit_now(writer, durable ? MREC_COMMIT_DURABLE : MREC_COMMIT_AUTO, error);
}

mrec_status mrec_flush(mrec_writer *writer, bool durable, mrec_error *error) {
    MREC_TRY(enter(writer, error));
    return leave(writer, flush(writer, durable, error));
}

static mrec_status close_writer(mrec_writer *writer, mrec_error *error) {
    if (writer->closed)
        return MREC_OK;
    writer->closed = true;
    mrec_commit_kind kind = writer->options.no_durable ? MREC_COMMIT_CLOSE_UNSYNCED : MREC_COMMIT_CLOSE;
    mrec_status status = failed(writer) ? repeat_error(writer, error) : commit_now(writer, kind, error);
    end_threads(writer);
    mrec_commit_close_files(&writer->sequence);
    mrec_lock_free(writer->lock);
    writer->lock = NULL;
    writer->sequence.store.files.lock = NULL;
    return status;
}

mrec_status mrec_close(mrec_writer *writer, mrec_error *error) {
    MREC_TRY(enter(writer, error));
    return leave(writer, close_writer(writer, error));
}

bool mrec_closed(const mrec_writer *writer) {
    return writer->closed;
}

const mrec_schema *mrec_writer_schema(const mrec_writer *writer) {
    return &writer->sequence.declared.schema;
}

mrec_status mrec_check_schema(const mrec_writer *writer, const mrec_schema *schema, mrec_error *error) {
    return mrec_schema_match(mrec_writer_schema(writer), schema, error);
}

uint64_t mrec_nframes(const mrec_writer *writer) {
    return writer->taken.nframes;
}

uint64_t mrec_npublished(const mrec_writer *writer) {
    return writer->published;
}

uint64_t mrec_ndurable(const mrec_writer *writer) {
    return writer->durable;
}

bool mrec_last_step(const mrec_writer *writer, int64_t *step) {
    *step = writer->taken.last_step;
    return writer->taken.nframes > 0;
}

bool mrec_has_times(const mrec_writer *writer) {
    return writer->taken.nframes > 0 && writer->taken.has_times;
}
